"""Auto-sharded programs: XLA's own partitioner is run once, and what it wrote comes back as a manual computation.

The partitioner runs in the pipeline of the platform it is asked for, because pipelines simplify a module differently
before they partition it, and the per-device program is read from XLA's dump. The module it is given cannot be compiled
to the end: an extra argument is aliased to an extra output of another size, which XLA refuses after partitioning and
before the costly passes; and that output comes from a custom call that nothing implements, should the first refusal
ever go away. (Disabling passes instead lets later ones abort the process on ops they do not expect.)

The result is a module of the same signature: ``sdy.manual_computation`` over all mesh axes around the per-device
program, with the shardings XLA settled on.
"""

import re
import tempfile
from pathlib import Path
from typing import Any

from hlorewrite.analysis.groups import rows_attribute
from hlorewrite.errors import InputError
from hlorewrite.hlo.collectives import collective_kind
from hlorewrite.hlo.groups import parse_groups
from hlorewrite.hlo.parse import parse_hlo
from hlorewrite.hlo.proto import hlo_module_of
from hlorewrite.ir import CHANNEL, COLLECTIVES, Module, called_functions, erase_dead_functions, ir, op_key, parse
from hlorewrite.ir.edit import Editor, channel_number, renumbered
from hlorewrite.ir.view import View, nested_ops, terminator
from hlorewrite.jaxbridge.xla import compile_no_codegen
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet
from hlorewrite.jaxbridge.xla.mesh_sharding import MeshAxes, mesh_axes, sharding_text
from hlorewrite.jaxbridge.xla.metadata import drop_shardings_of_shardy, lost_annotation
from hlorewrite.jaxbridge.xla.own_compilations import own_compilation
from hlorewrite.jaxbridge.xla.spmd_module import for_spmd, free_shardings, main_function

_FREE = {"stablehlo.constant", "stablehlo.reshape", "stablehlo.broadcast_in_dim", "stablehlo.convert",
         "stablehlo.transpose", "func.return", "func.call", "sdy.manual_computation", "sdy.sharding_constraint"}
LAYOUTS = ("xla_shape", "result_layout", "operand_layouts", "result_layouts", "result_tilings")
"""Attributes in which the importer of HLO records memory layouts."""


class NotExposed(InputError):
    """XLA's partitioner made a program that cannot replace the module; the module stays as it is."""


class UnknownGroups(NotExposed):
    """The devices that a collective of XLA's partitioner joins cannot be determined; the module stays as it is."""


def hides_collectives(module: Module) -> bool:
    """Whether XLA's partitioner may still insert collectives: work outside fully manual computations, on many devices.

    Args:
      module: any module.

    Returns:
      False for one device, for modules without shardings, and where everything but trivial ops is already manual.
    """
    spmd = for_spmd(module)
    if spmd.devices == 1 or spmd.wrapped or not spmd.shardy:
        return False
    view = View(module)
    axes = mesh_axes(view, spmd.devices)
    if axes is None:
        return False
    manual = {_key(inner) for op in view.ops("sdy.manual_computation") if _is_full(op, axes)
              for inner in nested_ops(op)[1:]}
    return any(op.name not in _FREE and op_key(op) not in manual
               for function in called_functions(main_function(module), view, skip=manual)
               for op in nested_ops(function)[1:])


def expose_collectives(module: Module, place: DeviceSet | None = None, dump: bytes | None = None) -> Module:
    """The program as each device runs it, every collective explicit, inside a manual computation.

    Args:
      module: an auto-sharded module; it is not changed.
      place: the target, whose pipeline partitions it; by default that is not known, and CPU's does.
      dump: what the partitioner made of the module in another compilation for that place (``compile_no_codegen``).

    Returns:
      A module of the same context and signature.

    Raises:
      NotExposed: the groups of a collective in its result cannot be read, or an annotation of the user's is lost.
      InputError: XLA's partitioner refuses the module, or its result cannot be written as a manual computation.
    """
    spmd = for_spmd(module)
    axes = mesh_axes(View(module), spmd.devices)
    if axes is None:
        raise InputError("the module has no mesh over all its devices", location=module.name,
                         hint="shard the step with jax.sharding.NamedSharding")
    if dump is None or View(module).ops(*COLLECTIVES):  # channels of the user's own have to be numbered first
        dump = partitioned_hlo(spmd.module, spmd.devices, place or DeviceSet("cpu"))
    hlo = hlo_module_of(dump)
    if hlo is None:
        raise InputError("XLA's dump of its partitioner's program is cut off", location=module.name,
                         hint="check that the temporary folder has space")
    made = _as_manual(module, hlo, axes)
    lost = "" if place is not None and place.platform == "cpu" else lost_annotation(module, made)  # on CPU all is host
    if lost:
        raise NotExposed(f"XLA's partitioner makes a program that cannot replace it: {lost}",
                         location=module.name)
    return made


