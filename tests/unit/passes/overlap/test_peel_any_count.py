"""The last iteration of loops that run once, or as often as a value at run time says: legality, values, idempotence."""

from __future__ import annotations

import re

import fusion_modules as m
import numpy as np
import pytest
from generators.code_mutation import replace_source

from hlorewrite.checks.reference.check import compare
from hlorewrite.checks.reference.program import prepare
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.peel_last_micro_batch.emit import PEELED
from hlorewrite.passes.peel_last_micro_batch.peel_last_micro_batch import PeelLastMicroBatch
from hlorewrite.passmanager.base import PassContext
from hlorewrite.rules.listener import Recorder

T, I = "tensor<8xf32>", "tensor<i32>"  # noqa: E741
WHILE = "11:10"
"""Where the loop stands in the text."""


def loop(start: str = "%zero", bound: str = "%n", step: str = "%one", compare: str = "LT", update: str = "add",
         before: str = "", body: str = "", end: str = "", condition: str = "", more: str = "%more", carried: str = "",
         types: str = "", ends: str = "", behind: bool = True) -> Module:
    """``acc += tanh(x * i + acc)`` as often as an argument says, and the sum of acc over the devices after it."""
    after = m.reduce("%r", "%w#1", T) if behind else f"%r = stablehlo.negate %w#1 : {T}"
    return m.module(f"%x: {T}, %n: {I}", f"({T}, {I})", f"""
  %init = stablehlo.constant dense<0.5> : {T}
  %zero = stablehlo.constant dense<0> : {I}
  %one = stablehlo.constant dense<1> : {I}
  %two = stablehlo.constant dense<2> : {I}
  %three = stablehlo.constant dense<3> : {I}
  %minus = stablehlo.constant dense<-1> : {I}
  {before}
  %w:{2 + carried.count("=")} = stablehlo.while(%i = {start}, %acc = %init{carried}) : {I}, {T}{types}
  cond {{
    %more = stablehlo.compare {compare}, %i, {bound} : ({I}, {I}) -> tensor<i1>
    {condition}
    stablehlo.return {more} : tensor<i1>
  }} do {{
    {body}
    %number = stablehlo.convert %i : ({I}) -> tensor<f32>
    %wide = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> {T}
    %p = stablehlo.multiply %x, %wide : {T}
    %q = stablehlo.add %p, %acc : {T}
    %sum = stablehlo.tanh %q : {T}
    %next = stablehlo.{update} %i, {step} : {I}
    {end}
    stablehlo.return %next, %sum{ends} : {I}, {T}{types}
  }}""", after, f"return %r, %w#0 : {T}, {I}")


def peeled(before: Module, *, ignore_cost: bool = True) -> tuple[Module, bool, list[str]]:
    """The module after the pass, whether it changed, and what was said, each with its place."""
    after, recorder = before.clone(), Recorder(wants_missed=True)
    changed = PeelLastMicroBatch().run(after, PassContext(listeners=(recorder,), ignore_cost=ignore_cost,
                                                          topology="h200:1x4"))
    assert not after.verify()
    return after, changed, [f"{remark.location}: {remark.kind}: {remark.sentence}" for remark in recorder.remarks]


def equal(before: Module, after: Module, *counts: int, kind: type[np.integer] = np.int32) -> bool:
    """Whether two modules compute the same bits when the devices are given these counts."""
    original = prepare(before, "main")
    random = np.random.default_rng(7)
    inputs = [[random.standard_normal(8).astype(np.float32), kind(counts[device % len(counts)])]
              for device in range(4)]
    found = compare(original.run(inputs), prepare(after, "main", like=original).run(inputs), "main")
    return found.equal and all(row.absolute == 0 for row in found.rows)


COUNTED = {
    "for i in range(n)": loop(),
    "a step of two": loop(step="%two"),
    "counting down": loop(start="%n", bound="%zero", compare="GT", update="subtract"),
    "at most": loop(start="%one", compare="LE"),
    "until equal": loop(compare="NE"),
    "from minus one": loop(start="%minus"),
    "doubling": loop(start="%one", compare="LE", step="%two", update="multiply"),
    "two carried scalars": loop(carried=", %left = %n", types=f", {I}", ends=", %less",
                                condition=f"%also = stablehlo.compare GT, %left, %zero : ({I}, {I}) -> tensor<i1>",
                                more="%also", body=f"%less = stablehlo.subtract %left, %one : {I}"),
    "a truth value": loop(carried=", %go = %first", types=", tensor<i1>", ends=", %goes", more="%go",
                          before=f"%first = stablehlo.compare LT, %zero, %n : ({I}, {I}) -> tensor<i1>",
                          end=f"%goes = stablehlo.compare LT, %next, %n : ({I}, {I}) -> tensor<i1>"),
}
INNER = f"""%in:2 = stablehlo.while(%l = %zero, %h = %acc) : {I}, {T}
    cond {{
      %go = stablehlo.compare NE, %l, BOUND : ({I}, {I}) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %hh = stablehlo.add %h, %x : {T}
      %ll = stablehlo.add %l, %one : {I}
      stablehlo.return %ll, %hh : {I}, {T}
    }}"""
