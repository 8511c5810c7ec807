"""XLA alone and the candidate are compiled at the same time: same choice, same errors, and no thread is left."""

from __future__ import annotations

import importlib.util
import tempfile
import threading
import time
from concurrent.futures import Future, wait
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from hlorewrite.errors import HlorewriteError, InputError
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.jaxbridge.baseline.baseline_run import BaselineRun
from hlorewrite.jaxbridge.baseline.measured import Measured, scheduled
from hlorewrite.jaxbridge.choose import candidates, speculate
from hlorewrite.jaxbridge.choose.chosen_step import rewrite_step
from hlorewrite.jaxbridge.step.options import StepOptions, as_passes
from hlorewrite.jaxbridge.step.report import Rewritten
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.jaxbridge.xla.compile_for import devices_of_target
from hlorewrite.jaxbridge.xla.compile_no_codegen import DeviceSet, program_so_far
from hlorewrite.jaxbridge.xla.partition import expose_collectives
from hlorewrite.jaxbridge.xla.target import parse_target
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.named import named_pipeline

needs_cuda_compiler = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                         reason="the CUDA compiler is not installed (extra: aot)")
SHIFT, COMM = "comm-shift", named_pipeline("comm")
CPU = DeviceSet("cpu")


def gpus() -> DeviceSet:
    return DeviceSet("gpu", tuple(devices_of_target(parse_target("h200:1x8"), 8, "test")))


PLACES = [pytest.param(lambda: CPU, id="cpu"), pytest.param(gpus, id="gpu", marks=needs_cuda_compiler)]


def layers(sharded: bool, table: bool = False, width: int = 64) -> Module:
    """An auto-sharded step that sums gradients of scanned layers over micro-batches; weights whole or sharded."""
    mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
    at = NamedSharding(mesh, P(None, None, "data") if sharded else P())
    whole, split = NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))

    def loss(params: dict, batch: jax.Array) -> jax.Array:
        x = params["table"][batch] if table else batch
        return jnp.mean(jax.lax.scan(lambda x, w: (jnp.tanh(x @ w), None), x, params["w"])[0] ** 2)

    def step(params: dict, batches: jax.Array) -> dict:
        def micro_batch(total: dict, batch: jax.Array) -> tuple[dict, None]:
            return jax.tree.map(jnp.add, total, jax.grad(loss)(params, batch)), None
        total = jax.lax.scan(micro_batch, jax.tree.map(jnp.zeros_like, params), batches)[0]
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, total)

    params = {"w": jax.ShapeDtypeStruct((3, width, width), jnp.float32, sharding=at)}
    params |= {"table": jax.ShapeDtypeStruct((512, width), jnp.float32, sharding=whole)} if table else {}
    data = jax.ShapeDtypeStruct((4, 32, *(() if table else (width,))), jnp.int32 if table else jnp.float32,
                                sharding=split)
    out = {"w": at, "table": whole} if table else {"w": at}
    return clone_of(private.module_of(jax.jit(step, out_shardings=out).lower(params, data)), "step")


def one_after_the_other(self: BaselineRun) -> bytes | None:
    """``BaselineRun.program`` that waits for XLA alone, so that nothing is compiled ahead."""
    wait([self.future])
    return self.future.result()[1] if self.future.exception() is None else None


def what_was_chosen(module: Module, passes: str, place: DeviceSet) -> tuple:
    """Everything but times."""
    made, sentences = rewrite_step(module.clone(), StepOptions(as_passes(passes)), place)
    comparison = made.report.comparison
    figures = comparison and [(each.calls, each.bytes, each.wire, each.temp, each.memory)
                              for each in (comparison.alone, comparison.ours) if each is not None]
    return (made.how, made.bytecode, made.report.digest, [str(r) for r in made.report.remarks], figures,
            comparison and comparison.kept, sentences)


# ---- the choice


@pytest.mark.parametrize("make_place", PLACES)
@pytest.mark.parametrize(("sharded", "table", "passes"), [
    (True, False, COMM), (False, False, SHIFT), (False, True, COMM), (False, True, "rules{only=algebra},cse")])
