"""The step that a module holds, and what callers see of it."""
