"""Uniformity: every source of difference, and everything that ends or hands it on."""

from __future__ import annotations

import pytest
from spmd_helpers import CHANNEL, marked, module, rows

from hlorewrite.analysis.groups import Groups
from hlorewrite.analysis.uniform import Uniformity

V = "tensor<4xf32>"
N = "tensor<i32>"
ALL, PAIRS, ACROSS = rows((0, 1, 2, 3)), rows((0, 1), (2, 3)), rows((0, 2), (1, 3))
GRID = '<["x"=2, "y"=2]>'


def reason(text: str, groups: Groups = ALL, name: str = "v", partitions: int = 4, replicas: int = 1) -> str | None:
    """Why the marked value varies; None when it is uniform."""
    view = module(text, partitions, replicas)
    varying = Uniformity(view, groups).varying(marked(view, name))
    return None if varying is None else varying.sentence


def manual(body: str, sharding: str = "[{}]", mesh: str = GRID, more: str = "") -> str:
    """A manual region over both axes of a mesh with one input, ``%a``, and one that is replicated, ``%r``."""
    shape = "tensor<16xf32>" if "," in sharding else "tensor<8xf32>" if '"' in sharding else V
    shape = V if "unreduced" in sharding or "replicated" in sharding else shape
    return f"""sdy.mesh @grid = {mesh}
      func.func @main(%g: {shape}, %h: {V}, %n: {N}) -> {V} {{
        %o = sdy.manual_computation(%g, %h, %n)
          in_shardings=[<@grid, {sharding}>, <@grid, [{{}}]>, <@grid, []>] out_shardings=[<@grid, [{{}}]>]
          manual_axes={{"x", "y"}} (%a: {V}, %r: {V}, %k: {N}) {{
          {body}
          sdy.return %a : {V}
        }} : ({shape}, {V}, {N}) -> {V}
        return %o : {V}
      }}
      {more}"""


READ = f"%v = stablehlo.negate %a {{test.v}} : {V}"


# ---- inputs of manual regions


@pytest.mark.parametrize(("sharding", "groups", "axes"), [
    ("[{}]", ALL, None), ("[{?}]", ALL, None),
    ('[{"x"}]', ALL, '"x"'), ('[{"x"}]', PAIRS, None), ('[{"x"}]', ACROSS, '"x"'),
    ('[{"y"}]', PAIRS, '"y"'), ('[{"y"}]', ACROSS, None), ('[{"x", "y"}]', PAIRS, '"x", "y"'),
    ('[{}], unreduced={"y"}', PAIRS, '"y"'), ('[{}], unreduced={"x"}', PAIRS, None),
    ('[{}], replicated={"y"}', PAIRS, None),
])
def test_inputs_of_a_manual_region(sharding: str, groups: Groups, axes: str | None) -> None:
    expected = None if axes is None else f"it is an input sharded over {axes}"
    assert reason(manual(READ, sharding), groups) == expected


def test_explicit_device_ids_say_who_holds_the_same() -> None:
    turned = '<["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>'
    assert reason(manual(READ, '[{"x"}]', turned), ACROSS) is None
    assert reason(manual(READ, '[{"x"}]', turned), PAIRS) == 'it is an input sharded over "x"'


def test_a_mesh_that_does_not_hold_the_devices_says_nothing() -> None:
    said = reason(manual(READ, mesh='<["x"=1, "y"=2]>'))
    assert said == "it is sharded over a mesh that does not contain these devices"


def test_groups_of_replicas_are_not_what_shardings_speak_of() -> None:
    of_replicas = rows((0, 1), mode="cross_replica")
    assert reason(manual(READ), of_replicas, replicas=2) == (
        "its groups count replicas, but shardings count partitions")
    both = rows((0, 1, 2, 3, 4, 5, 6, 7))
    assert "groups count replicas" in (reason(manual(READ), both, replicas=2) or "")


