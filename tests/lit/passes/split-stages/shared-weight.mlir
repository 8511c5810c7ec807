// One weight of two stages: an accumulator on each, added up once after the loop, or in every micro-batch.
// RUN: %hlorewrite opt %s "--pass=split-stages{meshes=(2),(2)}" --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s "--pass=split-stages{meshes=(2),(2) shared=every-micro-batch}" | %filecheck %s --check-prefix=EVERY

// CHECK-LABEL: func.func public @main
// CHECK: %[[W1:.+]] = mpmd.transfer %arg0
// CHECK: %[[R:.+]]:3 = mpmd.for
// CHECK: %[[SENT:.+]] = mpmd.transfer %[[R]]#{{.*}}"m1", tensor<8x8xf32>
// CHECK: @update_0({{.*}}%[[SENT]]
// CHECK-LABEL: func.func private @microbatch
// CHECK-NOT: mpmd.transfer {{.*}}tensor<8x8xf32>
// CHECK-LABEL: func.func private

// EVERY-LABEL: func.func public @main
// EVERY: %{{.+}}:2 = mpmd.for
// EVERY-NOT: mpmd.transfer
// EVERY-LABEL: func.func private @microbatch
// EVERY: mpmd.transfer {{.*}}tensor<8x8xf32>
module @step {
  sdy.mesh @mesh = <["data"=2]>


  func.func public @main(%w: tensor<8x8xf32>, %x: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>}) -> (tensor<8x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %r:3 = stablehlo.while(%k = %start, %a = %zeros, %l = %zero) : tensor<i32>, tensor<8x8xf32>, tensor<f32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %o = stablehlo.constant dense<0> : tensor<i32>
      %slice = stablehlo.dynamic_slice %x, %k, %o, %o, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
      %part = stablehlo.reshape %slice : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
      %p = stablehlo.dot_general %part, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %h = stablehlo.tanh %p : tensor<4x8xf32>
      %hs = stablehlo.composite "hlorewrite.stage" %h {composite_attributes = {backward = false, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %q = stablehlo.dot_general %hs, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %sq = stablehlo.multiply %q, %q : tensor<4x8xf32>
      %f0 = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%sq init: %f0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
      %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
      %dq = stablehlo.multiply %q, %two : tensor<4x8xf32>
      %g1 = stablehlo.dot_general %hs, %dq, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %dh = stablehlo.dot_general %dq, %w, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %dhs = stablehlo.composite "hlorewrite.stage" %dh {composite_attributes = {backward = true, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %hh = stablehlo.multiply %h, %h : tensor<4x8xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<4x8xf32>
      %s = stablehlo.subtract %ones, %hh : tensor<4x8xf32>
      %dp = stablehlo.multiply %dhs, %s : tensor<4x8xf32>
      %g0 = stablehlo.dot_general %part, %dp, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %g = stablehlo.add %g0, %g1 : tensor<8x8xf32>
      %n = stablehlo.add %a, %g : tensor<8x8xf32>
      %nl = stablehlo.add %l, %loss : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %n, %nl : tensor<i32>, tensor<8x8xf32>, tensor<f32>
    }
    %u = stablehlo.subtract %w, %r#1 : tensor<8x8xf32>
    return %u, %r#2 : tensor<8x8xf32>, tensor<f32>
  }
  func.func private @same(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }
}
