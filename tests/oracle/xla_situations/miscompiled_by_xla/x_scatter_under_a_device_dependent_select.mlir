// X: scatter under a device-dependent select.
// XLA: moves, and is wrong.
// MEASURED: moves.
// HERE: stays; the condition differs between devices of a group; a recompiled step switches the XLA pass off where it is wrong.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %3 = stablehlo.compare EQ, %2, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_1 = stablehlo.constant dense<0> : tensor<i32>
      %4:2 = stablehlo.while(%iterArg = %c_1, %iterArg_2 = %cst_0) : tensor<i32>, tensor<4xf32>
      cond {
        %c_3 = stablehlo.constant dense<4> : tensor<i32>
        %5 = stablehlo.compare LT, %iterArg, %c_3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %5 = stablehlo.select %3, %iterArg_2, %cst : tensor<i1>, tensor<4xf32>
        %6 = stablehlo.broadcast_in_dim %arg7, dims = [] : (tensor<i32>) -> tensor<4xi32>
        %7 = "stablehlo.scatter"(%5, %6, %arg5) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %10 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %10 : tensor<f32>
        }) : (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4xf32>
        %8 = "stablehlo.all_reduce"(%7) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %10 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %10 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %c_3 = stablehlo.constant dense<1> : tensor<i32>
        %9 = stablehlo.add %iterArg, %c_3 : tensor<i32>
        stablehlo.return %9, %8 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %4#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
