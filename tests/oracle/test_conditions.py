"""Every condition of the deferred-reduction analysis is needed: take it away, and some program goes wrong.

A mutation replaces one snippet of a module's source; the functions get the new code for the length of one test. A
snippet that no longer occurs exactly once fails the test: then the mutation must follow the source.
"""
# ruff: noqa: E501 (MLIR text and snippets of source)

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from generators.condition_mutations import Mutation, check_condition, mutate

from hlorewrite.checks.translation_validation.validate import validate
from hlorewrite.checks.translation_validation.verdict import Proved, Unknown
from hlorewrite.errors import HlorewriteError
from hlorewrite.ir.load import parse
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.spec import parse_pipeline

SCATTER, STAGE = "hlorewrite.passes.comm_shift.scatter_facts", "hlorewrite.passes.comm_shift.scatter"
DIMS = "hlorewrite.ops.dims"
FLOW, DEFERRAL = "hlorewrite.analysis.deferral_graph.builder", "hlorewrite.passes.comm_shift.deferral"
UNIFORM, GROUPS, REDUCERS = "hlorewrite.analysis.uniform", "hlorewrite.analysis.groups", "hlorewrite.ops.reducers"
F = "tensor<4xf32>"
WIDE = "tensor<4x1024xf32>"
COMPLEX = "tensor<4xcomplex<f32>>"


def accumulate(lines: str, of: str = "%f", init: str = "%zero", source: str = "%s", groups: str = "") -> str:
    """A loop that adds a value made from the reduced ``%g``."""
    rows = f", {groups}" if groups else ""
    return (f"      %l = LOOP 3 (%acc = {init} : {F}) {{\n        %g = AR<add{rows}>({source}) : {F}\n{lines}"
            f"        %new = stablehlo.add %acc, {of} : {F}\n      }} yield %new\n")


def scaled_by(lines: str, groups: str = "") -> str:
    """The accumulation of ``AR(s) * k``."""
    return lines + accumulate(f"        %f = stablehlo.multiply %g, %k : {F}\n", groups=groups)


def spread(scalar: str) -> str:
    """``%k``, a vector of a scalar."""
    return f"      %k = stablehlo.broadcast_in_dim {scalar}, dims = [] : (tensor<f32>) -> {F}\n"


BIG = f"      %w = stablehlo.broadcast_in_dim %s, dims = [0] : ({F}) -> {WIDE}\n      %g = AR<add>(%w) : {WIDE}\n"
FIRST_COLUMN = (f"          %col = stablehlo.slice %g [0:4, 0:1] : ({WIDE}) -> tensor<4x1xf32>\n"
                f"          %vec = stablehlo.reshape %col : (tensor<4x1xf32>) -> {F}\n"
                f"          %bent = stablehlo.tanh %vec : {F}\n")
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>"
ODD_GROUPS = "[[0, 4], [1, 6], [2, 5], [3, 7]]"
PAIRS = "[[0, 1], [2, 3], [4, 5], [6, 7]]"
CONDITION_READS = f"""\
      %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, {F}
      cond {{
        %three = stablehlo.constant dense<3> : tensor<i32>
        %more = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %ten = stablehlo.constant dense<10.0> : tensor<f32>
        %null = stablehlo.constant dense<0.0> : tensor<f32>
        %sq = stablehlo.multiply %acc, %acc : {F}
        %sum = stablehlo.reduce(%sq init: %null) applies stablehlo.add across dimensions = [0] : ({F}, tensor<f32>) -> tensor<f32>
        %small = stablehlo.compare LT, %sum, %ten : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %go = stablehlo.and %more, %small : tensor<i1>
        stablehlo.return %go : tensor<i1>
      }} do {{
        %g = AR<add>(%s) : {F}
        %new = stablehlo.add %acc, %g : {F}
        %next = stablehlo.add %i, %i1 : tensor<i32>
        stablehlo.return %next, %new : tensor<i32>, {F}
      }}
"""
CONDITION_IS_REDUCED = f"""\
      %on = stablehlo.constant dense<true> : tensor<i1>
      %l:3 = stablehlo.while(%unread = %on, %x = %zero, %i = %i0) : tensor<i1>, {F}, tensor<i32>
      cond {{
        %end = stablehlo.add %pid, %i1 : tensor<i32>
        %mine = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %any = AR<or>(%mine) : tensor<i1>
        stablehlo.return %any : tensor<i1>
      }} do {{
        %y = stablehlo.add %x, %one : {F}
        %j = stablehlo.add %i, %i1 : tensor<i32>
        stablehlo.return %on, %y, %j : tensor<i1>, {F}, tensor<i32>
      }}
      %other = AR<or>(%first) : tensor<i1>
      %out = stablehlo.select %other, %l#1, %zero : tensor<i1>, {F}
"""
MAPPED = ('      %k = "stablehlo.map"(%one) ({{\n      ^bb0(%x: tensor<f32>):\n{lines}'
          "        stablehlo.return %z : tensor<f32>\n      }}) {{dimensions = array<i64: 0>}} : "
          f"({F}) -> {F}\n")
