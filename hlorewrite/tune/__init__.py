"""Which passes, memory budget and XLA flags suit a step on a cluster: a search over measured choices."""