def test_the_choice_is_that_of_one_compilation_after_the_other(make_place, sharded: bool, table: bool, passes: str,
                                                               monkeypatch: pytest.MonkeyPatch):
    module, place = layers(sharded, table), make_place()
    at_once = what_was_chosen(module, passes, place)
    monkeypatch.setattr(BaselineRun, "program", one_after_the_other)
    assert what_was_chosen(module, passes, place) == at_once


@needs_cuda_compiler
@pytest.mark.parametrize("expected", [0, 1 << 60])
def test_what_is_expected_wrongly_changes_no_choice(expected: int, monkeypatch: pytest.MonkeyPatch):
    module, place = layers(sharded=True), gpus()
    rightly = what_was_chosen(module, COMM, place)
    monkeypatch.setattr(speculate, "expected_wire", lambda _: expected)
    assert what_was_chosen(module, COMM, place) == rightly


@pytest.mark.parametrize("make_place", PLACES)
def test_the_candidate_is_compiled_while_xla_alone_is(make_place, monkeypatch: pytest.MonkeyPatch):
    """XLA alone ends only when the candidate has begun; a judge that waits for XLA alone first would never begin."""
    began = threading.Event()

    def held(module: Module, place: DeviceSet, flags: dict, partitioned: bool = False,
             dumps: Path | None = None) -> tuple[Measured, bytes | None]:
        if not partitioned:
            began.set()
        made = scheduled(module, place, flags, partitioned, dumps)
        assert not partitioned or began.wait(timeout=20)
        return made

    monkeypatch.setattr(speculate, "scheduled", held)
    made, _ = rewrite_step(layers(sharded=False), StepOptions(as_passes(SHIFT)), make_place())
    assert began.is_set() and made.report.comparison is not None and made.report.comparison.kept


def test_a_program_that_changes_after_it_was_read_is_read_again(monkeypatch: pytest.MonkeyPatch):
    """What the passes ran on is what XLA alone has at its end, whenever it was looked for."""
    programs: list[bytes | None] = []
    first = layers(sharded=False, width=32)
    wrong = scheduled(first, CPU, {}, True)[1]
    module = layers(sharded=False)
    right = what_was_chosen(module, SHIFT, CPU)

    def recorded(module: Module, place: DeviceSet | None = None, dump: bytes | None = None) -> Module:
        programs.append(dump)
        return expose_collectives(module if dump != wrong else first, place, dump)

    monkeypatch.setattr(candidates, "expose_collectives", recorded)
    monkeypatch.setattr(BaselineRun, "program", lambda self: one_after_the_other(self) if programs else wrong)
    assert what_was_chosen(module, SHIFT, CPU) == right
    assert len(programs) == 2 and programs[0] == wrong != programs[1]


# ---- the program


def test_a_program_is_taken_when_all_of_it_is_written(tmp_path: Path):
    """The compilation goes on meanwhile; when it has ended, its own result counts."""
    run: BaselineRun = BaselineRun(Future(), tmp_path)
    file, whole = tmp_path / "module_0001.step.0009.after_spmd-partitioning.hlo.pb", bytes([0x0A, 4]) + b"text"
    seen: list[bytes | None] = [program_so_far(tmp_path)]
    for length in range(len(whole)):
        file.write_bytes(whole[:length])
        seen.append(program_so_far(tmp_path))
    assert seen == [None] * 7

    def finish() -> None:
        time.sleep(0.05)
        file.write_bytes(whole)

    writer = threading.Thread(target=finish)
    writer.start()
    assert run.program() == whole
    writer.join()
    assert not run.future.done()
    run.future.set_result((Measured(1, 1, 1, 1, 0.0, ""), whole + b"more"))
    assert run.program() == whole + b"more"
    assert run.confirms(whole + b"more") and not run.confirms(whole)