EFFECT = "stablehlo.custom_call @log() {has_side_effect = true} : () -> ()"
SMALL = (f"%some = stablehlo.slice %sum [0:1] : ({T}) -> tensor<1xf32>\n"
         "%part = stablehlo.reshape %some : (tensor<1xf32>) -> tensor<f32>\n"
         "%limit = stablehlo.constant dense<0.9> : tensor<f32>\n"
         "%goes = stablehlo.compare LT, %part, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>\n")
REFUSED = {
    "its condition depends on a value that its body computes from data": loop(
        carried=", %go = %first", types=", tensor<i1>", ends=", %goes", more="%both", end=SMALL,
        before="%first = stablehlo.constant dense<true> : tensor<i1>",
        condition="%both = stablehlo.and %more, %go : tensor<i1>"),
    "its condition runs stablehlo.custom_call, once more than the body": loop(condition=EFFECT),
    "it may not run at all, and its body runs stablehlo.custom_call": loop(body=EFFECT),
    "it may not run at all, and its body runs stablehlo.all_reduce": loop(body=m.reduce("%all", "%acc", T)),
    "it may not run at all, and it is not known whether a loop in it then ends": loop(
        body=INNER.replace("BOUND", "%n")),
    "it may not run at all, and it carries a value that is not a tensor": loop(
        before="%token = stablehlo.create_token : !stablehlo.token", carried=", %t = %token",
        types=", !stablehlo.token", ends=", %t"),
    "its condition depends on a value that its body computes from data ": loop(
        carried=", %left = %n", types=f", {I}", ends=", %less", more="%also", body=
        f'%less = "stablehlo.collective_permute"(%left) <{{{m.CHANNEL}, source_target_pairs = dense<[[0, 1], [1, 0]]> '
        f": tensor<2x2xi64>}}> : ({I}) -> {I}",
        condition=f"%also = stablehlo.compare GT, %left, %i : ({I}, {I}) -> tensor<i1>"),
}


@pytest.mark.parametrize("form", COUNTED)
def test_counts_at_run_time(form: str) -> None:
    """No iteration, one, two and five: the bits of the original; also with counts that differ among devices."""
    before = COUNTED[form]
    after, changed, said = peeled(before)
    assert changed and len(said) == 1
    assert "applied: the last of an unknown number of iterations (8 assumed) runs after the loop" in said[0]
    assert after.text().count("stablehlo.tanh") == 2 and after.text().count("stablehlo.while") == 1
    for counts in ((0,), (1,), (2,), (5,), (0, 1, 5, 2)):
        assert equal(before, after, *counts), counts
    text = after.text()
    assert not peeled(after)[1] and after.text() == text


def test_the_reduction_does_not_wait_for_a_branch() -> None:
    text = peeled(loop())[0].text()
    assert "stablehlo.if" not in text and "stablehlo.case" not in text and text.count("stablehlo.select") == 2


def test_a_loop_with_a_constant_count_may_stand_inside() -> None:
    before = loop(body=INNER.replace("BOUND", "%three"))
    after, changed, _ = peeled(before)
    assert changed and after.text().count(PEELED) == 2 and equal(before, after, 0, 3)


@pytest.mark.parametrize("reason", REFUSED)
def test_what_stays(reason: str) -> None:
    """The remark names the line of the loop."""
    text = REFUSED[reason].text()
    after, changed, said = peeled(REFUSED[reason])
    assert not changed and after.text() == text
    assert said == [f"m.mlir:{WHILE}: blocked: its last iteration stays in the loop: {reason.strip()}"]


SPECULATIVE = "hlorewrite.passes.peel_last_micro_batch.peel_last_micro_batch"
NEXT = "hlorewrite.passes.peel_last_micro_batch.next_condition"
CONDITIONS = [
    (NEXT, "len(op.regions) == 0\n            and all(element_count(result.type) == 1 for result in op.results))",
     "True)", "its condition depends on a value that its body computes from data"),
    (SPECULATIVE, "if name := Effects(view).first(body, collectives=True):", "if name := \"\":",
     "it may not run at all, and its body runs stablehlo.custom_call"),
    (SPECULATIVE, "first(body, collectives=True)", "first(body)",
     "it may not run at all, and its body runs stablehlo.all_reduce"),
    (SPECULATIVE, "trip_count(op) is None for", "False for",
     "it may not run at all, and it is not known whether a loop in it then ends"),
]


