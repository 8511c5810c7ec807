"""The last iteration of accumulation loops after them: where it is legal, what it leaves alone, what is proved."""

from __future__ import annotations

import re

import fusion_modules as m
import pytest

from hlorewrite.checks.reference.check import check
from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.passes.peel_last_micro_batch.emit import PEELED
from hlorewrite.passes.peel_last_micro_batch.peel_last_micro_batch import PeelLastMicroBatch
from hlorewrite.passmanager.base import PassContext
from hlorewrite.rules.listener import Recorder

T = "tensor<8xf32>"


def loop(start: object = 0, bound: object = 4, step: object = 1, compare: str = "LT, %i, %bound", kind: str = "i32",
         body: str = "", condition: str = "", update: str = "add %i, %step", behind: str = "%w#1",
         arguments: str = f"%x: {T}") -> Module:
    """``acc += x * i`` in a loop, and the sum of acc over the devices after it."""
    count = f"tensor<{kind}>"
    return m.module(arguments, T, f"""
  %zero = stablehlo.constant dense<0.0> : {T}
  %start = stablehlo.constant dense<{start}> : {count}
  %bound = stablehlo.constant dense<{bound}> : {count}
  %step = stablehlo.constant dense<{step}> : {count}
  %w:2 = stablehlo.while(%i = %start, %acc = %zero) : {count}, {T}
  cond {{
    {condition}
    %more = stablehlo.compare {compare} : ({count}, {count}) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  }} do {{
    {body}
    %number = stablehlo.convert %i : ({count}) -> tensor<f32>
    %wide = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> {T}
    %g = stablehlo.multiply %x, %wide : {T}
    %sum = stablehlo.add %acc, %g : {T}
    %next = stablehlo.{update} : {count}
    stablehlo.return %next, %sum : {count}, {T}
  }}""", m.reduce("%r", behind, T), f"return %r : {T}")


def peeled(before: Module, *, ignore_cost: bool = True) -> tuple[Module, bool, list[str]]:
    """The module after the pass, whether it changed, and what was said."""
    after, recorder = before.clone(), Recorder(wants_missed=True)
    changed = PeelLastMicroBatch().run(after, PassContext(listeners=(recorder,), ignore_cost=ignore_cost,
                                                          topology="h200:1x4"))
    return after, changed, [f"{remark.kind}: {remark.sentence}" for remark in recorder.remarks]


COUNTED = [
    loop(), loop(bound=2), loop(start=1, bound=8, step=3), loop(bound=3, compare="LE, %i, %bound"),
    loop(compare="GT, %bound, %i"), loop(start=4, bound=0, compare="GT, %i, %bound", update="subtract %i, %step"),
    loop(start=6, bound=1, step=2, compare="GE, %i, %bound", update="subtract %i, %step"),
    loop(compare="NE, %i, %bound"), loop(start=3, bound=0, step=-1, compare="LT, %bound, %i"),
    loop(start=250, bound=255, step=2, kind="ui16"),
    loop(start=-128, bound=-120, step=3, kind="i8"), loop(update="add %step, %i"),
]


@pytest.mark.parametrize("before", COUNTED, ids=range(len(COUNTED)))
def test_counted_loops(before: Module) -> None:
    """Every form of a counter: the values are those before, bit for bit, and a second run changes nothing."""
    after, changed, said = peeled(before)
    assert changed and not after.verify() and said[0].startswith("applied: the last of ")
    compared = check(before, after)
    assert compared.equal and all(row.absolute == 0 for row in compared.rows)
    assert after.text().count(" stablehlo.multiply ") == 2 and after.text().count("stablehlo.while") == 1
    if "NE," not in before.text():  # the validator reads bounds, and asks no divisibility of steps
        assert isinstance(validate(before, after), Proved)
    text = after.text()
    assert not PeelLastMicroBatch().run(after, PassContext(ignore_cost=True)) and after.text() == text


OTHERS = {
    "it does not run at all": loop(bound=0),
    "its condition runs stablehlo.all_reduce, once more than the body": loop(
        condition=m.reduce("%all", "%acc", T)),
    "its condition runs stablehlo.custom_call, once more than the body": loop(
        condition="stablehlo.custom_call @log() {has_side_effect = true} : () -> ()"),
    "its condition runs stablehlo.create_token, once more than the body": loop(condition='''
    %first = stablehlo.compare EQ, %i, %start : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %told = "stablehlo.if"(%first) ({
      %token = stablehlo.create_token : !stablehlo.token
      %sent = "stablehlo.send"(%i, %token) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 2>,
          is_host_transfer = true}> : (tensor<i32>, !stablehlo.token) -> !stablehlo.token
      stablehlo.return %i : tensor<i32>
    }, {
      stablehlo.return %i : tensor<i32>
    }) : (tensor<i1>) -> tensor<i32>'''),
}


def with_function(inner: str) -> Module:
    """A loop whose condition calls a function."""
    text = loop(condition="%called = stablehlo.negate %i : tensor<i32>").text().rstrip()
    text = re.sub(r"stablehlo.negate (%\w+) : tensor<i32>", r"func.call @f(\1) : (tensor<i32>) -> tensor<i32>", text)
    function = f"func.func private @f(%x: tensor<i32>) -> tensor<i32> {{ {inner} return %x : tensor<i32> }}"
    return parse(f"{text.removesuffix('}')}{function}\n}}")


