"""The page of a run: the answer first, every way, what was done, what stays and why, and what each pass changed."""
