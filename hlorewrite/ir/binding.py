"""Every private name of jaxlib that this project touches, in one place.

Public: ``jaxlib.mlir.ir``, ``jaxlib.mlir.passmanager`` and the dialect modules. Private: ``register_dialects``
(a context without ``import jax`` needs it), ``jaxlib._jax.mlir`` (portable artifacts that keep the ``sdy`` dialect,
and HLO to StableHLO) and the capsule of an operation (its address). ``tests/unit/ir/test_binding.py`` names each,
so that a new jaxlib breaks one test, not the project.
"""

import ctypes
import os
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")  # as jax does before it loads jaxlib: no INFO lines of XLA

from jaxlib import version as jaxlib_version
from jaxlib.mlir import ir, passmanager
from jaxlib.mlir._mlir_libs import _jax_mlir_ext
from jaxlib.mlir.dialects import chlo, mhlo, mpmd, sdy, stablehlo

from hlorewrite.util.releases import warn_of_unknown_release

__all__ = ["deserialize_portable", "ir", "op_key", "passmanager", "register_all", "sdy", "serialize_portable",
           "stablehlo", "stablehlo_version"]

warn_of_unknown_release(jaxlib_version.__version_info__)

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_CAPSULE_NAME = b"jaxlib.mlir.ir.Operation._CAPIPtr"


def op_key(op: ir.Operation) -> int:
    """A key of an op for dicts and sets: its address, the same for every handle and after every edit.

    Operations themselves must not be keys: jaxlib hashes them by structure, so the hash changes with each edit, and
    it makes a new handle for each access. Values and blocks hash by identity and are safe keys.
    """
    return _capsule_pointer(op.operation._CAPIPtr, _CAPSULE_NAME)


def register_all(context: ir.Context, *, load: bool = True) -> None:
    """Registers every dialect that a JAX module can contain with a fresh context, and loads those whose ops rewrites
    create.

    Another dialect is loaded when a module that contains it is read. Loading all takes five times as long.

    Args:
      context: the context.
      load: whether more than StableHLO is loaded.
    """
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    stablehlo.register_dialect(context)
    for dialect in (sdy, mpmd, chlo):
        dialect.register_dialect(context, load=load)
    mhlo.register_mhlo_dialect(context, load=load)
    if load:
        context.get_dialect_descriptor("func")


def deserialize_portable(context: ir.Context, data: bytes) -> ir.Module:
    """A StableHLO portable artifact as a module; raises ``ValueError`` when it is not one."""
    return stablehlo.deserialize_portable_artifact(context, data)


def serialize_portable(module: ir.Module, version: str) -> bytes:
    """A module as a portable artifact of one StableHLO version, other dialects (``sdy``) kept as they are."""
    from jaxlib import _jax  # pyright: ignore[reportAttributeAccessIssue]
    functions: Any = _jax.mlir
    with module.context:
        return functions.serialize_portable_artifact(module, version, True)


def stablehlo_version() -> str:
    """The newest StableHLO version this jaxlib reads and writes, such as ``1.17.0``."""
    return stablehlo.get_current_version()
