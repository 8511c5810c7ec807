module attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 2 : i32} {
func.func @main(%x: tensor<4xf32>, %y: tensor<i1>) -> tensor<4xf32> {
  %id = stablehlo.partition_id : tensor<ui32>
  %zero = stablehlo.constant dense<0> : tensor<ui32>
  %p = stablehlo.compare EQ, %id, %zero : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
  %o = "stablehlo.if"(%p) ({
  %s = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %q: tensor<f32>):
    %r = stablehlo.add %a, %q : tensor<f32>
    stablehlo.return %r : tensor<f32> }) : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %s : tensor<4xf32> 
  }, { stablehlo.return %x : tensor<4xf32> }) : (tensor<i1>) -> tensor<4xf32>
  return %o : tensor<4xf32>
}
}
