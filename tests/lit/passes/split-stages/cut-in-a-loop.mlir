// A loop over four layers without marks is cut after its third one: three layers and their weights on the first mesh.
// RUN: %hlorewrite opt %s "--pass=split-stages{meshes=(2),(2) cuts=3}" --check=interp | %filecheck %s

module @step {
  sdy.mesh @mesh = <["data"=2]>

  // CHECK: func.func public @main(%[[W0:[a-z0-9]+]]: !mpmd.mesh_tensor<"m0", tensor<3x8x8xf32>, {{.*}} {hlorewrite.rows = array<i64: 0, 0, 3>, jax.buffer_donor = true}
  // CHECK-SAME: %[[W1:[a-z0-9]+]]: !mpmd.mesh_tensor<"m1", tensor<1x8x8xf32>, {{.*}} {hlorewrite.rows = array<i64: 0, 3, 4>, jax.buffer_donor = true}
  // CHECK-NOT: tensor<4x8x8xf32>
  // CHECK-LABEL: func.func private @microbatch
  // CHECK: mpmd.transfer {{.*}}"m0", tensor<4x8xf32>
  // CHECK-LABEL: func.func private @forward_0
  // CHECK: stablehlo.while
  // CHECK: dense<3> : tensor<i32>
  // CHECK-NOT: hlorewrite.op_number

  func.func public @main(%w: tensor<4x8x8xf32> {jax.buffer_donor = true}, %x: tensor<4x4x8xf32>) -> (tensor<4x8x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %r:4 = stablehlo.while(%k = %start, %weights = %w, %rows = %x, %l = %zero) : tensor<i32>, tensor<4x8x8xf32>, tensor<4x4x8xf32>, tensor<f32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %o = stablehlo.constant dense<0> : tensor<i32>
      %slice = stablehlo.dynamic_slice %rows, %k, %o, %o, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
      %part = stablehlo.reshape %slice : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
      %layers:3 = stablehlo.while(%i = %o, %ws = %weights, %h = %part) : tensor<i32>, tensor<4x8x8xf32>, tensor<4x8xf32>
      cond {
        %last = stablehlo.constant dense<4> : tensor<i32>
        %more = stablehlo.compare LT, %i, %last : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %z = stablehlo.constant dense<0> : tensor<i32>
        %one = stablehlo.dynamic_slice %ws, %i, %z, %z, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
        %wi = stablehlo.reshape %one : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
        %p = stablehlo.dot_general %h, %wi, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
        %t = stablehlo.tanh %p : tensor<4x8xf32>
        %step = stablehlo.constant dense<1> : tensor<i32>
        %j = stablehlo.add %i, %step : tensor<i32>
        stablehlo.return %j, %ws, %t : tensor<i32>, tensor<4x8x8xf32>, tensor<4x8xf32>
      }
      %f0 = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%layers#2 init: %f0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
      %sum = stablehlo.add %l, %loss : tensor<f32> loc("jit(step)/add"("step.py":1:1))
      %inc = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %inc : tensor<i32>
      stablehlo.return %next, %weights, %rows, %sum : tensor<i32>, tensor<4x8x8xf32>, tensor<4x4x8xf32>, tensor<f32>
    }
    %new = stablehlo.multiply %w, %w : tensor<4x8x8xf32>
    return %new, %r#3 : tensor<4x8x8xf32>, tensor<f32>
  }
}
