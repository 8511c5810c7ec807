"""Collectives that a program starts and awaits by itself are counted and executed; what is unknown is named."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hlorewrite.checks.reference.program import execute
from hlorewrite.cli.lint import _note
from hlorewrite.cost.report.collectives import collectives_of
from hlorewrite.cost.report.report import build_report
from hlorewrite.errors import CannotExecute
from hlorewrite.ir.async_pairs import started_collective
from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.passmanager.base import PassContext
from hlorewrite.passmanager.manager import run_passes
from hlorewrite.passmanager.named import PIPELINES
from hlorewrite.passmanager.reports import RemarkSink
from hlorewrite.passmanager.spec import parse_pipeline
from hlorewrite.passmanager.trace.snapshot import snapshot
from hlorewrite.rules.dialects import op_names

HEAD = "module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {"
REDUCER = ("func.func private @sum(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> "
           "{ %0 = stablehlo.add %a, %b : tensor<f32> return %0 : tensor<f32> }")
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
GLOBAL = {"channel_id": 1, "use_global_device_ids": True}
ROWS = {"replica_groups": [[0, 1, 2, 3]]}
CALLS = {
    "all-gather": ({"all_gather_dimension": 0, **ROWS, **GLOBAL}, 16,
                   "all_gather_dim = 0 : i64, use_global_device_ids"),
    "all-reduce": ({**ROWS, **GLOBAL}, 4, "use_global_device_ids"),
    "reduce-scatter": ({"scatter_dimension": 0, "tiled": True, **ROWS, **GLOBAL}, 1,
                       "scatter_dimension = 0 : i64, use_global_device_ids"),
    "all-to-all": ({"split_dimension": 0, "concat_dimension": 0, "split_count": 4, **ROWS, "channel_id": 1}, 4,
                   "split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 4 : i64"),
    "collective-permute": ({"permutation": [[0, 1], [1, 2], [2, 3], [3, 0]], "channel_id": 1}, 4, ""),
}
"""By kind: the configuration as JAX 0.12 writes it, elements of the result, and attributes of the op."""
REDUCING = ("all-reduce", "reduce-scatter")
GIVEN = [[np.arange(4, dtype=np.float32) + 10 * device] for device in range(4)]
needs_0_12 = pytest.mark.skipif("stablehlo.collective_reduce" not in op_names("stablehlo"), reason="of jaxlib 0.12")


def started(kind: str, config: str | None = None) -> Module:
    written, length, _ = CALLS[kind]
    text = (config if config is not None else json.dumps(written)).replace('"', "\\22")
    called = ", called_computations = [@sum]" if kind in REDUCING else ""
    return parse(f'''{HEAD} {REDUCER if called else ""}
      func.func public @main(%x: tensor<4xf32>) -> tensor<{length}xf32> {{
        %0 = stablehlo.custom_call @"{kind}-start"(%x) {{backend_config = ""{called},
          mhlo.frontend_attributes = {{async_collective_config = "{text}"}}}} : (tensor<4xf32>) -> tensor<{length}xf32>
        %1 = stablehlo.custom_call @"{kind}-done"(%0) : (tensor<{length}xf32>) -> tensor<{length}xf32>
        return %1 : tensor<{length}xf32> }} }}''', name="m")


def at_once(kind: str) -> Module:
    written, length, attributes = CALLS[kind]
    groups = (f"source_target_pairs = dense<{written['permutation']}> : tensor<4x2xi64>" if "permutation" in written
              else "replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>")
    body = ("({^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32> "
            "stablehlo.return %s : tensor<f32>})" if kind in REDUCING else "")
    listed = ", ".join(filter(None, (groups, CHANNEL, attributes)))
    return parse(f'''{HEAD} func.func public @main(%x: tensor<4xf32>) -> tensor<{length}xf32> {{
        %0 = "stablehlo.{kind.replace("-", "_")}"(%x) <{{{listed}}}> {body} : (tensor<4xf32>) -> tensor<{length}xf32>
        return %0 : tensor<{length}xf32> }} }}''', name="m")


@pytest.mark.parametrize("kind", CALLS)
def test_custom_calls_count_as_the_collective_and_compute_it(kind: str) -> None:
    (devices, [what], said), (_, [expected], _) = (collectives_of(make(kind)) for make in (started, at_once))
    assert (devices, said) == (4, [])
    assert (what.kind, what.groups, what.payload_bytes) == (kind, expected.groups, expected.payload_bytes)
    pairs = zip(execute(started(kind), GIVEN), execute(at_once(kind), GIVEN), strict=True)
    assert all(np.array_equal(mine, other) for made, wanted in pairs for mine, other in zip(made, wanted, strict=True))


@pytest.mark.parametrize("config", ["", "{", "[]", "{}", '{"replica_groups": [[0, 1], [2]]}',
                                    '{"replica_groups": [[0, 1.5]]}', '{"replica_groups": [[0, 1, 2, 3]]}'])
def test_a_configuration_that_cannot_be_read_is_named(config: str) -> None:
    """The last one lacks the dimension."""
    _, found, said = collectives_of(started("all-gather", config))
    assert not found and len(said) == 1
    assert '"all-gather-start" has no async_collective_config that can be read' in said[0]
    with pytest.raises(CannotExecute, match="all-gather-start"):
        execute(started("all-gather", config), GIVEN)


def test_the_page_and_lint_see_them_and_passes_leave_them() -> None:
    module = started("all-reduce")
    before = module.text()
    sink = RemarkSink()
    run_passes(module, parse_pipeline(PIPELINES["comm"]), PassContext((sink,)))
    assert module.text() == before
    assert any("the all-reduce stays: the program starts and awaits it by itself" in str(remark)
               for remark in sink.remarks)
    assert [line.what.kind for line in snapshot(module.clone(), "").report.lines] == ["all-reduce"]
    assert not collectives_of(parse(HEAD + "}", name="m"))[1]
    assert started_collective(View(module).ops("stablehlo.custom_call")[0]) is not None


@pytest.mark.parametrize("text, named", [
    ('%r = stablehlo.custom_call @mine(%x) {mhlo.frontend_attributes = {c = "replica_groups=[[0,1]]"}} : ', "mine"),
    ("%r = stablehlo.custom_call @mine(%x) {mhlo.backend_config = {replica_groups = dense<[[0, 1]]> : "
     "tensor<1x2xi64>}} : ", "mine"),
    ('%r = "stablehlo.cholesky"(%x) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : ', "stablehlo.cholesky")])
def test_what_communicates_in_an_unknown_form_is_named(text: str, named: str) -> None:
    module = parse(f"{HEAD} func.func public @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {{ {text}"
                   "(tensor<4x4xf32>) -> tensor<4x4xf32> return %r : tensor<4x4xf32> } }", name="m")
    assert named in _note(View(module))
    devices, found, said = collectives_of(module)
    report = build_report("m", "stablehlo", devices, found, remarks=said)
    assert not found and any(named in line and "is left out" in line for line in report.remarks)
    assert not any("contains no collective" in line for line in report.remarks)


FUTURE = f"""{HEAD} func.func public @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<16xf32> {{
  %f = "stablehlo.async_start"(%x) ({{ ^bb0(%a: tensor<4xf32>):
    %g = "stablehlo.all_gather"(%a) <{{all_gather_dim = 0 : i64, use_global_device_ids, {CHANNEL},
      replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}}> : (tensor<4xf32>) -> tensor<16xf32>
    stablehlo.return %g : tensor<16xf32>
  }}) : (tensor<4xf32>) -> !stablehlo.future<tensor<16xf32>>
  %d = "stablehlo.async_done"(%f) : (!stablehlo.future<tensor<16xf32>>) -> tensor<16xf32>
  return %d : tensor<16xf32> }} }}"""


@needs_0_12
def test_futures_count_as_what_they_run() -> None:
    module = parse(FUTURE, name="m")
    assert [each.kind for each in collectives_of(module.clone())[1]] == ["all-gather"]
    results = execute(module, [given * 2 for given in GIVEN])
    assert all(np.array_equal(row[0], np.concatenate(GIVEN, axis=None)) for row in results)


@needs_0_12
def test_a_reduction_to_one_member_is_counted_and_not_executed() -> None:
    module = parse(f'''{HEAD} func.func public @main(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %r = "stablehlo.collective_reduce"(%x) <{{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, {CHANNEL},
        use_global_device_ids}}> ({{^bb0(%a: tensor<f32>, %b: tensor<f32>): %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>}}) : (tensor<4xf32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }} }}''', name="m")
    [what] = collectives_of(module.clone())[1]
    assert (what.kind, what.payload_bytes, len(what.groups[0])) == ("collective-reduce", 16, 4)
    with pytest.raises(CannotExecute, match=r"cannot run stablehlo\.collective_reduce"):
        execute(module, GIVEN)


@needs_0_12
def test_the_index_of_a_root_is_no_payload() -> None:
    module = parse(f'''{HEAD} func.func public @main(%x: tensor<4xf32>, %i: tensor<1xi32>) -> tensor<4xf32> {{
      %r = "stablehlo.collective_broadcast"(%x, %i) {{replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>,
        {CHANNEL}, has_dynamic_root}} : (tensor<4xf32>, tensor<1xi32>) -> tensor<4xf32>
      return %r : tensor<4xf32> }} }}''', name="m")
    assert [what.payload_bytes for what in collectives_of(module)[1]] == [16]
