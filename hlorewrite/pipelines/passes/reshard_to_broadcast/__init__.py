"""The pass ``reshard-to-broadcast``: plans of transfers, and multicasts written by hand."""

from hlorewrite.pipelines.passes.reshard_to_broadcast.reshard_to_broadcast import ReshardToBroadcast

__all__ = ["ReshardToBroadcast"]
