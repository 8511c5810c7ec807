"""hlorewrite: rewrites the communication of StableHLO programs by declared, proven rules."""

from __future__ import annotations

import os.path
import sys
from typing import TYPE_CHECKING

if not os.path.isdir(os.path.join(os.path.dirname(__file__), "passes")):
    _STOP = ("hlorewrite: this checkout has no symbolic links, so hlorewrite/passes leads nowhere; install it "
             "(pip install .), or clone it with: git clone -c core.symlinks=true")
    raise SystemExit(_STOP) if os.path.basename(sys.argv[0]) in ("-m", "hlorewrite") else ImportError(_STOP)

from hlorewrite import version
from hlorewrite.jaxbridge.passes import PASSES as _BRIDGE_PASSES
from hlorewrite.passes.table import PASSES as _PASSES
from hlorewrite.passmanager.registered import register_passes
from hlorewrite.patterns.table import NATIVE_MODULES as _NATIVE_MODULES
from hlorewrite.rules.register import NATIVES as _NATIVES

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.decorator.optimize import optimize as optimize
    from hlorewrite.jaxbridge.decorator.state.partial_sum import PartialSum as PartialSum
    from hlorewrite.jaxbridge.hook.patch import patch_jit as patch_jit
    from hlorewrite.jaxbridge.pipelined.api import pipeline as pipeline
    from hlorewrite.jaxbridge.pipelined.marks import stage as stage
    from hlorewrite.jaxbridge.pipelined.marks import stage_layers as stage_layers
    from hlorewrite.jaxbridge.pipelined.microbatches import mean_over_microbatches as mean_over_microbatches
    from hlorewrite.jaxbridge.pipelined.stage_array import StageArray as StageArray
    from hlorewrite.jaxbridge.runtime.reshard import reshard as reshard
    from hlorewrite.jaxbridge.step.no_rewrite import no_rewrite as no_rewrite
    from hlorewrite.util.frames import Frames as Frames


__version__ = version.VERSION

register_passes(_PASSES)
register_passes(_BRIDGE_PASSES)
_NATIVES.shipped = tuple(_NATIVE_MODULES.values())


def __getattr__(name: str) -> object:
    """What users import, found when first used: it needs jax, the command line does not."""
    if name == "optimize":
        from hlorewrite.jaxbridge.decorator.optimize import optimize
        return optimize
    if name == "no_rewrite":
        from hlorewrite.jaxbridge.step.no_rewrite import no_rewrite
        return no_rewrite
    if name == "patch_jit":
        from hlorewrite.jaxbridge.hook.patch import patch_jit
        return patch_jit
    if name == "PartialSum":
        from hlorewrite.jaxbridge.decorator.state.partial_sum import PartialSum
        return PartialSum
    if name == "Frames":
        from hlorewrite.util.frames import Frames
        return Frames
    if name == "reshard":
        from hlorewrite.jaxbridge.runtime.reshard import reshard
        return reshard
    if name == "pipeline":
        from hlorewrite.jaxbridge.pipelined.api import pipeline
        return pipeline
    if name == "mean_over_microbatches":
        from hlorewrite.jaxbridge.pipelined.microbatches import mean_over_microbatches
        return mean_over_microbatches
    if name == "stage":
        from hlorewrite.jaxbridge.pipelined.marks import stage
        return stage
    if name == "stage_layers":
        from hlorewrite.jaxbridge.pipelined.marks import stage_layers
        return stage_layers
    if name == "StageArray":
        from hlorewrite.jaxbridge.pipelined.stage_array import StageArray
        return StageArray
    raise AttributeError(f"module 'hlorewrite' has no attribute {name!r}")