IN_MAP = ("        %cell = stablehlo.slice %g [0:1, 0:1] : (tensor<4x1024xf32>) -> tensor<1x1xf32>\n"
          "        %y = stablehlo.reshape %cell : (tensor<1x1xf32>) -> tensor<f32>\n"
          "        %t = stablehlo.tanh %y : tensor<f32>\n        %z = stablehlo.add %x, %t : tensor<f32>\n")
PER_DEVICE = """module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%s: tensor<4xf32>, %k: tensor<4xf32>) -> tensor<4xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
""" + accumulate(f"        %f = stablehlo.multiply %g, %k : {F}\n") + f"      return %l#1 : {F}\n}}\n}}\n"


def ill_formed(groups: str, size: str, attributes: str = CHANNEL + ", use_global_device_ids", partitions: int = 2) -> str:
    """A per-device accumulation with an all-reduce of questionable attributes."""
    text = f"""module attributes {{mhlo.num_partitions = {partitions} : i32, mhlo.num_replicas = 1 : i32}} {{
func.func public @main(%s: {F}) -> {F} {{
      %zero = stablehlo.constant dense<0.0> : {F}
""" + accumulate("", "%g") + f"      return %l#1 : {F}\n}}\n}}\n"
    return text.replace("AR<add>(%s) : " + F, f"""\"stablehlo.all_reduce"(%s) <{{{attributes + ", " if attributes else ""}\
replica_groups = dense<{groups}> : tensor<{size}xi64>}}> ({{
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %w = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %w : tensor<f32>
      }}) : ({F}) -> {F}""")


def branches(first: str, second: str, predicate: str = "%few") -> str:
    """``%f``, one of two values."""
    return (f'        %f = "stablehlo.if"({predicate}) ({{\n{first}          stablehlo.return %t : {F}\n        }}, {{\n'
            f"{second}          stablehlo.return %t : {F}\n        }}) : (tensor<i1>) -> {F}\n")


def one_line(text: str) -> str:
    """A line in a branch that defines ``%t``."""
    return f"          %t = stablehlo.{text} : {F}\n"


