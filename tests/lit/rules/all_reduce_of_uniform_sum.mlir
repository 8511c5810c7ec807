// AR(x) = n · x when x is the same on all n devices of each group
// RUN: %hlorewrite opt %s --pass='rules{only=all-reduce-of-uniform-sum}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=all-reduce-of-uniform-sum}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// fires
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<2.000000e+00>
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[ALL_REDUCE]], %[[CONSTANT]]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[MULTIPLY]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: all-reduce-of-uniform-sum: AR(x) = n · x when x is the same on all n devices of each group}}
    %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %1, %2 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// fires
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<2.000000e+00>
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[ALL_REDUCE]], %[[CONSTANT]]
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[MULTIPLY]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: all-reduce-of-uniform-sum: AR(x) = n · x when x is the same on all n devices of each group}}
    %1 = "stablehlo.all_reduce"(%0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %3 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %2 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %1, %2 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// stays away: differs between devices
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[COLLECTIVE_BROADCAST:.+]] = "stablehlo.collective_broadcast"(%arg1)
// CHECK: return %[[ALL_REDUCE]], %[[COLLECTIVE_BROADCAST]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = "stablehlo.all_reduce"(%arg0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%arg2: tensor<f32>, %arg3: tensor<f32>):
      %2 = stablehlo.add %arg2, %arg3 : tensor<f32>
      stablehlo.return %2 : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %1 = "stablehlo.collective_broadcast"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// stays away: 16 is infinite in f8E3M4
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"
// CHECK: return %[[ALL_REDUCE]]
module attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>) -> tensor<2xf8E3M4> {
    %cst = stablehlo.constant dense<5.000000e-01> : tensor<2xf8E3M4>
    // expected-remark@+1 {{blocked: all-reduce-of-uniform-sum: f8E3M4 does not hold the number 16}}
    %0 = "stablehlo.all_reduce"(%cst) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<f8E3M4>, %arg2: tensor<f8E3M4>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<f8E3M4>
      stablehlo.return %1 : tensor<f8E3M4>
    }) : (tensor<2xf8E3M4>) -> tensor<2xf8E3M4>
    return %0 : tensor<2xf8E3M4>
  }
}

// -----

// fires: 16 is 0 in i4, and so is the sum of 16 equal terms
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<0> : tensor<2xi4>
// CHECK: stablehlo.multiply
// CHECK-NOT: all_reduce
module attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%arg0: tensor<4xf32>) -> tensor<2xi4> {
    %c = stablehlo.constant dense<3> : tensor<2xi4>
    // expected-remark@+1 {{applied: all-reduce-of-uniform-sum: AR(x) = n · x when x is the same on all n devices of each group}}
    %0 = "stablehlo.all_reduce"(%c) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> ({
    ^bb0(%arg1: tensor<i4>, %arg2: tensor<i4>):
      %1 = stablehlo.add %arg1, %arg2 : tensor<i4>
      stablehlo.return %1 : tensor<i4>
    }) : (tensor<2xi4>) -> tensor<2xi4>
    return %0 : tensor<2xi4>
  }
}
