// RUN: %hlorewrite opt %s --pass=tokens-to-experts --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=tokens-to-experts --split-input-file --remarks=applied,missed --verify-diagnostics -o %t.out

// Slots of tokens are sharded by batch, weights by expert. XLA would gather the weights on every device.
// CHECK-LABEL: func.func @main
// CHECK: sdy.sharding_constraint %{{.*}} <@mesh, [{"x"}, {}, {}, {}]> : tensor<4x8x4x2xf32>
// CHECK: sdy.sharding_constraint %{{.*}} <@mesh, [{"x"}, {}, {}, {}]> : tensor<4x4x2x16xf32>
// CHECK: sdy.sharding_constraint %{{.*}} <@mesh, [{"x"}, {}, {}, {}]> : tensor<4x4x2x64xf32>
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%mask: tensor<4x8x4x2xf32>, %tokens: tensor<4x8x16xf32>, %w: tensor<4x16x64xf32>) -> tensor<4x8x64xf32> {
    %kept = sdy.sharding_constraint %mask <@mesh, [{"x"}, {}, {}, {}]> : tensor<4x8x4x2xf32>
    %made = stablehlo.dot_general %kept, %tokens, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x8x4x2xf32>, tensor<4x8x16xf32>) -> tensor<4x4x2x16xf32>
    %slots = stablehlo.transpose %made, dims = [1, 0, 2, 3] : (tensor<4x4x2x16xf32>) -> tensor<4x4x2x16xf32>
    %sent = sdy.sharding_constraint %slots <@mesh, [{}, {"x"}, {}, {}]> : tensor<4x4x2x16xf32>
    %weight = sdy.sharding_constraint %w <@mesh, [{"x"}, {}, {}]> : tensor<4x16x64xf32>
    // expected-remark@+1 {{tokens go to the devices that hold their experts (2.5 KiB a device)}}
    %up = stablehlo.dot_general %sent, %weight, batching_dims = [0] x [0], contracting_dims = [3] x [1] : (tensor<4x4x2x16xf32>, tensor<4x16x64xf32>) -> tensor<4x4x2x64xf32>
    %done = sdy.sharding_constraint %up <@mesh, [{}, {"x"}, {}, {}]> : tensor<4x4x2x64xf32>
    %out = stablehlo.dot_general %kept, %done, batching_dims = [0] x [1], contracting_dims = [3, 2] x [2, 0] : (tensor<4x8x4x2xf32>, tensor<4x4x2x64xf32>) -> tensor<4x8x64xf32>
    return %out : tensor<4x8x64xf32>
  }
}

// -----

// The weight is computed in the step, so it may be sharded otherwise where it is made.
// CHECK-LABEL: func.func @main
// CHECK: sdy.sharding_constraint %arg0 <@mesh, [{}, {"x"}, {}, {}]>
module {
  sdy.mesh @mesh = <["x"=4]>
  func.func @main(%slots: tensor<4x4x2x16xf32>, %w: tensor<4x16x64xf32>) -> tensor<4x4x2x64xf32> {
    %sent = sdy.sharding_constraint %slots <@mesh, [{}, {"x"}, {}, {}]> : tensor<4x4x2x16xf32>
    %computed = stablehlo.tanh %w : tensor<4x16x64xf32>
    %weight = sdy.sharding_constraint %computed <@mesh, [{"x"}, {}, {}]> : tensor<4x16x64xf32>
    %up = stablehlo.dot_general %sent, %weight, batching_dims = [0] x [0], contracting_dims = [3] x [1] : (tensor<4x4x2x16xf32>, tensor<4x16x64xf32>) -> tensor<4x4x2x64xf32>
    return %up : tensor<4x4x2x64xf32>
  }
}
