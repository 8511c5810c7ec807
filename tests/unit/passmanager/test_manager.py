"""What is checked around each pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import pytest

from hlorewrite.errors import InputError, PassFailed
from hlorewrite.ir.binding import ir
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import Timings, run_passes
from hlorewrite.passmanager.signature import changes, signature_of
from hlorewrite.passmanager.spec import parse_pipeline

TEXT = """
module attributes {mhlo.num_partitions = 2 : i32} {
  func.func public @main(%arg0: tensor<4xf32> {tf.aliasing_output = 0 : i32},
                         %arg1: tensor<4xf32> {jax.buffer_donor = true})
      -> (tensor<4xf32> {jax.result_info = "a"}, tensor<4xf32> {jax.result_info = "b"}) {
    %0 = stablehlo.add %arg0, %arg1 : tensor<4xf32>
    return %0, %arg1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func private @f(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    return %arg0 : tensor<4xf32>
  }
}
"""


@dataclass(frozen=True)
class Does(Pass):
    """Does what a test wants."""

    name = "does"
    what: Callable[[Module], object] = field(default=lambda module: None)
    text: ClassVar[str] = ""

    def run(self, module: Module, ctx: PassContext) -> bool:
        self.what(module)
        return True

    def __str__(self) -> str:
        return "does"


@dataclass(frozen=True)
class EditsInSilence(Pass):
    """Edits the module and does not say so."""

    name = "edits-in-silence"
    valid: bool = True

    def run(self, module: Module, ctx: PassContext) -> bool:
        add = ctx.view(module).ops("stablehlo.add")[0]
        where = None if self.valid else add
        editor = ctx.editor(module)
        new = editor.create("stablehlo.negate", [add.results[0]], [add.results[0].type], location=add.location,
                            before=where, at=None if where else ir.InsertionPoint.after(add))
        editor.replace(add.results[0], new.results[0], keep=[new])
        return False


def main_of(module: Module) -> ir.Operation:
    """The function @main."""
    return module.mlir.body.operations[0].operation


def set_attributes(name: str, text: str) -> Callable[[Module], None]:
    """Sets an attribute of @main."""
    def change(module: Module) -> None:
        with module.context:
            main_of(module).attributes[name] = ir.Attribute.parse(text)
    return change


@pytest.mark.parametrize(("change", "message"), [
    (set_attributes("arg_attrs", "[{}, {jax.buffer_donor = true}]"), "argument 0 of @main lost tf.aliasing_output"),
    (set_attributes("arg_attrs", "[{tf.aliasing_output = 1 : i32}, {jax.buffer_donor = true}]"),
     "tf.aliasing_output of argument 0 of @main became 1 : i32 instead of 0 : i32"),
    (set_attributes("arg_attrs", '[{tf.aliasing_output = 0 : i32}, {jax.buffer_donor = true, mhlo.sharding = "x"}]'),
     "argument 1 of @main got mhlo.sharding"),
    (set_attributes("res_attrs", '[{jax.result_info = "b"}, {jax.result_info = "a"}]'),
     'jax.result_info of result 0 of @main became "b" instead of "a" (and 1 more)'),
    (set_attributes("sym_name", '"other"'), "function @main is gone"),
    (set_attributes("sym_visibility", '"private"'), "function @main is gone"),
    (lambda m: m.operation.attributes.__delitem__("mhlo.num_partitions"), "the module lost mhlo.num_partitions"),
])
def test_the_signature_is_guarded(change: Callable[[Module], object], message: str) -> None:
    """What changed is named."""
    module = parse(TEXT)
    with pytest.raises(PassFailed) as caught:
        run_passes(module, [Does(change)], PassContext())
    assert f'pass "does" changed the signature: {message}' in str(caught.value)


def test_private_functions_may_change() -> None:
    """They are not visible outside."""
    module = parse(TEXT)
    run_passes(module, parse_pipeline("symbol-dce"), PassContext())
    assert "@f" not in module.text()


def test_a_change_of_types_is_a_change() -> None:
    """Number and types of arguments and results."""
    before = signature_of(parse("func.func @f(%x: tensor<4xf32>, %y: tensor<i32>) -> tensor<4xf32> "
                                "{ return %x : tensor<4xf32> }"))
    module = parse("func.func @f(%x: tensor<4xbf16>) -> tensor<4xbf16> { return %x : tensor<4xbf16> }\n"
                   "func.func @g() { return }")
    assert changes(before, signature_of(module)) == [
        "a new public function @g appeared", "@f has 1 arguments instead of 2",
        "result 0 of @f became tensor<4xbf16> instead of tensor<4xf32>"]


def test_a_pass_may_declare_that_it_changes_the_signature() -> None:
    """Then the guard lets it."""
    @dataclass(frozen=True)
    class Changes(Does):
        """Changes."""

        changes_signature = True

    module = parse(TEXT)
    assert run_passes(module, [Changes(set_attributes("arg_attrs", "[{}, {}]")), Does()], PassContext())


def test_the_verifier_runs_after_each_pass() -> None:
    """The pass at fault is named, not a later one, with the place in the file."""
    def breaks(module: Module) -> None:
        add = main_of(module).regions[0].blocks[0].operations[0].operation
        with module.context, ir.Location.file("m.py", 3, 4):
            bad = ir.Operation.create("stablehlo.add", results=[add.results[0].type],
                                      operands=[add.operands[0]] * 3, ip=ir.InsertionPoint(add))
            assert bad

    with pytest.raises(PassFailed) as caught:
        run_passes(parse(TEXT), [Does(breaks), Does()], PassContext())
    assert 'm.py:3:4: pass "does" left a module that does not verify' in str(caught.value)


def test_unexpected_errors_become_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the way to the traceback; expected ones pass through."""
    def fails(module: Module) -> None:
        raise KeyError("x")

