"""Time and memory of one training iteration of a model on a cluster."""
