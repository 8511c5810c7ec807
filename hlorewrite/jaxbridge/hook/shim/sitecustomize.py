"""First on ``PYTHONPATH`` under ``hlorewrite exec``: loads the hook when the program has imported jax, and not before.

Python imports this file when it starts. It imports nothing of hlorewrite until jax is imported, never raises, and runs
the ``sitecustomize`` that it shadows.
"""

import os
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import module_from_spec
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))


class _AfterJax:
    """Finds jax as Python would, and starts the hook when it is loaded."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The spec of jax with a loader that goes on to start the hook; None for any other module."""
        if name != "jax":
            return None
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not self]
        spec = next((found for finder in sys.meta_path if (find := getattr(finder, "find_spec", None)) is not None
                     and (found := find(name, path, target)) is not None), None)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def load_and_start(module: ModuleType) -> None:
            execute(module)
            _start()
        spec.loader.exec_module = load_and_start
        return spec


def _start() -> None:
    """Starts the hook; a program runs unmodified where that fails."""
    try:
        from hlorewrite.jaxbridge.hook.start import start
    except ImportError as error:
        _say(f"hlorewrite cannot be loaded by {sys.executable} ({error}); install it there")
        return
    try:
        start()
    except Exception as error:
        _say(str(error).splitlines()[0] if str(error) else type(error).__name__)


def _say(sentence: str) -> None:
    sys.stderr.write(f"hlorewrite exec: {sentence}; the program runs unmodified\n")


def _run_hidden() -> None:
    """Runs the ``sitecustomize`` that Python would have found without this one."""
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _HERE]
    spec = PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if os.environ.get("HLOREWRITE_EXEC"):
    if "jax" in sys.modules:
        _start()
    else:
        sys.meta_path.insert(0, _AfterJax())
_run_hidden()
