"""Deferred reductions: the places that a value can travel to before it is reduced, and the cheapest cut."""
