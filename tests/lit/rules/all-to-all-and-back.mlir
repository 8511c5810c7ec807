// A2A(A2A(x)) = x when the second splits where the first joins, and joins where it splits
// RUN: %hlorewrite opt %s --pass='rules{only=all-to-all-and-back}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=all-to-all-and-back}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: return %arg0
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %exchanged = "stablehlo.all_to_all"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    // expected-remark@+1 {{applied: all-to-all-and-back: A2A(A2A(x)) = x when the second splits where the first joins, and joins where it splits}}
    %exchanged2 = "stablehlo.all_to_all"(%exchanged) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
    return %exchanged2 : tensor<4x2xf32>
  }
}

// -----

// It stays away: the groups differ.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_TO_ALL:.+]] = "stablehlo.all_to_all"(%arg0)
// CHECK: %[[ALL_TO_ALL_1:.+]] = "stablehlo.all_to_all"(%[[ALL_TO_ALL]])
// CHECK: return %[[ALL_TO_ALL_1]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %exchanged = "stablehlo.all_to_all"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    // expected-remark@+1 {{blocked: all-to-all-and-back: the groups differ}}
    %exchanged2 = "stablehlo.all_to_all"(%exchanged) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 1 : i64}> : (tensor<2x4xf32>) -> tensor<4x2xf32>
    return %exchanged2 : tensor<4x2xf32>
  }
}
