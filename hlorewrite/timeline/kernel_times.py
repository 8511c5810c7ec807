"""Seconds of the kernels of a scheduled module: the reader of HLO of :mod:`hlorewrite.cost.kernels`."""

import json
import re
from collections.abc import Mapping
from math import prod

from hlorewrite.cost import Topology
from hlorewrite.cost.kernels import work
from hlorewrite.cost.kernels.rates import KernelRates, timeline_constants
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText, custom_call_target
from hlorewrite.hlo.shapes import arrays, shape_bytes, shape_elements
from hlorewrite.util.reachability import reachable

_NOT_A_NAME = re.compile(r"[^A-Za-z0-9_]")
ASYNC_FUSION = "fusion-start"
"""A fusion that XLA may run concurrently with others; newer XLA emits copies of slices in this form."""


class KernelTimes:
    """Times of the kernels of one module on one GPU.

    Args:
      module: the module.
      topology: the cluster, for its GPU.
      measured: seconds of kernels by instruction name, or by a profiler's name for it, with underscores for dots; they
        override the model's.
    """

    def __init__(self, module: HloText, topology: Topology, measured: Mapping[str, float] | None = None) -> None:
        self._module, self._topology = module, topology
        self._measured = dict(measured or {})
        self._unused = set(self._measured)
        self._rates = KernelRates(topology)

    def seconds(self, computation: Computation, instruction: HloInstruction) -> float | None:
        """Seconds of one execution of a kernel.

        Args:
          computation: the computation that it is in.
          instruction: the kernel.

        Returns:
          Seconds; None for a custom call whose work is not known.
        """
        measured = self.measured(instruction.name)
        if measured is not None:
            return measured
        if instruction.opcode in ("fusion", ASYNC_FUSION):
            fused = self._module.computations.get(next(iter(instruction.called("calls")), ""))
            if fused is None:
                return self._rates.seconds(instruction_bytes(computation, instruction), ())
            return self._rates.seconds(fusion_bytes(fused), fusion_products(self._module, fused),
                                       fusion_elements(fused))
        if instruction.opcode == "custom-call" and not is_known_custom_call(instruction):
            return None
        return self._rates.seconds(instruction_bytes(computation, instruction),
                                   instruction_products(computation, instruction),
                                   instruction_elements(computation, instruction))

    def measured(self, name: str) -> float | None:
        """The measured time of an instruction; None when there is none."""
        if not self._measured:
            return None
        key = name if name in self._measured else _NOT_A_NAME.sub("_", name)
        self._unused.discard(key)
        return self._measured.get(key)

    @property
    def unused(self) -> tuple[str, ...]:
        """Measured names that no instruction asked for, sorted."""
        return tuple(sorted(self._unused))

    def host_copy(self, shape: str) -> float:
        """Seconds of a copy between host and device."""
        constants = timeline_constants()
        rates = constants["host_bytes_per_s"]
        rate = float(rates.get(self._topology.architecture, min(rates.values()))) * float(constants["host_efficiency"])
        return self._rates.launch_s + shape_bytes(shape) / rate


# ---- bytes that a kernel moves, the part of its operands that its result needs, and the elements it writes

# Bytes that a kernel moves through memory, the part of its operands that its result needs, and the elements it writes.
#
# A fusion reads only the part of a parameter that its root needs: a slice, the rows that a gather takes, nothing of a
# buffer that it updates in place. Going back from the root, :func:`hlorewrite.cost.kernels.work.needed_elements` gives
# the number of operand elements that the needed elements of each result depend on. The bytes of several readers are
# added up, but never exceed the whole parameter.


def fusion_bytes(fused: Computation) -> int:
    """Bytes a fusion reads and writes.

    Args:
      fused: the computation it calls.

    Returns:
      Bytes of one execution.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> module = parse_hlo('''HloModule m
      ... ENTRY %fused (p: f32[8,128], i: s32[]) -> f32[1,128] {
      ...   %p = f32[8,128]{1,0} parameter(0)
      ...   %i = s32[] parameter(1)
      ...   %zero = s32[] constant(0)
      ...   ROOT %row = f32[1,128]{1,0} dynamic-slice(%p, %i, %zero), dynamic_slice_sizes={1,128}
      ... }''')
      >>> fusion_bytes(module.computations["fused"])
      1028
    """
    instructions = fused.instructions
    results = _results(fused)
    needed: dict[str, float] = {each.name: shape_elements(each.shape) for each in results}
    written = sum(shape_bytes(_written(fused, each)[0]) for each in results)
    in_place = _updated_in_place(fused, results)
    read = 0.0
    for name in reversed(instructions):
        if name not in needed:
            continue
        instruction, count = instructions[name], needed[name]
        if instruction.opcode == "parameter":
            read += count / max(shape_elements(instruction.shape), 1) * shape_bytes(instruction.shape)
        for place, operand in enumerate(instruction.operands):
            if operand in instructions:
                size = shape_elements(instructions[operand].shape)
                more = _needs(fused, instruction, place, count, size, name in in_place)
                needed[operand] = min(size, needed.get(operand, 0.0) + more)
    return round(read) + written


