"""Small modules with collectives, for tests of passes, and what becomes of them."""

from __future__ import annotations

import importlib.util
import re

import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.measured import scheduled, timed
from hlorewrite.jaxbridge.xla.compile_for import place_of
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.rules.listener import Recorder

CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ALL = "[[0, 1, 2, 3]]"
PAIRS = "[[0, 1], [2, 3]]"


def groups_text(groups: str) -> str:
    """The attribute of some groups."""
    rows = eval(groups)
    return f"replica_groups = dense<{groups}> : tensor<{len(rows)}x{len(rows[0])}xi64>"


def reduce(name: str, operand: str, kind: str = "tensor<8xf32>", *, groups: str = ALL, op: str = "add",
           extra: str = "", ids: str = ", use_global_device_ids") -> str:
    """An all-reduce."""
    element = kind.removeprefix("tensor<").rstrip(">").rpartition("x")[2]
    return (f'{name} = "stablehlo.all_reduce"({operand}) <{{{CHANNEL}, {groups_text(groups)}{ids}}}> ({{ '
            f"^bb0(%l: tensor<{element}>, %r: tensor<{element}>): %s = stablehlo.{op} %l, %r : tensor<{element}> "
            f"stablehlo.return %s : tensor<{element}> }}) {extra} : ({kind}) -> {kind}")


def unique_reduce(result: str, operand: str, kind: str = "tensor<8xf32>", *, groups: str = ALL) -> str:
    """An all-reduce whose reducer repeats no name of another one."""
    text = re.sub(r"%([lrs])\b", rf"%{result[1:]}_\1", reduce("%RESULT", "%OPERAND", kind, groups=groups))
    return text.replace("%RESULT", result).replace("%OPERAND", operand)


def module(arguments: str, results: str, *lines: str, functions: str = "") -> Module:
    """A per-device module over four partitions."""
    body = "\n  ".join(lines)
    return parse(f"module @m attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{\n"
                 f"func.func public @main({arguments}) -> {results} {{\n  {body}\n}}\n{functions}}}", name="m.mlir")


def run(pass_: Pass, before: Module, *, topology: str = "h200:1x4",
        ignore_cost: bool = False) -> tuple[Module, list[str]]:
    """The module after a pass, checked on the interpreter, and what the pass said."""
    after, recorder = before.clone(), Recorder(wants_missed=True)
    text = after.text()
    changed = pass_.run(after, PassContext(listeners=(recorder,), topology=topology, ignore_cost=ignore_cost))
    assert not after.verify()
    assert changed or after.text() == text, "a pass that finds nothing leaves every byte"
    if changed:
        for seed in (0, 1):
            report = check(before, after, seed=seed)
            assert report.equal, report.table()
    return after, [f"{remark.kind}: {remark.sentence}" for remark in recorder.remarks]


def count(module: Module, name: str) -> int:
    """How many ops of a name a module holds."""
    return module.text(generic=True).count(f'"stablehlo.{name}"')


def went_wrong(before: Module, pipeline: str) -> bool:
    """Whether a pipeline fails on a module, or changes its values; that nothing changes is right."""
    after = before.clone()
    try:
        run_passes(after, parse_pipeline(pipeline), PassContext(ignore_cost=True, topology="h200:1x4"))
    except Exception:  # a condition was taken away: invalid modules are found by the verifier or by what reads them
        return True
    return after.text() != before.text() and not check(before, after).equal


def exposed_seconds(module: Module, cluster: str = "h200:1x8") -> float:
    """Seconds that communication adds to a step as XLA schedules it; skips the test without a CUDA compiler."""
    if importlib.util.find_spec("jax_plugins.xla_cuda13") is None:
        pytest.skip("the CUDA compiler is not installed (extra: aot)")
    place = place_of(parse_target(cluster), module)
    seconds = timed(scheduled(module, place, {})[0], place.topology).exposed_s
    assert seconds is not None
    return seconds
