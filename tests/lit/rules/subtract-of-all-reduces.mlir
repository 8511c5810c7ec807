// AR(a) - AR(b) = AR(a - b)
// RUN: %hlorewrite opt %s --pass='rules{only=subtract-of-all-reduces}' --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass='rules{only=subtract-of-all-reduces}' --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %arg0, %arg1
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%[[SUBTRACT]])
// CHECK: return %[[ALL_REDUCE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %sum2 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{applied: subtract-of-all-reduces: AR(a) - AR(b) = AR(a - b)}}
    %difference = stablehlo.subtract %sum, %sum2 : tensor<4xf32>
    return %difference : tensor<4xf32>
  }
}

// -----

// It stays away: the groups differ.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[ALL_REDUCE_1:.+]] = "stablehlo.all_reduce"(%arg1)
// CHECK: %[[SUBTRACT:.+]] = stablehlo.subtract %[[ALL_REDUCE]], %[[ALL_REDUCE_1]]
// CHECK: return %[[SUBTRACT]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %sum2 = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+1 {{blocked: subtract-of-all-reduces: the groups differ}}
    %difference = stablehlo.subtract %sum, %sum2 : tensor<4xf32>
    return %difference : tensor<4xf32>
  }
}
