"""How large the messages of a job are."""