def partitioned_hlo(module: Module, devices: int, place: DeviceSet) -> bytes:
    """Runs XLA's partitioner alone.

    Args:
      module: a module with ``sdy`` shardings.
      devices: how many devices it is for.
      place: whose pipeline partitions it.

    Returns:
      The per-device program, a serialized ``HloProto``; its last argument and output are not the module's.

    Raises:
      InputError: the partitioner refuses the module.
    """
    from hlorewrite.jaxbridge.xla import private

    stopping = _with_stop(module)
    outputs, inputs = free_shardings(stopping)
    with tempfile.TemporaryDirectory(prefix="hlorewrite-") as folder:
        flags = {**place.flags, **compile_no_codegen.partitioner_flags(Path(folder))}
        options = private.compile_options(devices, shardy=True, outputs=outputs, inputs=inputs, overrides=flags)
        where = place.devices[:devices] or private.client_devices(private.cpu_client(devices))
        message = ""
        try:
            with own_compilation():
                private.compile_module(where, stopping.mlir, options, load=False)
        except Exception as error:  # expected, see above; of jaxlib's own type, which differs between versions
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
        dump = compile_no_codegen.partitioned_dump(Path(folder))
        if dump is None:
            raise InputError(f"XLA's partitioner produces no program ({message or 'no dump'})", location=module.name,
                             hint="compile the step without hlorewrite to see the whole message")
        return dump


def _with_stop(module: Module) -> Module:
    """A copy with one more argument and one more output, last in both lists, that XLA cannot compile to the end."""
    copy = compile_no_codegen.with_output_of_unknown_call(module)
    main = main_function(copy)
    type_ = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    with copy.context, ir.Location.unknown():
        scalar = ir.RankedTensorType.get([], ir.F32Type.get())
        main.regions[0].blocks[0].add_argument(scalar, ir.Location.unknown())
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get([*type_.inputs, scalar], list(type_.results)))
        aliased = ir.DictAttr.get({"tf.aliasing_output": ir.IntegerAttr.get(ir.IntegerType.get_signless(32),
                                                                            len(type_.results) - 1)})
        rows = list(ir.ArrayAttr(main.attributes["arg_attrs"])) if "arg_attrs" in main.attributes else \
            [ir.DictAttr.get({})] * len(type_.inputs)
        main.attributes["arg_attrs"] = ir.ArrayAttr.get([*rows, aliased])
    _number_channels(View(copy))
    return copy


def _number_channels(view: View) -> None:
    """Gives each collective a separate channel, by which its groups are found in the partitioner's program.

    JAX writes channel 1 on every collective of a computation that is manual over some axes, nested ones too. Only
    whether there is a channel matters, and the partitioner numbers its own from there on.
    """
    taken = [channel_number(op) for op in view.ops("stablehlo.send", "stablehlo.recv")]
    number = max(taken, default=0)
    for op in view.ops(*COLLECTIVES):
        if channel_number(op) > 0:
            number += 1
            op.attributes[CHANNEL] = renumbered(op, number)


def _is_full(manual: ir.Operation, axes: MeshAxes) -> bool:
    text = str(manual.attributes["manual_axes"])
    return all(f'"{name}"' in text for name, size in axes.axes if size > 1)


def _key(op: ir.Operation) -> int:
    from hlorewrite.ir.binding import op_key
    return op_key(op)


# ---- back to StableHLO


