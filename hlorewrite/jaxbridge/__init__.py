"""The bridge to JAX: the decorators, compiling, running. Only this package imports jax."""
