// AG(convert(x)) = convert(AG(x)) when convert widens
// RUN: %hlorewrite opt %s --pass='rules{only=gather-before-widening}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=gather-before-widening}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_GATHER:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[ALL_GATHER]]
// CHECK: return %[[CONVERT]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<8xf64> {
    %converted = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xf64>
    // expected-remark@+1 {{applied: gather-before-widening: AG(convert(x)) = convert(AG(x)) when convert widens}}
    %gathered = "stablehlo.all_gather"(%converted) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf64>) -> tensor<8xf64>
    return %gathered : tensor<8xf64>
  }
}

// -----

// It stays away: the converted elements are not wider.
// CHECK-LABEL: func.func @main
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %arg0
// CHECK: %[[ALL_GATHER:.+]] = "stablehlo.all_gather"(%[[CONVERT]])
// CHECK: return %[[ALL_GATHER]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<8xbf16> {
    %converted = stablehlo.convert %x : (tensor<4xf32>) -> tensor<4xbf16>
    // expected-remark@+1 {{unprofitable: gather-before-widening: the converted elements are not wider}}
    %gathered = "stablehlo.all_gather"(%converted) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xbf16>) -> tensor<8xbf16>
    return %gathered : tensor<8xbf16>
  }
}
