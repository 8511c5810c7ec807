"""The choice of the module that a step is compiled from: candidates, what is better, plans that keep it."""
