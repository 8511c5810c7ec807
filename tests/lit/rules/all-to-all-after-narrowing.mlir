// convert(A2A(x)) = A2A(convert(x)) when convert narrows
// RUN: %hlorewrite opt %s --pass='rules{only=all-to-all-after-narrowing}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=all-to-all-after-narrowing}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %arg0
// CHECK: %[[ALL_TO_ALL:.+]] = "stablehlo.all_to_all"(%[[CONVERT]])
// CHECK: return %[[ALL_TO_ALL]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4x2xf32>) -> tensor<2x4xbf16> {
    %exchanged = "stablehlo.all_to_all"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    // expected-remark@+1 {{applied: all-to-all-after-narrowing: convert(A2A(x)) = A2A(convert(x)) when convert narrows}}
    %converted = stablehlo.convert %exchanged : (tensor<2x4xf32>) -> tensor<2x4xbf16>
    return %converted : tensor<2x4xbf16>
  }
}

// -----

// It stays away: the result is not narrower.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_TO_ALL:.+]] = "stablehlo.all_to_all"(%arg0)
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[ALL_TO_ALL]]
// CHECK: return %[[CONVERT]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4x2xf32>) -> tensor<2x4xf64> {
    %exchanged = "stablehlo.all_to_all"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x2xf32>) -> tensor<2x4xf32>
    // expected-remark@+1 {{unprofitable: all-to-all-after-narrowing: the converted elements are not narrower}}
    %converted = stablehlo.convert %exchanged : (tensor<2x4xf32>) -> tensor<2x4xf64>
    return %converted : tensor<2x4xf64>
  }
}
