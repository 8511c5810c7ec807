"""Static checks of rule files: names, kinds, types and attributes."""
