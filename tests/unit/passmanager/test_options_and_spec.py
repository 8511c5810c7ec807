"""Pipelines as text: what is accepted, what it means, and that it prints back."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hlorewrite.errors import UsageError
from hlorewrite.passmanager import registry
from hlorewrite.passmanager.base import Pass
from hlorewrite.passmanager.options import Size, options_of, parse_options
from hlorewrite.passmanager.spec import format_pipeline, parse_pipeline
from hlorewrite.util import registered


class Colour(enum.Enum):
    """An enumeration for the tests."""

    RED = "red"
    BLUE = "dark-blue"


@dataclass(frozen=True)
class Everything(Pass):
    """Takes every kind of option.

    Attributes:
      flag: a truth value.
      count: a number
        on two lines.
    """

    name = "everything"
    flag: bool = False
    count: int = 3
    ratio: float = 0.5
    text: str = "x"
    limit: Size = 8 * 2**30
    mode: Literal["fast", "slow"] = "fast"
    colour: Colour = Colour.RED
    numbers: tuple[int, ...] = ()
    names: tuple[str, ...] = ("a",)
    pair: tuple[int, str] = (1, "b")
    maybe: int | None = None


@pytest.fixture(autouse=True)
def everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the pass known."""
    monkeypatch.setitem(registered.PASSES, "everything", f"{__name__}:Everything")
    monkeypatch.setattr(registry, "find_pass", lambda name: Everything if name == "everything" else _find(name))


_find = registry.find_pass
TEXTS = st.text(max_size=8)
PASSES = st.builds(
    Everything, flag=st.booleans(), count=st.integers(), ratio=st.floats(allow_nan=False), text=TEXTS,
    limit=st.integers(0, 2**50), mode=st.sampled_from(["fast", "slow"]), colour=st.sampled_from(Colour),
    numbers=st.lists(st.integers()).map(tuple), names=st.lists(TEXTS).map(tuple), pair=st.tuples(st.integers(), TEXTS),
    maybe=st.none() | st.integers())


@given(PASSES)
def test_any_pass_prints_back(step: Everything) -> None:
    """str(pass) is the text that makes it again, whatever its options hold."""
    assert parse_pipeline(f"cse,{step},symbol-dce")[1] == step


@pytest.mark.parametrize(("text", "shown"), [
    ("cse", ["cse"]),
    (" cse , canonicalize ", ["cse", "canonicalize"]),
    ("builtin.module(cse,canonicalize)", ["cse", "canonicalize"]),
    ("cse,builtin.module(canonicalize{max-iterations=3}),inline", ["cse", "canonicalize{max-iterations=3}", "inline"]),
    ("func.func(cse)", ["func.func(cse)"]),
    ("builtin.module(func.func(cse,canonicalize))", ["func.func(cse)", "func.func(canonicalize)"]),
    ("sdy-insert-explicit-reshards", ["func.func(sdy-insert-explicit-reshards)"]),
    ("builtin.module(inline)", ["inline"]),
    ("everything{}", ["everything"]),
    ("everything{count=3}", ["everything"]),
    ("everything{flag count=4}", ["everything{flag=true count=4}"]),
    ("everything{limit=64MB}", ["everything{limit=62500KiB}"]),
    ('everything{text="a b,}{"}', ['everything{text="a b,}{"}']),
    ("everything{numbers=1,2,3},cse", ["everything{numbers=1,2,3}", "cse"]),
    ('everything{names="a,b",c}', ['everything{names="a,b",c}']),
    ("builtin.module()", []),
    ("", []),
])
def test_pipelines_round_trip(text: str, shown: list[str]) -> None:
    """What a text means, and that its printed form means the same."""
    passes = parse_pipeline(text)
    assert [str(p) for p in passes] == shown
    assert parse_pipeline(format_pipeline(passes)) == passes


