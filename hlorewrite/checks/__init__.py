"""Whether a rewritten module computes the same as its original: by execution, by proof, and rules for all programs."""