MUTATIONS: dict[str, Mutation] = {
    # ---- flow.py
    "a loop around the reader runs equally often": Mutation(
        FLOW, "                reason, need = self._why_trips_vary(Loop(parent)),", "                continue\n                need =",
        BIG + f"      %l = LOOP %pid (%acc = %zero : {F}) {{\n{FIRST_COLUMN}"
        f"          %new = stablehlo.add %acc, %bent : {F}\n      }} yield %new\n", pipeline="comm-shift{expected}"),
    "a branch around the reader is taken alike": Mutation(
        FLOW, "                reason, need = self.context.varying(parent.operands[0]),", "                continue\n                need =",
        "      %g = AR<add>(%s) : " + F + "\n" + branches(one_line("tanh %g"), one_line("negate %zero"), "%first"), "%f"),
    "no reduction inside other regions": Mutation(
        FLOW, '                return ForcingUse(f"it is read inside a region of {parent.name}", parent, need="region")',
        "                continue", BIG + MAPPED.format(lines=IN_MAP), "%k"),
    "a loop it travels through runs equally often": Mutation(
        FLOW, "        reason = self._why_trips_vary(loop)\n", "        reason = None\n",
        accumulate(f"        %in = LOOP %pid (%x = %g : {F}) {{\n          %y = stablehlo.add %x, %x : {F}\n"
                   "        } yield %y\n", "%in#1")),
    "the loop's condition does not read it": Mutation(
        FLOW, "        if loop.tests(position):", "        if False:",
        CONDITION_READS),
    "it is not the condition itself": Mutation(
        FLOW, "            if block == Loop(parent).condition:", "            if False:", CONDITION_IS_REDUCED, "%out"),
    "the loop carries no token": Mutation(
        FLOW, "        if self._carries_token(op):", "        if False:", executed=False,
        whole=ill_formed("[[0, 1]]", "1x2").replace(f"= %zero : {F})", f"= %zero : {F}, %tok = %t0 : !stablehlo.token)")
        .replace("yield %new", "yield %new, %tok").replace(
            "      %zero", "      %t0 = stablehlo.create_token : !stablehlo.token\n      %zero", 1)),
    "a product of two candidates is linear in one": Mutation(
        FLOW, "        while rivals:", "        while False:",
        accumulate(f"        %h = AR<add>(%one) : {F}\n        %r = AR<add>(%s) : {F}\n"
                   f"        %f = stablehlo.multiply %g, %r : {F}\n")),
    # ---- deferral.py
    "the initial value is kept": Mutation(
        DEFERRAL, 'return IDENTITY if is_identity(value, self.kind) else ReplicatedAddend("value", value)', "return IDENTITY",
        accumulate("", "%g", "%one")),
    "what changes in a loop is carried": Mutation(
        DEFERRAL, "            in_loop = op.name == LOOP and self._changes_in_loop(op, position)",
        "            in_loop = False", accumulate(f"        %f = stablehlo.add %g, %s : {F}\n")),
    "what differs between branches is carried": Mutation(
        DEFERRAL, "        if any(part != parts[0] for part in parts):", "        if False:",
        accumulate(branches(one_line("add %g, %one"), one_line("add %g, %s")))),
    "what exists only in a branch is carried": Mutation(
        DEFERRAL, "        return parts[0].value is None or not _defined_inside(parts[0], op)", "        return True",
        accumulate(f'        %f = "stablehlo.case"(%n) ({{\n          %h = stablehlo.tanh %a : {F}\n'
                   f"          %t = stablehlo.add %g, %h : {F}\n          stablehlo.return %t : {F}\n"
                   f"        }}) : (tensor<i32>) -> {F}\n")),
    "a select forwards what both sides hold": Mutation(
        DEFERRAL, "len(others) == len(parts) and len(set(parts)) == 1", "True",
        accumulate(f"        %f = stablehlo.select %few, %one, %g : tensor<i1>, {F}\n")),
    "a difference forwards what it is taken from": Mutation(
        DEFERRAL, ' and parts[1] == IDENTITY)', ")", accumulate(f"        %f = stablehlo.subtract %g, %one : {F}\n")),
    # ---- linearity.py
    "only the identity is an identity": Mutation(
        REDUCERS, "    return number is not None and number == identity_number(kind, ir.RankedTensorType(value.type).element_type)",
        "    return number is not None",
        accumulate("", "%g", "%one")),
    "both parts of a complex identity are zero": Mutation(
        REDUCERS, "        return all(is_identity(part, kind) for part in op.operands)",
        "        return any(is_identity(part, kind) for part in op.operands)",
        f"      %c0 = stablehlo.complex %zero, %one : {COMPLEX}\n      %l = LOOP 3 (%acc = %c0 : {COMPLEX}) {{\n"
        f"        %g = AR<add>(%s) : {F}\n        %f = stablehlo.complex %g, %zero : {COMPLEX}\n"
        f"        %new = stablehlo.add %acc, %f : {COMPLEX}\n      }} yield %new\n"
        f"      %out = stablehlo.imag %l#1 : ({COMPLEX}) -> {F}\n", "%out"),
    # ---- groups.py
    "other groups are another reduction": Mutation(
        GROUPS, "return self.mode, frozenset(frozenset(row) for row in self.rows)", "return self.mode, frozenset()",
        accumulate(f"        %h = AR<add, [[0, 2], [1, 3]]>(%s) : {F}\n        %f = stablehlo.add %g, %h : {F}\n",
                   groups="[[0, 1], [2, 3]]"), mesh=(2, 2)),
    "groups are of even size": Mutation(
        GROUPS, "    if len({len(row) for row in groups.rows}) != 1:", "    if False:", executed=False,
        whole=ill_formed("[[0, 1], [2, -1]]", "2x2", partitions=3)),
    "groups cover all devices": Mutation(
        GROUPS, "    if len(members) != count:", "    if False:", executed=False,
        whole=ill_formed("[[0, 1]]", "1x2", partitions=4)),
    # ---- uniform.py
    "a device's id varies": Mutation(
        UNIFORM, '            return self._by_device(op, value) or Varying("it is the device\'s own id", op, by_id=True)',
        "            return []", scaled_by("      %own = stablehlo.convert %id : (tensor<ui32>) -> tensor<f32>\n"
                                           + spread("%own"))),
    "what is computed from the id is compared": Mutation(
        UNIFORM, "            if (table[place] != table[other]).any():", "            if False:",
        accumulate(f"        %f = stablehlo.select %first, %g, %zero : tensor<i1>, {F}\n")),
    "a sharded input varies": Mutation(
        UNIFORM, "    return all(len({places[device] for device in row}) == 1 for row in groups.rows)", "    return True",
        accumulate(f"        %f = stablehlo.multiply %g, %s : {F}\n")),
    "an argument of a per-device function varies": Mutation(
        UNIFORM, '        return Varying(f"argument {argument.arg_number} of the function may differ between devices", '
        "function)", "        return []", whole=PER_DEVICE),
    "an argument is what callers pass": Mutation(
        UNIFORM, "            return handed_in", "            return []",
        scaled_by(f"      %k = func.call @f(%s) : ({F}) -> {F}\n"),
        functions=f"  func.func private @f(%x: {F}) -> {F} {{\n    %y = stablehlo.add %x, %x : {F}\n"
                  f"    return %y : {F}\n  }}\n"),
    "how often a loop runs decides its results": Mutation(
        UNIFORM, "return [Loop(while_op).predicate, following, start]",
        "return [following, start]",
        f"      %t = LOOP %pid (%x = %one : {F}) {{\n        %y = stablehlo.add %x, %x : {F}\n      }} yield %y\n"
        + accumulate(f"        %f = stablehlo.multiply %g, %t#1 : {F}\n")),
    "what a loop carries on decides its results": Mutation(
        UNIFORM, "return [Loop(while_op).predicate, following, start]",
        "return [Loop(while_op).predicate, start]",
        f"      %t = LOOP 2 (%x = %one : {F}) {{\n        %y = stablehlo.add %x, %s : {F}\n      }} yield %y\n"
        + accumulate(f"        %f = stablehlo.multiply %g, %t#1 : {F}\n")),
    "what a loop starts from decides its results": Mutation(
        UNIFORM, "return [Loop(while_op).predicate, following, start]",
        "return [Loop(while_op).predicate, following]",
        f"      %t = LOOP 2 (%x = %s : {F}) {{\n        %y = stablehlo.add %x, %x : {F}\n      }} yield %y\n"
        + accumulate(f"        %f = stablehlo.multiply %g, %t#1 : {F}\n")),
    "which branch is taken decides its results": Mutation(
        UNIFORM, "return sources if decides is None else [decides, *sources]", "return sources",
        branches(one_line("add %one, %one"), one_line("negate %one"), "%first")
        + accumulate(f"        %h = stablehlo.multiply %g, %f : {F}\n", "%h")),
    "what a region reads from outside counts": Mutation(
        UNIFORM, "            sources += varying_ops.captured_values(op)", "            pass",
        scaled_by("      %p = stablehlo.slice %s [0:1] : (tensor<4xf32>) -> tensor<1xf32>\n"
                  "      %q = stablehlo.reshape %p : (tensor<1xf32>) -> tensor<f32>\n"
                  + MAPPED.format(lines="        %z = stablehlo.multiply %x, %q : tensor<f32>\n"))),
    "a reduction over other groups is not uniform": Mutation(
        UNIFORM, "                set(row) <= set(row_of.get(row[0], ())) for row in self.groups.rows):",
        "                True for row in self.groups.rows):",
        scaled_by(f"      %k = AR<maximum, [[0, 2], [1, 3]]>(%s) : {F}\n", "[[0, 1], [2, 3]]"), mesh=(2, 2)),
    "members keep their places in other groups": Mutation(
        UNIFORM, "                if by_place and partners.index(device) != reference.index(members[0]):",
        "                if False:",
        scaled_by(f'      %k0 = "stablehlo.reduce_scatter"(%a) <{{scatter_dimension = 0 : i64, {CHANNEL}, '
                  "use_global_device_ids, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n"
                  "      ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n        %w = stablehlo.add %p, %q : tensor<f32>\n"
                  f"        stablehlo.return %w : tensor<f32>\n      }}) : ({F}) -> tensor<2xf32>\n"
                  f"      %k = stablehlo.concatenate %k0, %k0, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> {F}\n")),
    "partners of members are equals": Mutation(
        UNIFORM, "                if any(self._row[a] != self._row[b] for a, b in zip(partners, reference, strict=True)):",
        "                if False:", scaled_by(f"      %k = AR<add, {ODD_GROUPS}>(%c) : {F}\n", PAIRS), mesh=(4, 2)),
    "a permute sends members the same": Mutation(
        UNIFORM, "            if len(rows) > 1 or None in rows:", "            if False:",
        scaled_by(f'      %k = "stablehlo.collective_permute"(%a) <{{{CHANNEL}, source_target_pairs = dense<[[0, 1]]> : '
                  f"tensor<1x2xi64>}}> : ({F}) -> {F}\n")),
    "a custom call may differ between devices": Mutation(
        UNIFORM, '        if op_name == "stablehlo.custom_call" and not (varying_ops.is_pure_custom_call(op)\n'
                 "                                                       or varying_ops.is_received(op)):",
        "        if False:",
        scaled_by(f'      %k = stablehlo.custom_call @mystery(%a) : ({F}) -> {F}\n'), executed=False),
    "random numbers with a hidden state vary": Mutation(
        UNIFORM, "        if op_name in varying_ops.VARYING_OPS:", "        if False:",
        scaled_by("      %r0 = stablehlo.constant dense<0.0> : tensor<f32>\n"
                  "      %r1 = stablehlo.constant dense<1.0> : tensor<f32>\n"
                  "      %sh = stablehlo.constant dense<4> : tensor<1xi64>\n"
                  "      %k = stablehlo.rng %r0, %r1, %sh, distribution = UNIFORM : (tensor<f32>, tensor<f32>, "
                  f"tensor<1xi64>) -> {F}\n"), executed=False),
}