@pytest.mark.parametrize(("text", "message"), [
    ("everythin", 'unknown pass "everythin"; did you mean "everything"?'),
    ("xyzzy", 'unknown pass "xyzzy"; see `hlorewrite opt --list-passes`'),
    ("everything{cont=4}", 'has no option "cont"; did you mean "count"? its options: flag, count'),
    ("everything{count=four}", "option \"count\" of pass \"everything\": 'four' is not an integer"),
    ("everything{flag=maybe}", "'maybe' is not true or false"),
    ("everything{limit=8XB}", "'8XB' is not a number of bytes such as 8GiB"),
    ("everything{mode=fsat}", 'unknown value "fsat"; did you mean "fast"? known: fast, slow'),
    ("everything{colour=dark-blu}", 'did you mean "dark-blue"?'),
    ("everything{pair=1}", "2 values expected, 1 given"),
    ("everything{count=1 count=2}", 'option "count" is given twice'),
    ("everything{=1}", '"=1" is not an option'),
    ("inline{x=1}", 'pass "inline" has no option "x"; it takes none'),
    ("cse,", "expected a pass name at column 5"),
    ("cse,,cse", "expected a pass name at column 5"),
    ("cse canonicalize", "expected a comma and another pass, or the end at column 5"),
    ("builtin.module(cse", "expected a closing parenthesis at column 19"),
    ("everything{count=1", "lack a closing brace"),
    ("cse)", "another pass, or the end"),
    ("builtin.modul(cse)", 'cannot be nested in "builtin.modul"; did you mean "builtin.module"?'),
    ("func.func(builtin.module(cse))", "builtin.module(...) cannot be nested in func.func(...)"),
    ("builtin.module(builtin.module(cse))", "cannot be nested in builtin.module(...)"),
    ("func.func(inline)", 'pass "inline" works on a whole module'),
    ("func.func(symbol-dce)", 'pass "symbol-dce" works on a whole module'),
    ("builtin.module(func.func(sdy-propagation-pipeline))", "works on a whole module"),
    ("func.func(sdy-import-pipeline)", "works on a whole module"),
    ("builtin.module(sdy-insert-explicit-reshards)", "write func.func(sdy-insert-explicit-reshards)"),
    ("any(cse)", 'cannot be nested in "any"'),
    ("cse{x=1}", 'pass "cse" has no option "x"'),
    ("canonicalize{max-iterations=x}", "option \"max-iterations\" of pass \"canonicalize\": 'x' value invalid"),
    ("canonicalize{region-simplify=bla}", "Cannot find option named 'bla'"),
])
def test_mistakes_are_usage_errors(text: str, message: str) -> None:
    """One sentence, exit code 2, and never the abort MLIR answers a mis-nested pipeline with."""
    with pytest.raises(UsageError) as caught:
        parse_pipeline(text)
    assert message in str(caught.value)
    assert caught.value.exit_code == 2


def test_every_mlir_pass_of_the_table_exists() -> None:
    """jaxlib has each name where the table says it can run."""
    from hlorewrite.ir.binding import passmanager
    from hlorewrite.ir.context import new_context
    from hlorewrite.passmanager.mlir_pass import MLIR_PASSES, make_mlir_pass
    context = new_context()
    for name in MLIR_PASSES:
        passmanager.PassManager.parse(make_mlir_pass(name, "", ()).text, context)


def test_options_are_documented_from_the_docstring() -> None:
    """Name, type in words, default, and the line of the Attributes section."""
    options = {o.name: o for o in options_of(Everything)}
    assert options["flag"].help == "a truth value."
    assert options["count"].help == "a number on two lines."
    assert (options["limit"].kind, options["limit"].default) == ("a number of bytes such as 8GiB", "8GiB")
    assert options["maybe"].kind == "an integer or none" and options["maybe"].default == "none"
    assert options["numbers"].kind == "a list of integer, comma-separated"


def test_required_options() -> None:
    """A field without a default must be given."""
    @dataclass(frozen=True)
    class Needs(Pass):
        """Needs something."""

        name = "needs"
        file: str

    with pytest.raises(UsageError, match="needs option \"file\""):
        Needs.from_options({})
    assert Needs.from_options(parse_options("file=a/b.hlopat", "it")) == Needs("a/b.hlopat")


class _Point:
    def __init__(self, name: str, target: object, package: str = "other") -> None:
        self.name, self.value, self._target = name, "other:thing", target
        self.dist = type("Dist", (), {"name": package})

    def load(self) -> object:
        if isinstance(self._target, Exception):
            raise self._target
        return self._target


@pytest.mark.parametrize(("points", "message"), [
    ([_Point("comm-shift", Everything)], "a name a built-in pass already has"),
    ([_Point("cse", Everything)], "a name a pass of MLIR already has"),
    ([_Point("mine", Everything), _Point("mine", Everything, "third")], "a name package"),
    ([_Point("mine", int)], "is not a hlorewrite.passmanager.base.Pass"),
    ([_Point("mine", ImportError("no such module"))], "cannot be loaded (no such module)"),
])
def test_plugins_that_clash_or_break(points: list[_Point], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is reported with the package's name."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    with pytest.raises(UsageError) as caught:
        registry.plugin_passes()
    assert message in str(caught.value)


def test_plugins_are_passes_like_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found by name, listed with their package."""
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [_Point("mine", Everything)])
    monkeypatch.setattr(registry, "find_pass", _find)
    assert _find("mine") is Everything
    assert [i.origin for i in registry.all_passes() if i.name == "mine"] == ["other"]
