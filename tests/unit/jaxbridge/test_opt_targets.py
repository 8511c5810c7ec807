"""``hlorewrite opt`` and the cluster: the target names it for every pass, and nothing that is left undone is silent."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AbstractMesh, NamedSharding
from jax.sharding import PartitionSpec as P
from printed_page import assert_page_prints

import hlorewrite
from hlorewrite.cli.main import guarded
from hlorewrite.cli.opt import decide, job
from hlorewrite.errors import InputError, PassFailed
from hlorewrite.jaxbridge.choose import candidates
from hlorewrite.jaxbridge.xla import partition
from hlorewrite.passmanager.base import PassContext
from hlorewrite.viewer.model import page_data
from hlorewrite.viewer.page import render
from hlorewrite.viewer.reading import read_trace

needs_cuda_compiler = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                         reason="jax-cuda13-plugin is not installed")
ASSUMED = "on h100:1x8 (assumed, no cluster is named)"
Run = Callable[..., tuple[int, str, str]]


def manual_step(devices: int) -> str:
    """Two gradients, each averaged over all devices."""
    def step(w: jax.Array, v: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return lax.psum(x.T @ (x @ w), "data"), lax.psum(x.T @ (x @ v), "data")

    mesh = AbstractMesh((devices,), ("data",))
    made = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(), P("data")), out_specs=P(), check_vma=False))
    return lowered(made, mesh, ((64, 64), P()), ((64, 64), P()), ((32 * devices, 64), P("data")))


def auto_step(devices: int = 8) -> str:
    """Gradients of eight micro-batches, summed up; the partitioner reduces each of them."""
    def step(w: jax.Array, batches: jax.Array) -> jax.Array:
        def turn(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            return total + jax.grad(lambda w: jnp.mean(jnp.tanh(x @ w) ** 2))(w), None
        return w - 0.1 * lax.scan(turn, jnp.zeros_like(w), batches)[0]

    mesh = AbstractMesh((devices,), ("data",))
    shardings = [NamedSharding(mesh, P()), NamedSharding(mesh, P(None, "data"))]
    made = jax.jit(step, in_shardings=shardings, out_shardings=shardings[0])
    return lowered(made, mesh, ((64, 64), P()), ((8, 64, 64), P(None, "data")))


def lowered(step: jax.stages.Wrapped, mesh: AbstractMesh, *shapes: tuple[tuple[int, ...], P]) -> str:
    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec)) for shape, spec in shapes]
    return step.trace(*arguments).lower(lowering_platforms=("cuda",)).as_text()


@pytest.fixture
def opt(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs ``opt`` in this process; returns exit code, output and errors."""
    monkeypatch.chdir(tmp_path)

    def run(text: str, *words: str) -> tuple[int, str, str]:
        Path("step.mlir").write_text(text)
        code = guarded(["opt", "step.mlir", *words])
        shown = capsys.readouterr()
        return code, shown.out, shown.err
    return run


# ---- auto-sharded modules


@pytest.mark.parametrize("words", [["-O", "comm"], ["--pass-pipeline=comm,cse"]])
def test_a_named_pipeline_exposes_collectives_for_a_target(opt: Run, words: list[str]) -> None:
    code, out, err = opt(auto_step(), *words, "--target=cpu:8", "--against=xla", "--remarks")
    assert code == 0 and "sdy.manual_computation" in out and out.count('"stablehlo.all_reduce"') == 1
    assert "applied: comm-shift" in err and "XLA alone" in err and "in 1 call, not 8" in err


@needs_cuda_compiler
@pytest.mark.parametrize("name", ["comm", "time"])
def test_for_described_gpus_too(opt: Run, name: str) -> None:
    code, _, err = opt(auto_step(), "-O", name, "--target=h200:1x8", "--against=xla", "--remarks")
    assert code == 0 and "for h200:1x8" in err and "XLA alone" in err
    assert "XLA's partitioner made every collective explicit" in err


def test_without_a_target_it_is_said_what_shows_them(opt: Run) -> None:
    text = auto_step()
    _, as_it_came, _ = opt(text)
    code, out, err = opt(text, "-O", "comm")
    assert (code, out) == (0, as_it_came)
    assert err.count("\n") == 1 and "is auto-sharded" in err and "add --target=h200:1x8" in err
    assert opt(text, "--pass=comm-shift")[2] == ""  # a single pass is the user's own choice


