// S2: NaN mask in every iteration.
// XLA: stays.
// MEASURED: stays.
// HERE: stays; each reduced gradient is read.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %1:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %cst) : tensor<i32>, tensor<4xf32>
      cond {
        %c_1 = stablehlo.constant dense<4> : tensor<i32>
        %2 = stablehlo.compare LT, %iterArg, %c_1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %2 : tensor<i1>
      } do {
        %2 = "stablehlo.all_reduce"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %7 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %7 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %3 = stablehlo.compare EQ, %2, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
        %4 = stablehlo.select %3, %2, %cst : tensor<4xi1>, tensor<4xf32>
        %5 = stablehlo.add %iterArg_0, %4 : tensor<4xf32>
        %c_1 = stablehlo.constant dense<1> : tensor<i32>
        %6 = stablehlo.add %iterArg, %c_1 : tensor<i32>
        stablehlo.return %6, %5 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %1#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
