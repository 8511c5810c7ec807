"""What an op means: its class, its attributes, where its dimensions and its elements go."""
