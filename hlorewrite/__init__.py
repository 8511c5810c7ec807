"""hlorewrite: rewrites the communication of StableHLO programs by declared, proven rules."""

import importlib
import importlib.util
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
from hlorewrite.patterns.table import NATIVE_MODULES as _NATIVE_MODULES
from hlorewrite.rules.register import NATIVES as _NATIVES
from hlorewrite.util.registered import register as _register

if TYPE_CHECKING:
    from hlorewrite.jaxbridge.decorator.optimize import optimize as optimize
    from hlorewrite.jaxbridge.decorator.state.new_state import PartialSum as PartialSum
    from hlorewrite.jaxbridge.export.export_step import export as export
    from hlorewrite.jaxbridge.hook.patch import patch_jit as patch_jit
    from hlorewrite.jaxbridge.step.no_rewrite import no_rewrite as no_rewrite
    from hlorewrite.passmanager.load_file import load as load
    from hlorewrite.pipelines.decorator.api import pipeline as pipeline
    from hlorewrite.pipelines.decorator.marks import mean_over_microbatches as mean_over_microbatches
    from hlorewrite.pipelines.decorator.marks import stage as stage
    from hlorewrite.pipelines.decorator.marks import stage_layers as stage_layers
    from hlorewrite.pipelines.decorator.stage_array import StageArray as StageArray
    from hlorewrite.pipelines.runtime.reshard import reshard as reshard
    from hlorewrite.util.frames import Frames as Frames


__version__ = version.VERSION

_PUBLIC = {
    "Frames": "hlorewrite.util.frames",
    "PartialSum": "hlorewrite.jaxbridge.decorator.state.new_state",
    "export": "hlorewrite.jaxbridge.export.export_step",
    "load": "hlorewrite.passmanager.load_file",
    "no_rewrite": "hlorewrite.jaxbridge.step.no_rewrite",
    "optimize": "hlorewrite.jaxbridge.decorator.optimize",
    "patch_jit": "hlorewrite.jaxbridge.hook.patch",
}
_register(passes={**_PASSES, **_BRIDGE_PASSES})
if importlib.util.find_spec("hlorewrite.pipelines") is not None:
    from hlorewrite.pipelines import door as _pipelines
    _pipelines.open_door()
    _PUBLIC |= _pipelines.PUBLIC
_NATIVES.shipped = tuple(_NATIVE_MODULES.values())


def __getattr__(name: str) -> object:
    """What users import, found when first used: it needs jax, the command line does not."""
    if name not in _PUBLIC:
        from hlorewrite.errors import closest
        hint = closest(name, _PUBLIC) if not name.startswith("_") else ""
        raise AttributeError(f"module 'hlorewrite' has no attribute {name!r}" + (f"; {hint}" if hint else ""))
    return getattr(importlib.import_module(_PUBLIC[name]), name)
