"""hlorewrite rules: list, show, check, prove and document rewrite rules."""
