"""hlorewrite.export: a train step as a file that every subcommand reads, whatever types its state has."""
