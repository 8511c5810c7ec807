"""Identifies sorts by what their comparator computes, however it is written, with ties decided by a number.

A comparator is evaluated to a node over the pair that it compares, so that simplified ones are the same. A stable sort
decides ties by the original position of the elements. If one operand counts along the dimension, its numbers are these
positions, and the sort need not be stable. XLA writes sorts in this way, and adds such an operand if there is none.
"""

import re
from collections.abc import Sequence

from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph.graph import SymbolicValue, shape_and_element, tensor_type
from hlorewrite.checks.value_graph.normalize import op_label, slice_label
from hlorewrite.checks.value_graph.views.forms import Forms
from hlorewrite.checks.value_graph.views.strided import places, strided
from hlorewrite.ir import COLLECTIVES, MAY_HAVE_EFFECTS, ir, terminator
from hlorewrite.ops.table import DEVICE_IDS

_SYMBOL = re.compile(r'@("[^"]+"|[\w.$-]+)')
_TUPLE = re.compile(r"tuple<(tensor<[^<>]*>), (tensor<[^<>]*>)>")
_EQ, _LT = (("comparison_direction", f"#stablehlo<comparison_direction {way}>") for way in ("EQ", "LT"))


def sorted_values(state: ProgramState, op: ir.Operation, nodes: Sequence[int]) -> list[SymbolicValue] | None:
    """The results of a sort whose comparator computes on each process by itself.

    Args:
      state: the program, under a form of views.
      op: the sort.
      nodes: its operands.

    Returns:
      The nodes of its results; None for tensors without elements.
    """
    forms = state.forms
    known = [shape_and_element(state.graph.types[node]) for node in nodes]
    if forms is None or None in known or any(0 in each[0] for each in known if each is not None):
        return None
    shape = forms.moves.shape(nodes[0])
    along = int(ir.IntegerAttr(op.attributes["dimension"]).value) if "dimension" in op.attributes else len(shape) - 1
    along %= max(len(shape), 1)
    stable = "is_stable" in op.attributes and bool(ir.BoolAttr(op.attributes["is_stable"]).value)
    operands = list(nodes)
    place = next((k for k, node in enumerate(operands) if _counts(forms, node, along)), None)
    if stable and place is None:
        type_ = tensor_type(shape, "i32")
        operands.append(forms.op(op_label("stablehlo.iota", (("iota_dimension", f"{along} : i64"),)), type_, ()))
        place = len(operands) - 1
    comparator = _comparator(state, op.regions[0].blocks[0], operands, place if stable else None)
    return [*_sorted(forms, operands, along, comparator, len(nodes))]


def top_elements(state: ProgramState, op: ir.Operation, node: int) -> list[SymbolicValue] | None:
    """The results of XLA's custom call ``TopK``: the first elements of each row, sorted stably, and their numbers.

    Args:
      state: the program, under a form of views.
      op: the call.
      node: its operand.

    Returns:
      A tuple of both; None if the call has another form.
    """
    forms, called = state.forms, _SYMBOL.findall(str(op.attributes["called_computations"]))
    result = _TUPLE.fullmatch(str(op.results[0].type))
    function = state.view.functions.get(called[0].strip('"')) if len(called) == 1 else None
    if forms is None or function is None or result is None or 0 in forms.moves.shape(node):
        return None
    shape, known = forms.moves.shape(node), [shape_and_element(part) for part in result.groups()]
    if known[0] is None or known[1] is None or not shape or known[1][1] != "i32":
        return None
    along = len(shape) - 1
    counting = op_label("stablehlo.iota", (("iota_dimension", f"{along} : i64"),))
    operands = [node, forms.op(counting, tensor_type(shape, "i32"), ())]
    block = function.regions[0].blocks[0]
    found = _sorted(forms, operands, along, _comparator(state, block, operands, 1), 2)
    first = slice_label([0] * len(shape), list(known[0][0]), [1] * len(shape))
    parts = tuple(forms.op(first, type_, (each,)) for each, type_ in zip(found, result.groups(), strict=True))
    return [state.graph.node(("tuple",), str(op.results[0].type), parts)]


def _counts(forms: Forms, node: int, along: int) -> bool:
    """Whether a node numbers the elements along a dimension from 0."""
    base, view = forms.moves.base(node)
    size = forms.moves.shape(node)[along]
    steps = all(digits == (((size, 1),) if d == along and size > 1 else ()) or (
        d != along and all(stride == 0 for _, stride in digits)) for d, digits in enumerate(view.dims))
    return forms.graph.labels[base][0] == "stablehlo.iota" and view.offset == 0 and steps


