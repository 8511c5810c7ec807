"""How long a compiled step waits for communication, by the model, read off its optimised HLO.

Kernels run one after another, the first in program order whose operands are there; matrix products take their FLOP over
the sustained rate, everything else its bytes over memory bandwidth. Collectives run on a stream of their own, in the
order they become ready. Exposed is the time of the whole less that of the
kernels that are not copies into and out of the buffers of collectives.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from hlorewrite.cost import CollectiveModel, Topology
from hlorewrite.cost.kernels.rates import compute_constants
from hlorewrite.hlo.collectives import collective_kind, collectives
from hlorewrite.hlo.parse import Computation, HloInstruction, HloText, parse_hlo
from hlorewrite.hlo.shapes import shape_bytes

_FREE = {"parameter", "constant", "get-tuple-element", "tuple", "bitcast", "partition-id", "replica-id", "after-all"}
_MOVES = {"parameter", "slice", "concatenate", "bitcast", "reshape", "copy", "transpose", "tuple", "dynamic-slice",
          "constant", "dynamic-update-slice"}
_LINE = re.compile(r'op_name="[^"]*line(\d+)')
_ARRAY = re.compile(r"([a-z]+\d*[a-z0-9]*)\[([\d,]*)\]")


@dataclass(frozen=True)
class Exposed:
    """Seconds of one step by the model.

    Attributes:
      total: from the first kernel to the last result.
      compute: kernels alone, without copies for collectives.
      communication: collectives alone.
      calls: how many collectives run.
    """

    total: float
    compute: float
    communication: float
    calls: int


def exposed_time(text: str, topology: Topology, model: CollectiveModel, *, scheduled: bool = False) -> Exposed:
    """Simulates a step.

    Args:
      text: optimised HLO of a step without loops around its collectives.
      topology: the cluster.
      model: times of collectives.
      scheduled: start collectives, and wait for them, where XLA put their start and done, not as early and late as
        their data allow.

    Returns:
      Its times.
    """
    return _Simulation(parse_hlo(text), text, topology, model, scheduled).run()


class _Waiting:
    """Instructions whose operands are there, as kernels and collectives; what takes no time is passed through."""

    def __init__(self, names: Mapping[str, HloInstruction], order: Mapping[str, tuple[float, int]],
                 roles: Mapping[str, str]) -> None:
        self.ready = dict.fromkeys(names, 0.0)
        self.kernels: list[str] = []
        self.queue: list[tuple[float, tuple[float, int], str]] = []
        self._order, self._roles = order, roles
        self._readers: dict[str, list[str]] = {name: [] for name in names}
        self._missing: dict[str, int] = {}
        for name, instruction in names.items():
            sources = {operand for operand in instruction.operands if operand in names}
            self._missing[name] = len(sources)
            for source in sources:
                self._readers[source].append(name)
        for name in [name for name in names if not self._missing[name]]:
            self._arrive(name)

    def done(self, name: str, at: float) -> None:
        """The result of an instruction is there at a time."""
        for reader in self._freed(name, at):
            self._arrive(reader)

    def _freed(self, name: str, at: float) -> list[str]:
        freed = []
        for reader in self._readers[name]:
            self.ready[reader] = max(self.ready[reader], at)
            self._missing[reader] -= 1
            if not self._missing[reader]:
                freed.append(reader)
        return freed

    def _arrive(self, first: str) -> None:
        stack = [first]
        while stack:  # Ends: an instruction is freed once.
            name = stack.pop()
            if self._roles[name] == "kernel":
                self.kernels.append(name)
            elif self._roles[name] == "collective":
                heapq.heappush(self.queue, (self.ready[name], self._order[name], name))
            else:
                stack += self._freed(name, self.ready[name])


class _Simulation:
    def __init__(self, hlo: HloText, text: str, topology: Topology, model: CollectiveModel, scheduled: bool) -> None:
        self.hlo, self.model, self.scheduled = hlo, model, scheduled
        self.entry = hlo.computations[hlo.entry]
        self.collectives = {c.name: c for c in collectives(text)}
        share = compute_constants()
        self.rate = topology.peak_flops["bf16"] * share["matmul_efficiency"][topology.architecture]
        self.memory = topology.memory_bytes_per_s * share["memory_efficiency"]

    def run(self) -> Exposed:
        """The simulation that was asked for."""
        busy = sum(self.took(i.name) for i in self.entry.instructions.values() if self.role(i) == "collective")
        compute = sum(self.kernel(i) for i in self.entry.instructions.values()
                      if self.role(i) == "kernel" and not self.copies(i))
        return Exposed(self.in_order() if self.scheduled else self.by_data(), compute, busy, len(self.collectives))

    def role(self, instruction: HloInstruction) -> str:
        """``collective``, ``kernel`` or ``free``."""
        if collective_kind(instruction.opcode):
            return "collective"
        return "free" if instruction.opcode in _FREE or instruction.opcode.endswith("-done") else "kernel"

    def copies(self, instruction: HloInstruction) -> bool:
        """Whether a kernel only brings values into and out of the buffers of collectives: that is communication."""
        inner = {each.opcode for name in instruction.called("calls")
                 for each in self.hlo.computations[name].instructions.values()}
        return bool(inner) and inner <= _MOVES

    def in_order(self) -> float:
        """Everything where XLA put it: a start begins when it is reached, a done waits."""
        finish: dict[str, float] = {}
        now = stream = 0.0
        for name, instruction in self.entry.instructions.items():
            role = self.role(instruction)
            if role == "collective":
                stream = max(stream, now) + self.took(name)
                finish[name] = stream
                if not instruction.opcode.endswith("-start"):
                    now = stream
            elif instruction.opcode.endswith("-done"):
                now = max(now, finish[instruction.operands[0]])
            elif role == "kernel":
                now += self.kernel(instruction)
        return max(now, stream)

    def by_data(self) -> float:
        """Each stream takes the first of what is ready: kernels in program order, collectives in order of readiness."""
        names = self.entry.instructions
        order = self.program_order()
        waiting = _Waiting(names, order, {name: self.role(each) for name, each in names.items()})
        clock = {"kernel": 0.0, "collective": 0.0}
        last = 0.0
        while waiting.kernels or waiting.queue:  # Ends: each round takes one, and each name arrives once.
            start = max(clock["kernel"], min((waiting.ready[k] for k in waiting.kernels), default=float("inf")))
            other = max(clock["collective"], waiting.queue[0][0]) if waiting.queue else float("inf")
            if start <= other:
                name = min((k for k in waiting.kernels if waiting.ready[k] <= start), key=order.__getitem__)
                waiting.kernels.remove(name)
                at = clock["kernel"] = start + self.kernel(names[name])
            else:
                name = heapq.heappop(waiting.queue)[2]
                at = clock["collective"] = other + self.took(name)
            last = max(last, at)
            waiting.done(name, at)
        return last

    def program_order(self) -> dict[str, tuple[float, int]]:
        """Where the user wrote what each instruction computes last; what has no line goes with its operands."""
        order: dict[str, tuple[float, int]] = {}
        for place, (name, instruction) in enumerate(self.entry.instructions.items()):
            line = self.line(instruction)
            for inner in instruction.called("calls"):
                line = max([line, *(self.line(each) for each in self.hlo.computations[inner].instructions.values())])
            if line < 0:
                line = max((order[o][0] for o in instruction.operands if o in order), default=0.0)
            order[name] = (line, place)
        return order

    def line(self, instruction: HloInstruction) -> float:
        """The number in the name of an instruction; -1 when it carries none."""
        match = _LINE.search(instruction.attributes)
        return float(match.group(1)) if match else -1.0

    def took(self, name: str) -> float:
        """Seconds of a collective."""
        one = self.collectives[name]
        return self.model.collective_time(one.kind, one.bytes, one.groups)

    def kernel(self, instruction: HloInstruction) -> float:
        """Seconds of a kernel; one that cuts a piece out of a value reads no more than the piece."""
        made = shape_bytes(instruction.shape)
        read = sum(shape_bytes(self.entry.instructions[o].shape) for o in instruction.operands
                   if o in self.entry.instructions)
        inner = [each.opcode for name in instruction.called("calls")
                 for each in self.hlo.computations[name].instructions.values()]
        if any("slice" in opcode for opcode in inner) and not any(opcode in ("reduce", "dot") for opcode in inner):
            read = min(read, made)
        moved = made + read
        return max(moved / self.memory, self.flops(self.entry, instruction) / self.rate)

    def flops(self, computation: Computation, instruction: HloInstruction) -> float:
        """2 m n k = 2 sqrt(mk kn mn) of the products in a kernel."""
        if instruction.opcode == "dot" or (instruction.opcode == "custom-call" and "gemm" in instruction.attributes):
            sizes = [_elements(computation.instructions[o].shape) for o in instruction.operands[:2]]
            return 2 * (sizes[0] * sizes[1] * _elements(instruction.shape)) ** 0.5
        total = 0.0
        for name in instruction.called("calls", "called_computations"):
            inner = self.hlo.computations.get(name)
            if inner is not None:
                total += sum(self.flops(inner, each) for each in inner.instructions.values())
        return total


def _elements(shape: str) -> int:
    """Elements of the first array of a shape."""
    match = _ARRAY.search(shape)
    return prod(int(d) for d in match.group(2).split(",") if d) if match else 0
