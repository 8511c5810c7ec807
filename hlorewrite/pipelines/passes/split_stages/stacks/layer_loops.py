"""Loops over layers in which ``hlorewrite.stage_layers`` says where stages begin."""

from dataclasses import dataclass

from hlorewrite.analysis.loops import trip_count
from hlorewrite.errors import InputError
from hlorewrite.ir import Loop, View, ir, op_key

COMPOSITE = "hlorewrite.layers"
_HOW = "call hlorewrite.stage_layers in the body of a lax.scan over layers, inside the loop over micro-batches"


@dataclass(frozen=True)
class LayerLoop:
    """A loop over layers.

    Attributes:
      loop: the loop.
      mark: the first mark in its body.
      backward: whether it runs the layers from the last to the first, as the loop does that ``jax.grad`` makes.
      edges: the layer with which each stage begins, and the number of layers.
      first: the stage of the first layer.
    """

    loop: Loop
    mark: ir.Operation
    backward: bool
    edges: tuple[int, ...]
    first: int

    @property
    def pieces(self) -> list[tuple[int, int, int]]:
        """(stage, first iteration, end) of each stage, in the order they run."""
        layers = self.edges[-1]
        forward = [(self.first + k, low, self.edges[k + 1]) for k, low in enumerate(self.edges[:-1])]
        return [(stage, layers - high, layers - low) for stage, low, high in reversed(forward)] if self.backward \
            else forward


def layer_loops(view: View) -> list[LayerLoop]:
    """The loops over layers of a step, in their order.

    Args:
      view: the view of a module without calls.

    Returns:
      The loops.

    Raises:
      InputError: a mark is outside such a loop, its boundaries are not layers of it, or it is not known how often
        it runs.
    """
    marks: dict[int, tuple[ir.Operation, list[ir.Operation]]] = {}
    for op in layer_marks(view):
        around = op.parent
        loop = around.operation if around is not None else None
        if loop is None or loop.name != "stablehlo.while" or loop.parent is None or \
                loop.parent.operation.name != "stablehlo.while":
            raise InputError("hlorewrite.stage_layers is called outside a loop over layers", location=view.source(op),
                             hint=_HOW)
        marks.setdefault(op_key(loop), (loop, []))[1].append(op)
    return [_layer_loop(view, loop, inside) for loop, inside in marks.values()]


@dataclass(frozen=True)
class LayerMark:
    """The contents of a mark of layers.

    Attributes:
      boundaries: where stages begin, as ``edges_of`` takes it.
      first: the stage of the first layer.
      backward: whether it marks a cotangent.
    """

    boundaries: str
    first: int
    backward: bool


def is_layer_mark(op: ir.Operation) -> bool:
    """Whether an op is a mark of layers."""
    return op.name == "stablehlo.composite" and ir.StringAttr(op.attributes["name"]).value == COMPOSITE


def said_by(op: ir.Operation) -> LayerMark:
    """The contents of a mark of layers."""
    given = ir.DictAttr(op.attributes["composite_attributes"])
    return LayerMark(ir.StringAttr(given["boundaries"]).value, ir.IntegerAttr(given["first"]).value,
                     ir.BoolAttr(given["backward"]).value)


def layer_marks(view: View) -> list[ir.Operation]:
    """The marks of layers in a module."""
    return [op for op in view.ops("stablehlo.composite") if is_layer_mark(op)]


def _layer_loop(view: View, loop: ir.Operation, marks: list[ir.Operation]) -> LayerLoop:
    given = [said_by(op) for op in marks]
    where = view.source(marks[0])
    said = {(each.boundaries, each.first) for each in given}
    if len(said) > 1:
        raise InputError("the marks in one loop over layers name different stages", location=where,
                         hint="mark the layers of a loop once")
    layers = trip_count(loop)
    if layers is None:
        raise InputError("the trip count of the loop over layers is unknown", location=where,
                         hint="use lax.scan, or lax.fori_loop with Python integers as bounds")
    boundaries, first = said.pop()
    backward = any(each.backward for each in given)
    return LayerLoop(Loop(loop), marks[0], backward, edges_of(boundaries, layers, where), first)


def edges_of(boundaries: str, layers: int, where: str) -> tuple[int, ...]:
    """The layer with which each stage begins, and the number of layers.

    Args:
      boundaries: ``/8`` for eight stages of equal length, the first ones a layer longer where that does not divide;
        ``3,6`` for stages that begin with layers 0, 3 and 6.
      layers: how many there are.
      where: the source line, for errors.

    Raises:
      InputError: there are fewer layers than stages, or a boundary is not a layer.

    Example:
      >>> edges_of("/4", 10, "x.py:1"), edges_of("3,6", 10, "x.py:1")
      ((0, 3, 6, 8, 10), (0, 3, 6, 10))
    """
    if boundaries.startswith("/"):
        stages = int(boundaries[1:])
        if stages > layers:
            raise InputError(f"a loop over {layers} layers cannot be cut into {stages} stages", location=where,
                             hint="use at most one stage for each layer")
        sizes = [layers // stages + (k < layers % stages) for k in range(stages)]
        return tuple(sum(sizes[:k]) for k in range(stages + 1))
    starts = tuple(map(int, boundaries.split(",")))
    if starts[-1] >= layers:
        raise InputError(f"a stage begins with layer {starts[-1]}, but the loop has {layers}", location=where,
                         hint=f"name layers from 1 to {layers - 1}")
    return (0, *starts, layers)
