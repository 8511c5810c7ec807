"""``hlorewrite.patch_jit`` and ``hlorewrite exec``: what any framework jits, rewritten where JAX compiles it."""
