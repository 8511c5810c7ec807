"""The pattern-matching IR: a typed index over MLIR, built on demand and kept true by edit events.

MLIR stays the one IR: ops and values are jaxlib's own handles. The view adds what a matcher needs and MLIR's Python
bindings lack or are slow at: ops by name, functions and their calls, the place of an op in the region tree. One walk
over 100 000 ops costs 0.05 s, so names are indexed in batches and never op by op.

Never use an ``ir.Operation`` as a key of a dict or set: its hash is structural and changes with every edit. Use
``op_key(op)``; values and blocks are safe keys. Compare ops with ``==``, never ``is``: every access makes a new handle.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar, cast

from hlorewrite.ir.binding import ir, op_key
from hlorewrite.ir.collectives import COLLECTIVES
from hlorewrite.ir.location import UNKNOWN as _UNKNOWN
from hlorewrite.ir.location import SourceLines, source_lines
from hlorewrite.ir.module import Module

CONTROL_FLOW = ("stablehlo.while", "stablehlo.case", "stablehlo.if", "func.func", "func.call",
                "sdy.manual_computation")
_ALWAYS_INDEXED = frozenset((*COLLECTIVES, *CONTROL_FLOW, "sdy.mesh", "stablehlo.partition_id"))
_MOST_NEIGHBOURS = 64
_Answer = TypeVar("_Answer")


class View:
    """An index over one module.

    Args:
      module: the module; edit it through ``hlorewrite.ir.edit.Editor`` only, so that the view stays up to date.

    Attributes:
      erased: ``op_key`` -> how many collectives of this address were erased.

    Example:
      >>> from hlorewrite.ir.load import parse
      >>> view = View(parse("func.func @f(%a: tensor<f32>) -> tensor<f32> {"
      ...                   "%b = stablehlo.add %a, %a : tensor<f32>  return %b : tensor<f32> }"))
      >>> [op.name for op in view.ops("stablehlo.add")]
      ['stablehlo.add']
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._by_name: dict[str, dict[int, ir.Operation]] = {}
        self._unsorted: set[str] = set()
        self._functions: dict[str, ir.Operation] | None = None
        self._calls: CallIndex | None = None
        self._calls_in_order = True
        self.erased: dict[int, int] = {}
        self._remembered: dict[Hashable, object] = {}

    # ---- ops by name

    def ops(self, *names: str) -> list[ir.Operation]:
        """Every op of the given names, in the order of the module for each name.

        Args:
          names: full op names such as ``stablehlo.all_reduce``.

        Returns:
          A list that later edits do not change.
        """
        self.index(names)
        if not self._unsorted.isdisjoint(names):
            self._rescan(tuple(self._unsorted))  # one walk for all: a walk costs far more than a name in it
        return [op for name in names for op in self._by_name[name].values()]

    def index(self, names: Iterable[str]) -> None:
        """Makes sure that names are indexed, with one walk for all missing ones; it also sorts the indexed ones."""
        missing = [name for name in names if name not in self._by_name]
        if missing:
            self._rescan({*missing, *(_ALWAYS_INDEXED - self._by_name.keys()), *self._unsorted})

    def drop_index(self, names: Iterable[str]) -> None:
        """Frees the index of rarely used names: a handle takes more memory than its op."""
        for name in set(names) - _ALWAYS_INDEXED:
            self._by_name.pop(name, None)
            self._unsorted.discard(name)

    def _rescan(self, names: Iterable[str]) -> None:
        by_name: dict[str, dict[int, ir.Operation]] = {name: {} for name in names}
        advance = ir.WalkResult.ADVANCE

        def visit(op: ir.Operation) -> ir.WalkResult:
            bucket = by_name.get(op.name)
            if bucket is not None:
                bucket[op_key(op)] = op
            return advance

        self.module.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
        self._by_name.update(by_name)
        self._unsorted -= by_name.keys()

    # ---- functions

    @property
    def functions(self) -> dict[str, ir.Operation]:
        """The functions of the module by symbol name."""
        if self._functions is None:
            top = [op.operation for op in self.module.mlir.body.operations]  # a walk over all ops takes far longer
            nested = any(op.name == "builtin.module" for op in top)
            found = self.ops("func.func") if nested else [op for op in top if op.name == "func.func"]
            self._functions = {symbol_name(op): op for op in found}
        return self._functions

    def callee(self, call: ir.Operation) -> ir.Operation | None:
        """The function a ``func.call`` names; None when the module does not contain it."""
        return self.functions.get(callee_name(call))

    def calls_of(self, function: ir.Operation, *, in_order: bool = True) -> list[ir.Operation]:
        """Every ``func.call`` of a function.

        Args:
          function: the ``func.func``.
          in_order: in the order of the module, which takes a walk after edits; otherwise calls that edits put in or
            moved may come last.
        """
        if self._calls is None or (in_order and not self._calls_in_order):
            self._calls, self._calls_in_order = CallIndex(), True
            for call in self.ops("func.call"):
                self._calls.add(callee_name(call), call)
        return self._calls.of(symbol_name(function))

    # ---- attributes

    def memoize(self, key: Hashable, find: Callable[[], _Answer]) -> _Answer:
        """Computes a result once per key, for results that follow only from attributes that ops of a module share.

        Args:
          key: all that the answer follows from; never an op or a value, which edits change.
          find: the answer.
        """
        if key not in self._remembered:
            self._remembered[key] = find()
        return cast(_Answer, self._remembered[key])

    # ---- places

    def source(self, op: ir.Operation) -> str:
        """The user's own source line of an op; the module's own line when it came from plain text."""
        return self.source_lines(op).own

    def source_lines(self, op: ir.Operation) -> SourceLines:
        """The same, and the line of the library that made the op if that line is another one."""
        lines = source_lines(op.location, self.module.frames)
        return replace(lines, own=f"{self.module.name}{lines.own[1:]}") if lines.own.startswith("-:") else lines

    def whereabouts(self, op: ir.Operation) -> str:
        """The place of an op, for a sentence: ops that transformations make often have no source line.

        Args:
          op: the op.

        Returns:
          ``at train.py:13:14``; ``near train.py:13:14``, the line of the nearest op that has one along operands and
          readers, operands first; nothing when no op around has one.
        """
        own = self.source(op)
        if own != _UNKNOWN:
            return f"at {own}"
        pending, seen = [op], {op_key(op)}
        # Ends: at most ``_MOST_NEIGHBOURS`` are added.
        for current in pending:
            for other in _neighbours(current):
                if op_key(other) in seen or len(pending) >= _MOST_NEIGHBOURS:
                    continue
                source = self.source(other)
                if source != _UNKNOWN:
                    return f"near {source}"
                seen.add(op_key(other))
                pending.append(other)
        return ""

    def place(self, op: ir.Operation) -> str:
        """Where a message about an op points: its source line, or that of the nearest op along operands and
        readers; if none has one, the function around it, ``@main``."""
        near = self.whereabouts(op).rpartition(" ")[2]
        if near:
            return near
        functions = (each for each in (op, *ancestors(op)) if each.name == "func.func")
        return next((f"@{symbol_name(each)}" for each in functions), op.name)

    # ---- events, called by the Editor

    def inserted(self, op: ir.Operation) -> None:
        """An op (with all ops in it) has been put into the module."""
        for inner in nested_ops(op):
            bucket = self._by_name.get(inner.name)
            if bucket is not None:
                bucket[op_key(inner)] = inner
                self._unsorted.add(inner.name)
            if inner.name == "func.func":
                self._functions = None
            elif inner.name == "func.call" and self._calls is not None:
                self._calls.add(callee_name(inner), inner)
                self._calls_in_order = False

    def erasing(self, op: ir.Operation) -> None:
        """An op (with all ops in it) is about to leave the module."""
        for inner in nested_ops(op):
            if inner.name in COLLECTIVES:
                self.erased[op_key(inner)] = self.erased.get(op_key(inner), 0) + 1
            bucket = self._by_name.get(inner.name)
            if bucket is not None:
                bucket.pop(op_key(inner), None)
            if inner.name == "func.func" and self._functions is not None:
                self._functions.pop(symbol_name(inner), None)
            elif inner.name == "func.call" and self._calls is not None:
                self._calls.remove(callee_name(inner), inner)

    def moved(self, op: ir.Operation) -> None:
        """An op (with all ops in it) has changed its place."""
        names = {inner.name for inner in nested_ops(op)}
        self._unsorted.update(names & self._by_name.keys())
        if "func.call" in names:
            self._calls_in_order = False


