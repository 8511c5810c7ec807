"""comm-shift on programs of several meshes: what leaves the loop, what stays, and that values are the same."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest
from program_texts import ProgramText, T

from hlorewrite.analysis import uniform, varying_ops
from hlorewrite.checks.reference.check import check
from hlorewrite.ir.load import load, parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View, nested_ops
from hlorewrite.passes.comm_shift import CommShift
from hlorewrite.passmanager.base import Pass, PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.options import Size
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.pipelines.adapter.by_mesh import rewrite_by_mesh
from hlorewrite.pipelines.mpmd.mesh_view_emit import Differences
from hlorewrite.pipelines.mpmd.program import FragmentCall, Program, read_program
from hlorewrite.rules.listener import Recorder

DATA = {"m0": {"data": 2}}
W, G, X, S = T("m0", (4,)), T("m0", (4,)), T("m0", (4, 8), ("", "data")), T("m0", ())
ZERO = "%acc0_ = stablehlo.constant dense<0.0> : $acc0"
GRADIENT = """%k32 = stablehlo.convert %k : (tensor<ui32>) -> tensor<i32>
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.dynamic_slice %x, %k32, %c0, sizes = [1, 4] : ($x, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %row = stablehlo.reshape %one : (tensor<1x4xf32>) -> tensor<4xf32>
      %local = stablehlo.multiply %row, %w : tensor<4xf32>
      %g = AR(%local, tensor<4xf32>)"""
UPDATE = """%rate = stablehlo.constant dense<0.1> : $w
      %d = stablehlo.multiply %total, %rate : $w
      %new_ = stablehlo.subtract %w, %d : $w"""


@dataclass(frozen=True)
class ShiftedProgram:
    """What the pass made of a program."""

    before: Module
    after: Module
    changed: bool
    remarks: list[tuple[str, str]]

    @property
    def program(self) -> Program:
        return read_program(self.after)

    def reductions(self) -> dict[str, int]:
        """All-reduces of one step, by task."""
        view, program, counts = View(self.after), self.program, {}
        for step in program.steps:
            if isinstance(step, FragmentCall):
                count = sum(op.name == "stablehlo.all_reduce" for op in nested_ops(view.functions[step.callee]))
                if count:
                    counts[step.task] = counts.get(step.task, 0) + count * program.executions(step)
        return counts


def shift(text: ProgramText | Module, *passes: Pass, equal: bool = True) -> ShiftedProgram:
    """Runs the pass, checks the values, and that a second run finds nothing to do."""
    before = text.module() if isinstance(text, ProgramText) else text
    after = before.clone()
    recorder = Recorder(wants_missed=True)
    chosen = list(passes) or [CommShift()]
    changed = run_passes(after, chosen, PassContext((recorder,), compare=True))
    assert changed == (after.text() != before.text())
    if equal:
        report = check(before, after)
        assert report.equal, report.table()
        again = after.clone()
        run_passes(again, chosen, PassContext())
        assert again.text() == after.text()
    reread = parse(after.text())
    assert reread.text() == after.text()
    return ShiftedProgram(before, after, changed, [(r.kind, r.sentence) for r in recorder.remarks])


def one_stage(backward: str = GRADIENT + "\n %next_ = stablehlo.add %acc, %g : $acc", update: str = UPDATE, *,
              acc: T = G, zero: str = ZERO, sizes: dict[str, int] | None = None) -> ProgramText:
    """One stage on one mesh: an accumulated gradient, and its update."""
    text = ProgramText({"m0": sizes or {"data": 2}})
    text.argument("w", W)
    text.argument("x", X)
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": acc}, zero)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "B", 0, ["w", "x", "k", "acc"], {"next": acc}, backward)
    text.call("after", "update", 0, ["w", "total"], {"new": W}, update)
    text.results = ["new"]
    return text


def test_the_reduction_moves_from_the_backward_to_the_update():
    shifted = shift(one_stage())
    assert shifted.reductions() == {"update": 1}
    total = shifted.program.carries[0]
    assert shifted.program.types[total.inside].shape == (2, 4)
    assert shifted.program.types[total.inside].spec == (("data",), ())
    assert total.is_sum
    assert shifted.remarks[0][1] == "reduced where its result is needed: 4× 16 bytes before, 1× 16 bytes now"


def test_through_a_fragment_that_accumulates():
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": G}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "B", 0, ["w", "x", "k"], {"grad": G}, GRADIENT + "\n %grad_ = stablehlo.negate %g : $grad")
    text.call("body", "W", 0, ["grad", "acc"], {"next": G}, "%next_ = stablehlo.subtract %acc, %grad : $acc")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new"]
    shifted = shift(text)
    assert shifted.reductions() == {"update": 1}
    grad = next(step for step in shifted.program.body if isinstance(step, FragmentCall) and step.task == "B").results[0]
    assert shifted.program.types[grad].shape == (2, 4)


@pytest.mark.parametrize("odd", [
    "%lim = stablehlo.constant dense<1.0> : $acc \n %h = stablehlo.minimum %g, %lim : $acc",
    "%h = stablehlo.tanh %g : $acc"])
def test_what_is_not_linear_keeps_its_reduction(odd: str):
    shifted = shift(one_stage(GRADIENT + f"\n {odd} \n %next_ = stablehlo.add %acc, %h : $acc"))
    assert not shifted.changed
    assert shifted.reductions() == {"B": 4}
    assert any("needs the reduced value in the loop" in sentence for _, sentence in shifted.remarks)


def test_a_fragment_that_reads_the_reduced_value_keeps_it():
    """A clip of each micro-batch's gradient in a fragment of its own."""
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": G}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "B", 0, ["w", "x", "k"], {"grad": G}, GRADIENT, "%g")
    text.call("body", "W", 0, ["grad", "acc"], {"next": G},
              "%c = stablehlo.tanh %grad : $grad \n %next_ = stablehlo.add %acc, %c : $acc")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new"]
    shifted = shift(text)
    assert not shifted.changed
    assert shifted.reductions() == {"B": 4}
    assert any("stablehlo.tanh" in sentence for _, sentence in shifted.remarks)


def test_parameters_updated_in_the_loop_keep_their_reduction():
    text = ProgramText(DATA)
    text.argument("w0", W)
    text.argument("x", X)
    text.index("m0", "k")
    text.carry("w0", "w", "next", "last", False)
    text.call("body", "B", 0, ["w", "x", "k"], {"next": W},
              GRADIENT + "\n %s = stablehlo.tanh %w : $w \n %v = stablehlo.add %s, %g : $w\n"
                         "%next_ = stablehlo.multiply %v, %s : $w")
    text.results = ["last"]
    shifted = shift(text)
    assert not shifted.changed
    assert shifted.reductions() == {"B": 4}


def test_a_running_mean_needs_a_place_of_its_own_and_is_no_sum():
    """``v = 0.9 v + AR(g)`` from a state that is an argument: ``u`` is carried next to ``w``."""
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.argument("v0", G)
    text.index("m0", "k")
    text.carry("v0", "v", "next", "total", False)
    text.call("body", "B", 0, ["w", "x", "k", "v"], {"next": G}, GRADIENT + """
      %d = stablehlo.constant dense<0.9> : $v
      %old = stablehlo.multiply %v, %d : $v
      %next_ = stablehlo.add %old, %g : $v""")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new"]
    shifted = shift(text)
    assert shifted.reductions() == {"update": 1}
    assert [carry.is_sum for carry in shifted.program.carries] == [False, False]
    shapes = [shifted.program.types[carry.inside].shape for carry in shifted.program.carries]
    assert shapes == [(2, 4), (4,)]


def test_an_accumulator_that_starts_at_an_argument_is_added_once():
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.index("m0", "k")
    text.carry("w", "acc", "next", "total")
    text.call("body", "B", 0, ["w", "x", "k", "acc"], {"next": G},
              GRADIENT + "\n %next_ = stablehlo.add %acc, %g : $acc")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new"]
    shifted = shift(text)
    assert shifted.reductions() == {"update": 1}
    assert shifted.program.carries[0].is_sum
    assert shifted.program.before[0].where  # the identity the accumulator starts at


def test_a_sum_that_only_leaves_the_program_joins_the_next_update():
    """The loss is not an operand of the update; its reduction needs no fragment of its own."""
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": G}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "F", 0, ["w", "x", "k", "acc"], {"next": G},
              GRADIENT + "\n %next_ = stablehlo.add %acc, %g : $acc")
    text.call("after", "update", 0, ["w"], {"new": W}, "%new_ = stablehlo.negate %w : $w")
    text.results = ["new", "total"]
    shifted = shift(text)
    assert shifted.reductions() == {"update": 1}
    assert len(shifted.program.after) == 1


