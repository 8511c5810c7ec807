"""Puts this folder, and the one whose short forms of modules it uses, on the path."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "spmd")]
