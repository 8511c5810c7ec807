// convert(CP(x)) = CP(convert(x)) when convert narrows
// RUN: %hlorewrite opt %s --pass='rules{only=permute-after-narrowing}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=permute-after-narrowing}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %arg0
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%[[CONVERT]])
// CHECK: return %[[COLLECTIVE_PERMUTE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xbf16> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: permute-after-narrowing: convert(CP(x)) = CP(convert(x)) when convert narrows}}
    %converted = stablehlo.convert %sent : (tensor<4xf32>) -> tensor<4xbf16>
    return %converted : tensor<4xbf16>
  }
}

// -----

// It stays away: the result is not narrower.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[COLLECTIVE_PERMUTE]]
// CHECK: return %[[CONVERT]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf64> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{unprofitable: permute-after-narrowing: the converted elements are not narrower}}
    %converted = stablehlo.convert %sent : (tensor<4xf32>) -> tensor<4xf64>
    return %converted : tensor<4xf64>
  }
}
