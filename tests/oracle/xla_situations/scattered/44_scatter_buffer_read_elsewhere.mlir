// Situation 44: scatter buffer read elsewhere.
// XLA: stays.
// MEASURED: stays.
// HERE: stays; the accumulator is reduced again in every iteration.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %1:3 = stablehlo.while(%iterArg = %c, %iterArg_0 = %cst, %iterArg_1 = %cst) : tensor<i32>, tensor<4xf32>, tensor<4xf32>
      cond {
        %c_2 = stablehlo.constant dense<4> : tensor<i32>
        %3 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      } do {
        %3 = stablehlo.broadcast_in_dim %arg7, dims = [] : (tensor<i32>) -> tensor<4xi32>
        %4 = "stablehlo.scatter"(%iterArg_0, %3, %arg5) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %9 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %9 : tensor<f32>
        }) : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xf32>
        %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %9 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %9 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %6 = stablehlo.tanh %iterArg_0 : tensor<4xf32>
        %7 = stablehlo.add %iterArg_1, %6 : tensor<4xf32>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %8 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %8, %5, %7 : tensor<i32>, tensor<4xf32>, tensor<4xf32>
      }
      %2 = stablehlo.add %1#1, %1#2 : tensor<4xf32>
      sdy.return %2 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