def test_reduce_scatters_that_xla_will_make_count_half():
    """Two all-reduces of 32 bytes: one is only sliced, the other one is also read whole."""
    reduce = """"stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %t = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %t : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>"""
    module = parse(f"""
      func.func @main(%x: tensor<8xf32>, %i: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<8xf32>) {{
        %r = {reduce}
        %q = {reduce}
        %s = stablehlo.dynamic_slice %r, %i, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
        %u = stablehlo.dynamic_slice %q, %i, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
        return %s, %u, %q : tensor<4xf32>, tensor<4xf32>, tensor<8xf32>
      }}""")
    assert speculate.expected_wire(module) == 16 + 32


# ---- failures


class _Fails(Pass):
    """A pass that is interrupted, or refuses, while XLA alone is compiled."""

    name = "fails"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def run(self, module, ctx) -> bool:
        raise self._error


def slowly(*args: Any) -> tuple[Measured, bytes | None]:
    """``scheduled`` of a larger module."""
    made = scheduled(*args)
    time.sleep(0.5)
    return made


@pytest.mark.parametrize("error", [KeyboardInterrupt(), InputError("refused")])
def test_no_thread_is_left_after_a_failure_or_an_interrupt(error: BaseException, tmp_path: Path,
                                                           monkeypatch: pytest.MonkeyPatch):
    """Nor a folder of dumps."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(speculate, "scheduled", slowly)
    before = set(threading.enumerate())
    with pytest.raises((KeyboardInterrupt, HlorewriteError)):
        rewrite_step(layers(sharded=False), StepOptions((_Fails(error),)), CPU)
    assert set(threading.enumerate()) <= before
    assert list(tmp_path.iterdir()) == []


def test_no_thread_is_left_where_the_judge_is_interrupted(monkeypatch: pytest.MonkeyPatch):
    """The candidate's compilation is on its way then."""
    def interrupted(self: BaselineRun) -> Measured:
        raise KeyboardInterrupt

    monkeypatch.setattr(BaselineRun, "measured", interrupted)
    monkeypatch.setattr(speculate, "scheduled", slowly)
    before = set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        rewrite_step(layers(sharded=False), StepOptions(as_passes(SHIFT)), CPU)
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("failing", ["alone", "candidate"])
def test_a_refusal_of_xla_is_said_as_before(failing: str, monkeypatch: pytest.MonkeyPatch):
    """XLA refuses late: its partitioner's program has been read, and the candidate has begun."""
    began = threading.Event()

    def refusing(module: Module, place: DeviceSet, flags: dict, partitioned: bool = False,
                 dumps: Path | None = None) -> tuple[Measured, bytes | None]:
        made = scheduled(module, place, flags, partitioned, dumps)
        if not partitioned:
            began.set()
        assert not partitioned or began.wait(timeout=20)
        if partitioned == (failing == "alone"):
            raise InputError(f"XLA cannot compile the module ({failing})")
        return made

    monkeypatch.setattr(speculate, "scheduled", refusing)
    made, sentences = rewrite_step(layers(sharded=False), StepOptions(as_passes(SHIFT)), CPU)
    assert made.bytecode is None
    what = "it cannot be compared with XLA alone" if failing == "alone" else "XLA refuses the rewritten module"
    assert sentences[0] == (f"is compiled unchanged: {what}: XLA cannot compile the module ({failing}); "
                            'keep="always" compiles the rewritten module')


def test_what_was_begun_is_the_answer(monkeypatch: pytest.MonkeyPatch):
    """A candidate is not compiled twice."""
    monkeypatch.setattr(speculate, "scheduled", lambda *_: pytest.fail("compiled again"))
    module = layers(sharded=False)
    begun: Future[Measured] = Future()
    begun.set_result(Measured(1, 2, 3, 4, 0.0, ""))
    made: Rewritten = rewrite_step(module, StepOptions(as_passes("cse"), keep="always"), CPU)[0]
    candidate = candidates.RewriteCandidate("cpu", module, made, candidates.Variant(()))
    compilations = speculate.Compilations(candidates.Contest(module, CPU, 8, lambda *_: made, (), False), {})
    compilations.ahead[candidate] = begun
    assert compilations.measured(candidate) is begun.result()

