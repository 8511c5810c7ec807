"""Plan files: what was decided for a step, kept in a file and replayed when the step is compiled again."""
