"""What several passes share: emitters of collectives, shard indices, value numbers, remarks."""
