"""Steps with a plan file: made once, replayed without passes, refused where anything differs."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import hlorewrite
from hlorewrite.errors import HlorewriteError, PlanMismatch
from hlorewrite.jaxbridge.choose import planned
from hlorewrite.jaxbridge.step.notices import HlorewriteWarning


def mesh() -> jax.sharding.Mesh:
    return jax.make_mesh((8,), ("d",), axis_types=(AxisType.Auto,))


def step(scale: float = 1.0, auto: bool = False) -> Any:
    """Gradients summed over micro-batches, averaged in the loop; a new function each time."""
    def local(w: jax.Array, batches: jax.Array) -> jax.Array:
        def micro_batch(total: jax.Array, batch: jax.Array) -> tuple[jax.Array, None]:
            grad = batch.T @ jnp.tanh(batch @ w) * scale
            return total + (grad if auto else jax.lax.pmean(grad, "d")), None
        return w - jax.lax.scan(micro_batch, jnp.zeros_like(w), batches)[0]
    if auto:
        return jax.jit(local, in_shardings=(NamedSharding(mesh(), P()), NamedSharding(mesh(), P(None, "d"))),
                       out_shardings=NamedSharding(mesh(), P()))
    return jax.jit(jax.shard_map(local, mesh=mesh(), in_specs=(P(), P(None, "d")), out_specs=P(), check_vma=False))


ARGUMENTS = (jax.ShapeDtypeStruct((16, 16), jnp.float32), jax.ShapeDtypeStruct((4, 16, 16), jnp.float32))


def numbers(rows: int = 16) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(16, 16)).astype(np.float32), rng.normal(size=(4, rows, 16)).astype(np.float32)


def lowered(path: Path, function: Any = None, **options: Any) -> Any:
    optimized: Any = hlorewrite.optimize(step() if function is None else function, plan=path, **options)
    return optimized.lower(*ARGUMENTS)


@pytest.fixture
def no_search(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Makes every later search for candidates fail."""
    def refuse(*_: Any) -> Any:
        raise AssertionError("the passes run again")
    return lambda: monkeypatch.setattr(planned, "rewrite_step", refuse)


@pytest.mark.parametrize("auto", [False, True])
def test_a_plan_is_replayed_without_passes_and_gives_the_same_step_and_report(
        tmp_path: Path, no_search: Callable[[], None], auto: bool):
    path = tmp_path / "step.plan"
    made = lowered(path, step(auto=auto))
    assert made.report.changed and made.report.plan == f"made and written to {path}"
    no_search()
    again = lowered(path, step(auto=auto))
    assert again.report.plan == f"replayed from {path}"
    assert again.as_text() == made.as_text() and again.report.digest == made.report.digest
    sent = [[(c.kind, c.bytes, c.trips) for c in one.report.before + one.report.after] for one in (made, again)]
    assert sent[0] == sent[1] and again.report.exposed == made.report.exposed == auto
    assert again.report.comparison.sentence == made.report.comparison.sentence
    assert [r.sentence for r in again.report.remarks] == [r.sentence for r in made.report.remarks]
    assert "replayed from" in str(again.report)
    arguments = numbers()
    np.testing.assert_array_equal(made.compile()(*arguments), again.compile()(*arguments))


def test_a_training_resumed_with_the_plan_is_equal_bit_by_bit(tmp_path: Path, no_search: Callable[[], None]):
    """Four steps at once, and two, a file, and two of a new function that replays the plan."""
    def trained(weights: np.ndarray, steps: int) -> np.ndarray:
        optimized: Any = hlorewrite.optimize(step(0.01, auto=True), plan=tmp_path / "step.plan")
        for _ in range(steps):
            weights = optimized(weights, numbers()[1])
        return np.asarray(weights)
    whole = trained(numbers()[0], 4)
    no_search()
    np.save(tmp_path / "weights.npy", trained(numbers()[0], 2))
    assert trained(np.load(tmp_path / "weights.npy"), 2).tobytes() == whole.tobytes()


def test_the_same_step_gives_the_same_bytes_without_paths(tmp_path: Path):
    for name in ("a.plan", "b.plan"):
        lowered(tmp_path / name)
    text = (tmp_path / "a.plan").read_text()
    assert text == (tmp_path / "b.plan").read_text()
    assert str(Path(__file__).parent) not in text and str(tmp_path) not in text
    shown = json.loads(text)
    assert shown["made_for"]["devices"] == "8 x CPU" and shown["made_for"]["passes"] == "auto"
    assert shown["decision"]["compiled"] == "rewritten" and "XLA alone" in shown["decision"]["reason"]
    assert any("comm-shift" in each["rule"] and "test_planned.py" in each["location"] for each in shown["rewrites"])


def test_where_the_original_is_kept_the_plan_says_so(tmp_path: Path, no_search: Callable[[], None]):
    path = tmp_path / "step.plan"
    made = lowered(path, passes="collective-cse")
    shown = json.loads(path.read_text())
    assert shown["decision"]["compiled"] == "original" and shown["stored_module"] == []
    no_search()
    again = lowered(path, passes="collective-cse")
    assert not made.report.changed and not again.report.changed and again.diff() == ""