def test_the_reduction_lands_in_the_update_that_reads_it_first():
    text = one_stage()
    text.call("after", "update", 0, ["new"], {"other": W}, "%other_ = stablehlo.negate %new : $new")
    text.steps["after"].reverse()
    text.steps["after"][0] = text.steps["after"][0].replace("%new)", "%w)")
    text.results = ["new", "other"]
    shifted = shift(text)
    view = View(shifted.after)
    holds = [any(op.name == "stablehlo.all_reduce" for op in nested_ops(view.functions[step.callee]))
             for step in shifted.program.after if isinstance(step, FragmentCall)]
    assert holds == [False, True]


def test_reductions_along_one_of_two_axes():
    shifted = shift(one_stage(sizes={"data": 2, "tensor": 2}))
    assert shifted.reductions() == {"update": 1}
    assert shifted.program.types[shifted.program.carries[0].inside].spec == (("data",), ())


def test_one_device_a_mesh_and_no_collective_change_nothing():
    text = one_stage(GRADIENT.replace("AR(%local, tensor<4xf32>)", "stablehlo.negate %local : tensor<4xf32>")
                     + "\n %next_ = stablehlo.add %acc, %g : $acc")
    shifted = shift(text)
    assert not shifted.changed
    assert "expose-collectives" in shifted.remarks[0][1]