    def refuses(module: Module) -> None:
        raise InputError("no", location="a:1:1")

    monkeypatch.delenv("HLOREWRITE_TRACEBACK", raising=False)
    with pytest.raises(PassFailed, match=r"failed unexpectedly .KeyError: 'x'.") as caught:
        run_passes(parse(TEXT, name="a.mlir"), [Does(fails)], PassContext())
    assert "HLOREWRITE_TRACEBACK=1" in str(caught.value) and caught.value.location == "a.mlir"
    with pytest.raises(InputError):
        run_passes(parse(TEXT), [Does(refuses)], PassContext())
    monkeypatch.setenv("HLOREWRITE_TRACEBACK", "1")
    with pytest.raises(KeyError):
        run_passes(parse(TEXT), [Does(fails)], PassContext())


def test_failures_of_mlir_passes_are_told() -> None:
    """With MLIR's own sentence and the place in the file."""
    module = parse('sdy.mesh @mesh = <["x"=2]>\nfunc.func @main() -> tensor<4xf32> {\n'
                   "  %c = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{\"x\"}]>]>}"
                   " dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>\n  return %c : tensor<4xf32>\n}", name="a.mlir")
    with pytest.raises(PassFailed) as caught:
        run_passes(module, parse_pipeline("sdy-convert-global-to-local"), PassContext())
    assert str(caught.value).startswith('a.mlir:3:8: pass "sdy-convert-global-to-local" failed: ')


def test_observers_and_times() -> None:
    """Both see every pass in order; an unchanged module is not verified again."""
    seen = []

    class Notes:
        def before(self, pass_: Pass, module: Module) -> None:
            seen.append(("before", str(pass_)))

        def after(self, pass_: Pass, module: Module, changed: bool) -> None:
            seen.append(("after", str(pass_), changed))

    timings = Timings()
    run_passes(parse(TEXT), parse_pipeline("inline,cse"), PassContext(), observers=[Notes()], timings=timings)
    assert seen == [("before", "inline"), ("after", "inline", False), ("before", "cse"), ("after", "cse", True)]
    assert [step for step, _ in timings.rows] == ["inline", "cse", "verify"]


def test_mlir_passes_tell_whether_they_changed_something_when_asked() -> None:
    """Comparing costs two prints, so only then."""
    module = parse(TEXT)
    assert run_passes(module, parse_pipeline("cse"), PassContext())
    assert not run_passes(module, parse_pipeline("cse"), PassContext(compare=True))
    assert run_passes(module, parse_pipeline("symbol-dce"), PassContext(compare=True))


def test_the_view_survives_passes_that_keep_it_true() -> None:
    """It is dropped after MLIR's own passes."""
    module, run = parse(TEXT), PassContext()
    view = run.view(module)
    run_passes(module, parse_pipeline("inline"), run)
    assert run.view(module) is view
    run_passes(module, parse_pipeline("cse"), run)
    assert run.view(module) is not view


def test_counters_belong_to_the_running_pass() -> None:
    """They add up over runs."""
    ctx = PassContext(pass_name="a")
    ctx.count("things")
    ctx.count("things", 2)
    ctx.pass_name = "b"
    ctx.count("things")
    assert ctx.counters == {("a", "things"): 3, ("b", "things"): 1}


def test_edits_count_whatever_the_pass_answers() -> None:
    """A module that was edited is verified and written, also when the pass says that it changed nothing."""
    module = parse(TEXT)
    assert run_passes(module, [EditsInSilence()], PassContext())
    with pytest.raises(PassFailed, match="left a module that does not verify: operand #0 does not dominate this use"):
        run_passes(parse(TEXT), [EditsInSilence(valid=False)], PassContext())


@dataclass(frozen=True)
class MakesAnotherDialect(Pass):
    """Creates an op of a dialect that no rewrite of the package makes ops of, and that the module does not contain."""

    name = "makes-another-dialect"

    def run(self, module: Module, ctx: PassContext) -> bool:
        function = module.mlir.body.operations[0]
        with module.context, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(function.regions[0].blocks[0]):
            number = ir.IntegerType.get_signless(32)
            ir.Operation.create("arith.constant", [number], attributes={"value": ir.IntegerAttr.get(number, 1)})
        return True


def test_a_pass_of_a_user_may_make_ops_of_any_dialect() -> None:
    module = parse("func.func @main() { return }")
    assert run_passes(module, [MakesAnotherDialect()], PassContext())
    assert "arith.constant 1" in module.text()
