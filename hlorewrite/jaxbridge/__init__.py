"""The bridge to JAX: compile, run and rewrite jitted steps. The only package that imports jax."""
