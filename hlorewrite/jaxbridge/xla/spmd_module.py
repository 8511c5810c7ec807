"""How many devices a module is for, and per-device modules made fit for XLA's SPMD compilation.

A module that JAX wrote states its mesh. A bare one whose functions already are what one device runs (collectives at
the top, no mesh) is put into a ``sdy.manual_computation`` over all devices. A per-device array of n rows becomes a
global one of devices × n rows, a per-device scalar one of ``devices`` elements. Nothing is communicated by that.
"""

import re
from dataclasses import dataclass

import numpy as np

from hlorewrite.analysis.groups import device_count, device_groups, partition_count, replica_count, rows_attribute
from hlorewrite.errors import InputError
from hlorewrite.ir import COLLECTIVES, GROUP_ATTRIBUTES, WITH_GLOBAL_IDS, Editor, Module, ir, parse
from hlorewrite.ir.view import View, ancestors, symbol_name
from hlorewrite.ops.table import DEVICE_IDS

_MESH = "hlorewrite_devices"
_AXIS = "device"


@dataclass(frozen=True)
class SpmdModule:
    """A module ready for XLA.

    Attributes:
      module: what XLA is given.
      devices: the number of devices it is for.
      shardy: whether its shardings are of the ``sdy`` dialect.
      wrapped: whether it was a per-device module and now takes global arrays.
    """

    module: Module
    devices: int
    shardy: bool
    wrapped: bool


def main_function(module: Module, view: View | None = None) -> ir.Operation:
    """The function a module starts with: ``@main``, or its only public one.

    Args:
      module: the module.
      view: a view of it, where there is one.
    """
    functions = (view or View(module)).functions
    if "main" in functions:
        return functions["main"]
    public = [f for f in functions.values() if "sym_visibility" not in f.attributes]
    if len(public) != 1:
        raise InputError("the module has no function @main", location=module.name,
                         hint="name the entry function @main")
    return public[0]


def for_spmd(module: Module) -> SpmdModule:
    """Finds the mesh of a module, or makes one for a per-device module.

    Args:
      module: any StableHLO module; it is not changed.

    Returns:
      The module as XLA's SPMD compilation takes it.

    Raises:
      InputError: it has no entry function, meshes of different sizes, or per-device parts that cannot be combined.
    """
    view = View(module)
    main = main_function(module, view)
    if view.ops("mpmd.topology", "mpmd.fragment", "mpmd.fragment_call"):
        raise InputError("the module is a pipeline program of several meshes", location=module.name,
                         hint="compile its fragments one by one")
    if any(op.operation.name == "builtin.module" for op in module.mlir.body.operations):
        raise InputError("the module contains another module, and XLA compiles one at a time", location=module.name,
                         hint="pass the inner module alone")
    stated = device_count(view) or 1
    meshes = {size for size in map(_mesh_size, view.ops("sdy.mesh")) if size > 1}
    if len(meshes) > 1:
        raise InputError(f"the module contains meshes of {', '.join(map(str, sorted(meshes)))} devices",
                         location=module.name, hint="a module runs on one set of devices")
    if meshes:
        return SpmdModule(_with_partitions(module, next(iter(meshes))), next(iter(meshes)), True, False)
    free = [op for op in view.ops(*COLLECTIVES)
            if not any(parent.name == "sdy.manual_computation" for parent in ancestors(op))]
    old_style = "mhlo.sharding" in str(main.attributes)
    devices = stated if stated > 1 or not free else _largest_id(free) + 1
    if old_style or not free or devices == 1:
        return SpmdModule(module, stated, not old_style, False)
    return SpmdModule(_wrapped(module, free, devices), devices, True, True)


def free_shardings(module: Module) -> tuple[list[bool], list[bool]]:
    """For outputs and inputs: whether XLA may choose a sharding, because the module states none."""
    function = main_function(module)
    type_ = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)

    def free(count: int, key: str) -> list[bool]:
        if key not in function.attributes:
            return [True] * count
        rows = [str(row) for row in ir.ArrayAttr(function.attributes[key])]
        return ["sdy.sharding" not in row and "mhlo.sharding" not in row for row in rows]

    return free(len(type_.results), "res_attrs"), free(len(type_.inputs), "arg_attrs")


def _mesh_size(mesh: ir.Operation) -> int:
    from hlorewrite.ir.binding import sdy
    attribute = sdy.MeshAttr(mesh.attributes["mesh"])
    return int(np.prod([sdy.MeshAxisAttr(axis).size for axis in attribute.axes])) if len(attribute.axes) else 1


