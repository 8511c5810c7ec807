"""Measured times next to predicted ones: profiles of nsys and of JAX, and how they are matched with a schedule."""
