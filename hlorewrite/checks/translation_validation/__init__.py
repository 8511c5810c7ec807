"""Whether a rewritten module computes what its original does, from the two modules alone."""
