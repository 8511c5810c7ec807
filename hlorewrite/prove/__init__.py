"""Proofs of rules and linearity facts for all ranks, sizes, groups and admitted element types, by the solver z3."""