# ---- what comes from other meshes


def received_factor(type_: T, *, manual: bool = True) -> ProgramText:
    """A gradient times a factor that another mesh sends."""
    text = ProgramText({"m0": {"data": 2}, "m1": {"data": 2}})
    text.argument("w", W)
    text.argument("x", X)
    text.argument("f", T("m1", type_.shape, type_.spec))
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": G}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "F", 1, ["f"], {"sent": T("m1", type_.shape, type_.spec)},
              "%sent_ = stablehlo.negate %f : $f", manual=manual)
    text.transfer("body", "sent", "factor", type_)
    spread = ("stablehlo.slice %factor [0:1] : ($factor) -> tensor<1xf32>\n %r = stablehlo.reshape %s : "
              "(tensor<1xf32>) -> tensor<f32>\n %b = stablehlo.broadcast_in_dim %r, dims = [] : (tensor<f32>) -> $acc")
    text.call("body", "B", 0, ["w", "x", "k", "acc", "factor"], {"next": G}, GRADIENT + f"""
      %s = {spread}
      %h = stablehlo.multiply %g, %b : $acc
      %next_ = stablehlo.add %acc, %h : $acc""")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new"]
    return text


@pytest.mark.parametrize("manual", [True, False])
def test_a_factor_that_is_the_same_on_all_devices_lets_it_pass(manual: bool):
    assert shift(received_factor(T("m0", (2,)), manual=manual)).reductions() == {"update": 1}


def cut_factor() -> ProgramText:
    """A running value scaled by a factor that differs between devices."""
    text = received_factor(T("m0", (2,), ("data",)))
    text.fragments = [each.replace("dims = [] : (tensor<f32>) -> tensor<4xf32>", "dims = [] : (tensor<f32>) -> "
                                   "tensor<4xf32>") for each in text.fragments]
    return text


def reduced_behind(text: ProgramText) -> ProgramText:
    """The scaled gradient is reduced again, so that the program's values are the same on all devices."""
    text.fragments = [each.replace("%next_ = stablehlo.add %acc, %h :", "%again = " + _ar() + "\n"
                                   "      %next_ = stablehlo.add %acc, %again :") for each in text.fragments]
    return text


