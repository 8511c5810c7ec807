"""``python -m hlorewrite``."""

from hlorewrite.cli.main import entry

entry()
