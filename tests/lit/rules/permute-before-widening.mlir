// CP(convert(x)) = convert(CP(x)) when convert widens
// RUN: %hlorewrite opt %s --pass='rules{only=permute-before-widening}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=permute-before-widening}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[COLLECTIVE_PERMUTE]]
// CHECK: return %[[CONVERT]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf64> {
    %converted = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf64>
    // expected-remark@+1 {{applied: permute-before-widening: CP(convert(x)) = convert(CP(x)) when convert widens}}
    %sent = "stablehlo.collective_permute"(%converted) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf64>) -> tensor<4xf64>
    return %sent : tensor<4xf64>
  }
}

// -----

// It stays away: the result is not wider.
// CHECK-LABEL: func.func @main
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %arg0
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%[[CONVERT]])
// CHECK: return %[[COLLECTIVE_PERMUTE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xbf16> {
    %converted = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
    // expected-remark@+1 {{unprofitable: permute-before-widening: the converted elements are not wider}}
    %sent = "stablehlo.collective_permute"(%converted) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xbf16>) -> tensor<4xbf16>
    return %sent : tensor<4xbf16>
  }
}