def nested(outer: str, inner: str, through_call: bool = False) -> str:
    """A region over ``y`` inside one over ``x``, written in place or after a call."""
    region = f"""sdy.manual_computation(%a) in_shardings=[<@grid, {inner}>] out_shardings=[<@grid, [{{}}]>]
        manual_axes={{"y"}} (%b: {V}) {{
        %v = stablehlo.negate %b {{test.v}} : {V}
        sdy.return %v : {V}
      }} : ({V if "y" not in inner else "tensor<8xf32>"}) -> {V}"""
    width = "tensor<8xf32>" if "y" in inner else V
    whole = {V: "tensor<8xf32>", "tensor<8xf32>": "tensor<16xf32>"}[width] if "x" in outer else width
    inside = f"%i = func.call @inner(%a) : ({width}) -> {V}" if through_call else f"%i = {region}"
    function = f"func.func private @inner(%a: {width}) -> {V} {{ %i = {region} return %i : {V} }}"
    return f"""sdy.mesh @grid = {GRID}
      func.func @main(%g: {whole}) -> {V} {{
        %o = sdy.manual_computation(%g) in_shardings=[<@grid, {outer}>] out_shardings=[<@grid, [{{}}]>]
          manual_axes={{"x"}} (%a: {width}) {{
          {inside}
          sdy.return %i : {V}
        }} : ({whole}) -> {V}
        return %o : {V}
      }}
      {function if through_call else ""}"""


@pytest.mark.parametrize("through_call", [False, True])
@pytest.mark.parametrize(("outer", "inner", "groups", "axis"), [
    ("[{}]", "[{}]", ALL, None), ('[{"x"}]', "[{}]", ACROSS, "x"), ('[{"x"}]', "[{}]", PAIRS, None),
    ("[{}]", '[{"y"}]', PAIRS, "y"), ("[{}]", '[{"y"}]', ACROSS, None), ('[{"x"}]', '[{"y"}]', ACROSS, "x")])
def test_nested_manual_regions(outer: str, inner: str, groups: Groups, axis: str | None, through_call: bool) -> None:
    expected = None if axis is None else f'it is an input sharded over "{axis}"'
    assert reason(nested(outer, inner, through_call), groups) == expected


# ---- functions


def test_arguments_of_main_follow_their_shardings() -> None:
    def argument(attributes: str) -> str | None:
        return reason(f"""sdy.mesh @grid = {GRID}
          func.func @main(%a: tensor<8xf32> {attributes}) {{
            %v = stablehlo.negate %a {{test.v}} : tensor<8xf32>
            return }}""", PAIRS)
    assert argument("") == "argument 0 of the function may differ between devices"
    assert argument('{mhlo.sharding = "{replicated}"}') is None
    assert argument('{mhlo.sharding = "{devices=[4]<=[4]}"}') is not None
    assert argument('{sdy.sharding = #sdy.sharding<@grid, [{"x"}]>}') is None
    assert argument('{sdy.sharding = #sdy.sharding<@grid, [{"y"}]>}') == 'it is an input sharded over "y"'


CALLED = f"""func.func private @f(%x: {V}, %y: {V}) -> ({V}, {V}) {{
      %v = stablehlo.negate %x {{test.v}} : {V}
      %w = stablehlo.negate %y {{test.w}} : {V}
      return %v, %w : {V}, {V} }}"""


def test_arguments_of_private_functions_follow_every_call() -> None:
    twice = f"""%c:2 = func.call @f(%r, %a) : ({V}, {V}) -> ({V}, {V})
      %d:2 = func.call @f(%r, %r) : ({V}, {V}) -> ({V}, {V})
      %p = stablehlo.negate %c#0 {{test.p}} : {V}
      %q = stablehlo.negate %c#1 {{test.q}} : {V}"""
    text = manual(twice, '[{"x"}]', more=CALLED)
    assert [reason(text, ALL, name) is None for name in "vwpq"] == [True, False, True, False]


def test_arguments_travel_through_several_functions() -> None:
    more = CALLED + f"""func.func private @g(%x: {V}) -> {V} {{
      %c:2 = func.call @f(%x, %x) : ({V}, {V}) -> ({V}, {V})
      return %c#0 : {V} }}"""
    for operand, uniform in (("%r", True), ("%a", False)):
        text = manual(f"%c = func.call @g({operand}) : ({V}) -> {V}", '[{"x"}]', more=more)
        assert (reason(text) is None) is uniform


def test_a_public_function_is_also_called_from_outside() -> None:
    call = f"%c:2 = func.call @f(%r, %r) : ({V}, {V}) -> ({V}, {V})"
    public = manual(call, more=CALLED.replace("private ", ""))
    assert reason(public) == "argument 0 of the function may differ between devices"
    assert reason(manual(call, more=CALLED)) is None


