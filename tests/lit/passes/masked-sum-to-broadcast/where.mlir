// RUN: %hlorewrite opt %s --pass=masked-sum-to-broadcast | %filecheck %s

// psum(where(axis_index == 2, x, 0)), the where after a call.
// 
// CHECK: "stablehlo.collective_broadcast"(%arg0) {{.*}}dense<{{\[\[}}2, 0, 1, 3]]>
// CHECK-NOT: all_reduce
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %id = stablehlo.partition_id : tensor<ui32>
  %k = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c2 = stablehlo.constant dense<2> : tensor<i32>
  %p = stablehlo.compare EQ, %k, %c2, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %w = call @_where(%p, %a, %c0) : (tensor<i1>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
  %y = "stablehlo.all_reduce"(%w) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func private @_where(%p: tensor<i1>, %x: tensor<8xf32>, %z: tensor<i32>) -> tensor<8xf32> {
  %c = stablehlo.convert %z : (tensor<i32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %s = stablehlo.select %p, %x, %b : tensor<i1>, tensor<8xf32>
  return %s : tensor<8xf32>
}
}
