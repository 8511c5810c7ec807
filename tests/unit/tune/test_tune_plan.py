"""The plan of ``hlorewrite tune``, and its lines of Python: what they compile is what was tuned, options included."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import pytest
from tuned_steps import TARGET, arguments, exported, gpu_mesh, step_on

import hlorewrite
from hlorewrite.cli.main import guarded
from hlorewrite.errors import PlanMismatch
from hlorewrite.hlo.published_flags import FLAG_SETS, FlagSet
from hlorewrite.ir.load import parse
from hlorewrite.jaxbridge.baseline.baseline_run import sets_beside
from hlorewrite.jaxbridge.choose.tuned import TuneMeasurer
from hlorewrite.jaxbridge.step.notices import HlorewriteWarning
from hlorewrite.jaxbridge.step.rewrite import clone_of
from hlorewrite.jaxbridge.xla import private
from hlorewrite.lockfile.document import PlanDocument, read_document
from hlorewrite.tune.choice import TuneChoice

pytestmark = pytest.mark.skipif(importlib.util.find_spec("jax_plugins.xla_cuda13") is None,
                                reason="compiling for described GPUs needs jax-cuda13-plugin")
NOT_TRIED_OUT = {"xla_gpu_autotune_level": "0"}
NEWER = jax.__version_info__ >= (0, 11)
"""Compiling to the end chooses other kernels there, so only its modules and options are compared; and its exports hold
sharding constraints that the jitted step has not."""
FLAG = "xla_gpu_enable_while_loop_double_buffering"
"""Of the published flags the one that JAX 0.10.2 and 0.12 both have and that makes this step shorter."""


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the text of a lowered step, what was found for it, its plan, and that of its export."""
    folder = tmp_path_factory.mktemp("tuned")
    mesh = gpu_mesh()
    (folder / "step.mlir").write_text(jax.jit(step_on(mesh)).lower(*arguments(mesh)).as_text())
    (folder / "step.export").write_bytes(exported())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("hlorewrite.jaxbridge.baseline.baseline_run.FLAG_SETS", (FlagSet("double", "", {FLAG: True}),))
        for name in ("step.mlir", "step.export"):
            words = [f"--plan={folder / name}.plan", f"--json={folder / name}.json", f"--cache={folder / 'cache'}"]
            assert guarded(["tune", str(folder / name), f"--target={TARGET}", "--no-compile", *words]) == 0
    return folder


def found_in(folder: Path, name: str = "step.mlir") -> dict[str, Any]:
    return json.loads((folder / f"{name}.json").read_text())


def plan_in(folder: Path, name: str = "step.mlir") -> str:
    return str(folder / f"{name}.plan")


def lowered(**options: Any) -> Any:
    mesh = gpu_mesh()
    return hlorewrite.optimize(jax.jit(step_on(mesh)), **options).lower(*arguments(mesh))


def digest(step: jax.stages.Lowered) -> str:
    return hashlib.sha256(clone_of(private.module_of(step), "step").text(debug_info=False).encode()).hexdigest()[:16]


def changed(folder: Path, to: Path, **decision: object) -> str:
    """A copy of the plan, with a right checksum, that says something else."""
    document = read_document(Path(plan_in(folder)).read_bytes(), "a.plan")
    to.write_text(replace(document, decision={**document.decision, **decision}).text())
    return str(to)


@pytest.mark.parametrize("name", ["step.mlir", *([] if NEWER else ["step.export"])])
def test_the_step_with_the_plan_is_the_tuned_choice(tuned: Path, name: str) -> None:
    """The best choice is one of a rewritten module under XLA flags, without which its step is longer."""
    best = found_in(tuned, name)["frontier"][0]
    flags = best["choice"]["flags"]
    step = lowered(plan=plan_in(tuned, name))
    assert step.report.plan == f"replayed from {plan_in(tuned, name)}" and best["choice"]["passes"]
    document = read_document(Path(plan_in(tuned, name)).read_bytes(), "a.plan")
    assert digest(step) == best["digest"] or name == "step.export"
    assert digest(step) == hashlib.sha256(parse(document.module.encode(), name="a").text(debug_info=False).encode()
                                          ).hexdigest()[:16]
    assert flags.items() <= dict(step.report.compiler_options).items()
    assert all(f"{flag}={value}" in str(step.report) for flag, value in flags.items())
    assert NEWER or step.timeline(compiler_options=NOT_TRIED_OUT).step_s == pytest.approx(best["step_s"], rel=1e-9)


