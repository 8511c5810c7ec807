"""Plan files: the decision about a step, kept in a file and replayed when the step is compiled again."""
