// RUN: %hlorewrite opt %s --pass=reduce-scatter-creation | %filecheck %s

// The slice of a mean that each device owns.
// 
// CHECK: "stablehlo.reduce_scatter"{{.*}}scatter_dimension = 0
// CHECK: -> tensor<2xf32>
// CHECK: stablehlo.divide %{{.+}} : tensor<2xf32>
// CHECK-NOT: all_reduce
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>) -> tensor<2xf32> {
  %x = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %id = stablehlo.partition_id : tensor<ui32>
  %k = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c2 = stablehlo.constant dense<2> : tensor<i32>
  %i = stablehlo.multiply %k, %c2 : tensor<i32>
  %f = stablehlo.constant dense<4.0> : tensor<8xf32>
  %m = stablehlo.divide %x, %f : tensor<8xf32>
  %y = stablehlo.dynamic_slice %m, %i, sizes = [2] : (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>
  return %y : tensor<2xf32>
}
}
