"""State that a step keeps otherwise than the user's function: shards and local sums."""
