"""hlorewrite: rewrites the communication of StableHLO programs by declared, proven rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.microbatches import mean_over_microbatches as mean_over_microbatches
    from hlorewrite.jaxbridge.optimize import optimize as optimize
    from hlorewrite.jaxbridge.pipeline import pipeline as pipeline
    from hlorewrite.jaxbridge.reshard import reshard as reshard
    from hlorewrite.jaxbridge.shield import no_rewrite as no_rewrite
    from hlorewrite.jaxbridge.stage_marks import stage as stage

__version__ = "0.1.1"


def __getattr__(name: str) -> object:
    """What users import, found when first used: it needs jax, the command line does not."""
    if name == "optimize":
        from hlorewrite.jaxbridge.optimize import optimize
        return optimize
    if name == "no_rewrite":
        from hlorewrite.jaxbridge.shield import no_rewrite
        return no_rewrite
    if name == "reshard":
        from hlorewrite.jaxbridge.reshard import reshard
        return reshard
    if name == "pipeline":
        import importlib
        return importlib.import_module("hlorewrite.pipeline")  # a package that can be called
    if name == "mean_over_microbatches":
        from hlorewrite.jaxbridge.microbatches import mean_over_microbatches
        return mean_over_microbatches
    if name == "stage":
        from hlorewrite.jaxbridge.stage_marks import stage
        return stage
    raise AttributeError(f"module 'hlorewrite' has no attribute {name!r}")
