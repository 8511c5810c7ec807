// AG(x)[one shard] = CP(x) when no two devices of a group read the same shard
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-gather}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-gather}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[ADD:.+]] = stablehlo.add %[[CONSTANT_1]], %[[CONSTANT_1]]
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[ADD]]
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: return %[[COLLECTIVE_PERMUTE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %total = stablehlo.add %c2, %c2 : tensor<i32>
    %remainder = stablehlo.remainder %converted, %c2 : tensor<i32>
    %product = stablehlo.multiply %remainder, %total : tensor<i32>
    %gathered = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    // expected-remark@+1 {{applied: slice-of-all-gather: AG(x)[one shard] = CP(x) when no two devices of a group read the same shard}}
    %piece = stablehlo.dynamic_slice %gathered, %product, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    return %piece : tensor<4xf32>
  }
}

// -----

// It stays away: one device's shard is read by several.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %[[CONSTANT]], %[[CONSTANT]]
// CHECK: %[[ALL_GATHER:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_GATHER]], %[[SUBTRACT]], sizes = [4]
// CHECK: return %[[DYNAMIC_SLICE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %difference = stablehlo.subtract %c1, %c1 : tensor<i32>
    %gathered = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    %piece = stablehlo.dynamic_slice %gathered, %difference, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    return %piece : tensor<4xf32>
  }
}

// -----

// It stays away: the slice straddles two shards.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[ALL_GATHER:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_GATHER]], %[[MULTIPLY]], sizes = [4]
// CHECK: return %[[DYNAMIC_SLICE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %remainder = stablehlo.remainder %converted, %c2 : tensor<i32>
    %product = stablehlo.multiply %remainder, %c2 : tensor<i32>
    %gathered = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
    %piece = stablehlo.dynamic_slice %gathered, %product, sizes = [4] : (tensor<8xf32>, tensor<i32>) -> tensor<4xf32>
    return %piece : tensor<4xf32>
  }
}
