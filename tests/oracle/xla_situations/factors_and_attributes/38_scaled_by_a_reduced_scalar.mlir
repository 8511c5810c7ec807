// Situation 38: scaled by a reduced scalar.
// XLA: moves.
// MEASURED: moves.
// HERE: moves; the scalar stays in the loop: a product is linear in one factor only.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<1> : tensor<i32>
      %3 = stablehlo.add %2, %c : tensor<i32>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %4:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %cst) : tensor<i32>, tensor<4xf32>
      cond {
        %c_2 = stablehlo.constant dense<4> : tensor<i32>
        %5 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %5 = "stablehlo.all_reduce"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %12 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %12 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %6 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<i32>, %arg9: tensor<i32>):
          %12 = stablehlo.add %arg8, %arg9 : tensor<i32>
          stablehlo.return %12 : tensor<i32>
        }) : (tensor<i32>) -> tensor<i32>
        %7 = stablehlo.convert %6 : (tensor<i32>) -> tensor<f32>
        %8 = stablehlo.broadcast_in_dim %7, dims = [] : (tensor<f32>) -> tensor<4xf32>
        %9 = stablehlo.multiply %5, %8 : tensor<4xf32>
        %10 = stablehlo.add %iterArg_1, %9 : tensor<4xf32>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %11 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %11, %10 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %4#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
