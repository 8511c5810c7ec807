"""Writes the CHECK lines of golden files: ``python tools/update_lit_checks.py FILE...``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from hlorewrite.testing.update_checks import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
