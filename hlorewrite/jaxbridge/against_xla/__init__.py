"""A rewritten step next to what XLA makes of the user's own module, for the same devices."""