def test_lines_of_python_make_their_points(tuned: Path) -> None:
    mesh = gpu_mesh()
    frontier = found_in(tuned)["frontier"]
    lines = [(point, point["python"]) for point in frontier]
    for point, line in lines:
        names: dict[str, Any] = {"hlorewrite": hlorewrite, "jax": jax, "step": step_on(mesh)}
        exec(line, names)
        step = names["step"].lower(*arguments(mesh))
        assert digest(step) == point["digest"]
        made = step.timeline(compiler_options=NOT_TRIED_OUT)
        assert NEWER or made.step_s == pytest.approx(point["step_s"], rel=1e-9)
    assert lines


def test_options_of_a_plan_reach_xla_and_the_users_stay(tuned: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set for that compilation alone; options given to ``compile`` take their place; the pass that miscompiles stays
    off with those the user disables."""
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr(jax.stages.Lowered, "compile", lambda _, options=None, **__: seen.append(dict(options or {})))
    step = lowered(plan=plan_in(tuned))
    options = dict(step.report.compiler_options)
    step.compile()
    step.compile({FLAG: False, "xla_disable_hlo_passes": "cse"})
    step.original.compile()
    assert seen[0] == options and seen[2] == {}
    assert seen[1] == {**options, FLAG: False, "xla_disable_hlo_passes": f"cse,{options['xla_disable_hlo_passes']}"}


@pytest.mark.parametrize("given", [{}, {"topology": "h200:4x8"}])
def test_the_hook_replays_it_too(tuned: Path, given: dict[str, Any]) -> None:
    """``patch_jit`` and ``exec``: the module that JAX compiles, and the options of that compilation."""
    mesh = gpu_mesh()
    step = jax.jit(step_on(mesh)).lower(*arguments(mesh))
    options = private.compile_options(8, shardy=True, outputs=[], inputs=[], overrides={})
    with hlorewrite.patch_jit(plan=plan_in(tuned), on_mismatch="original", **given) as patch:
        module = private.module_of(step)
        context = pytest.warns(HlorewriteWarning, match="4x8") if given else contextlib.nullcontext()
        with context:
            made = patch.before_compilation("step", module, "cuda", list(mesh.devices.flat), options)
    best = found_in(tuned)["frontier"][0]
    ours = {**best["choice"]["flags"], "xla_disable_hlo_passes": "while-loop-all-reduce-code-motion"}
    assert private.xla_flags(options) == ({} if given else ours)
    assert (made is module) is bool(given)


def test_disabled_passes_of_the_environment_stay_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XLA_FLAGS", "--xla_disable_hlo_passes=cse --xla_gpu_autotune_level=0")
    options = lowered(passes="comm", keep="always").report.compiler_options
    assert options == {"xla_disable_hlo_passes": "cse,while-loop-all-reduce-code-motion"}
    assert not lowered(passes="comm", keep="always", protect=False).report.compiler_options


@pytest.mark.parametrize(("options", "said"), [
    ({"topology": "h200:4x8"}, "topology h200:1x8 -> h200:4x8"), ({"passes": "comm-shift"}, "passes "),
    ({"keep": "always"}, "keep better -> always"), ({"memory_budget": "1GiB"}, "memory_budget (none) -> 1073741824"),
    ({"protect": False}, "protect True -> (none)"),
])
def test_what_the_user_gives_has_to_be_the_same(tuned: Path, options: dict[str, Any], said: str) -> None:
    with pytest.raises(PlanMismatch) as refused:
        lowered(plan=plan_in(tuned), **options)
    assert said in str(refused.value) and "\n" not in str(refused.value)


def test_what_the_user_gives_may_be_the_same(tuned: Path) -> None:
    best = found_in(tuned)["frontier"][0]["choice"]
    step = lowered(plan=plan_in(tuned), passes=best["passes"], keep=best["keep"], topology=TARGET)
    assert step.report.plan.startswith("replayed")


@pytest.mark.parametrize("policy", ["error", "original", "replan"])
def test_flags_of_the_user_win(tuned: Path, tmp_path: Path, policy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of other flags is not replayed, and its options are not set."""
    flags = found_in(tuned)["frontier"][0]["choice"]["flags"]
    assert flags[FLAG] is True
    plan = tmp_path / "a.plan"
    plan.write_bytes(Path(plan_in(tuned)).read_bytes())
    monkeypatch.setenv("XLA_FLAGS", f"--{FLAG}=true")
    assert lowered(plan=plan).report.plan.startswith("replayed")
    monkeypatch.setenv("XLA_FLAGS", f"--{FLAG}=false")
    said = rf"compiler_options .*{FLAG}=true.* -> .*{FLAG}=false"
    if policy == "error":
        with pytest.raises(PlanMismatch, match=said):
            lowered(plan=plan)
        return
    with pytest.warns(HlorewriteWarning, match=said):
        step = lowered(plan=plan, on_mismatch=policy, keep="always", passes="comm")
    assert not flags.keys() & step.report.compiler_options.keys()
    assert step.report.changed is (policy == "replan")
    assert (plan.read_bytes() == Path(plan_in(tuned)).read_bytes()) is (policy == "original")


def test_another_module_and_options_of_another_kind_are_refused(tuned: Path, tmp_path: Path) -> None:
    mesh = gpu_mesh()
    with pytest.raises(PlanMismatch, match="does not fit: module "):
        hlorewrite.optimize(jax.jit(step_on(mesh, 0.25)), plan=plan_in(tuned)).lower(*arguments(mesh))
    for name, value in (("xla_dump_to", "/tmp"), ("xla_gpu_kernel_cache_file", "a"), ("xla_gpu_a", [1])):
        with pytest.raises(PlanMismatch, match=f'contains "{name}", which a plan may not set'):
            lowered(plan=changed(tuned, tmp_path / "a.plan", compiler_options={name: value}))
    with pytest.raises(PlanMismatch, match="is not a complete plan"):
        lowered(plan=changed(tuned, tmp_path / "a.plan", compiler_options=[]))
    with pytest.raises(PlanMismatch, match=r"does not fit: compiler_options .* -> .none."):
        lowered(plan=changed(tuned, tmp_path / "a.plan", compiler_options={}))


def test_opt_replays_it(tuned: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "out.mlir"
    words = ["opt", str(tuned / "step.export"), f"--plan={plan_in(tuned, 'step.export')}", f"--output={output}"]
    assert guarded([*words, "--no-debuginfo"]) == 0
    assert f"{FLAG}=true" in capsys.readouterr().err
    document: PlanDocument = read_document(Path(plan_in(tuned, "step.export")).read_bytes(), "a.plan")
    assert parse(output.read_bytes(), name="a").digest() == document.digest
    output.unlink()
    for more, said in (("--topology=h200:4x8", "topology h200:1x8 -> h200:4x8"), ("-Ocomm", "passes auto -> "),
                       ("--target=h200:2x4", "cluster h200:1x8 -> h200:2x4"), ("--ignore-cost", "ignore_cost")):
        assert guarded([*words, more]) == 2 and not output.exists()
        stated = capsys.readouterr().err
        assert said in stated and stated.count("\n") == 1
    assert guarded([*words, f"--target={TARGET}", f"--topology={TARGET}"]) == 0


def test_xla_alone_can_be_the_plan(tuned: Path, tmp_path: Path) -> None:
    """The original is compiled, under the options of the choice."""
    measurer = TuneMeasurer(parse((tuned / "step.mlir").read_bytes(), name="step.mlir"), TARGET)
    choice = TuneChoice("", flag_set="double", flags=((FLAG, True),))
    (tmp_path / "a.plan").write_text(measurer.plan(choice))
    step = lowered(plan=tmp_path / "a.plan")
    assert not step.report.changed and dict(step.report.compiler_options) == {FLAG: True}
    timeline = step.timeline(compiler_options=NOT_TRIED_OUT)
    assert NEWER or timeline.step_s == pytest.approx(measurer.measure(choice).step_s, rel=1e-9)


def test_users_flags_are_not_tried_and_hold_for_every_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [name for name, _ in sets_beside()] == [each.name for each in FLAG_SETS]
    monkeypatch.setenv("XLA_FLAGS", "--xla_gpu_enable_latency_hiding_scheduler=false --xla_disable_hlo_passes=cse")
    assert all(flag != "xla_gpu_enable_latency_hiding_scheduler" for _, flags in sets_beside() for flag, _ in flags)
    measurer = TuneMeasurer(parse(exported(), name="step"), TARGET)
    assert measurer._rewritten(TuneChoice("comm")).flags["xla_disable_hlo_passes"].startswith("cse,")


def test_flags_that_xla_does_not_have_fail_in_the_same_words() -> None:
    measurer = TuneMeasurer(parse(exported(), name="step"), TARGET)
    point = measurer.measure(TuneChoice("", flag_set="new", flags=(("xla_gpu_a", True), ("xla_gpu_b", True))))
    assert point.failed == "this XLA lacks some of these flags" and point.step_s is None
