"""Calls by the name of the function they call."""

from __future__ import annotations

from hlorewrite.ir.binding import ir, op_key


class CallIndex:
    """The calls of each function, in the order they are added.

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
