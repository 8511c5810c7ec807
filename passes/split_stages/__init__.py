"""The pass ``split-stages``."""

from hlorewrite.passes.split_stages.split_stages import SplitStages

__all__ = ["SplitStages"]
