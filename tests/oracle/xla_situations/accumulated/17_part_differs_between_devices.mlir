// Situation 17: part differs between devices.
// XLA: stays.
// MEASURED: stays.
// HERE: stays; the slice starts elsewhere on other devices of a group.
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<16xf32>, %arg2: tensor<16xf32>, %arg3: tensor<i32>) -> tensor<16xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<2> : tensor<i32>
      %3 = stablehlo.divide %2, %c : tensor<i32>
      %4 = stablehlo.multiply %3, %c : tensor<i32>
      %5 = stablehlo.slice %arg5 [0:2] : (tensor<4xf32>) -> tensor<2xf32>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %6:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %cst) : tensor<i32>, tensor<4xf32>
      cond {
        %c_2 = stablehlo.constant dense<4> : tensor<i32>
        %7 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %7 : tensor<i1>
      } do {
        %7 = stablehlo.dynamic_slice %iterArg_1, %4, sizes = [2] : (tensor<4xf32>, tensor<i32>) -> tensor<2xf32>
        %8 = "stablehlo.all_reduce"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %12 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %12 : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %9 = stablehlo.add %7, %8 : tensor<2xf32>
        %10 = stablehlo.dynamic_update_slice %iterArg_1, %9, %4 : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %11 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %11, %10 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %6#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<16xf32>, tensor<16xf32>, tensor<i32>) -> tensor<16xf32>
    return %0 : tensor<16xf32>
  }
}
