"""comm-shift on random programs: values cross fragments reduced or not, and always come out the same."""

from __future__ import annotations

import random

import pytest
from program_texts import ProgramText, T, _expanded

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.view import View
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes

SIZES = {"data": 2, "tensor": 2}
LOCAL = "tensor<4xf32>"
UNIFORM, VARYING = T("m0", (4,)), T("m0", (8,), ("data",))
LINEAR, OTHERS = ("add", "subtract"), ("multiply", "maximum")


class Body:
    """The ops of one fragment; it stores for each value whether it differs along ``data``."""

    def __init__(self, rng: random.Random, values: dict[str, bool], prefix: str) -> None:
        self.rng, self.values, self.prefix = rng, dict(values), prefix
        self.lines: list[str] = []
        self.made: dict[str, bool] = {}

    def new(self, line: str, varies: bool) -> str:
        name = f"{self.prefix}{len(self.lines)}"
        self.lines.append(f"%{name} = {line}")
        self.values[name] = self.made[name] = varies
        return name

    def pick(self) -> str:
        return self.rng.choice(list(self.values)[-5:])

    def step(self) -> None:
        kind = self.rng.choice(["reduce", "reduce", "linear", "linear", "linear", "scale", "other", "unary"])
        a, b = self.pick(), self.pick()
        if kind == "reduce":
            self.new(_expanded(f"AR(%{a}, {LOCAL})", SIZES), False)
        elif kind == "linear":
            self.new(f"stablehlo.{self.rng.choice(LINEAR)} %{a}, %{b} : {LOCAL}", self.values[a] or self.values[b])
        elif kind == "scale":
            self.new(f"stablehlo.multiply %{a}, %w : {LOCAL}", self.values[a])
        elif kind == "other":
            self.new(f"stablehlo.{self.rng.choice(OTHERS)} %{a}, %{b} : {LOCAL}", self.values[a] or self.values[b])
        else:
            self.new(f"stablehlo.{self.rng.choice(['negate', 'tanh'])} %{a} : {LOCAL}", self.values[a])

    def uniform(self) -> str:
        """A value that is the same on all devices; reduced when none is there."""
        names = [name for name, varies in self.made.items() if not varies]
        return names[-1] if names else self.new(_expanded(f"AR(%{self.pick()}, {LOCAL})", SIZES), False)


def random_program(seed: int) -> ProgramText:
    """Two fragments in the loop, two accumulators, an update that reads both."""
    rng = random.Random(seed)
    text = ProgramText({"m0": SIZES}, iterations=3)
    text.argument("w", UNIFORM)
    text.argument("x", VARYING)
    text.argument("start", UNIFORM)
    text.call("before", "before", 0, ["w"], {"zero": UNIFORM}, f"%zero_ = stablehlo.constant dense<0.0> : {LOCAL}")
    text.carry("zero", "acc", "next", "total")
    text.carry(rng.choice(["zero", "start"]), "ema", "ema_next", "ema_total", False)
    first = Body(rng, {"w": False, "x": True, "acc": False, "ema": False}, "p")
    for _ in range(rng.randint(3, 6)):
        first.step()
    handed = rng.sample(list(first.made), min(2, len(first.made)))
    reads = ["w", "x", "acc", "ema"]
    kinds = {name: VARYING if first.made[name] else UNIFORM for name in handed}
    text.call("body", "B", 0, reads, kinds, "\n".join(first.lines), ", ".join(f"%{name}" for name in handed))
    second = Body(rng, {"w": False, **{name: first.made[name] for name in handed}, "acc": False, "ema": False}, "q")
    for _ in range(rng.randint(2, 5)):
        second.step()
    g = second.uniform()
    decay = second.new(f"stablehlo.multiply %ema, %w : {LOCAL}", False)
    after = second.new(f"stablehlo.add %{decay}, %{g} : {LOCAL}", False)
    total = second.new(f"stablehlo.{rng.choice(['add', 'subtract'])} %acc, %{g} : {LOCAL}", False)
    text.call("body", "W", 0, ["w", *handed, "acc", "ema"], {"next": UNIFORM, "ema_next": UNIFORM},
              "\n".join(second.lines), f"%{total}, %{after}")
    text.call("after", "update", 0, ["w", "total", "ema_total"], {"new": UNIFORM}, f"""
      %both = stablehlo.add %total, %ema_total : {LOCAL}
      %new_ = stablehlo.multiply %both, %w : {LOCAL}""")
    text.results = ["new", *(["total"] if rng.random() < 0.3 else [])]
    return text


@pytest.mark.parametrize("seed", range(80))
def test_values_stay(seed: int):
    before = random_program(seed).module()
    after = before.clone()
    changed = run_passes(after, [CommShift()], PassContext())
    assert changed == (after.text() != before.text())
    report = check(before, after, tolerance=1e-4)
    assert report.equal, report.table()


def test_the_random_programs_are_worth_it():
    """Some move all, some some, some none."""
    moved = []
    for seed in range(40):
        module = random_program(seed).module()
        moved.append(run_passes(module, [CommShift()], PassContext()))
        assert View(module).ops("mpmd.for")
    assert 5 < sum(moved) < 40
