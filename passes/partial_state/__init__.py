"""The pass ``partial-state``: gradients that are accumulated across calls of a step stay local sums between them."""

from hlorewrite.passes.partial_state.partial_state import PartialState

__all__ = ["PartialState"]