def _with_partitions(module: Module, devices: int) -> Module:
    """The module itself, or a copy that states how many partitions it has."""
    attributes = module.operation.attributes
    if "mhlo.num_partitions" in attributes and ir.IntegerAttr(attributes["mhlo.num_partitions"]).value == devices:
        return module
    copy = module.clone()
    _set_counts(copy, devices)
    return copy


def _set_counts(module: Module, devices: int) -> None:
    with module.context:
        i32 = ir.IntegerType.get_signless(32)
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(i32, devices)
        module.operation.attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(i32, 1)


def _largest_id(collectives: list[ir.Operation]) -> int:
    largest = 0
    for op in collectives:
        for name in GROUP_ATTRIBUTES:
            if name in op.attributes and isinstance(op.attributes[name], ir.DenseIntElementsAttr):
                ids = np.array(op.attributes[name])
                largest = max(largest, int(ids.max(initial=0)))
    return largest


# ---- per-device modules


def _wrapped(module: Module, collectives: list[ir.Operation], devices: int) -> Module:
    copy = module.clone()
    view = View(copy)
    name = symbol_name(main_function(copy))
    _address_partitions(view, copy)
    function = view.functions[name]
    signature = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    with copy.context:
        for key in ("arg_attrs", "res_attrs"):
            if key in function.attributes:
                del function.attributes[key]
        function.attributes["sym_name"] = ir.StringAttr.get("per_device")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    shell = parse(_shell(name, [str(t) for t in signature.inputs], [str(t) for t in signature.results], devices,
                         module.name), name=module.name, context=copy.context)
    for op in list(shell.mlir.body.operations):
        if op.operation.name != "func.func" or symbol_name(op.operation) != "per_device":
            copy.mlir.body.append(op)
    _set_counts(copy, devices)
    return copy


def _address_partitions(view: View, module: Module) -> None:
    """Makes every collective and device number speak of partitions: there is one replica after wrapping."""
    without = [op for op in view.ops(*COLLECTIVES) if not _has_channel(op)]
    with_channel = [op for op in view.ops(*COLLECTIVES) if _has_channel(op)]
    counted = device_count(view) is not None
    if not counted and without and with_channel and view.ops(*DEVICE_IDS):
        raise InputError("only some collectives of the module have a channel, and the module reads device numbers",
                         location=module.name, hint="give every collective a channel_handle, or none")
    editor = Editor(view)
    rows = [(op, groups) for op in view.ops(*COLLECTIVES)
            if not isinstance(groups := device_groups(op, view), str) and groups]
    for op, groups in rows:
        name = next(name for name in GROUP_ATTRIBUTES if name in op.attributes)
        editor.set_attribute(op, name, rows_attribute(op.context, groups))
    if counted:
        _write_ids(editor)
    with module.context:
        channel = ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>")
        for op in without:
            op.attributes["channel_handle"] = channel
        for op in view.ops(*WITH_GLOBAL_IDS):
            op.attributes["use_global_device_ids"] = ir.UnitAttr.get()
    for op in view.ops("stablehlo.replica_id") if not counted else ():
        made = editor.create("stablehlo.partition_id", [], [op.results[0].type], location=op.location, before=op)
        editor.replace(op.results[0], made.results[0])
        editor.erase(op)


def _write_ids(editor: Editor) -> None:
    """Computes replica and partition ids from the number of the device (r * partitions + p)."""
    view = editor.view
    replicas, partitions = replica_count(view), partition_count(view) or 1
    for op in view.ops(*DEVICE_IDS):
        is_replica = op.name == "stablehlo.replica_id"
        own, other = (replicas, partitions) if is_replica else (partitions, replicas)
        if not is_replica and other == 1 and own > 1:
            continue
        type_ = op.results[0].type

        def number(value: int, op: ir.Operation = op, type_: ir.Type = type_) -> ir.Value:
            dense = ir.DenseElementsAttr.get_splat(type_, ir.IntegerAttr.get(ir.RankedTensorType(type_).element_type,
                                                                             value))
            return editor.create("stablehlo.constant", [], [type_], attributes={"value": dense}, location=op.location,
                                 before=op).results[0]

        with op.context, op.location:
            if own == 1:
                value = number(0)
            else:
                value = editor.create("stablehlo.partition_id", [], [type_], location=op.location, before=op).results[0]
                if other > 1:
                    value = editor.create("stablehlo.divide" if is_replica else "stablehlo.remainder",
                                          [value, number(partitions)], [type_], location=op.location,
                                          before=op).results[0]
        editor.replace(op.results[0], value)
        editor.erase(op)


