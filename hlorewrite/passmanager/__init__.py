"""The pass pipeline: passes as frozen dataclasses, their text form, running, dumps, remarks, traces."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    """This package under its second name: called, it is the decorator ``hlorewrite.pipeline``.

    A package and a function cannot share a name otherwise, and importing any module of the package would hide the
    function.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return importlib.import_module("hlorewrite.jaxbridge.pipeline").pipeline(*args, **kwargs)


sys.modules[__name__].__class__ = _CallablePackage
