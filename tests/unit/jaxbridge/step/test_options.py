"""The options of a step: every surface takes every option that applies to it, and refuses the others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import pytest

from hlorewrite.cli import exec as exec_command
from hlorewrite.cli.parser import Parser
from hlorewrite.errors import UsageError
from hlorewrite.jaxbridge.decorator.optimize import JIT_OPTIONS, optimize
from hlorewrite.jaxbridge.hook.patch import patch_jit
from hlorewrite.jaxbridge.step.options import (
    EXEC,
    OPTIMIZE,
    PATCH_JIT,
    OptimizeKeywords,
    PatchKeywords,
    StepOptions,
    Surface,
    option_table,
    step_options,
)
from hlorewrite.util.frames import Frames

ROOT = Path(__file__).resolve().parents[4]
NAMES = [name for name, _ in step_options()]
GIVEN: dict[str, Any] = {
    "passes": "comm", "match": "train_step", "on_error": "raise", "check": "proof", "protect": False, "trace": "t",
    "keep": "always", "frames": Frames(skip=("haliax",)), "timeout_s": 5.0, "topology": "h200:1x8",
    "memory_budget": "1GiB", "shard_update": "data", "partial_state": "data", "plan": "a.plan",
    "on_mismatch": "replan", "audit": True}
KEPT = {**GIVEN, "memory_budget": 1 << 30}


def by_optimize(**options: Any) -> StepOptions:
    return optimize(jnp.sin, **options)._options  # type: ignore[reportUnknownMemberType]


def by_patch(**options: Any) -> StepOptions:
    with patch_jit(**options) as patch:
        return patch.options


def by_exec(**options: Any) -> StepOptions:
    """The options in the program that ``hlorewrite exec`` becomes."""
    given = options.pop("frames", Frames())
    words = [f"--skip-frames={each}" for each in given.skip]
    for name, value in options.items():
        flag = name.replace("_", "-").replace("passes", "pass")
        words.append(f"--no-{flag}" if value is False else f"--{flag}" if value is True else f"--{flag}={value}")
    parser = Parser()
    exec_command.add_arguments(parser)
    return StepOptions.from_json(exec_command.options_of(parser.parse_args([*words, "python"])).to_json())


WAYS: list[tuple[Surface, Callable[..., StepOptions]]] = [
    (OPTIMIZE, by_optimize), (PATCH_JIT, by_patch), (EXEC, by_exec)]


def test_each_field_is_documented_and_has_an_example_here() -> None:
    assert list(GIVEN) == NAMES and all(about.text and about.brief for _, about in step_options())


@pytest.mark.parametrize(("surface", "way"), WAYS, ids=[surface.name for surface, _ in WAYS])
@pytest.mark.parametrize("name", NAMES)
def test_each_surface_takes_each_option_or_says_why_not(surface: Surface, way: Callable[..., StepOptions], name: str):
    if name not in surface.without:
        value = getattr(way(**{name: GIVEN[name]}), name)
        if name in ("shard_update", "partial_state"):
            assert value == "data"
        elif surface is EXEC and name in ("plan", "trace"):
            assert Path(value).is_absolute() and Path(value).name == GIVEN[name]
        else:
            assert value == KEPT[name] or value == (KEPT[name],)
        return
    with pytest.raises(UsageError, match=r"is not an option of|unknown option"):
        way(**{name: GIVEN[name]})
    assert surface.without[name][-1] != "."


def test_keywords_that_are_typed_are_the_options() -> None:
    by_position = {"passes", "match"}
    typed = set(OptimizeKeywords.__annotations__)
    assert typed & set(NAMES) == {*OPTIMIZE.names()} - by_position and typed - set(NAMES) >= JIT_OPTIONS
    assert set(PatchKeywords.__annotations__) == {*PATCH_JIT.names()} - by_position


@pytest.mark.parametrize(("make", "words"), [
    (lambda: by_optimize(memory_buget="1GiB"), 'no option "memory_buget"; did you mean "memory_budget"?'),
    (lambda: by_optimize(donate_argnum=0), 'no option "donate_argnum"; did you mean "donate_argnums"?'),
    (lambda: by_patch(timeout=3), 'no option "timeout"; did you mean "timeout_s"?'),
    (lambda: by_exec(topologi="h200:1x8"), 'unknown option "--topologi"'),
    (lambda: by_patch(audit=True, plan="a.plan"), "audit rewrites nothing"),
    (lambda: by_optimize(shard_update="data", partial_state="data"), "cannot be used together"),
    (lambda: by_optimize(partial_state="data", plan="a.plan"), "a plan cannot store"),
    (lambda: by_patch(on_mismatch="stop"), 'on_mismatch="stop" is unknown; known: error, original, replan'),
    (lambda: by_optimize(plan=""), "the path of the plan is empty"),
])
def test_what_is_unknown_or_excluded_is_named(make: Callable[[], object], words: str):
    with pytest.raises(UsageError) as caught:
        make()
    assert words in str(caught.value)


def test_what_a_plan_of_tune_may_say_is_what_was_left_open() -> None:
    assert by_optimize().left_open == {"passes", "keep", "topology", "memory_budget"}
    assert by_optimize(passes="comm", memory_budget=0).left_open == {"keep", "topology"}
    assert by_optimize(shard_update="data").left_open == {"topology", "memory_budget"}
    assert by_exec(keep="better").left_open == {"passes", "topology", "memory_budget"}


def test_defaults_are_those_of_the_surface() -> None:
    assert (by_optimize().passes, by_patch().passes, by_exec().passes) == ("auto", "auto", "auto")
    assert (by_optimize().on_error, by_patch().on_error, by_exec().on_error) == (None, "fallback", "fallback")


def test_the_docstrings_and_the_page_say_what_the_fields_say() -> None:
    for function, surface in ((optimize, OPTIMIZE), (patch_jit, PATCH_JIT)):
        words = " ".join((function.__doc__ or "").split())
        assert all(f" {name}: {' '.join(about.plain.split())}" in words
                   for name, about in step_options() if name not in surface.without)
        assert "{options}" not in words and all(f" {name}: " not in words for name in surface.without)
    page = (ROOT / "docs" / "decorator.md").read_text()
    assert option_table(OPTIMIZE) in page, "write what option_table(OPTIMIZE) returns into docs/decorator.md"


def test_help_of_flags_is_formatted() -> None:
    parser = Parser("exec")
    exec_command.add_arguments(parser)
    shown = " ".join(parser.format_help().split())
    assert "--no-protect compile rewritten steps with the XLA pass" in shown and "``" not in shown