def test_where_the_partitioner_refuses_the_module_it_is_said(opt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, **__: object) -> None:
        raise partition.NotExposed("XLA does not partition it")

    for where in (partition, candidates):
        monkeypatch.setattr(where, "expose_collectives", refuses)
    text = auto_step()
    _, as_it_came, _ = opt(text)
    code, out, err = opt(text, "-O", "comm", "--target=cpu:8", "--against=xla")
    assert (code, out) == (0, as_it_came)
    assert "the module stays as it is: XLA does not partition it" in err
    assert "its collectives stay hidden from the passes; --remarks=blocked" in err
    assert "XLA does not partition it" in opt(text, "-O", "comm", "--target=cpu:8", "--remarks=blocked")[2]

    def fails(*_: object, **__: object) -> None:
        raise InputError("XLA does not partition it")

    monkeypatch.setattr(partition, "expose_collectives", fails)
    assert opt(text, "--pass=expose-collectives", "--target=cpu:8")[0] == 2  # asked for by name, it is an error


def test_passes_named_one_by_one_see_what_the_partitioner_inserts_as_under_the_decorator(opt: Run) -> None:
    code, out, err = opt(auto_step(), "--pass=comm-shift", "--target=cpu:8", "--against=xla")
    assert code == 0 and "all_reduce" in out and "in 1 call, not 8" in err and "hidden" not in err
    code, out, err = opt(auto_step(), "--pass=expose-collectives", "--pass=comm-shift", "--target=cpu:8")
    assert code == 0 and "all_reduce" in out and "auto-sharded" not in err


def test_a_report_is_that_of_exec(opt: Run, tmp_path: Path) -> None:
    """The page of a program's steps, of a module: the same figures as on standard error."""
    code, _, err = opt(auto_step(), "-O", "comm", "--target=cpu:8", f"--report={tmp_path / 'page.html'}")
    page = (tmp_path / "page.html").read_text()
    assert code == 0 and "in 1 call, not 8" in err and "in 1 call, not 8" in page.partition("<table>")[0]
    code, _, err = opt(auto_step(), "-O", "comm", "--target=cpu:8", f"--report={tmp_path / 'report.json'}")
    made, = json.loads((tmp_path / "report.json").read_text())["modules"]
    assert (code, made["outcome"], made["against_xla"]["chosen"]) == (0, "rewritten", "the rewritten module")
    for words in ((), ("--target=cpu:8", "--keep=always")):
        code, _, err = opt(auto_step(), "-O", "comm", *words, f"--report={tmp_path / 'none.html'}")
        assert code == 2 and "--report shows" in err and not (tmp_path / "none.html").exists()


def test_a_page_and_view_print_the_decision(opt: Run, tmp_path: Path) -> None:
    """No number, verdict or bar of either is another one than in the object of `--json`."""
    page, run = tmp_path / "page.html", tmp_path / "run"
    code, out, _ = opt(auto_step(), "-O", "comm", "--target=cpu:8", "--json", f"--report={page}", f"--trace={run}")
    decision = json.loads(out)
    assert code == 0 and {row["verdict"] for row in decision["rows"]} == {"chosen", "not better"}
    text = page.read_text()
    assert_page_prints(text, decision)
    assert "What each pass changed: " in text and "What was done: " in text and "<script" not in text
    shown = render(page_data(read_trace(str(run))), "x").decode().partition('<template id="decision-html">')[2]
    assert_page_prints(shown.partition("</template>")[0], decision)


def test_a_trace_holds_the_decision_and_the_passes_of_the_way_that_was_chosen(opt: Run, tmp_path: Path) -> None:
    """`view` shows the same saving as the command, and what ran, not what was offered."""
    code, _, err = opt(auto_step(), "-O", "auto", "--target=cpu:8", f"--trace={tmp_path / 'run'}")
    data = page_data(read_trace(str(tmp_path / "run")))["head"]
    assert code == 0 and data["decision"]["reason"] in err
    assert data["decision"]["saving"].endswith("in 1 call, not 8")
    assert data["run"]["pipeline"].startswith("expose-collectives")
    code, _, _ = opt(auto_step(), "-O", "comm", f"--trace={tmp_path / 'run'}")
    assert code == 0 and page_data(read_trace(str(tmp_path / "run")))["head"]["decision"] is None


