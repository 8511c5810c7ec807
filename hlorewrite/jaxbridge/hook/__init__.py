"""``hlorewrite.patch_jit`` and ``hlorewrite exec``: rewriting what any framework jits, where JAX compiles it."""