def fusion_elements(fused: Computation) -> work.WrittenElements:
    """Elements a fusion writes.

    Args:
      fused: the computation it calls.
    """
    rows = [_elements(fused, each) for each in _results(fused)]
    return work.WrittenElements(*(max(column) for column in zip(*rows, strict=True))) if rows else work.NOTHING_WRITTEN


def instruction_elements(computation: Computation, instruction: HloInstruction) -> work.WrittenElements:
    """Elements that an instruction outside of fusions writes; none if its kernel is not XLA's own.

    Args:
      computation: the computation that it is in.
      instruction: the kernel; not a fusion.
    """
    return work.NOTHING_WRITTEN if instruction.opcode in work.WHOLE else _elements(computation, instruction)


def instruction_bytes(computation: Computation, instruction: HloInstruction) -> int:
    """Bytes that an instruction outside of fusions reads and writes.

    Args:
      computation: the computation that it is in.
      instruction: the kernel; not a fusion.

    Returns:
      Bytes of one execution.
    """
    read, count = 0.0, shape_elements(instruction.shape)
    for place, operand in enumerate(instruction.operands):
        made = computation.instructions.get(operand)
        if made is not None:
            size = shape_elements(made.shape)
            share = min(size, _needs(computation, instruction, place, count, size, True)) / max(size, 1)
            read += share * shape_bytes(made.shape)
    return round(read) + shape_bytes(_written(computation, instruction)[0])


def _results(fused: Computation) -> list[HloInstruction]:
    """The instructions that compute the results of a fusion."""
    root = fused.instructions.get(fused.root)
    if root is None:
        return []
    names = root.operands if root.opcode == "tuple" else (root.name,)
    return [fused.instructions[name] for name in dict.fromkeys(names) if name in fused.instructions]


def _elements(computation: Computation, made: HloInstruction) -> work.WrittenElements:
    shape, kind = _written(computation, made)
    elements = shape_elements(shape)
    return work.scattered(elements, shape_bytes(shape)) if kind == work.SCATTER else work.WrittenElements(elements)


def _written(computation: Computation, made: HloInstruction) -> tuple[str, str]:
    """The shape that is written for a result, and the opcode that writes it; for an update in place, the update's."""
    source = _source(computation, made)
    if source is not None and source.opcode in work.IN_PLACE:
        return _update(computation, source).shape, source.opcode
    return made.shape, made.opcode


def _updated_in_place(fused: Computation, results: list[HloInstruction]) -> set[str]:
    """The in-place updates among a fusion's results."""
    made = [_source(fused, each) for each in results]
    return {each.name for each in made if each is not None and each.opcode in work.IN_PLACE}


def _source(computation: Computation, made: HloInstruction | None) -> HloInstruction | None:
    """The instruction that computes a value, looking through changes of shape."""
    left = len(computation.instructions)
    # Ends: ``left`` falls; in a damaged text an instruction may read itself.
    while made is not None and made.opcode in work.SAME_BYTES and made.operands and left:
        made, left = computation.instructions.get(made.operands[0]), left - 1
    return made


def _update(computation: Computation, update: HloInstruction) -> HloInstruction:
    place = work.update_place(update.opcode, len(update.operands))
    name = update.operands[place] if place < len(update.operands) else ""
    return computation.instructions.get(name, update)


def _needs(computation: Computation, reader: HloInstruction, place: int, count: float, size: int,
           in_place: bool) -> float:
    """The number of an operand's elements that ``count`` elements of the reader's result depend on."""
    update = shape_elements(_update(computation, reader).shape) if reader.opcode in work.IN_PLACE else 0
    return work.needed_elements(work.OpSizes(reader.opcode, shape_elements(reader.shape), update), place, count, size,
                           in_place=in_place)


# ---- the matrix products and convolutions in a kernel, by their shapes


