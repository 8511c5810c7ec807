"""Support for other libraries around JAX: Flax NNX, Equinox."""
