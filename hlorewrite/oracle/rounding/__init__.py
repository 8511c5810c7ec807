"""Bounds of what another order of summation changes: a running error analysis of a module before and after."""
