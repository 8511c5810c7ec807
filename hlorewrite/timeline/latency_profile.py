"""Predicted times in the form of a profile that XLA's scheduler reads.

XLA's latency-hiding scheduler knows little about times: to it, most kernels cost the same. Given a profile of a run
(profile-guided latency estimation, ``xla/service/profile_guided_latency_estimator.cc``), it places each transfer beside
as many kernels as hide it. This profile has the times of :mod:`hlorewrite.timeline` instead, so it takes no run and no
GPU. Names of instructions are those of one module as one release compiles it with one set of options; XLA compiles them
alike again, and estimates whatever the profile does not name.
"""

from collections.abc import Iterator

from hlorewrite.hlo.parse import PART, HloText
from hlorewrite.timeline.program import Op, OpCode, ScheduledProgram, StreamProgram, called_programs

_MICROSECONDS = 1e6
_TIMED = (OpCode.KERNEL, OpCode.LOOP, OpCode.CALL, OpCode.BRANCH)


def latency_profile(module: HloText, program: ScheduledProgram) -> str:
    """The profile of a scheduled module: a line for each instruction that XLA schedules.

    Args:
      module: the module.
      program: the same as programs, with predicted times.

    Returns:
      A ``tensorflow.profiler.ProfiledInstructionsProto`` as text.

    Example:
      >>> from hlorewrite.cost import topology
      >>> from hlorewrite.timeline.simulate import ScheduledStep
      >>> text = '''HloModule step, is_scheduled=true, num_partitions=8
      ...
      ... ENTRY %main (x: f32[1048576]) -> f32[1048576] {
      ...   %x = f32[1048576]{0} parameter(0)
      ...   ROOT %y = f32[1048576]{0} negate(%x), metadata={}
      ... }'''
      >>> step = ScheduledStep(text, topology("h200:1x8"))
      >>> latency_profile(step.module, step.program).splitlines()
      ['costs { name: "x" cost_us: 0.000 }', 'costs { name: "y" cost_us: 2.942 }']
    """
    costs: dict[str, float] = {}
    for each in _programs(program.entry, set()):
        costs |= {name: costs.get(name, 0.0) for name in module.computations[each.name].instructions}
        costs |= dict(map(_cost, (op for op in each.ops if op[0] in _TIMED)))
    costs |= {transfer.name: transfer.seconds for transfer in program.transfers}
    return "".join(f'costs {{ name: "{name.removeprefix("%")}" cost_us: {seconds * _MICROSECONDS:.3f} }}\n'
                   for name, seconds in costs.items() if PART not in name)


def _cost(op: Op) -> tuple[str, float]:
    """The name of an instruction of the compute stream, and its seconds."""
    if op[0] == OpCode.KERNEL:
        return op[2], op[1]
    trips = (op[5] or 1) if op[0] == OpCode.LOOP else 1
    return op[1], max(map(_compute, called_programs(op)), default=0.0) * trips


def _compute(program: StreamProgram) -> float:
    """Seconds of the kernels of one run of a program."""
    return sum(_cost(op)[1] for op in program.ops if op[0] in _TIMED)


def _programs(program: StreamProgram, seen: set[str]) -> Iterator[StreamProgram]:
    """A program and those it runs, conditions of loops included, each once."""
    if program.name in seen:
        return
    seen.add(program.name)
    yield program
    for op in program.ops:
        condition = [op[4]] if op[0] == OpCode.LOOP and op[4] is not None else []
        for each in (*called_programs(op), *condition):
            yield from _programs(each, seen)
