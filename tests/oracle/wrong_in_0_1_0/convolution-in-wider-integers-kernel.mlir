// As convolution-in-wider-integers, with the sum as its kernel.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<2x2x3xi8>) -> tensor<1x5x3xi32> {
    %m = stablehlo.constant dense<3> : tensor<1x6x2xi8>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %trips = stablehlo.constant dense<9> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<1x5x3xi32>
    %r:2 = stablehlo.while(%i = %first, %acc = %zero) : tensor<i32>, tensor<1x5x3xi32>
    cond {
      %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %s = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<i8>, %b: tensor<i8>):
        %c = stablehlo.add %a, %b : tensor<i8>
        stablehlo.return %c : tensor<i8>
      }) : (tensor<2x2x3xi8>) -> tensor<2x2x3xi8>
      %d = stablehlo.convolution(%m, %s) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x6x2xi8>, tensor<2x2x3xi8>) -> tensor<1x5x3xi32>
      %sum = stablehlo.add %acc, %d : tensor<1x5x3xi32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<1x5x3xi32>
    }
    return %r#1 : tensor<1x5x3xi32>
  }
}
