"""Checks that imports inside the package run downwards only, and that one package alone imports jax.

Usage: ``python tools/import_layers.py``; prints each violation and exits 1 when there is one.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

# Highest first: a layer may import itself and what stands below it.
LAYERS = ["cli", "viewer", "jaxbridge", "oracle", "passes", "patterns", "pipeline", "rules", "plan", "cost", "spmd",
          "ir", "errors"]
PACKAGE = Path(__file__).resolve().parent.parent / "hlorewrite"


def imported_modules(tree: ast.AST) -> list[tuple[int, str]]:
    """Every absolute module name imported anywhere in a file, with its line."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.append((node.lineno, node.module))
            found += [(node.lineno, f"{node.module}.{alias.name}") for alias in node.names]
    return found


def violations(path: Path) -> list[str]:
    """The sentences about one file; empty when it keeps the rules."""
    parts = path.relative_to(PACKAGE).parts
    layer = parts[0].removesuffix(".py")
    if layer not in LAYERS:
        return []
    allowed = set(LAYERS[LAYERS.index(layer):])
    out = []
    for line, name in imported_modules(ast.parse(path.read_text(), str(path))):
        root, _, rest = name.partition(".")
        where = f"{path.relative_to(PACKAGE.parent)}:{line}"
        if root == "jax" and layer != "jaxbridge":
            out.append(f"{where}: {layer} imports jax; only hlorewrite/jaxbridge may")
        target = rest.split(".")[0]
        if root == "hlorewrite" and target in LAYERS and target not in allowed:
            out.append(f"{where}: {layer} imports {target}, which stands above it")
    return out


def main() -> int:
    """Checks every file of the package."""
    found = [line for path in sorted(PACKAGE.rglob("*.py")) for line in violations(path)]
    found += [line for link in ("passes", "patterns") for path in sorted((PACKAGE / link).glob("*.py"))
              for line in violations(path)]
    print("\n".join(dict.fromkeys(found)) or "imports run downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
