"""Partners that share an operand: an index finds those that a search of all pairs finds."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.rules.apply.driver import apply_rules
from hlorewrite.rules.library import load, load_text
from hlorewrite.rules.listener import Recorder

T = "tensor<8xf32>"
PAIRS = str(Path(__file__).with_name("pairs.hlopat"))
GROUPS = ("dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>")


def reduction(name: str, operand: str, kind: str, groups: str, channel: int) -> str:
    return (f'{name} = "stablehlo.all_reduce"({operand}) <{{channel_handle = #stablehlo.channel_handle<'
            f"handle = {channel}, type = 1>, replica_groups = {groups}, use_global_device_ids}}> ({{\n"
            "^bb0(%left: tensor<f32>, %right: tensor<f32>):\n"
            f"  %s = stablehlo.{kind} %left, %right : tensor<f32>\n  stablehlo.return %s : tensor<f32>\n"
            f"}}) : ({T}) -> {T}\n")


def program(seed: int, count: int) -> Module:
    """All-reduces of two values, in a function and in branches within it; some are alike."""
    random_ = random.Random(seed)

    def block(prefix: str, depth: int) -> tuple[str, str]:
        text, last = "", "%x"
        for i in range(count if depth == 0 else 4):
            name = f"{prefix}{i}"
            if depth < 2 and random_.random() < 0.25:
                branches = [block(f"{name}_{side}_", depth + 1) for side in "ab"]
                inner = "}, {\n".join(f"{body}stablehlo.return {end} : {T}\n" for body, end in branches)
                text += f'{name} = "stablehlo.if"(%which) ({{\n{inner}}}) : (tensor<i1>) -> {T}\n'
            else:
                text += reduction(name, random_.choice(["%x", "%y"]), random_.choice(["add", "maximum"]),
                                  random_.choice(GROUPS), random_.randint(1, 3))
            text += f"{name}_p = stablehlo.multiply {last}, {name} : {T}\n"
            last = f"{name}_p"
        return text, last
    body, last = block("%v", 0)
    return parse("module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
                 f"func.func @main(%x: {T}, %y: {T}, %which: tensor<i1>) -> {T} {{\n{body}return {last} : {T}\n}}\n}}")


@pytest.mark.parametrize("seed", range(25))
def test_the_index_finds_what_all_pairs_do(seed: int) -> None:
    """A run that says why pairs do not match tries all of them; the result is the same."""
    rules = load(PAIRS).rules
    texts, counts = [], []
    for wants_missed in (False, True):
        module = program(seed, 12)
        counts.append(apply_rules(rules, View(module), listener=Recorder(wants_missed=wants_missed)))
        assert not module.verify()
        texts.append(module.text())
    assert texts[0] == texts[1] and counts[0] == counts[1]


def test_equal_collectives_become_one() -> None:
    """More readers than are tried again at once: the first stays, and those of another kind."""
    body = "".join(reduction(f"%r{i}", "%x", "add" if i % 2 else "maximum", GROUPS[0], i + 1)
                   + f"%p{i} = stablehlo.multiply {f'%p{i - 1}' if i else '%x'}, %r{i} : {T}\n" for i in range(200))
    module = parse("module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {\n"
                   f"func.func @main(%x: {T}) -> {T} {{\n{body}return %p199 : {T}\n}}\n}}")
    apply_rules(load(PAIRS).rules, View(module), listener=Recorder())
    assert module.text().count("stablehlo.all_reduce") == 2


def test_roots_that_are_put_off_are_tried() -> None:
    """A change in place makes a rule hold for more readers than are tried again at once; nothing else touches them."""
    readers = "".join(f"%n{i} = stablehlo.negate %m : {T}\n"
                      f"%p{i} = stablehlo.add {f'%p{i - 1}' if i else '%x'}, %n{i} : {T}\n" for i in range(100))
    module = parse(f"func.func @main(%x: {T}, %y: {T}) -> {T} {{\n%m = stablehlo.subtract %x, %y : {T}\n"
                   f"{readers}return %p99 : {T}\n}}")
    rules = load_text("rule negated-zero { match { %m = stablehlo.subtract(%a, %a); root %n = stablehlo.negate(%m); } "
                      "types any; floats exact; rewrite { replace %n with %m; } }\n"
                      "rule zero recursive(0) { match { root %m = stablehlo.subtract(%a, %b); } types any; "
                      "floats exact; rewrite { set %m[0] = %b; } }").rules
    apply_rules(rules, View(module))
    assert module.text().count("stablehlo.negate") == 0
