// Each partition gets its own shard of a constant: the factor differs between the devices of a group.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<1xf32>) -> tensor<1xf32> {
    %q = stablehlo.constant dense<[1.0,2.0,3.0,4.0]> : tensor<4xf32>
    %k = "stablehlo.reduce_scatter"(%q) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0]]> : tensor<1x1xi64>, scatter_dimension = 0 : i64}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %c = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %c : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<1xf32>
    %init = stablehlo.constant dense<0.0> : tensor<1xf32>
    %z = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<5> : tensor<i32>
    %o = stablehlo.constant dense<1> : tensor<i32>
    %r:2 = stablehlo.while(%i = %z, %acc = %init) : tensor<i32>, tensor<1xf32>
     cond { %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
       stablehlo.return %p : tensor<i1> }
     do {
       %i2 = stablehlo.add %i, %o : tensor<i32>
       %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
       %fb = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<1xf32>
       %y = stablehlo.multiply %x, %fb : tensor<1xf32>
       %s = "stablehlo.all_reduce"(%y) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0]]> : tensor<1x1xi64>}> ({
       ^bb0(%a: tensor<f32>, %b: tensor<f32>):
         %c = stablehlo.add %a, %b : tensor<f32>
         stablehlo.return %c : tensor<f32>
       }) : (tensor<1xf32>) -> tensor<1xf32>
       %m = stablehlo.multiply %s, %k : tensor<1xf32>
       %acc2 = stablehlo.add %acc, %m : tensor<1xf32>
       stablehlo.return %i2, %acc2 : tensor<i32>, tensor<1xf32> }
    return %r#1 : tensor<1xf32>
  }
}
