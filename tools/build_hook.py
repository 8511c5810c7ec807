"""Packs the folders that ``hlorewrite/passes`` and ``hlorewrite/patterns`` lead to; run by hatchling.

The two are symbolic links, and text files where a checkout has no such links. A wheel is built from the folders
themselves; an editable installation needs the links.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LINKED = ("passes", "patterns")


class LinkedFolders(BuildHookInterface):
    """Adds the linked folders to a wheel."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it builds.

        Args:
          version: ``standard`` or ``editable``.
          build_data: what hatchling adds.
        """
        if version == "standard":
            build_data["force_include"].update({name: f"hlorewrite/{name}" for name in LINKED})
        elif not all((Path(self.root) / "hlorewrite" / name).is_dir() for name in LINKED):
            raise SystemExit("hlorewrite: this checkout has no symbolic links, so it cannot be installed with "
                             "--editable; clone it with: git clone -c core.symlinks=true")
