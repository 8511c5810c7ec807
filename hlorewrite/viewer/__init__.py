"""``hlorewrite view``: one self-contained page about a run, from its trace."""
