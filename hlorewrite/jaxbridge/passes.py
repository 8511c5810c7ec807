"""Passes that need jax, by name; ``import hlorewrite`` registers them with the pass manager.

``tools/import_layers.py`` reads this table as imports.
"""

PASSES = {
    "expose-collectives": "hlorewrite.jaxbridge.xla.expose_collectives:ExposeCollectives",
}
"""Name to ``module:class``; nothing is imported before a pass is asked for."""
