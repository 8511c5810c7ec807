"""The step that a module holds, and its interface to callers."""