def _comparator(state: ProgramState, block: ir.Block, operands: Sequence[int], ties: int | None) -> int:
    """What a comparator computes of two elements of each operand; ties are decided by the number of one operand."""
    forms = state.forms
    assert forms is not None
    pairs: list[list[int]] = []
    for position, node in enumerate(operands):
        type_ = tensor_type((), forms.moves.element(node))
        pairs.append([state.graph.node(("compared", position, side), type_) for side in (0, 1)])
    given = len(block.arguments) // 2
    first, second = pairs[:given], [pair[::-1] for pair in pairs[:given]]
    end = terminator(block).operands[0]
    one, other = (state.reduced(state.run_block(block, [node for pair in side for node in pair])[0], end)
                  for side in (first, second))
    if ties is None:
        return one
    equal = forms.op(op_label("stablehlo.compare", (_EQ,)), "tensor<i1>", (one, other))
    earlier = forms.op(op_label("stablehlo.compare", (_LT,)), "tensor<i1>", tuple(pairs[ties]))
    return forms.op(op_label("stablehlo.select"), "tensor<i1>", (equal, earlier, one))


def _sorted(forms: Forms, operands: Sequence[int], along: int, comparator: int, count: int) -> list[int]:
    """The first results, each row sorted by itself: rows have one order."""
    moves, shape = forms.moves, forms.moves.shape(operands[0])
    kept = forms.layouts.order(operands[0], [d for d in range(len(shape)) if d != along])
    steps, size = places(shape), shape[along]
    rows = 1
    for part in kept:
        rows *= part.size
    view = strided(0, [[(part.size, part.place * steps[part.dim]) for part in kept], [(size, steps[along])]])
    flat = tuple(moves.viewed(node, view, tensor_type((rows, size), moves.element(node))) for node in operands)
    digits: list[list[tuple[int, int, int]]] = [[] for _ in shape]
    for part, place in zip(kept, places([part.size for part in kept]), strict=True):
        digits[part.dim].append((part.place, part.size, place * size))
    digits[along] = [(1, size, 1)]
    back = strided(0, [[(n, place) for _, n, place in sorted(dim, reverse=True)] for dim in digits])
    made = [forms.graph.node(("sorted", number), forms.graph.types[flat[number]], (*flat, comparator))
            for number in range(count)]
    return [moves.viewed(node, back, tensor_type(shape, moves.element(node))) for node in made]


# ---- regions of ops as nested tuples: reducers, comparators, scalar functions


_ODD = frozenset((*COLLECTIVES, *MAY_HAVE_EFFECTS, *DEVICE_IDS, "func.call"))
_KINDS = {"stablehlo.add": "sum", "stablehlo.multiply": "product", "stablehlo.maximum": "max",
          "stablehlo.minimum": "min", "stablehlo.and": "and", "stablehlo.or": "or"}
Encoded = tuple[object, ...]


class RegionEncoder:
    """Serializes the regions of one op: ops, attributes, types, and the values that each op reads.

    Args:
      state: the program.

    Attributes:
      captured: nodes of the values that are read from outside, in order.
      odd: whether something inside depends on more than its operands.
    """

    def __init__(self, state: ProgramState) -> None:
        self.state = state
        self.captured: list[int] = []
        self.odd = False
        self._numbers: dict[ir.Value, int] = {}

    def regions(self, op: ir.Operation) -> Encoded:
        """All regions of an op."""
        return tuple(tuple(self._block(block) for block in region.blocks) for region in op.regions)

    def _block(self, block: ir.Block) -> Encoded:
        for argument in block.arguments:
            self._numbers[argument] = len(self._numbers)
        types = tuple(self.state.type_of(argument) for argument in block.arguments)
        return (types, tuple(self._op(op.operation) for op in block.operations))

    def _op(self, op: ir.Operation) -> Encoded:
        self.odd |= op.name in _ODD or not op.name.startswith(("stablehlo.", "chlo.", "mhlo."))
        read = tuple(self._read(value) for value in op.operands)
        inner = self.regions(op)
        for result in op.results:
            self._numbers[result] = len(self._numbers)
        return (op.name, read, tuple(self.state.type_of(r) for r in op.results), self.state.attributes_of(op), inner)

    def _read(self, value: ir.Value) -> tuple[str, int]:
        if value in self._numbers:
            return "local", self._numbers[value]
        self.captured.append(self.state.node_of(value))
        return "captured", len(self.captured) - 1


def reducer_kind(op: ir.Operation) -> str | None:
    """The reduction of a collective, if its reducer is one commutative op in the type of operands and results."""
    if len(op.regions) != 1 or len(op.regions[0].blocks) != 1:
        return None
    block = op.regions[0].blocks[0]
    body = [inner.operation for inner in block.operations]
    if len(body) != 2 or len(block.arguments) != 2 or len(body[0].results) != 1:
        return None
    combine, end = body
    arguments = list(block.arguments)
    if list(combine.operands) not in (arguments, arguments[::-1]) or list(end.operands) != list(combine.results):
        return None
    elements = {str(ir.RankedTensorType(value.type).element_type) if isinstance(value.type, ir.RankedTensorType) else
                str(value.type) for value in (*op.operands, *op.results, *arguments, combine.results[0])}
    return _KINDS.get(combine.name) if len(elements) == 1 else None
