module attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 2 : i32} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %s = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %m = stablehlo.multiply %q, %two : tensor<f32>
    %r = stablehlo.add %p, %m : tensor<f32>
    stablehlo.return %r : tensor<f32> }) : (tensor<4xf32>) -> tensor<4xf32>
  %t = stablehlo.add %s, %x : tensor<4xf32>
  return %t : tensor<4xf32>
}
}
