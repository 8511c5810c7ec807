"""What a compiled step communicates in loops, why XLA left it there, and what a user can do about it."""