def nested_ops(op: ir.Operation) -> list[ir.Operation]:
    """An op and every op inside its regions, outermost first."""
    if len(op.regions) == 0:
        return [op]
    ops: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        ops.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return ops


def callee_name(call: ir.Operation) -> str:
    """The symbol name of the function that a ``func.call`` calls."""
    return ir.FlatSymbolRefAttr(call.attributes["callee"]).value


def called_function(op: ir.Operation) -> str:
    """The function whose body an op runs: the callee of a call, the decomposition of a composite; None for other ops.
    """
    if op.name == "func.call":
        return callee_name(op)
    return ir.FlatSymbolRefAttr(op.attributes["decomposition"]).value if op.name == "stablehlo.composite" else ""


def symbol_name(op: ir.Operation) -> str:
    """The symbol name of a function or mesh."""
    return ir.StringAttr(op.attributes["sym_name"]).value


def readable(op: ir.Operation, name: str) -> ir.Attribute | None:
    """An attribute of an op; None if it has none of this name, or one that jaxlib cannot return (complex elements)."""
    if name not in op.attributes:
        return None
    try:
        return op.attributes[name]
    except TypeError:
        return None


def defining_op(value: ir.Value) -> ir.Operation | None:
    """The op whose result a value is; None for a block argument."""
    owner = value.owner
    return None if isinstance(owner, ir.Block) or owner is None else owner.operation


