"""hlorewrite: rewrites the communication of StableHLO programs by declared, proven rules."""

__version__ = "0.1.0"
