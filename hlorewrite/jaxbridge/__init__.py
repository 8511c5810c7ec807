"""The bridge to JAX: the decorators, compiling, running. Programs of one mesh import jax here only."""
