// Situation 21: scattered transposed converted default.
// XLA: stays.
// MEASURED: stays.
// HERE: stays; the default budget is 2 % of the arguments.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %1 = stablehlo.reshape %arg5 : (tensor<4xf32>) -> tensor<2x2xf32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x1xf32>
      %2 = stablehlo.convert %1 : (tensor<2x2xf32>) -> tensor<2x2xbf16>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %3:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %cst) : tensor<i32>, tensor<2x1xf32>
      cond {
        %c_1 = stablehlo.constant dense<4> : tensor<i32>
        %6 = stablehlo.compare LT, %iterArg, %c_1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %6 : tensor<i1>
      } do {
        %6 = "stablehlo.reduce_scatter"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<bf16>, %arg9: tensor<bf16>):
          %11 = stablehlo.add %arg8, %arg9 : tensor<bf16>
          stablehlo.return %11 : tensor<bf16>
        }) : (tensor<2x2xbf16>) -> tensor<1x2xbf16>
        %7 = stablehlo.convert %6 : (tensor<1x2xbf16>) -> tensor<1x2xf32>
        %8 = stablehlo.transpose %7, dims = [1, 0] : (tensor<1x2xf32>) -> tensor<2x1xf32>
        %9 = stablehlo.add %iterArg_0, %8 : tensor<2x1xf32>
        %c_1 = stablehlo.constant dense<1> : tensor<i32>
        %10 = stablehlo.add %iterArg, %c_1 : tensor<i32>
        stablehlo.return %10, %9 : tensor<i32>, tensor<2x1xf32>
      }
      %4 = stablehlo.reshape %3#1 : (tensor<2x1xf32>) -> tensor<2xf32>
      %5 = stablehlo.concatenate %4, %4, dim = 0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<4xf32>
      sdy.return %5 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