def test_functions_that_the_condition_calls_are_looked_into() -> None:
    """One without effects may run once less; one that calls out of the program may not."""
    assert peeled(with_function("%y = stablehlo.negate %x : tensor<i32>"))[1]
    _, changed, said = peeled(with_function("stablehlo.custom_call @log() {has_side_effect = true} : () -> ()"))
    assert not changed
    assert said == ["blocked: its last iteration stays in the loop: its condition runs func.call, once more than the "
                    "body"]


@pytest.mark.parametrize("reason", OTHERS)
def test_other_loops_stay(reason: str) -> None:
    text = OTHERS[reason].text()
    after, changed, said = peeled(OTHERS[reason])
    assert not changed and after.text() == text
    assert said == [f"blocked: its last iteration stays in the loop: {reason}"]


def test_a_loop_without_a_reduction_behind_it_is_no_concern() -> None:
    before = loop(behind="%x")
    after, changed, said = peeled(before)
    assert not changed and not said and after.text() == before.text()


def test_it_has_to_pay() -> None:
    """A loop of long iterations before a small reduction: nothing is duplicated for a gain below one percent."""
    product = "stablehlo.dot_general %big, %big, contracting_dims = [1] x [0] : (tensor<8192x8192xf32>, " \
              "tensor<8192x8192xf32>) -> tensor<8192x8192xf32>"
    before = loop(body=f"%big = stablehlo.constant dense<1.0> : tensor<8192x8192xf32>\n%p = {product}")
    after, changed, said = peeled(before, ignore_cost=False)
    assert not changed and after.text() == before.text()
    assert said[0].startswith("unprofitable: its last iteration stays in the loop: 1 reduction of 32 bytes after it")
    assert peeled(before)[1]


def test_small_reductions_share_a_call_where_the_loop_stays() -> None:
    """Ready at once after the loop, eight of them cost what one does; so there is little to hide."""
    takes = [re.search(r"bytes after it take (\d+) us", said[0]) for _, _, said in (
        peeled(reductions(1, 8192), ignore_cost=False), peeled(reductions(8, 8192), ignore_cost=False))]
    assert takes[0] is not None and takes[1] is not None and takes[0][1] == takes[1][1]
    assert not peeled(reductions(8, 8192), ignore_cost=False)[1] and peeled(reductions(8, 8192))[1]


def test_the_share_that_is_hidden_counts() -> None:
    """Next to a short copy eight calls take longer than it; the part that is hidden is a part of the one call."""
    said = peeled(reductions(8, 2048), ignore_cost=False)[2]
    found = re.search(r"take (\d+) us, of which its copy hides (\d+) us", said[0])
    assert found is not None and 0 < int(found[2]) < int(found[1])


def reductions(count: int, width: int) -> Module:
    """As many reductions of 32 bytes after a loop, whose iterations take as long as a product of matrices."""
    big = f"tensor<{width}x{width}xf32>"
    one = loop(body=f"%big = stablehlo.constant dense<1.0> : {big}\n%p = stablehlo.dot_general %big, %big, "
                    f"contracting_dims = [1] x [0] : ({big}, {big}) -> {big}").text()
    end = re.search(r"\n *return (%\d+)", one)
    assert end is not None
    more = range(count - 1)
    lines = [m.reduce(f"%s{number}", f"%t{number}", T) for number in more]
    adds = [f"%t{number} = stablehlo.add %0#1, %0#1 : {T}" for number in more]
    sums = [f"%u{number + 1} = stablehlo.add {f'%u{number}' if number else end[1]}, %s{number} : {T}"
            for number in more]
    returned = f"return {f'%u{count - 1}' if count > 1 else end[1]}"
    return parse(one.replace(end[0], "\n".join(["", *adds, *lines, *sums, returned])))


def test_collectives_of_the_copy_have_channels_of_their_own() -> None:
    """One handle for each channel of the body: what is paired in the body is paired in the copy."""
    before = loop(body=m.reduce("%p", "%acc", T) + "\n" + m.reduce("%q", "%x", T))
    after, changed, _ = peeled(before)
    handles = [int(found) for found in re.findall(r"handle = (\d+)", after.text())]
    assert changed and sorted(handles) == [1, 1, 1, 2, 2]
    assert check(before, after).equal


def test_loops_inside_the_copy_are_left_alone() -> None:
    """They are outermost loops now, and were inner ones."""
    inner = f"""%z = stablehlo.constant dense<0> : tensor<i32>
    %lay:2 = stablehlo.while(%l = %z, %h = %x) : tensor<i32>, {T}
    cond {{
      %go = stablehlo.compare LT, %l, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    }} do {{
      %hh = stablehlo.add %h, %h : {T}
      %ll = stablehlo.add %l, %step : tensor<i32>
      stablehlo.return %ll, %hh : tensor<i32>, {T}
    }}"""
    before = parse(loop(body=inner).text().replace("multiply %arg0,", "multiply %2#1,"))
    after, changed, _ = peeled(before)
    assert changed and after.text().count(PEELED) == 2 and check(before, after).equal
    assert not peeled(after)[1]


@pytest.mark.parametrize(("old", "new"), [
    ("dense<3> : tensor<i32>", "dense<2> : tensor<i32>"), ("dense<3> : tensor<i32>", "dense<4> : tensor<i32>"),
    ("stablehlo.convert %1#0", "stablehlo.convert %c"), ("stablehlo.add %1#1", "stablehlo.add %cst"),
], ids=["one-less", "one-more", "first-instead-of-last", "forgets-the-loop"])
def test_the_validator_sees_wrong_copies(old: str, new: str) -> None:
    before = loop()
    after = peeled(before)[0].text()
    assert old in after, after
    wrong = parse(after.replace(old, new))
    assert not isinstance(validate(before, wrong), Proved)
    assert not check(before, wrong).equal