_CONTRACTING = re.compile(r"\blhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"\bdim_labels=[\w?]+_([\w?]+)->")
_GEMM_CONTRACTING = re.compile(r'"lhs_contracting_dimensions":(\[[^\]]*\])')
_PRECISION = re.compile(r'\boperand_precision(?:=\{|":\[)([\w,"]*)[]}]')
_ALGORITHM = re.compile(r"\balgorithm=dot_(\w+?)(?:_x(\d))?\b")
_GEMMS = ("__cublas$gemm", "__cublas$lt$matmul", "__triton_gemm")
_CONVOLUTION = "__cudnn$conv"

def fusion_products(module: HloText, fused: Computation) -> list[work.Product]:
    """The products in a fusion, nested ones included.

    Args:
      module: the module.
      fused: the computation the fusion calls.

    Returns:
      Its products; empty when it multiplies no matrices.
    """
    def called(computation: Computation) -> list[Computation]:
        return [module.computations[name] for instruction in computation.instructions.values()
                if instruction.opcode in ("fusion", "call") for name in instruction.called("calls", "to_apply")
                if name in module.computations]

    return [product for computation in reachable([fused], called, key=lambda each: each.name)
            for instruction in computation.instructions.values()
            for product in instruction_products(computation, instruction)]


def instruction_products(computation: Computation, instruction: HloInstruction) -> list[work.Product]:
    """The product that one instruction computes.

    Args:
      computation: the computation that it is in.
      instruction: ``dot``, ``convolution``, a custom call of cuBLAS or cuDNN, or anything else.

    Returns:
      The product; none for anything else.

    Example:
      >>> from hlorewrite.hlo.parse import parse_hlo
      >>> entry = parse_hlo('''HloModule m
      ... ENTRY %main (a: bf16[64,32], b: bf16[32,16]) -> bf16[64,16] {
      ...   %a = bf16[64,32]{1,0} parameter(0)
      ...   %b = bf16[32,16]{1,0} parameter(1)
      ...   ROOT %c = bf16[64,16]{1,0} dot(%a, %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ... }''').computations["main"]
      >>> instruction_products(entry, entry.instructions["c"])
      [Product(dtype='bf16', flops=65536.0)]
    """
    if instruction.opcode == "dot":
        dims = _CONTRACTING.search(instruction.attributes)
        contracted = [int(d) for d in dims.group(1).split(",") if d] if dims else []
        return _product(computation, instruction, contracted)
    if instruction.opcode == "convolution":
        return _convolution(computation, instruction, "Forward")
    if instruction.opcode != "custom-call":
        return []
    target = custom_call_target(instruction)
    if target.startswith(_CONVOLUTION):
        return _convolution(computation, instruction, target.removeprefix(_CONVOLUTION))
    dims = _GEMM_CONTRACTING.search(instruction.attributes) if target.startswith(_GEMMS) else None
    return _product(computation, instruction, [int(d) for d in json.loads(dims.group(1))]) if dims else []


def is_known_custom_call(instruction: HloInstruction) -> bool:
    """Whether a custom call is a product or convolution whose FLOP count follows from its shapes."""
    return custom_call_target(instruction).startswith((*_GEMMS, _CONVOLUTION))


def _shape(computation: Computation, instruction: HloInstruction, place: int) -> tuple[str, tuple[int, ...]]:
    """Type and sizes of an operand, or at -1 of the result (the first array of a tuple)."""
    if place < 0:
        text = instruction.shape
    else:
        name = instruction.operands[place] if place < len(instruction.operands) else ""
        made = computation.instructions.get(name)
        text = made.shape if made is not None else ""
    return next(iter(arrays(text)), ("", ()))


def _product(computation: Computation, instruction: HloInstruction, contracted: list[int]) -> list[work.Product]:
    dtype, left = _shape(computation, instruction, 0)
    if not left or any(d >= len(left) for d in contracted):
        return []
    named = _ALGORITHM.search(instruction.attributes)
    algorithm = (named.group(1).split("_")[0], int(named.group(2) or 1)) if named else None
    return [work.product_of(dtype, prod(_shape(computation, instruction, -1)[1]), prod(left[d] for d in contracted),
                       precise=_precise(instruction), algorithm=algorithm)]


def _convolution(computation: Computation, instruction: HloInstruction, direction: str) -> list[work.Product]:
    """The product of a convolution.

    The backward convolutions of cuDNN keep the labels of the forward one: its result is their first operand (input
    gradient) or second operand (filter gradient).
    """
    output, kernel = {"BackwardInput": (0, 1), "BackwardFilter": (1, -1)}.get(direction, (-1, 1))
    dtype, _ = _shape(computation, instruction, 0)
    filter_sizes = _shape(computation, instruction, kernel)[1]
    labels = _LABELS.search(instruction.attributes)
    features = filter_sizes[labels.group(1).index("o")] if labels and len(labels.group(1)) == len(filter_sizes) \
        and "o" in labels.group(1) else 1
    return [work.convolution_of(dtype, prod(_shape(computation, instruction, output)[1]), prod(filter_sizes), features,
                           precise=_precise(instruction))]


def _precise(instruction: HloInstruction) -> bool:
    """Whether the precision of an operand is high or highest, in an attribute or in the settings of a custom call."""
    precision = _PRECISION.search(instruction.attributes)
    return precision is not None and "high" in precision.group(1).lower()