def test_recursion_and_functions_outside_the_module() -> None:
    endless = f"""func.func private @loop(%x: {V}) -> {V} {{
      %v = stablehlo.negate %x {{test.v}} : {V}
      %c = func.call @loop(%v) : ({V}) -> {V}
      return %c : {V} }}"""
    for operand, uniform in (("%r", True), ("%a", False)):
        text = manual(f"%c = func.call @loop({operand}) : ({V}) -> {V}", '[{"x"}]', more=endless)
        assert (reason(text) is None) is uniform
    text = manual(f"%c = func.call @far(%r) : ({V}) -> {V}\n%v = stablehlo.negate %c {{test.v}} : {V}",
                  more=f"func.func private @far(%x: {V}) -> {V}")
    assert reason(text) == "it is the result of a function outside the module"


# ---- loops and branches


def loop(first: str, following: str, bound: str = "%c3") -> str:
    """A loop with two carried values: the second starts at ``first`` and goes on with ``following``."""
    return f"""%zero = stablehlo.constant dense<0> : {N}
      %one = stablehlo.constant dense<1> : {N}
      %c3 = stablehlo.constant dense<3> : {N}
      %pid = stablehlo.partition_id : tensor<ui32>
      %me = stablehlo.convert %pid : (tensor<ui32>) -> {N}
      %l:3 = stablehlo.while(%i = %zero, %x = {first}, %y = %r) : {N}, {V}, {V}
      cond {{
        %p = stablehlo.compare LT, %i, {bound} : ({N}, {N}) -> tensor<i1>
        stablehlo.return %p : tensor<i1>
      }} do {{
        %v = stablehlo.negate %x {{test.v}} : {V}
        %s = stablehlo.add %v, %a : {V}
        %next = stablehlo.add %i, %one : {N}
        stablehlo.return %next, {following}, %x : {N}, {V}, {V}
      }}
      %w = stablehlo.negate %l#1 {{test.w}} : {V}
      %u = stablehlo.negate %l#2 {{test.u}} : {V}
      %t = stablehlo.add %l#0, %one {{test.t}} : {N}"""


@pytest.mark.parametrize(("first", "following", "bound", "uniform"), [
    ("%r", "%v", "%c3", True), ("%r", "%x", "%k", True), ("%r", "%s", "%c3", False), ("%a", "%v", "%c3", False),
    ("%r", "%v", "%me", False), ("%r", "%y", "%c3", True)])
def test_loops_are_fixpoints(first: str, following: str, bound: str, uniform: bool) -> None:
    text = manual(loop(first, following, bound), '[{"x"}]')
    assert [reason(text, ALL, name) is None for name in "vwu"] == [uniform] * 3
    assert (reason(text, ALL, "t") is None) is (bound != "%me")


def test_one_analysis_answers_the_same_in_any_order() -> None:
    for following in ("%v", "%s"):
        view = module(manual(loop("%r", following), '[{"x"}]'))
        fresh = [Uniformity(view, ALL).varying(marked(view, name)) is None for name in "vwut"]
        for order in ("vwut", "tuwv", "wtvu"):
            one = Uniformity(view, ALL)
            varying = {name: one.varying(marked(view, name)) is None for name in order}
            assert [varying[name] for name in "vwut"] == fresh


@pytest.mark.parametrize(("choice", "left", "right", "uniform"), [
    ("%go", "%r", "%two", True), ("%go", "%r", "%a", False), ("%mine", "%r", "%two", False)])
def test_branches(choice: str, left: str, right: str, uniform: bool) -> None:
    text = manual(f"""%zero = stablehlo.constant dense<0> : {N}
      %two = stablehlo.constant dense<2.0> : {V}
      %pid = stablehlo.partition_id : tensor<ui32>
      %me = stablehlo.convert %pid : (tensor<ui32>) -> {N}
      %mine = stablehlo.compare EQ, %me, %zero : ({N}, {N}) -> tensor<i1>
      %go = stablehlo.compare EQ, %k, %zero : ({N}, {N}) -> tensor<i1>
      %index = stablehlo.convert {choice} : (tensor<i1>) -> {N}
      %b = "stablehlo.if"({choice}) ({{ stablehlo.return {left} : {V} }}, {{ stablehlo.return {right} : {V} }})
        : (tensor<i1>) -> {V}
      %c = "stablehlo.case"(%index) ({{ stablehlo.return {left} : {V} }}, {{ stablehlo.return {right} : {V} }})
        : ({N}) -> {V}
      %v = stablehlo.negate %b {{test.v}} : {V}
      %w = stablehlo.negate %c {{test.w}} : {V}""", '[{"x"}]')
    assert [reason(text, ALL, name) is None for name in "vw"] == [uniform, uniform]


# ---- device ids


