"""The pass ``shard-update``: the optimizer's state, and the update of it, sharded over a mesh axis."""

from hlorewrite.passes.shard_update.shard_update import ShardUpdate

__all__ = ["ShardUpdate"]