ROOMY = "comm-shift{memory-budget=1GiB}"


def scattered(lines: str, of: str, kind: str, source: str = "%s", whole: str = F, part: str = "tensor<2xf32>",
              combine: str = "add", after: str = "", before: str = "") -> str:
    """A loop that adds a value made from ``%g``, the device's part of a sum; ``%out`` is made from the result."""
    return (f"{before}      %start = stablehlo.constant dense<0.0> : {kind}\n      %l = LOOP 3 (%acc = %start : {kind}) {{\n"
            f'        %g = "stablehlo.reduce_scatter"({source}) <{{scatter_dimension = 0 : i64, {CHANNEL}, '
            "use_global_device_ids, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({\n"
            f"        ^bb0(%p: tensor<f32>, %q: tensor<f32>):\n          %w = stablehlo.{combine} %p, %q : tensor<f32>\n"
            f"          stablehlo.return %w : tensor<f32>\n        }}) : ({whole}) -> {part}\n{lines}"
            f"        %new = stablehlo.add %acc, {of} : {kind}\n      }} yield %new\n{after}")


H, Q = "tensor<2xf32>", "tensor<2x2xf32>"
JOIN = f"      %out = stablehlo.concatenate %l#1, %l#1, dim = 0 : ({H}, {H}) -> {F}\n"
FLAT = f"      %out = stablehlo.reshape %l#1 : ({Q}) -> {F}\n"
TALL = "tensor<3x2xf32>"
TWELVE = (f"      %t = stablehlo.concatenate %s, %s, %a, dim = 0 : ({F}, {F}, {F}) -> tensor<12xf32>\n"
          "      %m = stablehlo.reshape %t : (tensor<12xf32>) -> tensor<2x6xf32>\n")
