"""The syntax of rule files: grammar, parser, syntax tree and printer."""
