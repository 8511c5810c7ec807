"""What an expression is in MLIR: an op that computes the value of a node, for the questions of ``ops``."""

from collections.abc import Sequence

from hlorewrite.checks.translation_validation.program.sorts import RegionEncoder
from hlorewrite.checks.translation_validation.program.state import ProgramState
from hlorewrite.checks.value_graph.graph import Label
from hlorewrite.ir import ir, nested_ops, op_key


class Likenesses:
    """Ops like the nodes of a graph, each found or written once.

    Args:
      programs: those whose values are nodes of the graph.
    """

    def __init__(self, programs: Sequence[ProgramState]) -> None:
        self.graph = programs[0].graph
        self._origins = {op_key(op): (program, op) for program in programs
                         for op in nested_ops(program.view.module.operation)}
        with programs[0].view.module.context, ir.Location.unknown():
            self._scratch = ir.Module.create()
        self._known: dict[tuple[Label, str, tuple[str, ...]], ir.Operation | None] = {}

    def of(self, node: int, type_: str = "") -> ir.Operation | None:
        """An op that computes the value of a node, perhaps in another type; None if there is none."""
        label = self.graph.labels[node]
        key = label, type_ or self.graph.types[node], tuple([self.graph.types[arg] for arg in self.graph.args[node]])
        if key not in self._known:
            is_op = len(label) == 4 and str(label[0]).startswith("stablehlo.")
            self._known[key] = None if not is_op or (label[2] and type_) else (
                self._origin(node, key[2]) if label[2] else self._written(*key))
        return self._known[key]

    def _origin(self, node: int, types: tuple[str, ...]) -> ir.Operation | None:
        """The op with regions that a node was made of."""
        label = self.graph.labels[node]
        program, op = self._origins.get(self.graph.origins[node], (None, None))
        if program is None or op is None or op.name != label[0] or program.attributes_of(op) != label[1]:
            return None
        if types[:len(op.operands)] != tuple([str(operand.type) for operand in op.operands]):
            return None
        try:
            return op if RegionEncoder(program).regions(op) == label[2] else None
        except KeyError:  # it reads values from outside, which are not kept
            return None

    def _written(self, label: Label, type_: str, types: tuple[str, ...]) -> ir.Operation | None:
        """An op without regions."""
        with self._scratch.context, ir.Location.unknown(), ir.InsertionPoint(self._scratch.body):
            try:
                operands = [ir.Operation.create("builtin.unrealized_conversion_cast", [ir.Type.parse(each)]).results[0]
                            for each in types]
                attributes = {name: ir.Attribute.parse(text) for name, text in label[1]}  # type: ignore[attr-defined]
                return ir.Operation.create(str(label[0]), [ir.Type.parse(type_)], operands, attributes)
            except (ValueError, ir.MLIRError):
                return None
