"""HLO in the part of the language that jaxlib writes as StableHLO.

Each instruction computes the same as before: an asynchronous pair is the op that it runs, a fusion a call, groups along
mesh axes are lists. Metadata, schedules, and backend settings of ops other than custom calls are left out.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hlorewrite.errors import InputError
from hlorewrite.hlo.groups import parse_groups
from hlorewrite.hlo.parse import PART, HloInstruction, HloText
from hlorewrite.hlo.shapes import split_top, tuple_parts
from hlorewrite.ir.collectives import ALL_GATHER, ALL_TO_ALL, COLLECTIVE_BROADCAST, COLLECTIVE_PERMUTE, REDUCE_SCATTER

_DROPPED = frozenset({
    "metadata", "frontend_attributes", "origin", "original_value", "statistics", "sharding", "control-predecessors",
    "output_to_operand_aliasing", "cross_program_prefetch_index", "is_async", "async_execution_thread",
    "execution_thread", "parameter_replication", "schedule", "operand_layout_constraints", "called_computations_async"})
_SCHEDULING = ("operation_queue_id", "wait_on_operation_queues", "force_earliest_schedule", "reification_cost",
               "device_type", "native_emitter_backend_config")
"""Settings of a custom call that say when it runs, not what it computes."""
_SECOND = (ALL_GATHER, COLLECTIVE_PERMUTE, REDUCE_SCATTER, ALL_TO_ALL)
_RESULT_OF_START = {**{row.kind: 1 for row in _SECOND}, "copy": 0}
"""The position of the result in the tuple that a start returns."""
_OF_ONE = tuple(row.kind for row in (COLLECTIVE_PERMUTE, REDUCE_SCATTER, COLLECTIVE_BROADCAST))
"""Collectives that StableHLO writes with one operand; XLA combines several of them."""
FILE = "hlo"
"""The file name in locations; the lines are the numbers of instructions."""


@dataclass(frozen=True)
class PlainHlo:
    """A program that jaxlib converts.

    Attributes:
      text: the HLO; each instruction's metadata names its number as a source line.
      origins: for each number, the computation and the instruction it came from.
    """

    text: str
    origins: tuple[tuple[str, HloInstruction], ...]


def plain_hlo(module: HloText) -> PlainHlo:
    """Writes a program in the part of HLO that jaxlib converts.

    Args:
      module: any program of XLA's passes.

    Raises:
      InputError: a constant's elements are left out, or an asynchronous op is of no known form.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> module = parse_hlo('''HloModule m
      ... ENTRY %main (p: f32[4]) -> f32[4] {
      ...   %p = f32[4]{0} parameter(0)
      ...   %c = (f32[4]{0}, f32[4]{0}, u32[]) copy-start(%p)
      ...   ROOT %d = f32[4]{0} copy-done(%c), metadata={op_name="x"}
      ... }''')
      >>> print(plain_hlo(module).text.splitlines()[4].partition(", metadata")[0])
        ROOT %c = f32[4]{0} copy(%p)
    """
    lines = [f"HloModule m, replica_count={module.replicas}, num_partitions={module.partitions}", ""]
    origins: list[tuple[str, HloInstruction]] = []
    writer = _Writer(module, origins)
    for name, computation in module.computations.items():
        lines.append(f"{'ENTRY ' if name == module.entry else ''}%{name} {{")
        ends = writer.ends(computation.instructions)
        root = ends.get(computation.root, computation.root)
        for instruction in computation.instructions.values():
            if instruction.name not in ends:
                lines += writer.lines(name, instruction, ends, instruction.name == root)
        lines += ["}", ""]
    return PlainHlo("\n".join(lines), tuple(origins))


class _Writer:
    def __init__(self, module: HloText, origins: list[tuple[str, HloInstruction]]) -> None:
        self._module, self._origins = module, origins

    def ends(self, instructions: dict[str, HloInstruction]) -> dict[str, str]:
        """Maps the op that awaits an asynchronous op to the op that started it; that one becomes the op itself."""
        found: dict[str, str] = {}
        for each in instructions.values():
            awaits = each.opcode.endswith("-done") and each.opcode not in ("send-done", "recv-done")
            if awaits or each.opcode == "async-update":
                found[each.name] = found.get(each.operands[0], each.operands[0])
        return found

    def lines(self, computation: str, each: HloInstruction, ends: dict[str, str], root: bool) -> Iterator[str]:
        """The lines of one instruction."""
        if each.opcode == "constant" and "..." in each.literal:
            raise InputError(f"the elements of {each.name} are left out of the text",
                             hint="dump with --xla_dump_large_constants")
        self._origins.append((computation, each))
        operands = [ends.get(name, name) for name in each.operands]
        attributes = dict(split_attributes(each.attributes))
        expanded = expanded_call(each, operands, attributes) if each.opcode == "custom-call" else None
        *before, last = expanded if expanded is not None else self._written(each, operands, attributes)
        where = f', metadata={{op_name="{_bare(each.name)}" source_file="{FILE}" source_line={len(self._origins)}}}'
        for line in before:
            yield f"  {line}{where}"
        yield f"  {'ROOT ' if root else ''}{last}{where}"

    def _written(self, each: HloInstruction, operands: list[str], attributes: dict[str, str]) -> list[str]:
        """The instruction in jaxlib's part of HLO; one that communicates several arrays as one for each."""
        shape, opcode = each.shape, each.opcode
        if opcode == "fusion":
            opcode, attributes = "call", {"to_apply": attributes["calls"]}
        elif opcode == "async-start":
            opcode, attributes = "call", {"to_apply": attributes["calls"]}
            shape = tuple_parts(shape)[1]
        elif opcode == "call" and each.called("to_apply"):
            attributes = {"to_apply": attributes["to_apply"]}
        elif opcode.endswith("-start"):
            opcode = opcode.removesuffix("-start")
            if opcode in _RESULT_OF_START:
                shape = tuple_parts(shape)[_RESULT_OF_START[opcode]]
            elif opcode != "all-reduce":
                raise InputError(f"{each.name} starts an op of a form that is not known ({each.opcode})",
                                 hint="report it")
        name = _bare(each.name)
        kept = "".join(f", {key}={value}" if value else f", {key}" for key, value in self._kept(opcode, attributes))
        names = [f"%{_bare(operand)}" for operand in operands]
        if opcode in _OF_ONE and len(names) > 1:
            parts = tuple_parts(shape)
            if len(parts) != len(names):
                raise InputError(f"{each.name} moves parts of arrays, which StableHLO does not write",
                                 hint="passes around it are not compared")
            lines = [f"%{name}.part{n} = {part} {opcode}({operand}){kept}"
                     for n, (part, operand) in enumerate(zip(parts, names, strict=True))]
            return [*lines, f"%{name} = {shape} tuple({', '.join(f'%{name}.part{n}' for n in range(len(parts)))})"]
        inside = each.literal if opcode in ("constant", "parameter") else "" if opcode == "iota" else ", ".join(names)
        return [f"%{name} = {shape} {opcode}({inside}){kept}"]

    def _kept(self, opcode: str, attributes: dict[str, str]) -> Iterator[tuple[str, str]]:
        for key, value in attributes.items():
            if key in _DROPPED or (key == "backend_config" and opcode != "custom-call"):
                continue
            if key == "replica_groups" and value.startswith("mesh"):
                rows = parse_groups(f"replica_groups={value}", self._module.devices)
                value = "{" + ",".join("{" + ",".join(map(str, row)) + "}" for row in rows) + "}"
            if key == "backend_config":
                value = _computing(value)
            yield key, value


def _bare(name: str) -> str:
    return name.replace(PART, ".element.")


def _computing(config: str) -> str:
    """The settings of a custom call without when it runs; text in another form stays."""
    try:
        held = json.loads(config)
    except ValueError:
        return config
    if not isinstance(held, dict):
        return config
    return json.dumps({key: value for key, value in sorted(held.items()) if key not in _SCHEDULING})


def split_attributes(text: str) -> list[tuple[str, str]]:
    """The attributes of an instruction, in order.

    Example:
      >>> split_attributes(', slice={[0:2], [1:3]}, custom_call_target="a, b=c", is_host')
      [('slice', '{[0:2], [1:3]}'), ('custom_call_target', '"a, b=c"'), ('is_host', '')]
    """
    found = []
    for part in split_top(text):
        key, _, value = part.partition("=")
        if key:
            found.append((key.strip(), value))
    return found


# ---- calls of cuBLAS and cuDNN as what they compute: a matrix product, a convolution

# A call whose settings add anything to that (a factor, a bias, an activation) stays as it is and counts as unknown.


_CONVOLUTION = '"__cudnn$convForward"'
_PRODUCTS = ('"__cublas$lt$matmul"', '"__cublas$gemm"')
_PLAIN_CONVOLUTION = {"activation_mode": "kNone", "conv_result_scale": 1, "side_input_scale": 0, "leakyrelu_alpha": 0}
_PLAIN_PRODUCT = {"alpha_real": 1, "alpha_imag": 0, "beta": 0, "epilogue": "DEFAULT", "grad_x": False, "grad_y": False,
                  "damax_output": False, "scale_mode": 0}
_KEPT = ("window", "dim_labels", "feature_group_count", "batch_group_count")
_DIMENSIONS = (("lhs_batch_dims", "lhs_batch_dimensions"), ("rhs_batch_dims", "rhs_batch_dimensions"),
               ("lhs_contracting_dims", "lhs_contracting_dimensions"),
               ("rhs_contracting_dims", "rhs_contracting_dimensions"))


def expanded_call(each: HloInstruction, operands: Sequence[str], attributes: Mapping[str, str]) -> list[str] | None:
    """The instructions that compute what a library call does; the last one has its name.

    Args:
      each: a custom call.
      operands: their names.
      attributes: the attributes by name, as HLO writes them.

    Returns:
      Lines of HLO; the library's scratch space is filled with zeros, which nothing reads. None if the call adds
      something that is not known.

    Example:
      >>> from hlorewrite.hlo.parse import HloInstruction
      >>> call = HloInstruction("c", "f32[4]", "custom-call", ("p",), "")
      >>> expanded_call(call, ["p"], {"custom_call_target": '"mine"'}) is None
      True
    """
    target = attributes.get("custom_call_target", "")
    try:
        config = json.loads(attributes.get("backend_config", ""))
    except ValueError:
        return None
    if len(operands) != 2 or not isinstance(config, dict):
        return None
    left, right = operands
    if target == _CONVOLUTION and _plain(config.get("cudnn_conv_backend_config"), _PLAIN_CONVOLUTION, frozenset()):
        kept = "".join(f", {key}={attributes[key]}" for key in _KEPT if key in attributes)
        return _with_scratch(each, f"convolution(%{left}, %{right}){kept}")
    held = config.get("gemm_backend_config")
    if target in _PRODUCTS and _plain(held, _PLAIN_PRODUCT, _OTHER_OF_PRODUCTS):
        assert isinstance(held, dict)
        dimensions = held.get("dot_dimension_numbers")
        if not isinstance(dimensions, dict) or _algorithm(held) != "ALG_UNSET":
            return None
        listed = "".join(f", {name}={{{','.join(map(str, dimensions[key]))}}}" for name, key in _DIMENSIONS
                         if dimensions.get(key))
        return _with_scratch(each, f"dot(%{left}, %{right}){listed}{_precision(held)}")
    return None


_OTHER_OF_PRODUCTS = frozenset({"dot_dimension_numbers", "precision_config", "lhs_stride", "rhs_stride",
                                "autotune_workspace_size", "selected_algorithm"})


def _plain(config: object, plain: Mapping[str, object], others: frozenset[str]) -> bool:
    """Whether settings are the plain ones; a setting that is not known is none of them."""
    return isinstance(config, dict) and all(
        key in others or (key in plain and plain[key] == value) for key, value in config.items())


def _algorithm(config: Mapping[str, Any]) -> str:
    held = config.get("precision_config")
    return str(held.get("algorithm", "ALG_UNSET")) if isinstance(held, dict) else "ALG_UNSET"


def _precision(config: Mapping[str, Any]) -> str:
    held = config.get("precision_config")
    names = [str(name).lower() for name in held.get("operand_precision", [])] if isinstance(held, dict) else []
    return f", operand_precision={{{','.join(names)}}}" if set(names) - {"default"} else ""


def _with_scratch(each: HloInstruction, computed: str) -> list[str]:
    """A result, or a tuple of it and the library's scratch space."""
    if not each.shape.startswith("("):
        return [f"%{each.name} = {each.shape} {computed}"]
    parts = tuple_parts(each.shape)
    lines, names = [f"%{each.name}.result = {parts[0]} {computed}"], [f"%{each.name}.result"]
    for number, part in enumerate(parts[1:]):
        element = part.partition("[")[0]
        lines += [f"%{each.name}.zero{number} = {element}[] constant(0)",
                  f"%{each.name}.scratch{number} = {part} broadcast(%{each.name}.zero{number}), dimensions={{}}"]
        names.append(f"%{each.name}.scratch{number}")
    return [*lines, f"%{each.name} = {each.shape} tuple({', '.join(names)})"]
