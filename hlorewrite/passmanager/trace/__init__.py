"""The trace of a run: a directory of JSON files that `hlorewrite view` reads."""