def _as_manual(module: Module, hlo: bytes, axes: MeshAxes) -> Module:
    from hlorewrite.jaxbridge.xla import private

    local = parse(private.hlo_to_stablehlo(hlo), name=module.name, context=module.context)
    parameters, outputs, text = private.spmd_facts(hlo)
    clean_import(local, text)
    old = main_function(module)
    type_ = ir.FunctionType(ir.TypeAttr(old.attributes["function_type"]).value)
    parameters, outputs = parameters[:len(type_.inputs)], outputs[:len(type_.results)]  # less what stops a compilation
    made = Module(ir.Module.create(module.operation.location), module.name, module.format, module.envelope,
                  module.version, module.has_locations, frames=module.frames)
    for name in list(module.operation.attributes):
        made.operation.attributes[name] = module.operation.attributes[name]
    for op in module.mlir.body.operations:
        if op.operation.name == "sdy.mesh":
            made.mlir.body.append(op.operation.clone().operation)
    _build_main(made, old, local, _texts(old, parameters, outputs, axes, module.name), axes)
    for op in list(local.mlir.body.operations):
        if op.operation.name == "func.func":
            made.mlir.body.append(op.operation)
    if made.verify():
        raise InputError("XLA's partitioned program cannot be written as a manual computation "
                         f"({made.verify()[0].message.splitlines()[0]})", location=module.name,
                         hint="report it; the step runs without expose-collectives")
    return made


def _texts(main: ir.Operation, parameters: list[Any], outputs: list[Any], axes: MeshAxes,
           name: str) -> tuple[list[str], list[str]]:
    type_ = ir.FunctionType(ir.TypeAttr(main.attributes["function_type"]).value)
    sides = []
    for word, types, shardings in (("argument", type_.inputs, parameters), ("output", type_.results, outputs)):
        if len(shardings) != len(types):
            raise InputError(f"XLA's partitioner states {len(shardings)} {word} shardings for {len(types)} {word}s",
                             location=name, hint="report it; the step runs without expose-collectives")
        sides.append([sharding_text(sharding, t, axes, f"{word} {i}", name)
                      for i, (t, sharding) in enumerate(zip(types, shardings, strict=True))])
    return sides[0], sides[1]


def clean_import(local: Module, text: str, *, as_written: bool = False) -> None:
    """Drops what the importer of HLO adds: layouts, HLO shardings, copies, functions that are regions already.

    Args:
      local: the imported per-device program; it is changed.
      text: the HLO it was imported from, for the groups of its collectives.
      as_written: keep the groups of collectives that have no channel, or share one; none may be along mesh axes.

    Raises:
      UnknownGroups: the groups of a collective cannot be read.
    """
    groups, as_written = _groups_by_channel(text), as_written and "replica_groups=mesh" not in text
    editor = without_older_spellings(local)
    _set_groups(editor.view, groups, as_written)
    for op in editor.view.ops("sdy.mesh"):
        editor.erase(op)
    for op in nested_ops(local.operation)[1:]:
        drop_shardings_of_shardy(op)
        if "mhlo.sharding" in op.attributes:
            del op.attributes["mhlo.sharding"]
    drop_layouts(local)


def drop_layouts(local: Module) -> None:
    """Removes what the importer of HLO says about layouts; a custom call keeps those of its operands and results."""
    for op in nested_ops(local.operation)[1:]:
        for name in LAYOUTS:
            if name in op.attributes and not (op.name == "stablehlo.custom_call" and name.endswith("layouts")):
                del op.attributes[name]


def without_older_spellings(local: Module) -> Editor:
    """Replaces forms that only the importer of HLO still writes: copies, ``dot``, functions that are regions.

    Args:
      local: the imported program; it is changed.

    Returns:
      Its editor.
    """
    editor = Editor(View(local))
    erase_dead_functions(editor)
    for op in editor.view.ops("mhlo.copy"):
        editor.replace(op.results[0], op.operands[0])
        editor.erase(op)
    for op in editor.view.ops("stablehlo.dot"):
        as_dot_general(op, editor)
    return editor


def as_dot_general(op: ir.Operation, editor: Editor) -> None:
    """``dot`` is an older spelling; nothing else in a module of today has it."""
    rank = ir.RankedTensorType(op.operands[0].type).rank
    with op.context:
        attributes = {name: op.attributes[name] for name in op.attributes}
        attributes["dot_dimension_numbers"] = ir.Attribute.parse(
            f"#stablehlo.dot<lhs_contracting_dimensions = [{rank - 1}], rhs_contracting_dimensions = [0]>")
    made = editor.create("stablehlo.dot_general", list(op.operands), [op.results[0].type], attributes=attributes,
                         location=op.location, before=op)
    editor.replace(op.results[0], made.results[0])
    editor.erase(op)