def _has_channel(op: ir.Operation) -> bool:
    return "channel_handle" in op.attributes and "handle = 0" not in str(op.attributes["channel_handle"])


def _shell(name: str, inputs: list[str], results: list[str], devices: int, file: str) -> str:
    """Text of the global function around @per_device."""
    outer_in, outer_out = [_outer(t, devices, file) for t in inputs], [_outer(t, devices, file) for t in results]
    sharded = [_sharding(t) for t in outer_in], [_sharding(t) for t in outer_out]
    arguments = ", ".join(f"%arg{i}: {t} {{sdy.sharding = #sdy.sharding<@{_MESH}, {s}>}}"
                          for i, (t, s) in enumerate(zip(outer_in, sharded[0], strict=True)))
    returned = ", ".join(f"{t} {{sdy.sharding = #sdy.sharding<@{_MESH}, {s}>}}"
                         for t, s in zip(outer_out, sharded[1], strict=True))
    local = ", ".join(f"%local{i}: {_inner(t)}" for i, t in enumerate(inputs))
    lines, called = [], []
    for i, t in enumerate(inputs):
        called.append(f"%in{i}" if _inner(t) != t else f"%local{i}")
        if _inner(t) != t:
            lines.append(f"%in{i} = stablehlo.reshape %local{i} : ({_inner(t)}) -> {t}")
    count = len(results)
    head = f"%made:{count} = " if count else ""
    lines.append(f"{head}func.call @per_device({', '.join(called)}) : ({', '.join(inputs)}) -> ({', '.join(results)})")
    out = []
    for i, t in enumerate(results):
        out.append(f"%out{i}" if _inner(t) != t else f"%made#{i}")
        if _inner(t) != t:
            lines.append(f"%out{i} = stablehlo.reshape %made#{i} : ({t}) -> {_inner(t)}")
    local_out = ", ".join(map(_inner, results))
    lines.append(f"sdy.return {', '.join(out)} : {local_out}" if out else "sdy.return")
    in_shardings, out_shardings = (", ".join(f"<@{_MESH}, {s}>" for s in side) for side in sharded)
    body = "\n      ".join(lines)
    whole = f"%whole:{count} = " if count else ""
    ends = ", ".join(f"%whole#{i}" for i in range(count))
    return f"""module {{
  sdy.mesh @{_MESH} = <["{_AXIS}"={devices}]>
  func.func private @per_device({", ".join(inputs)}) -> ({", ".join(results)})
  func.func public @{name}({arguments}) -> ({returned}) {{
    {whole}sdy.manual_computation({", ".join(f"%arg{i}" for i in range(len(inputs)))}) in_shardings=[{in_shardings}] \
out_shardings=[{out_shardings}] manual_axes={{"{_AXIS}"}} ({local}) {{
      {body}
    }} : ({", ".join(outer_in)}) -> ({", ".join(outer_out)})
    return {ends}{" : " + ", ".join(outer_out) if count else ""}
  }}
}}
"""


def _tensor(text: str, file: str = "-") -> tuple[list[int], str]:
    """Sizes and element type of a static tensor type's text."""
    match = re.fullmatch(r"tensor<((?:\d+x)*)([^?]+)>", text)
    if not match:
        raise InputError(f"{text} cannot be an argument or result of a per-device module", location=file,
                         hint="use tensors of static shape")
    return [int(d) for d in match.group(1).split("x") if d], match.group(2)


def _outer(text: str, devices: int, file: str) -> str:
    dims, dtype = _tensor(text, file)
    rows = [dims[0] * devices, *dims[1:]] if dims else [devices]
    return f"tensor<{'x'.join(map(str, rows))}x{dtype}>"


def _inner(text: str) -> str:
    """The local type inside the manual computation: a scalar becomes an array of one element."""
    dims, dtype = _tensor(text)
    return text if dims else f"tensor<1x{dtype}>"


def _sharding(text: str) -> str:
    return "[" + ", ".join([f'{{"{_AXIS}"}}'] + ["{}"] * (len(_tensor(text)[0]) - 1)) + "]"
