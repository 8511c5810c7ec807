"""Suites of other projects, run through hlorewrite."""
