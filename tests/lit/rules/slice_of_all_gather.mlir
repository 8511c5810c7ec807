// AG(x)[one shard] = CP(x) when no two devices of a group read the same shard
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-gather}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-gather}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// fires
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[ADD:.+]] = stablehlo.add %[[CONSTANT_1]], %[[CONSTANT_1]]
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[ADD]]
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[COLLECTIVE_PERMUTE]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.add %c_0, %c_0 : tensor<i32>
    %3 = stablehlo.remainder %1, %c_0 : tensor<i32>
    %4 = stablehlo.multiply %3, %2 : tensor<i32>
    %5 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    // expected-remark@+1 {{applied: slice-of-all-gather: AG(x)[one shard] = CP(x) when no two devices of a group read the same shard}}
    %6 = stablehlo.dynamic_slice %5, %4, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    %7 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %6, %7 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// stays away: one device's shard is read by several
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %[[CONSTANT]], %[[CONSTANT]]
// CHECK: %[[ALL_GATHER:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_GATHER]], %[[SUBTRACT]], sizes = [4]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[DYNAMIC_SLICE]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.subtract %c, %c : tensor<i32>
    %3 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    %4 = stablehlo.dynamic_slice %3, %2, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    %5 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %4, %5 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// stays away: the slice straddles two shards
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[ALL_GATHER:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_GATHER]], %[[MULTIPLY]], sizes = [4]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[DYNAMIC_SLICE]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.remainder %1, %c_0 : tensor<i32>
    %3 = stablehlo.multiply %2, %c_0 : tensor<i32>
    %4 = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    %5 = stablehlo.dynamic_slice %4, %3, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    %6 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %5, %6 : tensor<4xf32>, tensor<4xf32>
  }
}
