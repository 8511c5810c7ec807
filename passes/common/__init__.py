"""Shared by several passes: emitters of collectives, shard indices, value numbers."""
