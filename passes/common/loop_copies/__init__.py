"""Copies of a loop's body outside it: barriers before them, and what they make themselves."""
