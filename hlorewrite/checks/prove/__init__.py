"""Proofs of rules and facts for all ranks, sizes, groups and element types, by the solver z3."""
