// Situation 4: slices accumulate.
// XLA: moves.
// MEASURED: moves.
// HERE: moves; one all-reduce each of the parts that are accumulated, as XLA.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %1:4 = stablehlo.while(%iterArg = %c, %iterArg_0 = %cst, %iterArg_1 = %cst, %iterArg_2 = %cst) : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
      cond {
        %c_3 = stablehlo.constant dense<4> : tensor<i32>
        %5 = stablehlo.compare LT, %iterArg, %c_3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %5 = stablehlo.concatenate %arg5, %arg4, %arg6, dim = 0 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>
        %6 = "stablehlo.all_reduce"(%5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %14 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %14 : tensor<f32>
        }) : (tensor<12xf32>) -> tensor<12xf32>
        %7 = stablehlo.slice %6 [0:4] : (tensor<12xf32>) -> tensor<4xf32>
        %8 = stablehlo.add %iterArg_0, %7 : tensor<4xf32>
        %9 = stablehlo.slice %6 [4:8] : (tensor<12xf32>) -> tensor<4xf32>
        %10 = stablehlo.add %iterArg_1, %9 : tensor<4xf32>
        %11 = stablehlo.slice %6 [8:12] : (tensor<12xf32>) -> tensor<4xf32>
        %12 = stablehlo.add %iterArg_2, %11 : tensor<4xf32>
        %c_3 = stablehlo.constant dense<1> : tensor<i32>
        %13 = stablehlo.add %iterArg, %c_3 : tensor<i32>
        stablehlo.return %13, %8, %10, %12 : tensor<i32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
      }
      %2 = stablehlo.subtract %1#1, %1#2 : tensor<4xf32>
      %3 = stablehlo.multiply %2, %2 : tensor<4xf32>
      %4 = stablehlo.add %3, %1#3 : tensor<4xf32>
      sdy.return %4 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
