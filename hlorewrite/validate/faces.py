"""What has to be the same about two modules before anything is compared: how they are called, and on what devices."""

from __future__ import annotations

from hlorewrite.ir.binding import ir
from hlorewrite.ir.inline import is_private
from hlorewrite.ir.view import View
from hlorewrite.spmd.mesh import meshes
from hlorewrite.validate.verdict import Unknown

_COUNTS = ("mhlo.num_partitions", "mhlo.num_replicas")


def entries(view: View) -> list[str]:
    """The functions that are called from outside: the public ones."""
    return [name for name, function in view.functions.items()
            if not is_private(function) and len(function.regions[0].blocks)]


def face_difference(original: View, result: View) -> Unknown | None:
    """Why two modules cannot be compared; None when they can."""
    for view in (original, result):
        odd = next((op.operation for op in view.module.mlir.body.operations
                    if op.operation.name not in ("func.func", "sdy.mesh")), None)
        if odd is not None:
            return Unknown(f"the module holds {odd.name}", view.source(odd))
    for name in _COUNTS:
        if _attribute(original.module.operation, name) != _attribute(result.module.operation, name):
            return Unknown(f"{name} differs")
    if meshes(original) != meshes(result):
        return Unknown("the meshes differ")
    if entries(original) != entries(result):
        return Unknown("other functions are public")
    for name in entries(original):
        function, other = original.functions[name], result.functions[name]
        if len(function.regions[0].blocks) != 1 or len(other.regions[0].blocks) != 1:
            return Unknown(f"@{name} has several blocks", original.source(function))
        for attribute in ("function_type", "arg_attrs", "res_attrs"):
            if _attribute(function, attribute) != _attribute(other, attribute):
                return Unknown(f"@{name} is called differently", result.source(other))
    return None if entries(original) else Unknown("no function is public")


def _attribute(op: ir.Operation, name: str) -> str:
    return str(op.attributes[name]) if name in op.attributes else ""
