"""One step: its options, its module through passes, and the report of what they did."""
