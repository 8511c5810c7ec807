"""The pass peel-last-micro-batch: the last iteration of an accumulation loop after it."""