MINE = f"""%pid = stablehlo.partition_id : tensor<ui32>
  %me = stablehlo.convert %pid : (tensor<ui32>) -> {N}
  %c0 = stablehlo.constant dense<0> : {N}
  %c2 = stablehlo.constant dense<2> : {N}
  %table = stablehlo.constant dense<[7, 7, 9, 9]> : tensor<4xi32>
"""


@pytest.mark.parametrize(("line", "pairs", "across"), [
    (f"%v = stablehlo.add %me, %c2 {{test.v}} : {N}", False, False),
    (f"%v = stablehlo.divide %me, %c2 {{test.v}} : {N}", True, False),
    (f"%v = stablehlo.remainder %me, %c2 {{test.v}} : {N}", False, True),
    (f"%v = stablehlo.multiply %me, %c0 {{test.v}} : {N}", True, True),
    (f"%v = stablehlo.dynamic_slice %table, %me, sizes = [1] {{test.v}} : (tensor<4xi32>, {N}) -> tensor<1xi32>",
     True, False),
    (f"%q = stablehlo.compare LT, %me, %c2 : ({N}, {N}) -> tensor<i1>\n"
     f"%v = stablehlo.select %q, %a, %r {{test.v}} : tensor<i1>, {V}", True, False),
    (f"%q = stablehlo.divide %me, %c2 : {N}\n%w = stablehlo.add %q, %k : {N}\n"
     f"%v = stablehlo.dynamic_slice %r, %w, sizes = [1] {{test.v}} : ({V}, {N}) -> tensor<1xf32>", True, False),
    (f"%q = stablehlo.add %me, %k : {N}\n%v = stablehlo.divide %q, %c2 {{test.v}} : {N}", False, False)])
def test_expressions_of_the_device_id_are_evaluated(line: str, pairs: bool, across: bool) -> None:
    text = manual(MINE + line)
    assert (reason(text, PAIRS) is None, reason(text, ACROSS) is None) == (pairs, across)
    assert reason(text, rows((0,), (1,), (2,), (3,))) is None


def test_ids_are_sources_of_difference() -> None:
    def of(line: str, groups: Groups, replicas: int = 1) -> str | None:
        return reason(f"func.func @main() {{ {line} return }}", groups, replicas=replicas)
    partition = "%v = stablehlo.partition_id {test.v} : tensor<ui32>"
    replica = "%v = stablehlo.replica_id {test.v} : tensor<ui32>"
    assert of(partition, ALL) == "it is computed from the device's own id"
    assert of(replica, rows((0, 1), mode="cross_replica"), 2) == "it is the device's own id"
    assert of(partition, rows((0, 1, 2, 3, 4, 5, 6, 7)), 2) == "it is the device's own id"


# ---- collectives


def collective(name: str, operand: str, groups: str, more: str = "", result: str = V,
               channel: str = f"{CHANNEL}, use_global_device_ids", reducer: bool = False, mark: str = "v") -> str:
    body = (" ({^bb0(%p_: tensor<f32>, %q_: tensor<f32>): %s_ = stablehlo.add %p_, %q_ : tensor<f32> "
            "stablehlo.return %s_ : tensor<f32>})") if reducer else ""
    count = groups.count("[") - 1
    size = f"{count}x{(groups.count(',') + 1) // count}"
    return (f'%{mark} = "stablehlo.{name}"({operand}){body} {{test.{mark}, replica_groups = dense<{groups}> : '
            f"tensor<{size}xi64>, {channel}{more}}} : ({V}) -> {result}")


# Over the pairs (0 1) (2 3), of a value that differs along y, of one that differs along x, and of one that is the same.
@pytest.mark.parametrize(("groups", "of_y", "of_x"), [
    ("[[0, 1], [2, 3]]", True, True), ("[[0, 1, 2, 3]]", True, True), ("[[0, 2], [1, 3]]", False, True),
    ("[[0, 3], [1, 2]]", False, True), ("[[0], [1], [2], [3]]", False, True), ("[[2, 0], [1, 3]]", False, False)])
def test_what_all_reduces_make_uniform(groups: str, of_y: bool, of_x: bool) -> None:
    for sharding, uniform in (('[{"y"}]', of_y), ('[{"x"}]', of_x), ("[{}]", of_x)):
        text = manual(collective("all_reduce", "%a", groups, reducer=True), sharding)
        assert (reason(text, PAIRS) is None) is uniform
    assert reason(manual(collective("all_reduce", "%a", "[[0, 2], [3, 1]]", reducer=True)), PAIRS) == (
        "it comes from stablehlo.all_reduce over other groups")


