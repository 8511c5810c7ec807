// RUN: %hlorewrite opt %s --pass=collective-cse | %filecheck %s

// The function computes what main has already.
// 
// CHECK: "stablehlo.all_reduce"
// CHECK-NOT: all_reduce
// CHECK-NOT: call
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %n = stablehlo.negate %a : tensor<8xf32>
  %x = "stablehlo.all_reduce"(%n) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %c = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %y = stablehlo.multiply %x, %c : tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  %n = stablehlo.negate %a : tensor<8xf32>
  %x = "stablehlo.all_reduce"(%n) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %x : tensor<8xf32>
}
}
