"""The matrix products and convolutions in a kernel, by their shapes."""

import json
import re
from math import prod

from hlorewrite.cost.kernels.work import Product, convolution_of, product_of
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText, custom_call_target
from hlorewrite.hlo.shapes import arrays
from hlorewrite.util.reachability import reachable

_CONTRACTING = re.compile(r"\blhs_contracting_dims=\{([\d,]*)\}")
_LABELS = re.compile(r"\bdim_labels=[\w?]+_([\w?]+)->")
_GEMM_CONTRACTING = re.compile(r'"lhs_contracting_dimensions":(\[[^\]]*\])')
_PRECISION = re.compile(r'\boperand_precision(?:=\{|":\[)([\w,"]*)[]}]')
_ALGORITHM = re.compile(r"\balgorithm=dot_(\w+?)(?:_x(\d))?\b")
_GEMMS = ("__cublas$gemm", "__cublas$lt$matmul", "__triton_gemm")
_CONVOLUTION = "__cudnn$conv"

def fusion_products(module: HloText, fused: Computation) -> list[Product]:
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


def instruction_products(computation: Computation, instruction: HloInstruction) -> list[Product]:
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


def _product(computation: Computation, instruction: HloInstruction, contracted: list[int]) -> list[Product]:
    dtype, left = _shape(computation, instruction, 0)
    if not left or any(d >= len(left) for d in contracted):
        return []
    named = _ALGORITHM.search(instruction.attributes)
    algorithm = (named.group(1).split("_")[0], int(named.group(2) or 1)) if named else None
    return [product_of(dtype, prod(_shape(computation, instruction, -1)[1]), prod(left[d] for d in contracted),
                       precise=_precise(instruction), algorithm=algorithm)]


def _convolution(computation: Computation, instruction: HloInstruction, direction: str) -> list[Product]:
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
    return [convolution_of(dtype, prod(_shape(computation, instruction, output)[1]), prod(filter_sizes), features,
                           precise=_precise(instruction))]


def _precise(instruction: HloInstruction) -> bool:
    """Whether the precision of an operand is high or highest, in an attribute or in the settings of a custom call."""
    precision = _PRECISION.search(instruction.attributes)
    return precision is not None and "high" in precision.group(1).lower()