CORNER = (f"      %corner = stablehlo.slice %l#1 [0:2, 0:2] : ({TALL}) -> {Q}\n"
          f"      %out = stablehlo.reshape %corner : ({Q}) -> {F}\n")
RECTANGLE = f"      %m = stablehlo.broadcast_in_dim %s, dims = [0] : ({F}) -> tensor<4x2xf32>\n"
SCATTER_MUTATIONS = {
    "another operand is one number everywhere": Mutation(
        SCATTER, "            if not is_scalar(op.operands[other]) and splat_of(op.operands[other]) is None:",
        "            if False:", scattered(f"        %f = stablehlo.multiply %g, %k : {H}\n", "%f", H, after=JOIN, before=
        f"      %k = stablehlo.slice %a [0:2] : ({F}) -> {H}\n"), "%out", pipeline=ROOMY),
    "only what is known can be done before the scatter": Mutation(
        SCATTER, "        if op.name not in LIFTED | MOVES:", "        if False:",
        scattered(f"        %f = stablehlo.dot_general %g, %ones, contracting_dims = [0] x [0] : ({Q}, {Q}) -> {Q}\n", "%f",
                  Q, "%m", "tensor<4x2xf32>", Q, after=FLAT, before=RECTANGLE
                  + f"      %ones = stablehlo.constant dense<1.0> : {Q}\n"), "%out", pipeline=ROOMY),
    "rows are not reversed": Mutation(
        DIMS, '    if dimension in ints(op, "dimensions"):', "    if False:",
        scattered(f"        %f = stablehlo.reverse %g, dims = [0] : {H}\n", "%f", H, after=JOIN), "%out", pipeline=ROOMY),
    "a transpose moves the scattered dimension": Mutation(
        DIMS, "    return DimFactor((dimension,), order.index(dimension))",
        "    return DimFactor((dimension,), dimension)", scattered(f"        %f = stablehlo.transpose %g, dims = [1, 0] : ({Q}) -> {Q}\n", "%f",
                                                  Q, "%m", "tensor<4x2xf32>", Q, after=FLAT, before=RECTANGLE), "%out",
        pipeline=ROOMY),
    "a reshape keeps the scattered dimension whole": Mutation(
        DIMS, "        if same and math.prod(target[:place]) == before:", "        if same:", scattered(
            f"        %f = stablehlo.reshape %g : (tensor<2x3xf32>) -> {TALL}\n", "%f", TALL, "%m", "tensor<2x6xf32>",
            "tensor<2x3xf32>", after=CORNER, before=TWELVE).replace("scatter_dimension = 0", "scatter_dimension = 1"), "%out",
        pipeline=ROOMY),
    "an update covers the scattered dimension": Mutation(
        DIMS, "    if (position or 0) > 1 or shape_of(op.operands[0])[dimension] != shape_of(op.operands[1])[dimension]:",
        "    if (position or 0) > 1:", scattered(
            f"        %f = stablehlo.dynamic_update_slice %zero, %g, %i_l : ({F}, {H}, tensor<i32>) -> {F}\n", "%f", F),
        pipeline=ROOMY),
    "a slice takes the scattered dimension whole": Mutation(
        DIMS, "    if position or shape_of(op.operands[0])[dimension] != shape_of(op.results[0])[dimension]:",
        "    if position:", scattered(
            f"        %f = stablehlo.slice %g [0:1] : ({H}) -> tensor<1xf32>\n", "%f", "tensor<1xf32>", after=
            f"      %out = stablehlo.broadcast_in_dim %l#1, dims = [0] : (tensor<1xf32>) -> {F}\n"), "%out",
        pipeline=ROOMY),
    "tensors are put together along another dimension": Mutation(
        DIMS, '    if integer(op, "dimension") == dimension:', "    if False:",
        scattered(f"        %f = stablehlo.concatenate %g, %g, dim = 0 : ({H}, {H}) -> {F}\n", "%f", F), pipeline=ROOMY),
    "a pad leaves the scattered dimension": Mutation(
        DIMS, "    if position or any(ints(op, name)[dimension] for name in PADDING):", "    if position:", scattered(
            f"        %f = stablehlo.pad %g, %nil, low = [0], high = [0], interior = [2] : ({H}, tensor<f32>) -> {F}\n",
            "%f", F, before="      %nil = stablehlo.constant dense<0.0> : tensor<f32>\n"), pipeline=ROOMY),
    "only sums are deferred": Mutation(
        STAGE, 'if isinstance(groups, str) or reduction_kind(op) != "sum" or not', "if isinstance(groups, str) or not",
        scattered("", "%g", H, combine="maximum", after=JOIN), "%out", pipeline=ROOMY),
    "members keep their order": Mutation(
        STAGE, "            key = (groups.mode, groups.rows)", "            key = groups.key",
        scattered(scattered("", "%g", H).split("{\n", 1)[1].split("        %new")[0].replace("%g =", "%h =").replace(
            "[[0, 1]]", "[[1, 0]]") + f"        %f = stablehlo.add %g, %h : {H}\n", "%f", H, after=JOIN), "%out",
        pipeline=ROOMY),
}
MUTATIONS |= SCATTER_MUTATIONS


