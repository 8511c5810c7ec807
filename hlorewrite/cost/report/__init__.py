"""Communication of a module: collectives with counts, bytes and times."""
