"""State that a step keeps differently from the user's function: shards and local sums."""
