// Situation 25: stacked at two indices and converted.
// XLA: moves.
// MEASURED: stays.
// HERE: moves.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %c = stablehlo.constant dense<0> : tensor<i32>
      %c_0 = stablehlo.constant dense<1> : tensor<i32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<2x16xf32>
      %1 = stablehlo.slice %arg5 [0:1] : (tensor<4xf32>) -> tensor<1xf32>
      %2 = stablehlo.convert %1 : (tensor<1xf32>) -> tensor<1xf16>
      %c_1 = stablehlo.constant dense<0> : tensor<i32>
      %3:2 = stablehlo.while(%iterArg = %c_1, %iterArg_2 = %cst) : tensor<i32>, tensor<2x16xf32>
      cond {
        %c_3 = stablehlo.constant dense<16> : tensor<i32>
        %6 = stablehlo.compare LT, %iterArg, %c_3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %6 : tensor<i1>
      } do {
        %6 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f16>, %arg9: tensor<f16>):
          %12 = stablehlo.minimum %arg8, %arg9 : tensor<f16>
          stablehlo.return %12 : tensor<f16>
        }) : (tensor<1xf16>) -> tensor<1xf16>
        %7 = stablehlo.convert %6 : (tensor<1xf16>) -> tensor<1xf32>
        %8 = stablehlo.reshape %7 : (tensor<1xf32>) -> tensor<1x1xf32>
        %9 = stablehlo.dynamic_update_slice %iterArg_2, %8, %c, %iterArg : (tensor<2x16xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x16xf32>
        %10 = stablehlo.dynamic_update_slice %9, %8, %c_0, %iterArg : (tensor<2x16xf32>, tensor<1x1xf32>, tensor<i32>, tensor<i32>) -> tensor<2x16xf32>
        %c_3 = stablehlo.constant dense<1> : tensor<i32>
        %11 = stablehlo.add %iterArg, %c_3 : tensor<i32>
        stablehlo.return %11, %10 : tensor<i32>, tensor<2x16xf32>
      }
      %4 = stablehlo.slice %3#1 [0:2, 0:16:8] : (tensor<2x16xf32>) -> tensor<2x2xf32>
      %5 = stablehlo.reshape %4 : (tensor<2x2xf32>) -> tensor<4xf32>
      sdy.return %5 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
