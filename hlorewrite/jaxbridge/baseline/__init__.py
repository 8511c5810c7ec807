"""XLA alone: what it makes of the user's own module, and a rewritten one next to it, for the same devices."""
