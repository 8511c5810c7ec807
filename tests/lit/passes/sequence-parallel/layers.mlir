// RUN: %hlorewrite opt %s --pass=sequence-parallel --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=sequence-parallel{axis=model} --split-input-file --remarks=applied,blocked --verify-diagnostics -o %t.out

// Two groups of two devices share layers. Each layer ends in a sum over its group, which is normalized and multiplied with the next
// weight. The carried rows become shards of four, and are gathered after the norm.
// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.reduce_scatter"
// CHECK: -> tensor<4x4xf32>
// CHECK: %[[LOOP:.+]]:2 = stablehlo.while(%{{.+}} = %{{.+}}, %[[X:.+]] = %{{.+}}) : tensor<i32>, tensor<4x4xf32>
// CHECK: stablehlo.multiply %[[X]], %[[X]] : tensor<4x4xf32>
// CHECK: %[[NORMAL:.+]] = stablehlo.multiply %[[X]], %{{.+}} : tensor<4x4xf32>
// CHECK: %[[WHOLE:.+]] = "stablehlo.all_gather"(%[[NORMAL]])
// CHECK-SAME: all_gather_dim = 0
// CHECK-SAME: -> tensor<8x4xf32>
// CHECK: stablehlo.dot_general %[[WHOLE]]
// CHECK: %[[SHARD:.+]] = "stablehlo.reduce_scatter"
// CHECK-SAME: scatter_dimension = 0
// CHECK: stablehlo.add %[[X]], %[[SHARD]] : tensor<4x4xf32>
// CHECK: %[[RESULT:.+]] = "stablehlo.all_gather"(%[[LOOP]]#1)
// CHECK: return %[[RESULT]] : tensor<8x4xf32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=2, "model"=2]>
  func.func @main(%p: tensor<8x4xf32>, %w: tensor<3x4x4xf32>) -> tensor<8x4xf32> {
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %layers = stablehlo.constant dense<3> : tensor<i32>
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    // expected-remark@+1 {{it is reduce-scattered along dimension 0 over 2 devices}}
    %x0 = "stablehlo.all_reduce"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %loop:2 = stablehlo.while(%i = %first, %x = %x0) : tensor<i32>, tensor<8x4xf32>
    cond {
      %more = stablehlo.compare LT, %i, %layers : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %square = stablehlo.multiply %x, %x : tensor<8x4xf32>
      %length = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
      %scale = stablehlo.rsqrt %length : tensor<8xf32>
      %scales = stablehlo.broadcast_in_dim %scale, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
      %normal = stablehlo.multiply %x, %scales : tensor<8x4xf32>
      %row = stablehlo.dynamic_slice %w, %i, %first, %first, sizes = [1, 4, 4] : (tensor<3x4x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x4xf32>
      %weight = stablehlo.reshape %row : (tensor<1x4x4xf32>) -> tensor<4x4xf32>
      %product = stablehlo.dot_general %normal, %weight, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
      // expected-remark@+1 {{it is reduce-scattered along dimension 0 over 2 devices}}
      %sum = "stablehlo.all_reduce"(%product) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %y = stablehlo.add %x, %sum : tensor<8x4xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %y : tensor<i32>, tensor<8x4xf32>
    }
    return %loop#1 : tensor<8x4xf32>
  }
}

// -----

// Nothing divides seven rows, or five columns, between two devices: the all-reduce stays, with the reason.
// CHECK-LABEL: func.func @uneven
// CHECK: all_reduce
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["model"=2]>
  func.func @uneven(%p: tensor<7x5xf32>, %w: tensor<5x5xf32>) -> tensor<7x5xf32> {
    // expected-remark@+1 {{its result has a dimension 0 of size 7, which 2 devices do not divide evenly; has a dimension 1 of size 5, which 2 devices do not divide evenly}}
    %x = "stablehlo.all_reduce"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<7x5xf32>) -> tensor<7x5xf32>
    %y = stablehlo.tanh %x : tensor<7x5xf32>
    %product = stablehlo.dot_general %y, %w, contracting_dims = [1] x [0] : (tensor<7x5xf32>, tensor<5x5xf32>) -> tensor<7x5xf32>
    return %product : tensor<7x5xf32>
  }
}
