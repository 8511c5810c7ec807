// AR(x)[my shard] = RS(x) when the members of each group read different shards
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-reduce}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=slice-of-all-reduce}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// fires
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[REDUCE_SCATTER:.+]] = "stablehlo.reduce_scatter"(%arg0)
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[REDUCE_SCATTER]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.remainder %1, %c_0 : tensor<i32>
    %3 = stablehlo.multiply %2, %c_0 : tensor<i32>
    %4 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: slice-of-all-reduce: AR(x)[my shard] = RS(x) when the members of each group read different shards}}
    %5 = stablehlo.dynamic_slice %4, %3, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    %6 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %5, %6 : tensor<2xf32>, tensor<4xf32>
  }
}

// -----

// fires
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %[[CONSTANT_1]], %[[MULTIPLY]]
// CHECK: %[[REDUCE_SCATTER:.+]] = "stablehlo.reduce_scatter"(%arg0)
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[REDUCE_SCATTER]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.remainder %1, %c_0 : tensor<i32>
    %3 = stablehlo.multiply %2, %c_0 : tensor<i32>
    %4 = stablehlo.subtract %c_0, %3 : tensor<i32>
    %5 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %8 = stablehlo.maximum %arg2, %arg3 : tensor<f32>
      stablehlo.return %8 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: slice-of-all-reduce: AR(x)[my shard] = RS(x) when the members of each group read different shards}}
    %6 = stablehlo.dynamic_slice %5, %4, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    %7 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %6, %7 : tensor<2xf32>, tensor<4xf32>
  }
}

// -----

// stays away: two members of a group read the same shard
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %[[CONSTANT]], %[[CONSTANT]]
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[SUBTRACT]], sizes = [2]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[DYNAMIC_SLICE]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.subtract %c, %c : tensor<i32>
    %3 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %6 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = stablehlo.dynamic_slice %3, %2, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    %5 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %4, %5 : tensor<2xf32>, tensor<4xf32>
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
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[REMAINDER]], sizes = [2]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[DYNAMIC_SLICE]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.remainder %1, %c_0 : tensor<i32>
    %3 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %6 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %6 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %4 = stablehlo.dynamic_slice %3, %2, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    %5 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %4, %5 : tensor<2xf32>, tensor<4xf32>
  }
}

// -----

// stays away: one of 2 shards, and a group has 4 members
// CHECK-LABEL: func.func @main
// CHECK: %[[PARTITION_ID:.+]] = stablehlo.partition_id
// CHECK: %[[CONVERT:.+]] = stablehlo.convert %[[PARTITION_ID]]
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<1>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<2>
// CHECK: %[[REMAINDER:.+]] = stablehlo.remainder %[[CONVERT]], %[[CONSTANT_1]]
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[REMAINDER]], %[[CONSTANT_1]]
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[DYNAMIC_SLICE:.+]] = stablehlo.dynamic_slice %[[ALL_REDUCE]], %[[MULTIPLY]], sizes = [2]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[DYNAMIC_SLICE]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<2xf32>, tensor<4xf32>) {
    %0 = stablehlo.partition_id : tensor<ui32>
    %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<2> : tensor<i32>
    %2 = stablehlo.remainder %1, %c_0 : tensor<i32>
    %3 = stablehlo.multiply %2, %c_0 : tensor<i32>
    %4 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %7 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %7 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %5 = stablehlo.dynamic_slice %4, %3, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
    %6 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %5, %6 : tensor<2xf32>, tensor<4xf32>
  }
}
