// h = tanh(x w0) on stage 0, loss = sum((h w1) * (h w1)) on stage 1, gradients summed over four micro-batches.
// RUN: %hlorewrite opt %s "--pass=split-stages{meshes=(2),(2) microbatches=4}" --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s "--pass=split-stages{meshes=(2),(2) schedule=zb-h1}" | %filecheck %s --check-prefix=HALVES

module @step {
  sdy.mesh @mesh = <["data"=2]>

  // Each mesh holds its own weights; the batch is where it is read.
  // CHECK: sdy.mesh @m0 = <["data"=2]>
  // CHECK: sdy.mesh @m1 = <["data"=2]>
  // CHECK: func.func public @main(%[[W0:[a-z0-9]+]]: !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>> {jax.buffer_donor = true}
  // CHECK-SAME: %[[W1:[a-z0-9]+]]: !mpmd.mesh_tensor<"m1", tensor<8x8xf32>
  // CHECK-SAME: %[[X:[a-z0-9]+]]: !mpmd.mesh_tensor<"m0", tensor<4x4x8xf32>, sharding=<@m0, [{}, {"data"}, {}]>>
  // CHECK-SAME: hlorewrite.schedule = "1f1b"
  // CHECK: mpmd.for {{.*}} {hlorewrite.sums = array<i1: true, true, true>, iterations = 4 : ui32}
  // CHECK: fragment_call<mesh="m0", origin=["update"]> @update_0
  // CHECK: fragment_call<mesh="m1", origin=["update"]> @update_1
  // CHECK-LABEL: func.func private @microbatch
  // CHECK: fragment_call<mesh="m0", origin=["forward"]> @forward_0
  // CHECK: mpmd.transfer {{.*}}"m0", tensor<4x8xf32>, sharding=<@m0, [{"data"}, {}]>>) -> !mpmd.mesh_tensor<"m1"
  // CHECK: fragment_call<mesh="m1", origin=["forward"]> @forward_1
  // CHECK: fragment_call<mesh="m1", origin=["backward"]> @backward_1
  // CHECK: mpmd.transfer {{.*}}"m1", tensor<4x8xf32>
  // CHECK: fragment_call<mesh="m0", origin=["backward"]> @backward_0
  // The slice of the batch is taken again where the backward needs it; the accumulator stays with its gradient.
  // CHECK-LABEL: func.func private @forward_0
  // CHECK: stablehlo.dynamic_slice
  // CHECK: stablehlo.tanh
  // CHECK-LABEL: func.func private @backward_0
  // CHECK-NOT: stablehlo.tanh
  // CHECK: stablehlo.add

  // HALVES-LABEL: func.func private @microbatch
  // HALVES: @input_gradient_1
  // HALVES: @input_gradient_0
  // HALVES: @weight_gradient_1
  // HALVES: @weight_gradient_0
  func.func public @main(%w0: tensor<8x8xf32> {jax.buffer_donor = true}, %w1: tensor<8x8xf32> {jax.buffer_donor = true}, %x: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %r:4 = stablehlo.while(%k = %start, %a0 = %zeros, %a1 = %zeros, %l = %zero) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %o = stablehlo.constant dense<0> : tensor<i32>
      %slice = stablehlo.dynamic_slice %x, %k, %o, %o, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
      %part = stablehlo.reshape %slice : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
      %p = stablehlo.dot_general %part, %w0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %h = stablehlo.tanh %p : tensor<4x8xf32>
      %hs = stablehlo.composite "hlorewrite.stage" %h {composite_attributes = {backward = false, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %q = stablehlo.dot_general %hs, %w1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %sq = stablehlo.multiply %q, %q : tensor<4x8xf32>
      %f0 = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%sq init: %f0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
      %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
      %dq = stablehlo.multiply %q, %two : tensor<4x8xf32>
      %g1 = stablehlo.dot_general %hs, %dq, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %dh = stablehlo.dot_general %dq, %w1, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %dhs = stablehlo.composite "hlorewrite.stage" %dh {composite_attributes = {backward = true, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %hh = stablehlo.multiply %h, %h : tensor<4x8xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<4x8xf32>
      %s = stablehlo.subtract %ones, %hh : tensor<4x8xf32>
      %dp = stablehlo.multiply %dhs, %s : tensor<4x8xf32>
      %g0 = stablehlo.dot_general %part, %dp, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %n0 = stablehlo.add %a0, %g0 : tensor<8x8xf32>
      %n1 = stablehlo.add %a1, %g1 : tensor<8x8xf32>
      %nl = stablehlo.add %l, %loss : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %n0, %n1, %nl : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    }
    %u0 = stablehlo.subtract %w0, %r#1 : tensor<8x8xf32>
    %u1 = stablehlo.subtract %w1, %r#2 : tensor<8x8xf32>
    return %u0, %u1, %r#3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
  }
  func.func private @same(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }
}
