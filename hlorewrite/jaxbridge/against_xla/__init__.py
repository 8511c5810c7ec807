"""A rewritten step beside what XLA makes of the user's own module, for the same devices."""
