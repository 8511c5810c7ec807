"""Lowers parsed HLO to programs: how each instruction of a schedule runs on the streams of a GPU."""

import re
from collections.abc import Mapping, Sequence

from hlorewrite.cost import CollectiveModel, Topology, collective_model
from hlorewrite.cost.kernels.rates import timeline_constants
from hlorewrite.hlo.collectives import collective_kind, sent_by
from hlorewrite.hlo.groups import parse_pairs
from hlorewrite.hlo.parse import INDEX, Computation, HloInstruction, HloText, custom_call_target
from hlorewrite.hlo.shapes import shape_bytes
from hlorewrite.hlo.trips import TripCounts, stated_trip_count
from hlorewrite.hlo.wrapped import FREE, FUSIONS, PlacedInstruction, WrappedCollectives
from hlorewrite.ir.collectives import COLLECTIVE_PERMUTE, timed_kind
from hlorewrite.timeline.kernel_times import ASYNC_FUSION, KernelTimes
from hlorewrite.timeline.program import Gap, Op, OpCode, ScheduledProgram, StreamProgram, StreamTransfer

HOST_COPY = "host-copy"
COMPUTE_STREAM = "compute"
_FREE_CALLS = frozenset(("AllocateBuffer", "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "PinToDevice",
                         "annotate_device_placement"))
_CARRIERS = frozenset(("tuple", "get-tuple-element", "bitcast", "copy", "optimization-barrier", "while", "call",
                       "conditional"))
_IN_ORDER = "asynchronous compute is counted in order on the compute stream"
_BRANCHES = ("branch_computations", "true_computation", "false_computation")
_SYNCHRONOUS = re.compile(r'"is_sync\\?":\s*true')
_ANNOTATED = re.compile(r'_xla_stream_annotation="(\d+)"')
_PIPELINED = '_xla_send_recv_pipeline="1"'
_PAIRS = re.compile(r'_xla_send_recv_source_target_pairs=(?:"\{?([^"]*?)\}?"|\{((?:\{[\d,\s]*\},?\s*)*)\})')
_IN_HOST_MEMORY = re.compile(r"\{[^{}]*S\(5\)[^{}]*\}")


