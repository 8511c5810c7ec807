"""Steps that XLA alone miscompiles are known by their form, and by the release of XLA."""

from __future__ import annotations

import pytest
from loop_texts import eight_times

from hlorewrite.ir.load import parse
from hlorewrite.ir.module import Module
from hlorewrite.ir.view import View
from hlorewrite.jaxbridge.choose.miscompile_policy import adds_scatters_up, miscompiled, reduces_in_a_loop

SCATTER = '''"stablehlo.scatter"({into}, %at, %new) ({{
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %o = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %o : tensor<f32>
      }}) {{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}} :
      (tensor<8xf32>, tensor<4x1xi32>, tensor<4xf32>) -> tensor<8xf32>'''
REDUCED = '''"stablehlo.all_reduce"(%d) ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %o = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %o : tensor<f32>
      }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1,
      type = 1>, use_global_device_ids} : (tensor<8xf32>) -> tensor<8xf32>'''


def function(body: str) -> Module:
    """A function that takes the total, as JAX writes the body of a scan."""
    return parse(f'''
func.func @main(%total: tensor<8xf32>, %at: tensor<4x1xi32>, %new: tensor<4xf32>) -> tensor<8xf32> {{
  %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
  {body}
  return %sum : tensor<8xf32>
}}''')


def looping(before: str, selected: str) -> Module:
    """A partitioned loop that scatters into what a select takes of its total, and reduces that."""
    body = f'''{selected}
      %d = {SCATTER.format(into="%kept")}
      %sum = {REDUCED}'''
    return parse(f'''
module attributes {{mhlo.num_partitions = 2 : i32}} {{
func.func @main(%start: tensor<8xf32>, %at: tensor<4x1xi32>, %new: tensor<4xf32>) -> tensor<8xf32> {{
  %first = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
  {before}
  {eight_times("%total", "%start", "tensor<8xf32>", body, "%sum")}
  return %loop#1 : tensor<8xf32>
}}
}}''')


DEVICE = '''%id = stablehlo.partition_id : tensor<ui32>
  %none = stablehlo.constant dense<0> : tensor<ui32>
  %is = stablehlo.compare EQ, %id, %none : (tensor<ui32>, tensor<ui32>) -> tensor<i1>'''
KEPT = "%kept = stablehlo.select %is, %total, %zero : tensor<i1>, tensor<8xf32>"


@pytest.mark.parametrize(("body", "likely"), [
    (f"%s = {SCATTER.format(into='%zero')} %sum = stablehlo.add %total, %s : tensor<8xf32>", True),
    (f"%s = {SCATTER.format(into='%zero')} %sum = stablehlo.add %s, %total : tensor<8xf32>", True),
    (f"%s = {SCATTER.format(into='%zero')} %c = stablehlo.convert %s : tensor<8xf32> "
     "%sum = stablehlo.add %c, %total : tensor<8xf32>", True),
    (f"%sum = {SCATTER.format(into='%total')}", True),
    # another gradient of the same table comes first, as where it is the output layer too
    (f"%s = {SCATTER.format(into='%zero')} %g = stablehlo.tanh %total : tensor<8xf32> "
     "%sum = stablehlo.add %g, %s : tensor<8xf32>", False),
    (f"%g = stablehlo.tanh %total : tensor<8xf32> %sum = {SCATTER.format(into='%g')}", False),
    ("%sum = stablehlo.add %total, %zero : tensor<8xf32>", False),
], ids=["added", "other side", "converted", "into the total", "not the total", "not zeros", "no scatter"])
def test_a_scatter_that_is_added_up_is_seen_before_the_partitioner_runs(body: str, likely: bool):
    assert adds_scatters_up(function(body)) == likely


def test_a_form_counts_for_the_releases_that_have_it():
    """XLA 0.12 compiles form X rightly, so its result is what a rewritten step is compared with."""
    module = looping(DEVICE, KEPT)
    assert miscompiled(module, (0, 10, 2)) and not miscompiled(module, (0, 12, 0))


def test_only_an_all_reduce_in_a_loop_can_be_moved():
    assert reduces_in_a_loop(View(looping(DEVICE, KEPT)))
    outside = function(f"%d = {SCATTER.format(into='%total')} %sum = {REDUCED}")
    assert not reduces_in_a_loop(View(outside)) and not miscompiled(outside, (0, 10, 2))


def test_an_all_reduce_of_a_function_may_be_in_a_loop():
    called = parse(f'''
func.func @main(%start: tensor<8xf32>, %more: tensor<i1>) -> tensor<8xf32> {{
  %loop = stablehlo.while(%total = %start) : tensor<8xf32>
    cond {{ stablehlo.return %more : tensor<i1> }} do {{
      %sum = func.call @reduced(%total) : (tensor<8xf32>) -> tensor<8xf32>
      stablehlo.return %sum : tensor<8xf32>
    }}
  return %loop : tensor<8xf32>
}}
func.func private @reduced(%d: tensor<8xf32>) -> tensor<8xf32> {{
  %sum = {REDUCED}
  return %sum : tensor<8xf32>
}}''')
    assert reduces_in_a_loop(View(called))
