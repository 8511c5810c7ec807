// AR(x)[my shard] = RS(x) when the members of each group read different shards
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-reduce}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-reduce}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[REDUCE_SCATTER:.+]] = "stablehlo.reduce_scatter"(%arg0)
// CHECK: return %[[REDUCE_SCATTER]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %remainder = stablehlo.remainder %converted, %c2 : tensor<i32>
    %product = stablehlo.multiply %remainder, %c2 : tensor<i32>
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: slice-of-all-reduce: AR(x)[my shard] = RS(x) when the members of each group read different shards}}
    %piece = stablehlo.dynamic_slice %sum, %product, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %piece : tensor<2xf32>
  }
}

// -----

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %[[CONSTANT_1]], %[[MULTIPLY]]
// CHECK: %[[REDUCE_SCATTER:.+]] = "stablehlo.reduce_scatter"(%arg0)
// CHECK: return %[[REDUCE_SCATTER]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %remainder = stablehlo.remainder %converted, %c2 : tensor<i32>
    %product = stablehlo.multiply %remainder, %c2 : tensor<i32>
    %difference = stablehlo.subtract %c2, %product : tensor<i32>
    %max = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.maximum %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: slice-of-all-reduce: AR(x)[my shard] = RS(x) when the members of each group read different shards}}
    %piece = stablehlo.dynamic_slice %max, %difference, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %piece : tensor<2xf32>
  }
}

// -----

// It stays away: two members of a group read the same shard.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %[[CONSTANT]], %[[CONSTANT]]
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[SUBTRACT]], sizes = [2]
// CHECK: return %[[DYNAMIC_SLICE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %difference = stablehlo.subtract %c1, %c1 : tensor<i32>
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %piece = stablehlo.dynamic_slice %sum, %difference, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %piece : tensor<2xf32>
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
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[REMAINDER]], sizes = [2]
// CHECK: return %[[DYNAMIC_SLICE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %remainder = stablehlo.remainder %converted, %c2 : tensor<i32>
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %piece = stablehlo.dynamic_slice %sum, %remainder, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %piece : tensor<2xf32>
  }
}

// -----

// It stays away: one of 2 shards, and a group has 4 members.
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[MULTIPLY]], sizes = [2]
// CHECK: return %[[DYNAMIC_SLICE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xf32> {
    %id = stablehlo.partition_id : tensor<ui32>
    %converted = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %remainder = stablehlo.remainder %converted, %c2 : tensor<i32>
    %product = stablehlo.multiply %remainder, %c2 : tensor<i32>
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %piece = stablehlo.dynamic_slice %sum, %product, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    return %piece : tensor<2xf32>
  }
}
