"""The pass ``split-stages``: from a step with stage marks to a program of several meshes."""

from hlorewrite.pipelines.passes.split_stages.split_stages import SplitStages

__all__ = ["SplitStages"]
