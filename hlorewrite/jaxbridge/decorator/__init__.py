"""``hlorewrite.optimize``: a jitted step whose module is rewritten before XLA compiles it."""