def _ar() -> str:
    from program_texts import _expanded
    return _expanded("AR(%h, tensor<4xf32>)", {"data": 2})


def test_a_factor_that_is_cut_over_the_devices_does_not():
    shifted = shift(reduced_behind(cut_factor()))
    assert shifted.reductions() == {"B": 4, "update": 1}


def test_without_the_sharding_of_what_arrives_values_would_differ(monkeypatch: pytest.MonkeyPatch):
    known = uniform.Uniformity._plain_sources

    def careless(self: uniform.Uniformity, op, value):
        return [] if op.name == "stablehlo.custom_call" and varying_ops.is_received(op) else known(self, op, value)

    monkeypatch.setattr(uniform.Uniformity, "_plain_sources", careless)
    shifted = shift(reduced_behind(cut_factor()), equal=False)
    assert not check(shifted.before, shifted.after).equal


def test_without_the_new_dimension_values_would_differ(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Differences, "axes", lambda self, value, base: ())
    shifted = shift(one_stage(), equal=False)
    assert not check(shifted.before, shifted.after).equal


def test_a_gradient_sent_to_another_mesh_is_reduced_before():
    text = ProgramText({"m0": {"data": 2}, "m1": {"data": 2}})
    text.argument("w", W)
    text.argument("x", X)
    text.index("m0", "k")
    acc = T("m1", (4,))
    text.call("before", "before", 1, [], {"acc0": acc}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "B", 0, ["w", "x", "k"], {"grad": G}, GRADIENT, "%g")
    text.transfer("body", "grad", "arrived", acc)
    text.call("body", "B", 1, ["arrived", "acc"], {"next": acc}, "%next_ = stablehlo.add %acc, %arrived : $acc")
    text.call("after", "update", 1, ["total"], {"new": acc}, "%new_ = stablehlo.negate %total : $total")
    text.results = ["new"]
    shifted = shift(text)
    assert not shifted.changed
    assert any("it is sent to another mesh" in sentence for _, sentence in shifted.remarks)


# ---- sums of two meshes


def tied(meeting: str = "stablehlo.add", *, second: dict[str, int] | None = None, own_reader: bool = False
         ) -> ProgramText:
    """Tied weights: a gradient on each of two meshes, one meeting after the loop."""
    text = ProgramText({"m0": {"data": 2}, "m1": second or {"data": 2}})
    for mesh in ("m0", "m1"):
        text.argument(f"w_{mesh}", T(mesh, (4,)))
        text.argument(f"x_{mesh}", T(mesh, (4, 8), ("", "data")))
        text.index(mesh, f"k_{mesh}")
        text.call("before", "before", int(mesh[1]), [], {f"zero_{mesh}": T(mesh, (4,))},
                  f"%zero_{mesh}_ = stablehlo.constant dense<0.0> : $zero_{mesh}")
        text.carry(f"zero_{mesh}", f"acc_{mesh}", f"next_{mesh}", f"total_{mesh}")
    for mesh in ("m0", "m1"):
        rows = 8 // (second or {"data": 2})["data"] if mesh == "m1" else 4
        body = GRADIENT.replace("%x,", f"%x_{mesh},").replace("$x,", f"$x_{mesh},").replace("%k :", f"%k_{mesh} :")
        body = body.replace("%w :", f"%w_{mesh} :")
        if rows != 4:
            body = body.replace("sizes = [1, 4]", f"sizes = [1, {rows}]").replace("tensor<1x4xf32>", "tensor<1x2xf32>")
            body = body.replace("%row = stablehlo.reshape %one : (tensor<1x2xf32>) -> tensor<4xf32>",
                                "%half = stablehlo.reshape %one : (tensor<1x2xf32>) -> tensor<2xf32>\n"
                                "%row = stablehlo.concatenate %half, %half, dim = 0 : (tensor<2xf32>, tensor<2xf32>) "
                                "-> tensor<4xf32>")
        text.call("body", "B", int(mesh[1]), [f"w_{mesh}", f"x_{mesh}", f"k_{mesh}", f"acc_{mesh}"],
                  {f"next_{mesh}": T(mesh, (4,))},
                  body + f"\n %next_{mesh}_ = stablehlo.add %acc_{mesh}, %g : $acc_{mesh}")
    text.transfer("after", "total_m1", "arrived", T("m0", (4,)))
    text.call("after", "update", 0, ["w_m0", "total_m0", "arrived"], {"new": W},
              f"%both = {meeting} %total_m0, %arrived : $total_m0 \n %new_ = stablehlo.subtract %w_m0, %both : $w_m0")
    text.results = ["new"]
    if own_reader:
        text.call("after", "update", 1, ["total_m1"], {"seen": T("m1", (4,))},
                  "%seen_ = stablehlo.tanh %total_m1 : $total_m1")
        text.results.append("seen")
    return text


