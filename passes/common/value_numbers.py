"""Numbers of values: equal numbers mean equal values on every device (Alpern, Wegman and Zadeck, POPL 1988).

Values are numbered on demand, with all values that they are computed from. A value carried by a loop, or made by an op
that is not a function of its operands, has a separate number. A call is numbered by what its function returns for its
operands.
"""

from collections.abc import Callable, Mapping

from hlorewrite.analysis.groups import groups_of, id_mode
from hlorewrite.ir import COLLECTIVES, MAY_HAVE_EFFECTS, REPLICA_GROUPS, View, ir, is_private, op_key, readable
from hlorewrite.ir.view import defining_op, terminator
from hlorewrite.ops.attributes import constant_text
from hlorewrite.ops.reducers import reduction_kind

_OPAQUE = {*MAY_HAVE_EFFECTS, "stablehlo.optimization_barrier"}
_WITH_REDUCER = {*COLLECTIVES, "stablehlo.reduce"}
_IGNORED = {"channel_handle"}
_MOST_CALLS = 4

Number = int
Bound = Mapping[ir.Value, Number]


class ValueNumbers:
    """Numbers of values of one module; valid until the module changes.

    Args:
      view: the module.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse("func.func @f(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) {"
      ...                   "%0 = stablehlo.add %a, %a : tensor<f32>  %1 = stablehlo.add %a, %a : tensor<f32>"
      ...                   "return %0, %1 : tensor<f32>, tensor<f32> }"))
      >>> numbers, (one, two) = ValueNumbers(view), view.ops("stablehlo.add")
      >>> numbers.of(one.results[0]) == numbers.of(two.results[0])
      True
    """

    def __init__(self, view: View) -> None:
        self.view = view
        self._table: dict[tuple[Number, ...], Number] = {}
        self._count = 0
        self._shapes: dict[tuple[object, ...], int] = {}
        self._known: dict[ir.Value, Number] = {}
        self._kinds: dict[int, str | None] = {}

    def of(self, value: ir.Value) -> Number:
        """The number of a value."""
        return self._of(value, self._known, {}, 0)

    def _of(self, root: ir.Value, known: dict[ir.Value, Number], bound: Bound, depth: int) -> Number:
        stack = self._open(root, known, bound)
        # Ends: an op depends only on ops before it, and its results become known once.
        while stack:
            op = stack[-1]
            operands = tuple(op.operands)
            waiting = [maker for operand in operands for maker in self._open(operand, known, bound)]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            if op.results[0] not in known:
                self._numbered(op, known, tuple([known[operand] for operand in operands]), depth)
        return known[root]

    def _open(self, value: ir.Value, known: dict[ir.Value, Number], bound: Bound) -> list[ir.Operation]:
        """The op that has to be numbered for a value; none if the value is known or has a number of its own."""
        if value in known:
            return []
        op = defining_op(value)
        if op is None:
            known[value] = bound[value] if value in bound else self._new()
        elif is_function(op, self._kind):
            return [op]
        else:
            self._own(op, known)
        return []

    def _numbered(self, op: ir.Operation, known: dict[ir.Value, Number], operands: tuple[Number, ...],
                  depth: int) -> None:
        """Numbers the results of an op whose operands are numbered."""
        name = op.name
        if name == "func.call":
            self._called(op, known, operands, depth)
            return
        named = [each for each in op.attributes if each not in _IGNORED]
        attributes = tuple((each, _attribute(op, each)) for each in sorted(named)) if named else ()
        kind = self._kind(op) if len(op.regions) else ""
        if name in COLLECTIVES:  # the presence of a channel decides which devices participate; its number does not
            attributes = (*attributes, ("mode", id_mode(op)))
            groups = groups_of(op, self.view) if REPLICA_GROUPS in named else ""
            if not isinstance(groups, str):  # lists of groups, and axes of meshes, name the same groups in many ways
                kept = [each for each in attributes if each[0] != REPLICA_GROUPS]
                attributes = (*kept, (REPLICA_GROUPS, tuple(sorted(groups.rows))))
        for position, result in enumerate(op.results):
            shape = name, attributes, kind, position, result.type
            known[result] = self._number((self._shapes.setdefault(shape, len(self._shapes)), *operands))

    def _called(self, op: ir.Operation, known: dict[ir.Value, Number], operands: tuple[Number, ...],
                depth: int) -> None:
        callee = self.view.callee(op)
        if depth == _MOST_CALLS or callee is None or not is_private(callee) or len(callee.regions[0].blocks) != 1:
            self._own(op, known)
            return
        block = callee.regions[0].blocks[0]
        bound = dict(zip(block.arguments, operands, strict=True))
        inside: dict[ir.Value, Number] = {}
        for result, returned in zip(op.results, terminator(block).operands, strict=True):
            known[result] = self._of(returned, inside, bound, depth + 1)

    def _kind(self, op: ir.Operation) -> str | None:
        """The kind of reduction, cached, since an op of a function is looked up for each call."""
        key = op_key(op)
        if key not in self._kinds:
            self._kinds[key] = reduction_kind(op)
        return self._kinds[key]

    def _own(self, op: ir.Operation, known: dict[ir.Value, Number]) -> None:
        """New numbers for results that do not follow from operands; different ones in each call of the enclosing
        function."""
        for result in op.results:
            known[result] = self._new()

    def _new(self) -> Number:
        self._count += 1
        return self._count

    def _number(self, key: tuple[Number, ...]) -> Number:
        number = self._table.get(key)
        if number is None:
            number = self._table[key] = self._new()
        return number


def _attribute(op: ir.Operation, name: str) -> ir.Attribute | str:
    """An attribute, or the text of its op where jaxlib does not give it."""
    attribute = readable(op, name)
    return constant_text(op) if attribute is None else attribute


def is_function(op: ir.Operation, kind: Callable[[ir.Operation], str | None] = reduction_kind) -> bool:
    """Whether an op's results follow from its operands, attributes and the device alone.

    Args:
      op: the op.
      kind: the kind of reduction of its region.
    """
    name = op.name
    if name == "func.call":
        return True
    if not name.startswith(("stablehlo.", "chlo.")) or name in _OPAQUE:
        return False
    return len(op.regions) == 0 or (name in _WITH_REDUCER and kind(op) is not None)
