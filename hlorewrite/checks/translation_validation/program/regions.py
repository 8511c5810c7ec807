"""Regions of ops as nested tuples: reducers, comparators, scalar functions."""

from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.ir import COLLECTIVES, MAY_HAVE_EFFECTS, ir
from hlorewrite.ops.table import DEVICE_IDS

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
