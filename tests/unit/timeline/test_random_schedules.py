"""The simulator against a second one that unrolls every loop and goes from event to event: random schedules."""

from __future__ import annotations

import random

import pytest
from event_simulator import EventConstants, EventSimulator

from hlorewrite.cost import topology
from hlorewrite.timeline.simulate import ScheduledStep

SHAPE, TUPLE = "f32[64]{0}", "(f32[64]{0}, f32[64]{0}, f32[64]{0})"
GROUPS = "replica_groups={{0,1,2,3,4,5,6,7}}, to_apply=%add"
ADD = ("%add (x: f32[], y: f32[]) -> f32[] {\n  %x = f32[] parameter(0)\n  %y = f32[] parameter(1)\n"
       "  ROOT %s = f32[] add(%x, %y)\n}\n")


class RandomSchedule:
    """A scheduled module: loops inside loops, transfers that end where they began, later, or one iteration later."""

    def __init__(self, seed: int) -> None:
        self.draw, self.names, self.parts = random.Random(seed), 0, [ADD]
        self.seconds: dict[str, float] = {}
        entry = self.body("main", depth=0)
        self.text = "HloModule random, is_scheduled=true, num_partitions=8\n\n" + "\n".join([*self.parts, entry])

    def name(self, kind: str, longest: float) -> str:
        self.names += 1
        name = f"{kind}.{self.names}"
        self.seconds[name] = self.draw.uniform(0, longest)
        return name

    def body(self, name: str, depth: int) -> str:
        """A computation whose second element carries a transfer from one iteration to the next."""
        lines = ["  %p = f32[64]{0} parameter(0)"] if depth == 0 else [
            f"  %t = {TUPLE} parameter(0)", f"  %p = {SHAPE} get-tuple-element(%t), index=0",
            f"  %carried = {SHAPE} get-tuple-element(%t), index=1"]
        flying, carried = [], ""
        for _ in range(self.draw.randint(2, 9)):
            what = self.draw.choice(["kernel", "kernel", "start", "start", "done", "sync", "loop"])
            if what == "kernel":
                lines.append(f"  %{self.name('kernel', 1e-4)} = {SHAPE} negate(%p)")
            elif what == "start":
                flying.append(self.name("all-reduce-start", 2e-4))
                lines.append(f"  %{flying[-1]} = {SHAPE} all-reduce-start(%p), {GROUPS}")
            elif what == "sync":
                lines.append(f"  %{self.name('all-reduce', 1e-4)} = {SHAPE} all-reduce(%p), {GROUPS}")
            elif what == "done" and flying:
                place = self.draw.randrange(len(flying))
                lines.append(f"  %{self.name('done', 0)} = {SHAPE} all-reduce-done(%{flying.pop(place)})")
            elif what == "loop" and depth < 2:
                lines += self.loop(depth, flying)
        if depth and self.draw.random() < 0.6:
            done = f"  %{self.name('done', 0)} = {SHAPE} all-reduce-done(%carried)"
            lines.insert(self.draw.randint(3, len(lines)), done)
            carried = self.name("all-reduce-start", 3e-4)
            lines.append(f"  %{carried} = {SHAPE} all-reduce-start(%p), {GROUPS}")
        lines += [f"  %{self.name('done', 0)} = {SHAPE} all-reduce-done(%{each})" for each in flying]
        lines.append(f"  ROOT %out.{self.names} = {TUPLE} tuple(%p, %{carried or 'p'}, %p)")
        head = f"ENTRY %{name} (p: f32[64]) -> {TUPLE} {{" if depth == 0 else f"%{name} (t: {TUPLE}) -> {TUPLE} {{"
        return "\n".join([head, *lines, "}\n"])

    def loop(self, depth: int, flying: list[str]) -> list[str]:
        name = self.name("body", 0).replace(".", "_")
        self.parts.append(self.body(name, depth + 1))
        before, result = self.name("start", 0), self.name("while", 0)
        given = flying.pop() if flying and self.draw.random() < 0.5 else "p"
        trips = self.draw.choice([0, 1, 2, 3, 7, 20])
        lines = [f"  %{before} = {TUPLE} tuple(%p, %{given}, %p)",
                 f"  %{result} = {TUPLE} while(%{before}), condition=%add, body=%{name}, "
                 f'backend_config={{"known_trip_count":{{"n":"{trips}"}}}}']
        if self.draw.random() < 0.7:
            value = self.name("element", 0)
            lines += [f"  %{value} = {SHAPE} get-tuple-element(%{result}), index=1",
                      f"  %{self.name('done', 0)} = {SHAPE} all-reduce-done(%{value})"]
        return lines


@pytest.mark.parametrize("slowdown", [0.0, 0.2, 1.5])
def test_both_simulators_agree(slowdown: float) -> None:
    for seed in range(150):
        made = RandomSchedule(seed)
        step = ScheduledStep(made.text, topology("h200:1x8"), kernel_times=made.seconds).at(slowdown)
        constants = EventConstants(1.0, {}, 0.0, slowdown, lambda *_: 0.0)
        second = EventSimulator(made.text, constants, made.seconds, made.seconds)
        total, exposed = second.exposed()
        assert step.step_s == pytest.approx(total, abs=1e-8), seed
        assert step.exposed_s == pytest.approx(exposed, abs=1e-8), seed
        charged = sum(one.exposed_s for one in step.collectives)
        assert charged == pytest.approx(exposed, abs=1e-8), seed
        assert sum(one.trips or 0 for one in step.collectives) == second.started, seed
