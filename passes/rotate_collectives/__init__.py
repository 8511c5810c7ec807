"""The pass rotate-collectives: software pipelining of loops around their collectives."""
