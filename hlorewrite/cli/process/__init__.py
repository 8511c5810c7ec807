"""The process of a subcommand: supervision, limits of time and memory, standard streams."""