@pytest.mark.parametrize(("options", "words"), [
    ({"function": step(2.0)}, "module "), ({"passes": "comm-shift,cse"}, "passes auto -> comm-shift,cse"),
    ({"keep": "always"}, "keep better -> always"), ({"topology": "h200:1x8"}, "topology (none) -> h200:1x8"),
    ({"protect": False}, "protect True -> (none)"), ({"check": "proof"}, "proof (none) -> True")])
def test_what_changed_is_said_and_nothing_runs(tmp_path: Path, options: dict[str, Any], words: str):
    path = tmp_path / "step.plan"
    lowered(path)
    before = path.read_bytes()
    with pytest.raises(PlanMismatch) as caught:
        lowered(path, options.get("function", step()), on_error="fallback",
                **{name: value for name, value in options.items() if name != "function"})
    assert words in str(caught.value) and "nothing is compiled" in str(caught.value)
    assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["jaxlib", "hlorewrite", "devices"])
def test_another_version_or_topology_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str):
    path = tmp_path / "step.plan"
    lowered(path)
    real = planned.made_for
    monkeypatch.setattr(planned, "made_for", lambda *a, **k: {**real(*a, **k), name: "other"})
    with pytest.raises(PlanMismatch, match=f"{name} .* -> other"):
        lowered(path)


def test_the_original_is_compiled_with_one_warning_where_that_is_wanted(tmp_path: Path):
    path = tmp_path / "step.plan"
    lowered(path)
    with pytest.warns(HlorewriteWarning, match="does not fit: module .*the original is compiled"):
        got = lowered(path, step(2.0), on_mismatch="original")
    assert got.diff() == "" and "does not fit" in got.report.failure


def test_a_new_plan_is_made_where_that_is_wanted(tmp_path: Path):
    path = tmp_path / "step.plan"
    lowered(path)
    with pytest.warns(HlorewriteWarning, match="a new plan is made"):
        got = lowered(path, step(2.0), on_mismatch="replan")
    assert got.report.changed and got.report.plan.startswith("made")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert lowered(path, step(2.0)).report.plan.startswith("replayed")


@pytest.mark.parametrize("content", [b"", b"{}", b"\xff\xfe", b"x" * 1000])
def test_a_damaged_plan_stops_the_step_or_is_replaced(tmp_path: Path, content: bytes):
    path = tmp_path / "step.plan"
    path.write_bytes(content)
    with pytest.raises(PlanMismatch, match="nothing is compiled"):
        lowered(path)
    assert path.read_bytes() == content
    with pytest.warns(HlorewriteWarning, match="a new plan is made"):
        lowered(path, on_mismatch="replan")
    assert lowered(path).report.plan.startswith("replayed")


def test_a_plan_that_cannot_be_written_is_a_warning(tmp_path: Path):
    with pytest.warns(HlorewriteWarning, match="no plan is written: .*cannot be written"):
        got = lowered(tmp_path / "none" / "step.plan")
    assert got.report.changed and got.report.plan == ""


def test_nothing_is_written_where_the_step_fails_or_is_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "step.plan"

    def fail(*_: Any) -> Any:
        raise HlorewriteError("fails")
    with monkeypatch.context() as patched:
        patched.setattr(planned, "rewrite_step", fail)
        with pytest.raises(HlorewriteError, match="fails"):
            lowered(path)
    monkeypatch.setenv("HLOREWRITE", "0")
    assert lowered(path).report.failure
    assert not path.exists()


def test_each_signature_has_a_file_in_a_folder(tmp_path: Path, no_search: Callable[[], None]):
    folder = tmp_path / "plans"
    for round_ in range(2):
        optimized: Any = hlorewrite.optimize(step(), plan=folder)
        for rows in (16, 24):
            np.testing.assert_allclose(optimized(*numbers(rows)), step()(*numbers(rows)), rtol=1e-4, atol=1e-4)
        assert len(list(folder.iterdir())) == 2
        if not round_:
            no_search()


def test_a_patch_makes_replays_and_refuses_plans(tmp_path: Path, no_search: Callable[[], None]):
    folder = tmp_path / "plans"
    with hlorewrite.patch_jit("comm-shift", plan=folder) as patch:
        expected = step()(*numbers())
    assert patch.records[0].outcome == "rewritten" and patch.records[0].report.plan.startswith("made")
    no_search()
    with hlorewrite.patch_jit("comm-shift", plan=folder) as patch:
        np.testing.assert_array_equal(step()(*numbers()), expected)
    assert patch.records[0].outcome == "rewritten" and patch.records[0].as_json()["plan"].startswith("replayed")
    with hlorewrite.patch_jit("comm-shift", plan=folder) as patch, pytest.raises(PlanMismatch, match=r"module .*->"):
        step(2.0)(*numbers())
    with hlorewrite.patch_jit("comm-shift", plan=folder, on_mismatch="original") as patch:
        with pytest.warns(HlorewriteWarning, match="the original is compiled"):
            step(2.0)(*numbers())
        assert patch.records[0].outcome == "original"


def test_an_audit_keeps_no_plan(tmp_path: Path):
    with pytest.raises(hlorewrite.errors.UsageError, match="no plan to keep"):
        hlorewrite.patch_jit(audit=True, plan=tmp_path)
