// AR(x) = n · x when x is the same on all n devices of each group
// RUN: %hlorewrite opt %s --pass='rules{only=all-reduce-of-uniform-sum}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=all-reduce-of-uniform-sum}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<2.000000e+00>
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[ALL_REDUCE]], %[[CONSTANT]]
// CHECK: return %[[MULTIPLY]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: all-reduce-of-uniform-sum: AR(x) = n · x when x is the same on all n devices of each group}}
    %sum2 = "stablehlo.all_reduce"(%sum) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %sum2 : tensor<4xf32>
  }
}

// -----

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<2.000000e+00>
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[ALL_REDUCE]], %[[CONSTANT]]
// CHECK: return %[[MULTIPLY]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: all-reduce-of-uniform-sum: AR(x) = n · x when x is the same on all n devices of each group}}
    %sum2 = "stablehlo.all_reduce"(%sum) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %sum2 : tensor<4xf32>
  }
}

// -----

// It stays away: the operand differs between devices.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: return %[[ALL_REDUCE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    return %sum : tensor<4xf32>
  }
}

// -----

// It stays away: 16 is infinite in f8E3M4.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"
// CHECK: return %[[ALL_REDUCE]]
module attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xf8E3M4> {
    %table = stablehlo.constant dense<5.000000e-01> : tensor<2xf8E3M4>
    // expected-remark@+1 {{blocked: all-reduce-of-uniform-sum: f8E3M4 cannot represent the number 16}}
    %sum = "stablehlo.all_reduce"(%table) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f8E3M4>, %r: tensor<f8E3M4>):
      %s = stablehlo.add %l, %r : tensor<f8E3M4>
      stablehlo.return %s : tensor<f8E3M4>
    }) : (tensor<2xf8E3M4>) -> tensor<2xf8E3M4>
    return %sum : tensor<2xf8E3M4>
  }
}

// -----

// It fires: 16 is 0 in i4, and so is the sum of 16 equal terms.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<0> : tensor<2xi4>
// CHECK: stablehlo.multiply
// CHECK-NOT: all_reduce
module attributes {mhlo.num_partitions = 16 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<2xi4> {
    %c3 = stablehlo.constant dense<3> : tensor<2xi4>
    // expected-remark@+1 {{applied: all-reduce-of-uniform-sum: AR(x) = n · x when x is the same on all n devices of each group}}
    %sum = "stablehlo.all_reduce"(%c3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]]> : tensor<1x16xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<i4>, %r: tensor<i4>):
      %s = stablehlo.add %l, %r : tensor<i4>
      stablehlo.return %s : tensor<i4>
    }) : (tensor<2xi4>) -> tensor<2xi4>
    return %sum : tensor<2xi4>
  }
}
