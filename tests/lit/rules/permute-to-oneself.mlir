// CP(x) = x when every device sends to itself
// RUN: %hlorewrite opt %s --pass='rules{only=permute-to-oneself}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=permute-to-oneself}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: return %arg0
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    // expected-remark@+1 {{applied: permute-to-oneself: CP(x) = x when every device sends to itself}}
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 0], [1, 1], [2, 2], [3, 3]]> : tensor<4x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %sent : tensor<4xf32>
  }
}

// -----

// It stays away: devices that receive nothing would get zeros.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: return %[[COLLECTIVE_PERMUTE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 0], [1, 1], [2, 2]]> : tensor<3x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %sent : tensor<4xf32>
  }
}

// -----

// It stays away: device 0 sends to device 1.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: return %[[COLLECTIVE_PERMUTE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 0], [2, 2], [3, 3]]> : tensor<4x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %sent : tensor<4xf32>
  }
}