def known_wrong(name: str) -> str:
    """A program whose values version 0.1.0 changed (``test_known_wrong_values``)."""
    return (Path(__file__).resolve().parent / "wrong_in_0_1_0" / f"{name}.mlir").read_text("utf-8")


MUTATIONS |= {
    "a reducer works in the type of its operands": Mutation(
        "hlorewrite.ops.reducers", " or _promotes(op, block)", "", whole=known_wrong("promoting-reduce")),
    "groups that join all partitions are not read as rows of replicas": Mutation(
        GROUPS, 'if groups.mode != "cross_replica_and_partition" or partition_count(view) == 1:\n'
                '        return _misfit(op, groups.size) or groups\n', "if True:\n        return groups\n",
        whole=known_wrong("groups-join-partitions-scatter")),
    "equal collectives mean their ids alike": Mutation(
        "hlorewrite.passes.common.value_numbers", '("mode", id_mode(op))', '("mode", "")',
        whole=known_wrong("modes-of-equal-permutes"), pipeline="collective-cse"),
}

UNREACHABLE = {
    "flow.py, _through_yield: the branch taken is the same on all devices":
        "a reduction whose result a branch yields stands in that branch, where a predicate that differs would hang, or "
        "entered it, which _cannot_enter has refused",
    "flow.py, _targets: passed to a function, result of the program":
        "no linearity fact is about those ops; the tests give a better sentence, not another answer",
    "groups.py: groups name devices that exist":
        "the verifier wants every id below the highest, so such groups cover too many devices too, and are refused",
    "groups.py: a device twice in the groups, global device ids without a channel":
        "the verifier of StableHLO refuses such a module before any pass sees it (test_refused_by_the_verifier)",
    "linearity.py, is_identity: a convert keeps an identity for sums only":
        "maxima, minima, and, or are idempotent: what is taken for their identity stays in the local part, and may",
}
"""Conditions without an instance, and why there is none."""


