"""A fragment of a program as a separate module: its function as ``@main``, its mesh and the functions it calls."""

from hlorewrite.errors import InputError
from hlorewrite.ir import COLLECTIVES, Module, View, ir, readable, sdy, symbol_name, terminator

_SHARDING, _DONOR = "sdy.sharding", "jax.buffer_donor"


def standalone(view: View, callee: str, mesh: str, donated: frozenset[int] = frozenset()) -> Module:
    """A fragment as a separate module.

    Args:
      view: the view of the program; it is not changed.
      callee: name of the fragment's function.
      mesh: name of its mesh.
      donated: positions of arguments whose buffers it may write over.

    Returns:
      A module whose ``@main`` is the fragment.

    Raises:
      InputError: the module has no such mesh.
    """
    module = view.module
    meshes = [op for op in view.ops("sdy.mesh") if symbol_name(op) == mesh]
    if not meshes:
        raise InputError(f"the module contains no sdy.mesh @{mesh}", location=module.name,
                         hint="name the meshes of the topology, so that shardings can name them")
    with module.context:
        location = ir.Location.name(callee, context=module.context)
        alone = Module(ir.Module.create(location), name=f"{module.name}@{callee}")
        alone.mlir.body.append(_logical(meshes[0]))
        for name in _reached(view, callee):
            alone.mlir.body.append(view.functions[name].clone())
        fresh = View(alone)
        main = fresh.functions[callee]
        if _reordered(meshes[0]) and fresh.ops(*COLLECTIVES, "stablehlo.partition_id"):
            raise InputError(f"@{callee} has explicit collectives over mesh @{mesh}, which numbers its devices in its "
                             "own order", location=view.source(view.functions[callee]),
                             hint="state the order in the program's topology")
        devices = _size(meshes[0])
        i32 = ir.IntegerType.get_signless(32)
        for attribute, count in (("mhlo.num_partitions", devices), ("mhlo.num_replicas", 1)):
            alone.operation.attributes[attribute] = ir.IntegerAttr.get(i32, count)
        _become_main(main, donated)
    return alone


def _size(mesh: ir.Operation) -> int:
    """Number of devices of an ``sdy.mesh``."""
    size = 1
    for axis in sdy.MeshAttr(mesh.attributes["mesh"]).axes:
        size *= sdy.MeshAxisAttr(axis).size
    return size


def _reordered(mesh: ir.Operation) -> bool:
    ids = list(sdy.MeshAttr(mesh.attributes["mesh"]).device_ids)
    return ids != sorted(ids)


def _logical(mesh: ir.Operation) -> ir.Operation:
    """The mesh with its devices numbered from 0: the executable's own devices are given in the mesh's order."""
    copy = mesh.clone().operation
    axes = list(sdy.MeshAttr(mesh.attributes["mesh"]).axes)
    copy.attributes["mesh"] = sdy.MeshAttr.get(axes)
    return copy


def _reached(view: View, callee: str) -> list[str]:
    """A function and all it calls."""
    names, todo = [callee], [callee]
    # Ends: a name is added once.
    while todo:
        for called in sorted(_called(view.functions[todo.pop()])):
            if called in view.functions and called not in names:
                names.append(called)
                todo.append(called)
    return names


def _called(function: ir.Operation) -> set[str]:
    """Symbols that the ops of a function name in an attribute."""
    callees: set[str] = set()

    def visit(op: ir.Operation) -> ir.WalkResult:
        for named in op.attributes:
            attribute = readable(op, named)
            if isinstance(attribute, ir.FlatSymbolRefAttr):
                callees.add(attribute.value)
            elif isinstance(attribute, ir.ArrayAttr):
                callees.update(each.value for each in attribute if isinstance(each, ir.FlatSymbolRefAttr))
        return ir.WalkResult.ADVANCE

    function.walk(visit)
    return callees


def _become_main(function: ir.Operation, donated: frozenset[int]) -> None:
    """Renames a fragment's function and keeps of its attributes what XLA asks for."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    for name in ("mesh_shape", "topology"):
        if name in function.attributes:
            del function.attributes[name]
    function.attributes["sym_name"] = ir.StringAttr.get("main")
    function.attributes["sym_visibility"] = ir.StringAttr.get("public")
    for key, count in (("arg_attrs", len(type_.inputs)), ("res_attrs", len(type_.results))):
        rows = list(ir.ArrayAttr(function.attributes[key])) if key in function.attributes else [None] * count
        kept = []
        for position, row in enumerate(rows):
            facts = {} if row is None or _SHARDING not in ir.DictAttr(row) else {_SHARDING: ir.DictAttr(row)[_SHARDING]}
            if key == "arg_attrs" and position in donated:
                facts[_DONOR] = ir.BoolAttr.get(True)
            kept.append(ir.DictAttr.get(facts))
        if count:
            function.attributes[key] = ir.ArrayAttr.get(kept)


def add_token(module: Module, mesh: str) -> None:
    """Gives ``@main`` one more result, the 8-bit integer 0, replicated.

    Args:
      module: a fragment as a separate module; it is changed.
      mesh: name of its mesh.
    """
    with module.context:
        _add_token(View(module).functions["main"], mesh)


def _add_token(function: ir.Operation, mesh: str) -> None:
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    end = terminator(function.regions[0].blocks[0])
    with ir.InsertionPoint(end), end.location:
        token = ir.RankedTensorType.get([], ir.IntegerType.get_signless(8))
        value = ir.Attribute.parse("dense<0> : tensor<i8>")
        made = ir.Operation.create("stablehlo.constant", [token], attributes={"value": value})
        ir.Operation.create("func.return", [], [*end.operands, made.results[0]])
        row = ir.DictAttr.get({_SHARDING: ir.Attribute.parse(f"#sdy.sharding<@{mesh}, []>")})
    end.erase()
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get([*type_.inputs],
                                                                               [*type_.results, token]))
    rows = list(ir.ArrayAttr(function.attributes["res_attrs"])) if len(type_.results) else []
    function.attributes["res_attrs"] = ir.ArrayAttr.get([*rows, row])


__all__ = ["add_token", "standalone"]
