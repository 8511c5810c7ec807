// CP(CP(x, P), Q) = CP(x, Q·P)
// RUN: %hlorewrite opt %s --pass='rules{only=permute-of-permute}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=permute-of-permute}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: return %[[COLLECTIVE_PERMUTE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1], [1, 2], [2, 3]]> : tensor<3x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: permute-of-permute: CP(CP(x, P), Q) = CP(x, Q·P)}}
    %sent2 = "stablehlo.collective_permute"(%sent) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[1, 3], [2, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %sent2 : tensor<4xf32>
  }
}

// -----

// It stays away: nothing is sent by both.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: %[[COLLECTIVE_PERMUTE_1:.+]] = "stablehlo.collective_permute"(%[[COLLECTIVE_PERMUTE]])
// CHECK: return %[[COLLECTIVE_PERMUTE_1]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %sent2 = "stablehlo.collective_permute"(%sent) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[2, 3]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %sent2 : tensor<4xf32>
  }
}

// -----

// It stays away: the inner permute is read elsewhere too.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: %[[COLLECTIVE_PERMUTE_1:.+]] = "stablehlo.collective_permute"(%[[COLLECTIVE_PERMUTE]])
// CHECK: %[[ADD:.+]] = stablehlo.add %[[COLLECTIVE_PERMUTE]], %[[COLLECTIVE_PERMUTE_1]]
// CHECK: return %[[ADD]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %sent2 = "stablehlo.collective_permute"(%sent) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[1, 2]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %total = stablehlo.add %sent, %sent2 : tensor<4xf32>
    return %total : tensor<4xf32>
  }
}