@pytest.mark.parametrize("name", MUTATIONS)
def test_condition_is_needed(name: str, make_region: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the condition, the values stay; without it, they do not."""
    check_condition(MUTATIONS[name], make_region, monkeypatch)


UNSEEN = {"the loop carries no token": "the values are right: nothing else happens in this loop that would be ordered"}
"""Mutations after which the validator calls the result proved, and why."""


@pytest.mark.parametrize("name", MUTATIONS)
def test_validator_notices(name: str, make_region: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What a pass makes without the condition is not proved, also where the interpreter cannot be asked.

    The validator shares ``ops/dims.py`` with the passes and is asked with the right table; that a wrong table is noticed
    is tested in ``tests/unit/ops/test_dims.py``.
    """
    mutation = MUTATIONS[name]
    before = parse(mutation.text(make_region))
    after = before.clone()
    mutate(mutation, monkeypatch)
    try:
        run_passes(after, parse_pipeline(mutation.pipeline), PassContext())
    except HlorewriteError:
        return  # MLIR's verifier notices before
    if mutation.module == DIMS:
        monkeypatch.undo()
    assert isinstance(validate(before, after), Proved if name in UNSEEN else Unknown)


@pytest.mark.parametrize("groups, size, attributes, sentence", [
    ("[[0, 0]]", "1x2", CHANNEL + ", use_global_device_ids", "seen more than once"),
    ("[[0, 5]]", "1x2", CHANNEL + ", use_global_device_ids", "not seen in replica groups"),
    ("[[0, 1]]", "1x2", "use_global_device_ids", "channel_id must be positive"),
])
def test_refused_by_the_verifier(groups: str, size: str, attributes: str, sentence: str,
                                 make_region: Callable[..., str]) -> None:
    """What no pass has to think of, since such a module is not read."""
    with pytest.raises(HlorewriteError, match=sentence):
        parse(make_region.__globals__["expand"](ill_formed(groups, size, attributes)))