def test_a_reduction_over_a_part_of_our_group_does_not_end_the_search() -> None:
    text = manual(collective("all_reduce", "%a", "[[0, 1], [2, 3]]", reducer=True), '[{"x", "y"}]')
    assert reason(text, PAIRS) is None
    assert reason(text, ALL) == 'it is an input sharded over "x", "y"'
    assert reason(manual(collective("all_reduce", "%r", "[[0, 1], [2, 3]]", reducer=True)), ALL) is None


def test_all_gather_reduce_scatter_all_to_all_and_broadcast() -> None:
    gather = ", all_gather_dim = 0 : i64"
    same, other = "[[0, 1], [2, 3]]", "[[0, 2], [1, 3]]"
    wide = "tensor<8xf32>"
    plain = CHANNEL
    for sharding, over_same, over_other in (('[{"y"}]', True, False), ("[{}]", True, True)):
        for groups, uniform in ((same, over_same), (other, over_other)):
            text = manual(collective("all_gather", "%a", groups, gather, wide), sharding)
            assert (reason(text, PAIRS) is None) is uniform
            text = manual(collective("collective_broadcast", "%a", groups, channel=plain), sharding)
            assert (reason(text, PAIRS) is None) is uniform
    half = ", scatter_dimension = 0 : i64"
    for groups, uniform in ((same, False), (other, True)):
        text = manual(collective("reduce_scatter", "%r", groups, half, "tensor<2xf32>", reducer=True))
        assert (reason(text, PAIRS) is None) is uniform
        exchange = ", split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64"
        text = manual(collective("all_to_all", "%r", groups, exchange, channel=plain))
        assert (reason(text, PAIRS) is None) is uniform


def test_collectives_that_count_devices_otherwise() -> None:
    by_replica = manual(collective("all_reduce", "%r", "[[0, 1]]", channel="test.x", reducer=True))
    assert "count devices in another way" in (reason(by_replica, ALL, replicas=2) or "")
    by_partition = manual(collective("all_reduce", "%a", "[[0, 1, 2, 3]]", reducer=True), '[{"x"}]')
    assert reason(by_partition, rows((0, 1, 2, 3), mode="cross_partition")) is None
    assert "count devices in another way" in (reason(by_partition, rows((0, 1, 2, 3), mode="cross_replica")) or "")
    of_replicas = f"func.func @main(%a: {V}) {{ " + collective(
        "all_reduce", "%a", "[[0, 1]]", channel="test.x", reducer=True) + " return }"
    assert reason(of_replicas, rows((0, 1), mode="cross_replica"), partitions=1, replicas=2) is None
    ill_formed = manual(collective("all_reduce", "%r", "[[0, 1], [2, -1]]", reducer=True))
    assert reason(ill_formed) == "it comes from a collective that is ill-formed: its replica groups are of uneven size"


def permute(operand: str, pairs: str, channel: str = CHANNEL) -> str:
    return (f'%v = "stablehlo.collective_permute"({operand}) {{test.v, source_target_pairs = dense<{pairs}> : '
            f"tensor<{pairs.count('[') - 1}x2xi64>, {channel}}} : ({V}) -> {V}")


@pytest.mark.parametrize(("pairs", "uniform"), [
    ("[[0, 2], [1, 3], [2, 0], [3, 1]]", True), ("[[0, 1], [1, 0], [2, 3], [3, 2]]", True),
    ("[[0, 3], [1, 2]]", True), ("[[0, 1], [1, 2], [2, 3], [3, 0]]", False), ("[[0, 1]]", False)])
def test_permutes_hand_on_what_is_uniform_when_members_get_the_same(pairs: str, uniform: bool) -> None:
    sentence = reason(manual(permute("%r", pairs)), PAIRS)
    assert sentence == (None if uniform else "it comes from a collective_permute that sends members different values")
    assert reason(manual(permute("%a", pairs), '[{"y"}]'), PAIRS) is not None
    assert (reason(manual(permute("%a", pairs), '[{"x"}]'), PAIRS) is None) is uniform


def test_permutes_that_count_devices_otherwise_are_refused() -> None:
    """Partitions swap in both replicas, and ids read as flat would speak of the first replica only."""
    text = (f"func.func @main() {{ %r = stablehlo.constant dense<1.0> : {V} {permute('%r', '[[0, 1], [2, 3]]')} "
            "return }")
    groups = rows((0, 2), (1, 3), (4, 5), (6, 7))
    assert "counts devices in another way" in (reason(text, groups, replicas=2) or "")