def test_tied_weights_are_reduced_once():
    shifted = shift(tied())
    assert shifted.reductions() == {"update": 1}
    transfer = next(step for step in shifted.program.after if not isinstance(step, FragmentCall))
    assert shifted.program.types[transfer.result].shape == (2, 4)
    assert any("sent to mesh m0 before it is reduced" in sentence for _, sentence in shifted.remarks)


@pytest.mark.parametrize(("text", "why"), [
    (tied("stablehlo.multiply"), "a product of two sums is not a sum"),
    (tied(second={"data": 4}), "the meshes are of different sizes"),
    (tied(own_reader=True), "its own mesh needs it reduced, too")])
def test_otherwise_each_mesh_reduces_its_own(text: ProgramText, why: str):
    assert shift(text).reductions() == {"update": 2}, why


def test_parts_of_a_sum_are_not_taken_for_equal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(uniform.Uniformity, "_parts_sources", lambda self, op: list(op.operands))
    shifted = shift(tied(), equal=False)
    assert shifted.reductions() == {"update": 2}  # sent and arrived types differ: given up


# ---- what a rewritten view must be


def test_a_fragment_may_not_wait_for_one_that_a_schedule_may_run_later():
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.call("before", "before", 0, [], {"acc0": G}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "W", 1, ["w"], {"late": W}, "%late_ = stablehlo.tanh %w : $w")
    text.call("body", "I", 0, ["acc"], {"next": G}, "%next_ = stablehlo.negate %acc : $acc")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new"]
    module = text.module()
    said: list[str] = []

    def careless(view_module: Module, view: object) -> bool:
        tanh = View(view_module).ops("stablehlo.tanh")[0]
        View(view_module).ops("stablehlo.negate")[0].operands[0] = tanh.results[0]
        return True

    before = module.text()
    assert not rewrite_by_mesh(module, careless, lambda mesh, why: said.append(f"{mesh}: {why}"))
    assert module.text() == before
    assert said == ["m0: a fragment would have to wait for another that a schedule may run later"]


def test_a_gather_of_what_does_not_change_leaves_the_loop():
    text = ProgramText(DATA)
    shard = T("m0", (8,), ("data",))
    text.argument("w", shard)
    text.call("before", "before", 0, [], {"acc0": T("m0", (8,))}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "F", 0, ["w", "acc"], {"next": T("m0", (8,))}, """
      %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 0 : i64,
        channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : ($w) -> $acc
      %next_ = stablehlo.add %acc, %all : $acc""")
    text.call("after", "update", 0, ["total"], {"new": T("m0", (8,))}, "%new_ = stablehlo.negate %total : $total")
    text.results = ["new"]
    shifted = shift(text, *parse_pipeline("hoist-collectives"))
    view = View(shifted.after)
    holds = {step.task for step in shifted.program.steps if isinstance(step, FragmentCall)
             and any(op.name == "stablehlo.all_gather" for op in nested_ops(view.functions[step.callee]))}
    assert holds == {"before"}


def test_carries_that_start_at_one_value_may_become_different_types():
    """Two accumulators start at one zero; one is deferred, the other leaves the program as it is."""
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": G}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.carry("acc0", "most", "more", "largest", False)
    text.call("body", "B", 0, ["w", "x", "k", "acc", "most"], {"next": G, "more": G}, GRADIENT + """
      %next_ = stablehlo.add %acc, %g : $acc
      %size = stablehlo.abs %w : $w
      %more_ = stablehlo.maximum %most, %size : $most""")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new", "largest"]
    shifted = shift(text)
    assert shifted.reductions() == {"update": 1}
    assert [shifted.program.types[carry.inside].shape for carry in shifted.program.carries] == [(2, 4), (4,)]


