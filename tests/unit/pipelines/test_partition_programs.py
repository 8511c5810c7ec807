"""expose-collectives on programs: fragment by fragment, what lies between them unchanged."""

from __future__ import annotations

import functools
from pathlib import Path
from unittest import mock

import numpy as np
import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import load, parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, nested_ops
from hlorewrite.jaxbridge.xla import partition
from hlorewrite.jaxbridge.xla.expose_collectives import ExposeCollectives
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.pipelines.mpmd.mesh_view import manual_body
from hlorewrite.pipelines.mpmd.program import FragmentCall, read_program
from hlorewrite.rules.listener import Recorder

PROGRAMS = Path(__file__).parents[2] / "programs"
REAL = sorted(path.name for path in PROGRAMS.glob("gpt_*.mlir"))


def reductions(module: Module) -> dict[str, int]:
    """All-reduces of one step inside the loop and around it."""
    view, program = View(module), read_program(module)
    counts = {"loop": 0, "around": 0}
    for step in program.steps:
        if isinstance(step, FragmentCall):
            count = sum(op.name == "stablehlo.all_reduce" for op in nested_ops(view.functions[step.callee]))
            counts["loop" if step in program.body else "around"] += count * program.executions(step)
    return counts


def test_every_fragment_becomes_a_manual_computation():
    before = load(str(PROGRAMS / "two_stages.mlir"))
    after = before.clone()
    assert run_passes(after, [ExposeCollectives()], PassContext())
    program, was = read_program(after), read_program(before)
    assert [step for step in program.steps if isinstance(step, FragmentCall)] == [
        step for step in was.steps if isinstance(step, FragmentCall)]
    assert program.types == was.types
    functions, old = View(after).functions, View(before).functions
    for step in program.steps:
        if isinstance(step, FragmentCall):
            assert manual_body(functions[step.callee]) is not None
            for name in ("arg_attrs", "res_attrs", "mesh_shape", "function_type"):
                assert (name in old[step.callee].attributes) == (name in functions[step.callee].attributes)
                if name in old[step.callee].attributes:
                    assert functions[step.callee].attributes[name] == old[step.callee].attributes[name]
    assert check(before, after).equal
    text = after.text()
    assert not run_passes(after, [ExposeCollectives()], PassContext())
    assert after.text() == text


def test_a_mesh_of_one_device_has_nothing_to_partition():
    text = (PROGRAMS / "two_stages.mlir").read_text().replace('"data"=4', '"data"=1')
    module = parse(text)
    recorder = Recorder(wants_missed=True)
    assert not run_passes(module, [ExposeCollectives()], PassContext((recorder,)))
    assert "no fragment is auto-sharded here" in recorder.remarks[0].sentence


@functools.cache
def exposed_program(name: str) -> tuple[Module, int, int]:
    """A program after expose-collectives, once for all tests; fragments that changed, and calls of the partitioner."""
    module = load(str(PROGRAMS / name))
    recorder = Recorder(wants_missed=True)
    real = partition.expose_collectives
    with mock.patch.object(partition, "expose_collectives", wraps=real) as partitioner:
        run_passes(module, [ExposeCollectives()], PassContext((recorder,)))
    assert not any("stays as it is" in remark.sentence for remark in recorder.remarks)
    functions, fragments = View(module).functions, {step.callee for step in read_program(module).steps
                                                    if isinstance(step, FragmentCall)}
    return module, sum(manual_body(functions[each]) is not None for each in fragments), partitioner.call_count


@pytest.mark.parametrize("name", ["gpt_four_stages.mlir"])
def test_equal_fragments_are_partitioned_once(name: str):
    _, changed, calls = exposed_program(name)
    assert calls < changed  # the middle stages are alike


def test_what_the_partitioner_cannot_give_is_told_and_stays(monkeypatch: pytest.MonkeyPatch):
    from hlorewrite.errors import InputError

    def refuses(alone):
        raise InputError("XLA's partitioner gives no program")

    monkeypatch.setattr(partition, "expose_collectives", refuses)
    module = load(str(PROGRAMS / "two_stages.mlir"))
    text = module.text()
    recorder = Recorder(wants_missed=True)
    assert not run_passes(module, [ExposeCollectives()], PassContext((recorder,)))
    assert module.text() == text
    assert "the fragment stays as it is: XLA's partitioner gives no program" in recorder.remarks[0].sentence


@pytest.mark.parametrize("name", REAL)
def test_real_steps_reduce_each_gradient_once(name: str):
    """A GPT step with tied embeddings and AdamW: as many reductions as gradients, and one of the loss."""
    program = read_program(load(str(PROGRAMS / name)))
    exposed, _, _ = exposed_program(name)
    before = reductions(exposed)
    module = exposed.clone()
    run_passes(module, [CommShift()], PassContext())
    after = reductions(module)
    assert before["loop"] > 0
    assert before["loop"] % program.iterations == 0
    assert after["loop"] == 0
    assert after["around"] - before["around"] <= before["loop"] // program.iterations
    if program.devices <= 8:  # as many as the tests have
        schedule = "gpipe" if program.schedule == "1f1b" else program.schedule  # gpipe runs the backwards in reverse
        for one, other in zip(outputs(exposed, schedule), outputs(module, schedule), strict=True):
            assert np.isfinite(one).all()
            assert np.abs(one - other).max() <= 1e-5 * (np.abs(one).max() or 1.0)


def outputs(module: Module, schedule: str) -> list[np.ndarray]:
    """What a step computes on CPU devices."""
    from hlorewrite.pipelines.runtime.driver import PipelineDriver

    driver = PipelineDriver(module, schedule=schedule)
    generator = np.random.default_rng(0)
    values = []
    for number in driver.program.arguments:
        type_ = driver.program.types[number]
        whole = type_.element.startswith(("i", "u"))
        drawn = generator.integers(0, 4, type_.shape) if whole else np.abs(generator.standard_normal(type_.shape)) * 0.1
        values.append(np.asarray(drawn).astype({"i32": np.int32, "ui32": np.uint32, "f32": np.float32}[type_.element]))
    return [np.asarray(value) for value in driver(*driver.place(values))]
