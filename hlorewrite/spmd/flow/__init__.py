"""Deferred reductions: where a value may travel before it is reduced, and the cheapest cut of that flow."""
