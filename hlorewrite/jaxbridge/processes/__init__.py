"""Agreement and supervision between the processes of a distributed step."""
