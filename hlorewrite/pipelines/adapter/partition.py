"""Programs of several meshes: XLA's partitioner for each of their fragments."""

import re
from collections.abc import Callable

from hlorewrite.analysis.mesh import Mesh
from hlorewrite.errors import InputError
from hlorewrite.ir import Editor, Module, View, called_functions, inline_calls, ir, parse, sdy, symbol_name
from hlorewrite.pipelines.mpmd.mesh_view import body_of, local_mesh, manual_body
from hlorewrite.pipelines.mpmd.program import FragmentCall, read_program

_MESH = "hlorewrite_mesh"


def expose_program(module: Module, refused: Callable[[str, str], None]) -> int:
    """Partitions the fragments of a program that are in the global view, in place.

    A fragment keeps its name, arguments, results and their shardings; its body becomes one manual computation over
    all axes of its mesh. Fragments that are equal except for the mesh's name are partitioned once.

    Args:
      module: the program.
      refused: called with the fragment's source line and why it stays as it is, where XLA's partitioner gives nothing
        that can be written as a manual computation.

    Returns:
      How many fragments changed.

    Raises:
      InputError: the module is not a program.
    """
    program = read_program(module)
    view = View(module)
    callees = {step.callee: step.mesh for step in program.steps if isinstance(step, FragmentCall)}
    done: dict[str, str | InputError] = {}
    count = 0
    for callee, mesh_name in callees.items():
        function = view.functions[callee]
        mesh = local_mesh(view, mesh_name, program.meshes[mesh_name].axes)
        if body_of(function, mesh) is not None:
            continue
        alone = _alone(module, function, mesh_name, mesh)
        key = alone.text()
        if key not in done:
            done[key] = _partitioned(alone, function, mesh)
        partitioned = done[key]
        if isinstance(partitioned, InputError):
            refused(view.source(function), partitioned.what)
            continue
        _put_in_place(module, function, partitioned.replace(f"@{_MESH}", f"@{mesh_name}"))
        count += 1
    return count


def _alone(module: Module, function: ir.Operation, mesh_name: str, mesh: Mesh) -> Module:
    """A module of one fragment, called ``@main``, on a mesh of one fixed name."""
    axes = ", ".join(f'"{name}"={size}' for name, size in mesh.axes)
    ids = "" if mesh.device_ids == tuple(range(mesh.size)) else f", device_ids={list(mesh.device_ids)}"
    pieces = [f"module {{ sdy.mesh @{_MESH} = <[{axes}]{ids}>"]
    view = View(module)
    for each in called_functions(function, view):
        text = str(each.get_asm(enable_debug_info=True, use_local_scope=True))
        pieces.append(re.sub(rf"@{re.escape(mesh_name)}(?![\w$.-])", f"@{_MESH}", text))
    made = parse("\n".join(pieces) + "\n}", name=module.name, context=module.context)
    main = View(made).functions[symbol_name(function)]
    with made.context:
        main.attributes["sym_name"] = ir.StringAttr.get("main")
        if "sym_visibility" in main.attributes:
            del main.attributes["sym_visibility"]
    return made


def _partitioned(alone: Module, function: ir.Operation, mesh: Mesh) -> str | InputError:
    """The fragment after XLA's partitioner, as text; why there is none."""
    from hlorewrite.jaxbridge.xla.partition import expose_collectives  # imports jax
    try:
        made = expose_collectives(alone)
    except InputError as error:
        return error
    inline_calls(Editor(View(made)))
    main = View(made).functions["main"]
    if manual_body(main) is None:
        return InputError("XLA's partitioner makes more than one manual computation")
    stated = _stated(View(alone).functions["main"])
    manual = main.regions[0].blocks[0].operations[0].operation
    for name, wanted in zip(("in_shardings", "out_shardings"), stated, strict=True):
        settled = list(sdy.TensorShardingPerValueAttr(manual.attributes[name]).shardings)
        kept = [w or str(s).removeprefix("#sdy.sharding") for w, s in zip(wanted, settled, strict=True)]
        if any(w and _axes_of(w, mesh) != _axes_of(str(s), mesh) for w, s in zip(wanted, settled, strict=True)):
            return InputError("XLA's partitioner changes the sharding of an argument or result")
        with main.context:
            manual.attributes[name] = ir.Attribute.parse("#sdy.sharding_per_value<[" + ", ".join(kept) + "]>")
    with made.context:
        main.attributes["sym_name"] = function.attributes["sym_name"]
        main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    return str(main.get_asm(enable_debug_info=True, use_local_scope=True))


def _stated(function: ir.Operation) -> tuple[list[str], list[str]]:
    """The shardings a fragment's arguments and results carry, as text; empty if they carry none."""
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    sides = []
    for name, count in (("arg_attrs", len(type_.inputs)), ("res_attrs", len(type_.results))):
        rows = list(ir.ArrayAttr(function.attributes[name])) if name in function.attributes else [None] * count
        given = [None if row is None else ir.DictAttr(row) for row in rows]
        sides.append([str(row["sdy.sharding"]).removeprefix("#sdy.sharding")
                      if row is not None and "sdy.sharding" in row else "" for row in given])
    return sides[0], sides[1]


def _axes_of(text: str, mesh: Mesh) -> list[list[str]]:
    """The axes that cut each dimension; open dimensions, replicated axes and those of size 1 do not matter."""
    inner = text[text.index("[") + 1:text.rindex("]")]
    single = {f'"{name}"' for name, size in mesh.axes if size == 1}
    return [[axis for axis in re.findall(r'"[^"]+"(?::\(\d+\)\d+)?', part) if axis not in single]
            for part in re.findall(r"\{([^}]*)\}", inner)]


def _put_in_place(module: Module, function: ir.Operation, text: str) -> None:
    """Gives a fragment the body of another text of it."""
    name = function.attributes["sym_name"]
    mesh = [str(op) for op in module.mlir.body.operations if op.operation.name == "sdy.mesh"]
    made = parse("module {\n" + "\n".join(mesh) + "\n" + text + "\n}", name=module.name, context=module.context)
    made_function = next(op.operation for op in made.mlir.body.operations if op.operation.name == "func.func")
    made_function.attributes["sym_name"] = name
    made_function.move_before(function)
    function.erase()
