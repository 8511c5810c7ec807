"""``hlorewrite opt``: its flags, one run of it, and what it reports."""
