"""Passes, memory budgets and XLA flags that suit a step on a cluster: a search over measured choices."""