def test_results_of_one_fragment_are_kept_apart():
    """A value that differs between devices leaves the backward next to a factor that does not."""
    text = ProgramText(DATA)
    text.argument("w", W)
    text.argument("x", X)
    text.argument("y", T("m0", (8,), ("data",)))
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": G}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "F", 0, ["w", "y"], {"own": T("m0", (8,), ("data",)), "factor": W},
              "%own_ = stablehlo.tanh %y : $y \n %factor_ = stablehlo.tanh %w : $w")
    text.call("body", "B", 0, ["w", "x", "k", "acc", "own", "factor"], {"next": G}, GRADIENT + """
      %mine = stablehlo.multiply %local, %own : $own
      %sum = AR(%mine, $own)
      %h = stablehlo.multiply %sum, %factor : $factor
      %next_ = stablehlo.add %acc, %h : $acc""")
    text.call("after", "update", 0, ["w", "total"], {"new": W}, UPDATE)
    text.results = ["new"]
    assert shift(text).reductions() == {"update": 1}


def scattered() -> ProgramText:
    """Each device keeps a part of the gradient: a reduce-scatter of every micro-batch."""
    text = ProgramText(DATA)
    shard = T("m0", (4,), ("data",))
    text.argument("w", shard)
    text.argument("x", X)
    text.index("m0", "k")
    text.call("before", "before", 0, [], {"acc0": shard}, ZERO)
    text.carry("acc0", "acc", "next", "total")
    text.call("body", "B", 0, ["x", "k", "acc"], {"next": shard}, """
      %k32 = stablehlo.convert %k : (tensor<ui32>) -> tensor<i32>
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %one = stablehlo.dynamic_slice %x, %k32, %c0, sizes = [1, 4] : ($x, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %row = stablehlo.reshape %one : (tensor<1x4xf32>) -> tensor<4xf32>
      %g = "stablehlo.reduce_scatter"(%row) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
        ^bb0(%aa: tensor<f32>, %bb: tensor<f32>):
          %cc = stablehlo.add %aa, %bb : tensor<f32>
          stablehlo.return %cc : tensor<f32> }) : (tensor<4xf32>) -> $acc
      %next_ = stablehlo.add %acc, %g : $acc""")
    text.call("after", "update", 0, ["w", "total"], {"new": shard}, UPDATE)
    text.results = ["new"]
    return text


def test_a_reduce_scatter_leaves_the_loop_within_the_memory_budget():
    shifted = shift(scattered(), CommShift(memory_budget=Size(1024)))
    view = View(shifted.after)
    holds = {step.task for step in shifted.program.steps if isinstance(step, FragmentCall)
             and any(op.name == "stablehlo.reduce_scatter" for op in nested_ops(view.functions[step.callee]))}
    assert holds == {"update"}
    twin = shifted.program.carries[-1]
    assert shifted.program.types[twin.inside].shape == (2, 4)
    assert all(carry.is_sum for carry in shifted.program.carries)


def test_without_a_budget_it_stays_and_says_what_it_would_save():
    shifted = shift(scattered())
    assert not shifted.changed
    assert any("deferring it would save" in sentence for _, sentence in shifted.remarks)


@pytest.mark.parametrize("passes", ["all-reduce-fusion", "collective-cse", "rules{only=algebra}", "inline",
                                    "canonicalize", "cse", "comm-shift,all-reduce-fusion"])
def test_other_passes_keep_a_program_one(passes: str):
    shift(tied(), *parse_pipeline(passes))


def test_a_program_in_the_global_view_stays_byte_for_byte():
    module = load(str(Path(__file__).parents[3] / "programs" / "two_stages.mlir"))
    shifted = shift(module)
    assert not shifted.changed
    assert "run expose-collectives first" in shifted.remarks[0][1]