def makers_of(values: Iterable[ir.Value]) -> list[ir.Operation]:
    """The ops that make some values, none for block arguments."""
    return [op for op in map(defining_op, values) if op is not None]


def owner_op(result: ir.Value) -> ir.Operation:
    """The op whose result a value is; for values known to be results."""
    op = defining_op(result)
    if op is None:
        raise ValueError("a block argument has no defining op")
    return op


def users(value: ir.Value) -> list[tuple[ir.Operation, int]]:
    """The readers of a value: (op, operand position), in the order of MLIR's uses."""
    return [(use.owner.operation, use.operand_number) for use in value.uses]


def _neighbours(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops an op reads from and those that read from it."""
    for operand in op.operands:
        maker = defining_op(operand)
        if maker is not None:
            yield maker
    for result in op.results:
        yield from (reader for reader, _ in users(result))


def ancestors(op: ir.Operation) -> Iterator[ir.Operation]:
    """The ops around an op, innermost first, without the module itself."""
    parent = op.parent
    # Ends: each step goes to the op around.
    while parent is not None and parent.operation.name != "builtin.module":
        yield parent.operation
        parent = parent.operation.parent


def terminator(block: ir.Block) -> ir.Operation:
    """The last op of a block, found without walking it."""
    end = ir.InsertionPoint.at_block_terminator(block).ref_operation
    if end is None:
        raise ValueError("the block has no terminator")
    return end.operation


def block_ops(block: ir.Block) -> list[ir.Operation]:
    """The ops of a block without its terminator."""
    return [each.operation for each in block.operations][:-1]


# ---- calls by the name of the function they call


class CallIndex:
    """The calls of each function, in the order in which they are added.

    Most functions of a large module are called once, so a dict is kept only for those that are called more often.

    Example:
      >>> CallIndex().of("f")
      []
    """

    def __init__(self) -> None:
        self._single: dict[str, ir.Operation] = {}
        self._several: dict[str, dict[int, ir.Operation]] = {}

    def add(self, name: str, call: ir.Operation) -> None:
        """Adds a call of a function; one that is there already keeps its place."""
        several = self._several.get(name)
        if several is not None:
            several[op_key(call)] = call
        elif name in self._single:
            self._several[name] = {op_key(each): each for each in (self._single.pop(name), call)}
        else:
            self._single[name] = call

    def remove(self, name: str, call: ir.Operation) -> None:
        """Takes a call out, if it is there."""
        if name in self._several:
            self._several[name].pop(op_key(call), None)
        elif name in self._single and self._single[name] == call:
            del self._single[name]

    def of(self, name: str) -> list[ir.Operation]:
        """The calls of a function."""
        return [self._single[name]] if name in self._single else list(self._several.get(name, {}).values())
