// Collectives that no op reads are removed.
// RUN: %hlorewrite opt %s --pass=collective-cse --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=collective-cse --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[ADD:.+]] = stablehlo.add %arg0, %arg1
// CHECK: return %[[ADD]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    // expected-remark@+1 {{collective-cse: no op reads it: it is removed}}
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %total = stablehlo.add %x, %y : tensor<4xf32>
    return %total : tensor<4xf32>
  }
}

// -----

// It stays away: its result is read.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: return %[[ALL_REDUCE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %sum : tensor<4xf32>
  }
}
