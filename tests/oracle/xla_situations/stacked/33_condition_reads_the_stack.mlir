// Situation 33: condition reads the stack.
// XLA: stays.
// MEASURED: stays.
// HERE: stays; the loop's condition reads it.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %c_0 = stablehlo.constant dense<1> : tensor<i32>
      %1:2 = stablehlo.while(%iterArg = %c, %iterArg_1 = %cst) : tensor<i32>, tensor<4xf32>
      cond {
        %c_2 = stablehlo.constant dense<3> : tensor<i32>
        %2 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        %cst_3 = stablehlo.constant dense<1.000000e+01> : tensor<f32>
        %cst_4 = stablehlo.constant dense<0.000000e+00> : tensor<f32>
        %3 = stablehlo.multiply %iterArg_1, %iterArg_1 : tensor<4xf32>
        %4 = stablehlo.reduce(%3 init: %cst_4) applies stablehlo.add across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
        %5 = stablehlo.compare LT, %4, %cst_3 : (tensor<f32>, tensor<f32>) -> tensor<i1>
        %6 = stablehlo.and %2, %5 : tensor<i1>
        stablehlo.return %6 : tensor<i1>
      } do {
        %2 = stablehlo.slice %arg5 [0:1] : (tensor<4xf32>) -> tensor<1xf32>
        %3 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %6 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %6 : tensor<f32>
        }) : (tensor<1xf32>) -> tensor<1xf32>
        %4 = stablehlo.dynamic_update_slice %iterArg_1, %3, %iterArg : (tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> tensor<4xf32>
        %5 = stablehlo.add %iterArg, %c_0 : tensor<i32>
        stablehlo.return %5, %4 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %1#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