def test_the_trace_of_the_decorator_holds_the_decision(tmp_path: Path) -> None:
    mesh = jax.make_mesh((8,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))

    def step(w: jax.Array, xs: jax.Array) -> jax.Array:
        def body(total: jax.Array, x: jax.Array) -> tuple[jax.Array, None]:
            return total + lax.pmean(x.T @ x, "data"), None
        return lax.scan(body, w, xs)[0]

    jitted = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=(P(), P(None, "data")), out_specs=P(), check_vma=False))
    made = hlorewrite.optimize(jitted, trace=str(tmp_path)).lower(jnp.ones((4, 4)), jnp.ones((3, 8, 4)))
    decision = page_data(read_trace(str(tmp_path)))["head"]["decision"]
    assert made.report.comparison is not None and decision["reason"] == made.report.comparison.sentence


def test_what_no_pass_changes_is_said(opt: Run) -> None:
    _, done, _ = opt(manual_step(8), "-O", "comm")
    for words, said in (([], "no pass changed the module; --remarks=all"),
                        (["--target=cpu:8", "--against=xla"], "so it is not compared with XLA alone; --remarks=all")):
        code, _, err = opt(done, "-O", "comm", *words)
        assert code == 0 and err.count("\n") == 1 and said in err
    assert opt(manual_step(8), "-O", "comm")[2] == ""


# ---- the cluster


@needs_cuda_compiler
@pytest.mark.parametrize("target", ["h200:4x8", "H200:4x8"])
def test_a_target_alone_is_the_cluster_of_every_pass(opt: Run, target: str) -> None:
    code, _, err = opt(manual_step(32), "-O", "comm", f"--target={target}", "--remarks=all")
    assert code == 0 and "h100" not in err and "no topology was named" not in err
    for name in ("all-reduce-fusion", "hierarchical-all-reduce"):
        assert any(f" {name}: " in line and "on h200:4x8" in line for line in err.splitlines())


def test_a_target_is_the_cluster_of_a_context() -> None:
    assert PassContext(target="h200:4x8").topology == "h200:4x8"
    assert PassContext(target="h200:8").topology == "h200:1x8"
    assert PassContext(target="h200:8", topology="a100:1x8").topology == "a100:1x8"
    assert PassContext(target="cpu:8").topology == PassContext(target="gpu").topology == ""


@pytest.mark.parametrize("words", [[], ["--target=cpu:8"]])
def test_a_cluster_that_nobody_named_is_said_to_be_assumed(opt: Run, words: list[str]) -> None:
    _, _, err = opt(manual_step(8), "-O", "comm", "--remarks", *words)
    assert ASSUMED in err and err.count("h100") == err.count(ASSUMED)
    _, _, err = opt(manual_step(8), "-O", "comm", "--remarks", "--topology=h200")
    assert "on h200:1x8" in err and "assumed" not in err


@pytest.mark.parametrize(("words", "says"), [
    (["--target=cpu:4"], "the module is for 8 devices but target cpu:4 has 4; use --target cpu:8"),
    (["--target=h200:1x4"], "the module is for 8 devices but target h200:1x4 has 4"),
    (["--topology=h200:1x4"], "the module runs on 8 devices but topology h200:1x4 has 4"),
])
@pytest.mark.parametrize("text", [manual_step, auto_step])
def test_a_cluster_of_other_devices_is_refused(opt: Run, text: Callable[[int], str], words: list[str],
                                               says: str) -> None:
    for passes in (["--pass=cse"], ["-O", "comm"]):
        code, out, err = opt(text(8), *passes, *words)
        assert (code, out) == (2, "") and err.count("\n") == 1 and says in err


def test_cpu_devices_are_no_cluster_to_decide_by_time_for(opt: Run) -> None:
    code, _, err = opt(manual_step(8), "-O", "time", "--target=cpu:8")
    assert code == 2 and err.count("\n") == 1 and "no cluster is named; add --topology=h200:1x8" in err


def test_a_misspelt_target_is_named_before_the_cluster_that_it_would_be(opt: Run) -> None:
    code, _, err = opt(manual_step(8), "-O", "time", "--target=h201:1x8")
    assert code == 2 and err.count("\n") == 1 and 'unknown target "h201:1x8"; did you mean "h200"?' in err


def test_a_reproducer_names_the_cluster_of_the_target(opt: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> bool:
        raise PassFailed("for a test")

    monkeypatch.setattr(job, "run_passes", fails)
    monkeypatch.setattr(decide, "cluster_of", lambda *_: "")
    assert opt(manual_step(8), "-O", "comm", "--target=h200:1x8")[0] == 1
    assert "--topology=h200:1x8" in Path("hlorewrite-reproducer.mlir").read_text()
