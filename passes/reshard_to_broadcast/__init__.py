"""The pass ``reshard-to-broadcast``."""

from hlorewrite.passes.reshard_to_broadcast.reshard_to_broadcast import ReshardToBroadcast

__all__ = ["ReshardToBroadcast"]