@pytest.mark.parametrize(("module", "old", "new", "what"), CONDITIONS, ids=[each[3] for each in CONDITIONS])
def test_each_condition_decides(module: str, old: str, new: str, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the loop is rewritten."""
    replace_source(module, old, new, monkeypatch)
    assert peeled(REFUSED[what])[1]


def once(body: str = "", condition: str = "") -> Module:
    """A loop with one iteration."""
    return loop(bound="%one", body=body, condition=condition)


def test_a_loop_that_runs_once_is_replaced_by_its_body() -> None:
    """In front of a reduction or around one; no op more than before; no cluster has to be named."""
    inside = loop(bound="%one", body=m.reduce("%all", "%acc", T), behind=False)
    for before in (once(), inside, once(body=INNER.replace("BOUND", "%three"))):
        after, recorder = before.clone(), Recorder()
        assert PeelLastMicroBatch().run(after, PassContext(listeners=(recorder,))) and not after.verify()
        assert [each.sentence for each in recorder.remarks] == ["it runs once, so its body replaces it"]
        assert equal(before, after, 3) and isinstance(validate(before, after), Proved)
        assert after.text().count("stablehlo.while") == before.text().count("stablehlo.while") - 1
        assert after.text().count("stablehlo.tanh") == 1
        text = after.text()
        assert not peeled(after)[1] and after.text() == text
    assert not peeled(loop(bound="%one", behind=False))[1], "no reduction in it or behind it"


def test_a_loop_that_runs_once_and_calls_a_function_with_reductions() -> None:
    """JAX puts the body of a scan into a function."""
    text = loop(bound="%one", body="%all = stablehlo.negate %acc : " + T, behind=False).text().rstrip()
    text = text.replace("stablehlo.negate %1#1", "stablehlo.abs %1#1", 1)
    text = re.sub(rf"stablehlo.negate (%\w+) : {re.escape(T)}\n", rf"func.call @f(\1) : ({T}) -> {T}\n", text, count=1)
    function = f"func.func private @f(%x: {T}) -> {T} {{ {m.reduce('%y', '%x', T)} return %y : {T} }}"
    before = parse(f"{text.removesuffix('}')}{function}\n}}")
    after, changed, _ = peeled(before)
    assert changed and "stablehlo.while" not in after.text() and equal(before, after, 3)


def test_the_validator_sees_a_wrong_body() -> None:
    before = once()
    after = peeled(before)[0].text()
    wrong = parse(after.replace("stablehlo.convert %c :", "stablehlo.convert %c_1 :"))
    assert wrong.text() != after
    assert not isinstance(validate(before, wrong), Proved) and not equal(before, wrong, 3)


def test_counters_that_wrap_around() -> None:
    """120 + 10 is no number of eight bits: a loop that seems to run once runs 103 times."""
    text = loop(bound="%limit", step="%ten", before=f"%limit = stablehlo.constant dense<125> : {I}\n"
                f"%ten = stablehlo.constant dense<10> : {I}\n"
                f"%first = stablehlo.constant dense<120> : {I}", start="%first").text()
    before = parse(text.replace("i32", "i8").replace("num_partitions = 4 : i8", "num_partitions = 4 : i32").replace(
        "num_replicas = 1 : i8", "num_replicas = 1 : i32"))
    after, changed, said = peeled(before)
    assert changed and "an unknown number of iterations" in said[0]
    assert equal(before, after, 3, kind=np.int8)


def test_a_loop_of_one_iteration_with_effects_in_its_condition_stays() -> None:
    assert peeled(once(condition=EFFECT))[2][0].endswith(
        "its condition runs stablehlo.custom_call, once more than the body")


def test_a_loop_that_never_runs_stays() -> None:
    before = loop(bound="%zero")
    after, changed, said = peeled(before)
    assert not changed and after.text() == before.text()
    assert said[0].endswith("blocked: its last iteration stays in the loop: it does not run at all")


def test_a_loop_in_another_one_stays() -> None:
    """Several steps in one program: the remark is about the inner loop."""
    text = loop(body=INNER.replace("BOUND", "%three") + "\n" + m.reduce("%all", "%in#1", T)).text()
    after, changed, said = peeled(parse(text, name="m.mlir"))
    assert not changed and after.text() == text
    assert [each.partition(": ")[2] for each in said] == [
        "missed: its last iteration stays in the loop: the loop is inside another one",
        "blocked: its last iteration stays in the loop: it may not run at all, and its body runs stablehlo.all_reduce"]