# ---- ops of which nothing is known, regions


@pytest.mark.parametrize(("line", "sentence"), [
    (f'%v = "stablehlo.rng"(%f0, %f1, %shape) {{test.v, rng_distribution = #stablehlo<rng_distribution UNIFORM>}} : '
     f"(tensor<f32>, tensor<f32>, tensor<1xi64>) -> {V}", "it is a random number generator with separate state"),
    (f'%v = stablehlo.custom_call @my_kernel(%r) {{test.v}} : ({V}) -> {V}', "custom call that may differ"),
    (f'%v = stablehlo.custom_call @Sharding(%r) {{test.v, has_side_effect = true}} : ({V}) -> {V}',
     "custom call that may differ"),
    (f'%v = stablehlo.custom_call @Sharding(%r) {{test.v}} : ({V}) -> {V}', None),
    (f'%v = stablehlo.custom_call @mhlo.erf(%r) {{test.v}} : ({V}) -> {V}', None),
    (f"%v = sdy.reshard %r <@grid, [{{}}]> {{test.v}} : {V}", None),
    (f"%v = chlo.erf %r {{test.v}} : {V} -> {V}", None),
    (f'%v = sdy.propagation_barrier %r allowed_direction=NONE {{test.v}} : {V}',
     "it is the result of sdy.propagation_barrier, an op that the analysis does not know"),
    (f"%s, %v0 = stablehlo.rng_bit_generator %state, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, "
     f"{V.replace('f32', 'ui32')})\n%v = stablehlo.negate %v0 {{test.v}} : {V.replace('f32', 'ui32')}", None),
])
def test_ops_of_other_kinds(line: str, sentence: str | None) -> None:
    constants = ("%f0 = stablehlo.constant dense<0.0> : tensor<f32>\n"
                 "%f1 = stablehlo.constant dense<1.0> : tensor<f32>\n"
                 "%shape = stablehlo.constant dense<4> : tensor<1xi64>\n"
                 "%state = stablehlo.constant dense<1> : tensor<2xui64>\n")
    why = reason(manual(constants + line))
    assert why is None if sentence is None else sentence in (why or "")


@pytest.mark.parametrize(("inside", "uniform"), [
    ("%z = stablehlo.add %x, %y : tensor<f32>", True), ("%z = stablehlo.multiply %x, %same : tensor<f32>", True),
    ("%z = stablehlo.multiply %x, %own : tensor<f32>", False),
    ("%pid = stablehlo.partition_id : tensor<ui32>\n"
     "%z = stablehlo.convert %pid : (tensor<ui32>) -> tensor<f32>", False),
    ("%z = func.call @id(%x) : (tensor<f32>) -> tensor<f32>", False)])
def test_regions_read_values_from_outside(inside: str, uniform: bool) -> None:
    text = manual(f"""%same = stablehlo.constant dense<2.0> : tensor<f32>
      %part = stablehlo.slice %a [0:1] : ({V}) -> tensor<1xf32>
      %own = stablehlo.reshape %part : (tensor<1xf32>) -> tensor<f32>
      %v = "stablehlo.map"(%r, %r) ({{^bb0(%x: tensor<f32>, %y: tensor<f32>):
        {inside}
        stablehlo.return %z : tensor<f32>}}) {{test.v, dimensions = array<i64: 0>}} : ({V}, {V}) -> {V}""", '[{"x"}]',
        more="func.func private @id(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }")
    assert (reason(text) is None) is uniform


def test_arguments_of_other_regions_vary() -> None:
    text = manual(f"""%zero = stablehlo.constant dense<0.0> : tensor<f32>
      %m = "stablehlo.map"(%r, %r) ({{^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %v = stablehlo.negate %x {{test.v}} : tensor<f32>
        stablehlo.return %v : tensor<f32>}}) {{dimensions = array<i64: 0>}} : ({V}, {V}) -> {V}""")
    assert reason(text) == "it is an argument inside stablehlo.map"


def test_the_culprit_is_the_op_at_the_source() -> None:
    view = module(manual(f"""%k1 = stablehlo.custom_call @my_kernel(%r) : ({V}) -> {V}
      %k2 = stablehlo.add %k1, %r : {V}
      %v = stablehlo.negate %k2 {{test.v}} : {V}"""))
    varying = Uniformity(view, ALL).varying(marked(view))
    assert varying is not None and varying.culprit is not None and varying.culprit.name == "stablehlo.custom_call"
