"""The pass sink-reductions: reductions of what a layer loop stacks go into that loop."""
