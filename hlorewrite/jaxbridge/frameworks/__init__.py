"""What other libraries around JAX need: Flax NNX, Equinox."""
