"""What each device computes before XLA partitions a program and after it."""
