// convert(A2A(x)) = A2A(convert(x)) when convert narrows
// RUN: %hlorewrite opt %s --pass='rules{only=all-to-all-after-narrowing}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=all-to-all-after-narrowing}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// fires
// CHECK-LABEL: func.func @main
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %arg0
// CHECK: %[[ALL_TO_ALL:.+]] = "stablehlo.all_to_all"(%[[CONVERT]])
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[ALL_TO_ALL]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf32>) -> (tensor<2x4xbf16>, tensor<4x2xf32>) {
    %0 = "stablehlo.all_to_all"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    // expected-remark@+1 {{applied: all-to-all-after-narrowing: convert(A2A(x)) = A2A(convert(x)) when convert narrows}}
    %1 = stablehlo.convert %0 : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    %2 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %1, %2 : tensor<2x4xbf16>, tensor<4x2xf32>
  }
}

// -----

// stays away: not narrower
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_TO_ALL:.+]] = "stablehlo.all_to_all"(%arg0)
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[ALL_TO_ALL]]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[CONVERT]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4x2xf32>, %arg1: tensor<4x2xf32>) -> (tensor<2x4xf64>, tensor<4x2xf32>) {
    %0 = "stablehlo.all_to_all"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    // expected-remark@+1 {{unprofitable: all-to-all-after-narrowing: the converted elements are not narrower}}
    %1 = stablehlo.convert %0 : (tensor<2x4xf32>) -> tensor<2x4xf64>
    %2 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %1, %2 : tensor<2x4xf64>, tensor<4x2xf32>
  }
}