class Lowering:
    """Makes the programs of a module.

    Args:
      module: scheduled HLO.
      topology: the cluster.
      model: times of collectives; the topology's by default.
      measured: seconds of instructions by name, which override the model's.
      trips: trip counts by the name of a ``while``, for loops that do not state theirs.
      line_trips: the same, by the user's line, from the source module.
    """

    def __init__(self, module: HloText, topology: Topology, *, model: CollectiveModel | None = None,
                 measured: Mapping[str, float] | None = None, trips: Mapping[str, int] | None = None,
                 line_trips: Mapping[str, int] | None = None) -> None:
        self.module = module
        self.kernels = KernelTimes(module, topology, measured)
        self._model = model or collective_model(topology)
        self._counts = TripCounts(module)
        self._given, self._by_line = trips or {}, line_trips or {}
        self._collective_streams = int(timeline_constants()["collective_streams"])
        self._programs: dict[str, StreamProgram] = {}
        self._open: set[str] = set()
        self._transfers: list[StreamTransfer] = []
        self._gaps: list[Gap] = []
        self._streams: dict[str, int] = {}
        self._notes: dict[str, None] = {}
        self._untimed: set[tuple[str, str]] = set()
        self._wrapped = WrappedCollectives(module)
        self._seconds: dict[tuple[object, ...], float] = {}
        self._carries = _ends_elsewhere(module)

    def program(self) -> ScheduledProgram:
        """The module as programs."""
        entry = self._computation(self.module.entry)
        return ScheduledProgram(entry, tuple(self._transfers), tuple(self._gaps), tuple(self._streams),
                                tuple(self._notes), frozenset(self._untimed))

    def _computation(self, name: str) -> StreamProgram:
        """The program of a computation. A recursive call is cut off, since HLO has no recursion."""
        if name in self._programs:
            return self._programs[name]
        computation = self.module.computations.get(name)
        if computation is None or name in self._open:
            return StreamProgram(name, (), (), "")
        self._open.add(name)
        ops: list[Op] = []
        parameters: dict[int, str] = {}
        for instruction in computation.instructions.values():
            if instruction.opcode == "parameter":
                number = instruction.literal.strip()
                parameters[int(number) if number.isdigit() else len(parameters)] = instruction.name
            else:
                ops += self._ops(computation, instruction)
        self._open.discard(name)
        order = tuple(parameters.get(number, "") for number in range(max(parameters, default=-1) + 1))
        made = self._programs[name] = StreamProgram(name, tuple(ops), order, computation.root)
        return made

    def _ops(self, computation: Computation, instruction: HloInstruction) -> Sequence[Op]:
        opcode = instruction.opcode
        if opcode in FREE:
            return self._carrier(instruction) if self._carries else ()
        if opcode.endswith(("-done", "-update")):
            return self._end(instruction)
        kind = collective_kind(opcode)
        if kind or opcode in ("send", "recv"):
            return self._collective(computation, instruction, kind or COLLECTIVE_PERMUTE.kind)
        if opcode.endswith("-start"):
            return self._start(computation, instruction)
        if opcode == "while":
            return [self._loop(computation, instruction)]
        if opcode == "conditional":
            programs = tuple(self._computation(name) for name in instruction.called(*_BRANCHES))
            operands = (*instruction.operands[1:], *[""] * len(programs))[:len(programs)]
            return [(OpCode.BRANCH, instruction.name, operands, programs)] if programs else ()
        if opcode == "call":
            return [(OpCode.CALL, instruction.name, instruction.operands, self._computation(name))
                    for name in instruction.called("to_apply", "calls")]
        if opcode == "fusion" and (inside := self._wrapped.inside(instruction)):
            return self._fused(computation, instruction, inside)
        return self._kernel(computation, instruction)

    # ---- compute

    def _kernel(self, computation: Computation, instruction: HloInstruction) -> Sequence[Op]:
        if instruction.opcode == "custom-call" and custom_call_target(instruction) in _FREE_CALLS:
            return ()
        if "S(5)" in instruction.shape and instruction.opcode == "copy":
            return [(OpCode.KERNEL, self.kernels.host_copy(instruction.shape), instruction.name)]
        seconds = self.kernels.seconds(computation, instruction)
        if seconds is None:
            called = custom_call_target(instruction)
            return [(OpCode.UNKNOWN, self._gap("custom call", computation, instruction, called))]
        kernel = (OpCode.KERNEL, seconds, instruction.name)
        return (kernel, *self._carrier(instruction)) if self._carries else (kernel,)

    def _gap(self, what: str, computation: Computation, instruction: HloInstruction, detail: str) -> int:
        self._gaps.append(Gap(what, instruction.name, computation.name, detail))
        return len(self._gaps) - 1

    def _loop(self, computation: Computation, loop: HloInstruction) -> Op:
        stated = stated_trip_count(loop)
        trips = stated if stated is not None else self._given.get(loop.name)
        if trips is None:
            trips = self._counts.of(computation, loop)
        if trips is None:
            line = self.module.source(loop)
            trips = self._by_line.get(line)
            if trips is not None:
                self._notes[f"{line}: {loop.name} has its {trips} trips from the source module"] = None
        body = self._computation(next(iter(loop.called("body")), ""))
        # With a known count XLA:GPU does not evaluate the condition (openxla/xla, WhileThunk).
        condition = None if stated is not None else self._computation(next(iter(loop.called("condition")), ""))
        gap = -1 if trips is not None else self._gap("trip count", computation, loop, "")
        return OpCode.LOOP, loop.name, next(iter(loop.operands), ""), body, condition, trips, gap

    # ---- transfers

    def _collective(self, computation: Computation, instruction: HloInstruction, kind: str) -> Sequence[Op]:
        """A collective, or the start of one. A send takes no time, since its recv stands for the transfer."""
        if instruction.opcode == "send":
            return ()
        asynchronous = instruction.opcode == "recv" or (
            instruction.opcode.endswith("-start") and not _SYNCHRONOUS.search(instruction.attributes))
        return self._transfer(computation, instruction, [PlacedInstruction(computation, instruction, kind)],
                              asynchronous)

    def _fused(self, computation: Computation, instruction: HloInstruction,
               inside: Sequence[PlacedInstruction]) -> Sequence[Op]:
        """Collectives in a kernel, on the compute stream; products in the same kernel run before them."""
        sent = self._transfer(computation, instruction, inside, False)
        return sent if self._wrapped.alone(instruction) else [*self._kernel(computation, instruction), *sent]

    def _start(self, computation: Computation, instruction: HloInstruction) -> Sequence[Op]:
        """``async-start`` and the short forms ``call-start``, ``copy-start``, ``dynamic-slice-start`` and so on."""
        names, inside = instruction.called("calls", "to_apply"), self._wrapped.inside(instruction)
        if inside and self._wrapped.alone(instruction):
            marked = any(_SYNCHRONOUS.search(each.attributes)
                         for each in (instruction, *(one.instruction for one in inside)))
            return self._transfer(computation, instruction, inside, not marked)
        if inside and instruction.opcode in FUSIONS:
            self._notes[_IN_ORDER] = None
            return self._fused(computation, instruction, inside)
        if self._in_host_memory(computation, instruction):
            return self._host_copy(computation, instruction)
        if names:
            self._notes[_IN_ORDER] = None
            if instruction.opcode == ASYNC_FUSION:  # one kernel, not the ops of its computation
                return self._kernel(computation, instruction)
            return [(OpCode.CALL, instruction.name, instruction.operands, self._computation(name)) for name in names]
        return self._kernel(computation, instruction)

    def _stream_of(self, instruction: HloInstruction) -> str:
        """Where XLA:GPU runs a collective; see ``data/timeline.toml``."""
        if instruction.opcode in ("recv", "send"):
            return "p2p 2" if _PIPELINED in instruction.attributes else "p2p"
        annotated = _ANNOTATED.search(instruction.attributes)
        if annotated is not None and annotated[1] != "0":
            return f"collectives {annotated[1]}"
        number = len(self._transfers) % self._collective_streams
        return "collectives" if self._collective_streams == 1 else f"collectives {number}"

    def _transfer(self, computation: Computation, instruction: HloInstruction, parts: Sequence[PlacedInstruction],
                  asynchronous: bool) -> Sequence[Op]:
        """The transfer of an instruction: one collective, or several that run in sequence on one stream."""
        sent = [(one, *self._sent(one.computation, one.instruction, one.kind)) for one in parts]
        unread = next((one.kind for one, payload, groups in sent if not payload or not groups), None)
        if unread is not None:
            self._untimed.update((one.computation.name, one.instruction.name) for one in parts)
            return [(OpCode.UNKNOWN, self._gap("collective", computation, instruction, unread))]
        seconds = [self._collective_seconds(one.kind, payload, groups) for one, payload, groups in sent]
        measured, total = self.kernels.measured(instruction.name), sum(seconds)
        stream = self._stream_of(instruction)
        ops: list[Op] = []
        for (one, payload, groups), modelled in zip(sent, seconds, strict=True):
            taken = modelled if measured is None else measured * (modelled / total if total else 1 / len(parts))
            transfer = StreamTransfer(instruction.name, one.kind, computation.name,
                                      stream=stream if asynchronous else COMPUTE_STREAM, payload_bytes=payload,
                                      groups=groups, seconds=taken, sends=(one.computation.name, one.instruction.name))
            ops += self._placed(transfer, stream, asynchronous)
        return ops

    def _placed(self, transfer: StreamTransfer, stream: str, asynchronous: bool) -> Sequence[Op]:
        number, place = len(self._transfers), self._streams.setdefault(stream, len(self._streams))
        self._transfers.append(transfer)
        if asynchronous:
            return [(OpCode.START, transfer.name, place, transfer.seconds, number)]
        return [(OpCode.SYNC, place, transfer.seconds, number)]

    def _sent(self, computation: Computation, instruction: HloInstruction,
              kind: str) -> tuple[int, tuple[tuple[int, ...], ...]]:
        if instruction.opcode != "recv":
            return sent_by(self.module, computation, instruction, kind)
        pairs = _PAIRS.search(instruction.attributes)
        listed = parse_pairs(f"source_target_pairs={{{pairs.group(1) or pairs.group(2)}}}") if pairs else ()
        return shape_bytes(instruction.shape) - shape_bytes("u32[]"), listed

    def _collective_seconds(self, kind: str, payload: int, groups: tuple[tuple[int, ...], ...]) -> float:
        key = (kind, payload, groups)
        if key not in self._seconds:
            self._seconds[key] = self._model.collective_time(timed_kind(kind), payload, groups)
        return self._seconds[key]

    def _in_host_memory(self, computation: Computation, instruction: HloInstruction) -> bool:
        made = [computation.instructions[name].shape for name in instruction.operands
                if name in computation.instructions]
        return any(_IN_HOST_MEMORY.search(shape) for shape in (instruction.shape, *made))

    def _host_copy(self, computation: Computation, instruction: HloInstruction) -> Sequence[Op]:
        """A copy between host and device, on a stream for each direction. An update moves only its own part."""
        sizes = [computation.instructions[name].shape for name in instruction.operands
                 if name in computation.instructions and shape_bytes(computation.instructions[name].shape) > 64]
        moved = min([*sizes, _result(instruction.shape)], key=shape_bytes)
        out = bool(_IN_HOST_MEMORY.search(_result(instruction.shape)))
        stream = "device to host" if out else "host to device"
        transfer = StreamTransfer(instruction.name, HOST_COPY, computation.name, stream=stream,
                                  payload_bytes=shape_bytes(moved), groups=(), seconds=self.kernels.host_copy(moved),
                                  sends=(computation.name, instruction.name))
        return self._placed(transfer, stream, True)

    def _end(self, instruction: HloInstruction) -> Sequence[Op]:
        operand = next(iter(instruction.operands), "")
        if instruction.opcode.endswith("-update"):
            return [(OpCode.ALIAS, instruction.name, operand)]
        return [(OpCode.DONE, operand)]

    def _carrier(self, instruction: HloInstruction) -> Sequence[Op]:
        """The op by which a value passes on transfers in flight."""
        opcode, operands = instruction.opcode, instruction.operands
        if opcode == "tuple":
            return [(OpCode.TUPLE, instruction.name, operands)]
        if not operands or opcode not in _CARRIERS:
            return ()
        if opcode == "get-tuple-element":
            index = INDEX.search(instruction.attributes)
            return [(OpCode.ELEMENT, instruction.name, operands[0], int(index.group(1)))] if index else ()
        return [(OpCode.ALIAS, instruction.name, operands[0])]


def _result(shape: str) -> str:
    """The result in the shape of a start op, which is a tuple of operands and results."""
    inner = shape.strip().removeprefix("((").removeprefix("(")
    first = re.search(r"[a-z]\w*\[[^\]]*\](?:\{[^}]*\})?", inner)
    return first.group() if first else shape


def _ends_elsewhere(module: HloText) -> bool:
    """Whether some transfer is part of a tuple before it ends."""
    for computation in module.computations.values():
        starts = {each.name for each in computation.instructions.values()
                  if each.opcode.endswith(("-start", "-update")) or each.opcode in ("recv", "send")}
        if starts and any(each.opcode in _CARRIERS and not starts.isdisjoint(each.operands)
                          for each in computation.instructions.values()):
            return True
    return False
