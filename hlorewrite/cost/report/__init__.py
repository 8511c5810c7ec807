"""What a module communicates: collectives with counts, bytes and times."""
