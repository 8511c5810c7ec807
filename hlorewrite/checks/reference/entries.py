"""The functions of two modules that are executed: ``main``, and every other public one that differs."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from hlorewrite.checks.reference.program import is_public
from hlorewrite.ir import Module, ir, nested_ops, symbol_name

_NESTED = "builtin.module"
_CALLING = ("callee", "decomposition")


@dataclass(frozen=True)
class EntryPair:
    """A public function before and after.

    Attributes:
      label: how messages name it, without the first ``@``: ``step``, or ``inner::@step`` in a nested module.
      name: its name in its module.
      before: the original module that contains it; a nested module is extracted.
      after: the rewritten one.
      usual: whether it is executed even if it is as before.
    """

    label: str
    name: str
    before: Module
    after: Module
    usual: bool

    @property
    def changed(self) -> bool:
        """Whether the function, or one that it calls, is different after the passes."""
        return _reached_text(self.before, self.name) != _reached_text(self.after, self.name)


def entry_pairs(before: Module, after: Module) -> list[EntryPair]:
    """Every public function with a body, those of nested modules last; ``usual`` are ``main``, or all if there is no
    ``main``.

    Args:
      before: the original.
      after: the rewritten module.
    """
    first, second = _without_nested(before), _without_nested(after)
    names = _public_functions(first)
    found = [EntryPair(name, name, first, second, name == "main" or "main" not in names) for name in names]
    others = dict(_nested(after))
    for label, inner in _nested(before):
        if label in others:
            found += [EntryPair(f"{label}::@{pair.label}", pair.name, pair.before, pair.after, False)
                      for pair in entry_pairs(inner, others[label])]
    return sorted(found, key=lambda pair: pair.label != "main")


def _public_functions(module: Module) -> list[str]:
    return [symbol_name(op.operation) for op in module.mlir.body.operations
            if op.operation.name == "func.func" and is_public(op.operation) and len(op.operation.regions[0].blocks)]


def _nested(module: Module) -> Iterator[tuple[str, Module]]:
    """Modules inside a module, each extracted: by name, or by number where it has none."""
    inside = [op.operation for op in module.mlir.body.operations if op.operation.name == _NESTED]
    for position, op in enumerate(inside):
        made = ir.Module.create(op.location)
        for source in (module.operation, op):
            for name in _names(source):
                if source is op or name.startswith("mhlo."):
                    made.operation.attributes[name] = source.attributes[name]
        copy = op.clone().operation
        for inner in list(copy.regions[0].blocks[0].operations):
            made.body.append(inner)
        copy.erase()
        label = symbol_name(op) if "sym_name" in op.attributes else str(position)
        yield label, replace(module, mlir=made)


def _without_nested(module: Module) -> Module:
    if all(op.operation.name != _NESTED for op in module.mlir.body.operations):
        return module
    copy = module.clone()
    for op in list(copy.mlir.body.operations):
        if op.operation.name == _NESTED:
            op.operation.erase()
    return copy


def _reached_text(module: Module, function: str) -> list[str]:
    """The text of a function, of those it calls, and of what they all may refer to."""
    functions = {symbol_name(op.operation): op.operation for op in module.mlir.body.operations
                 if op.operation.name == "func.func"}
    texts = [str(op) for op in module.mlir.body.operations if op.operation.name != "func.func"]
    pending, seen = [function], set[str]()
    while pending:  # Ends: a function is read once.
        name = pending.pop()
        if name in seen or name not in functions:
            continue
        seen.add(name)
        texts.append(str(functions[name]))
        for op in nested_ops(functions[name]):
            pending += [ir.FlatSymbolRefAttr(op.attributes[key]).value for key in _CALLING if key in op.attributes
                        and isinstance(op.attributes[key], ir.FlatSymbolRefAttr)]
    return texts


def _names(op: ir.Operation) -> list[str]:
    return [name if isinstance(name, str) else name.name for name in op.attributes]
