"""The lockstep writer: the programs of N devices as one sequential program."""
