// An all-gather of a parameter runs once when memory allows, and stays when it changes in the loop.
// RUN: %hlorewrite opt %s --split-input-file --pass='hoist-collectives' | %filecheck %s
// RUN: %hlorewrite opt %s --split-input-file --pass='hoist-collectives{most-bytes=8}' --remarks 2>&1 | %filecheck %s --check-prefix=SMALL

// SMALL: unprofitable: hoist-collectives: it stays in its loop: outside, 16 bytes more would be live throughout the loop, and most-bytes is 8

// CHECK: %[[GATHERED:.+]] = "stablehlo.all_gather"
// CHECK: stablehlo.while
// CHECK: stablehlo.multiply %{{.+}}, %[[GATHERED]]
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%w: tensor<4xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %loop:3 = stablehlo.while(%i = %zero, %a = %x, %p = %w) : tensor<i32>, tensor<8xf32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %g = "stablehlo.all_gather"(%p) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
      %h = stablehlo.multiply %a, %g : tensor<8xf32>
      %n = stablehlo.tanh %h : tensor<8xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %n, %p : tensor<i32>, tensor<8xf32>, tensor<4xf32>
    }
    return %loop#1 : tensor<8xf32>
  }
}

// -----

// CHECK: stablehlo.while
// CHECK: } do {
// CHECK: "stablehlo.all_gather"
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%w: tensor<4xf32>, %x: tensor<8xf32>) -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %loop:3 = stablehlo.while(%i = %zero, %a = %x, %p = %w) : tensor<i32>, tensor<8xf32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %g = "stablehlo.all_gather"(%p) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> : (tensor<4xf32>) -> tensor<8xf32>
      %h = stablehlo.multiply %a, %g : tensor<8xf32>
      %n = stablehlo.tanh %h : tensor<8xf32>
      %q = stablehlo.negate %p : tensor<4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %n, %q : tensor<i32>, tensor<8xf32>, tensor<4xf32>
    }
    return %loop#1 : tensor<8xf32>
  }
}
