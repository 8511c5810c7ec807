// AG(RS(x)) = AR(x) along one dimension over the same groups in the same order
// RUN: %hlorewrite opt %s --pass='rules{only=all-gather-of-reduce-scatter}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=all-gather-of-reduce-scatter}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: return %[[ALL_REDUCE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %shard = "stablehlo.reduce_scatter"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<2xf32>
    // expected-remark@+1 {{applied: all-gather-of-reduce-scatter: AG(RS(x)) = AR(x) along one dimension over the same groups in the same order}}
    %gathered = "stablehlo.all_gather"(%shard) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<4xf32>
    return %gathered : tensor<4xf32>
  }
}

// -----

// It stays away: the groups differ.
// CHECK-LABEL: func.func @main
// CHECK: %[[REDUCE_SCATTER:.+]] = "stablehlo.reduce_scatter"(%arg0)
// CHECK: %[[ALL_GATHER:.+]] = "stablehlo.all_gather"(%[[REDUCE_SCATTER]])
// CHECK: return %[[ALL_GATHER]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %shard = "stablehlo.reduce_scatter"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<2xf32>
    // expected-remark@+1 {{blocked: all-gather-of-reduce-scatter: the groups differ}}
    %gathered = "stablehlo.all_gather"(%shard) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[1, 0], [3, 2]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<2xf32>) -> tensor<4xf32>
    return %gathered : tensor<4xf32>
  }
}
