// RUN: %hlorewrite opt %s --pass=sink-waits --topology=h200:1x4 --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=sink-waits --topology=h200:1x4 --split-input-file --remarks=applied,missed --verify-diagnostics -o %t.out

// A stage receives the gradient of the next one and recomputes its own forward pass. The barrier of jax.checkpoint makes
// the forward pass wait for the gradient; divided, the gradient is on its way while the forward pass is recomputed.
// CHECK-LABEL: func.func @main
// CHECK: %[[KEPT:.+]] = stablehlo.optimization_barrier %arg1
// CHECK: %[[SENT:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: %[[AGAIN:.+]] = stablehlo.dot_general %[[KEPT]], %[[KEPT]]
// CHECK: %[[HELD:.+]]:2 = stablehlo.optimization_barrier %[[AGAIN]], %[[SENT]]
// CHECK: %[[GRADIENT:.+]] = stablehlo.optimization_barrier %[[HELD]]#1
// CHECK: stablehlo.dot_general %[[GRADIENT]], %[[HELD]]#0
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%gradient: tensor<8x8xf32>, %saved: tensor<8x8xf32>) -> tensor<8x8xf32> {
    // expected-remark@+1 {{compute waits for it only after a dot_general of}}
    %sent = "stablehlo.collective_permute"(%gradient) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %tied:2 = stablehlo.optimization_barrier %sent, %saved : tensor<8x8xf32>, tensor<8x8xf32>
    %again = stablehlo.dot_general %tied#1, %tied#1, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %back = stablehlo.dot_general %tied#0, %again, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %back : tensor<8x8xf32>
  }
}

// -----

// All compute needs what is sent: nothing could hide it.
// CHECK-LABEL: func.func public @needed
// CHECK-NOT: optimization_barrier
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @needed(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
    // expected-remark@+1 {{it stays as it is: no separate kernel runs during its}}
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %y = stablehlo.dot_general %sent, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %y : tensor<8x8xf32>
  }
}
