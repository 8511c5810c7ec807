"""The modules with the natives of the shipped rules; ``import hlorewrite`` registers them with the rule language.

``tools/import_layers.py`` reads this table as imports.
"""

NATIVE_MODULES = {
    "natives": "hlorewrite.patterns.natives",
    "element_types": "hlorewrite.patterns.element_types",
    "shards": "hlorewrite.patterns.shards",
    "keepers": "hlorewrite.patterns.device_masks",
}
"""Name to module; nothing is imported before a native is asked for."""