def _set_groups(view: View, groups: dict[int, tuple[tuple[int, ...], ...]], as_written: bool) -> None:
    """Writes the groups of every collective as lists, taken from the HLO text by channel.

    The importer of HLO (jaxlib 0.10.2) forgets the device order of a mesh (``device_ids=([2,2,2]T(1,0,2))``), which
    gives other groups; and XLA:GPU 0.10.2 crashes on groups along mesh axes inside a manual computation.
    """
    for op in view.ops(*COLLECTIVES):
        if "replica_groups" not in op.attributes:
            continue
        rows = groups.get(channel_number(op))
        if not rows and as_written:
            continue
        if rows is None or len({len(row) for row in rows}) != 1:
            raise UnknownGroups("the groups of a collective of XLA's partitioner cannot be read",
                                location=view.source(op), hint="report it; the step runs without expose-collectives")
        op.attributes["replica_groups"] = rows_attribute(op.context, rows)


def _groups_by_channel(text: str) -> dict[int, tuple[tuple[int, ...], ...]]:
    """Channel number -> groups, of the collectives of a printed HLO module."""
    by_channel: dict[int, tuple[tuple[int, ...], ...]] = {}
    module = parse_hlo(text)
    for computation in module.computations.values():
        for instruction in computation.instructions.values():
            if not collective_kind(instruction.opcode):
                continue
            channel = re.search(r"\bchannel_id=(\d+)", instruction.attributes)
            if channel and "replica_groups=" in instruction.attributes:
                rows = parse_groups(instruction.attributes, module.devices)
                if by_channel.setdefault(int(channel.group(1)), rows) != rows:
                    by_channel[int(channel.group(1))] = ()  # two collectives share a channel: refused where it is used
    return by_channel


def _build_main(made: Module, old: ir.Operation, local: Module, texts: tuple[list[str], list[str]],
                axes: MeshAxes) -> None:
    inner = main_function(local)
    block = inner.regions[0].blocks[0]
    type_ = ir.FunctionType(ir.TypeAttr(old.attributes["function_type"]).value)
    with made.context, old.location:
        attributes = {name: old.attributes[name] for name in old.attributes}
        function = ir.Operation.create("func.func", attributes=attributes, regions=1,
                                       ip=ir.InsertionPoint(made.mlir.body))
        named = [argument.location for argument in old.regions[0].blocks[0].arguments]
        outer = function.regions[0].blocks.append(*type_.inputs, arg_locs=named[:len(type_.inputs)])
        listed = ["#sdy.sharding_per_value<[" + ", ".join(side) + "]>" for side in texts]
        names = ", ".join(f'"{name}"' for name, _ in axes.axes)
        manual = ir.Operation.create(
            "sdy.manual_computation", results=list(type_.results), operands=list(outer.arguments), regions=1,
            attributes={"in_shardings": ir.Attribute.parse(listed[0]), "out_shardings": ir.Attribute.parse(listed[1]),
                        "manual_axes": ir.Attribute.parse(f"#sdy<manual_axes{{{names}}}>")},
            ip=ir.InsertionPoint(outer))
        taken = list(block.arguments)[:len(type_.inputs)]
        body = manual.regions[0].blocks.append(*[a.type for a in taken])
        for argument, new in zip(taken, body.arguments, strict=True):
            argument.replace_all_uses_with(new)
        end = terminator(block)
        returned = list(end.operands)[:len(type_.results)]
        for op in list(block.operations):
            if op.operation != end and not _is_stop(op.operation):
                body.append(op.operation)
        ir.Operation.create("sdy.return", operands=returned, ip=ir.InsertionPoint(body))
        ir.Operation.create("func.return", operands=list(manual.results), ip=ir.InsertionPoint(outer))
    inner.erase()


def _is_stop(op: ir.Operation) -> bool:
    unknown = compile_no_codegen.UNKNOWN_CALL
    return op.name == "stablehlo.custom_call" and ir.StringAttr(op.attributes["call_target_name"]).value == unknown
