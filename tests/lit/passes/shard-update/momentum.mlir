// RUN: %hlorewrite opt %s --pass=shard-update{axis=data} --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=shard-update{axis=data} --split-input-file --remarks=applied,blocked --verify-diagnostics -o %t.out

// A data-parallel step with momentum. Each device gets a quarter of the summed gradient, keeps a quarter of the momentum and updates a
// quarter of the parameters, which are gathered. The loss is reduced as before.
// CHECK-LABEL: func.func public @main
// CHECK-SAME: %arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}
// CHECK-SAME: %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}
// CHECK-SAME: jax.result_info = "result[1].mu['w']", sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>
// CHECK: sdy.manual_computation
// CHECK-SAME: (%[[P:[a-z0-9]+]]: tensor<8x4xf32>, %[[M:[a-z0-9]+]]: tensor<2x4xf32>, %{{.+}}: tensor<8x4xf32>
// CHECK: %[[GRAD:.+]] = "stablehlo.reduce_scatter"
// CHECK: %[[MEAN:.+]] = stablehlo.divide %[[GRAD]], %{{.+}} : tensor<2x4xf32>
// CHECK: %[[OLD:.+]] = stablehlo.multiply %{{.+}}, %[[M]] : tensor<2x4xf32>
// CHECK: %[[NEW:.+]] = stablehlo.add %[[OLD]], %[[MEAN]] : tensor<2x4xf32>
// CHECK: %[[SHARD:.+]] = stablehlo.dynamic_slice %[[P]]
// CHECK: %[[NEXT:.+]] = stablehlo.subtract %[[SHARD]], %[[NEW]] : tensor<2x4xf32>
// CHECK: %[[WHOLE:.+]] = "stablehlo.all_gather"(%[[NEXT]])
// CHECK-SAME: all_gather_dim = 0
// CHECK: sdy.return %[[WHOLE]], %[[NEW]],
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<8x4xf32> {jax.result_info = "result[0]['w']"}, tensor<8x4xf32> {jax.result_info = "result[1].mu['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, []>] manual_axes={"data"} (%arg3: tensor<8x4xf32>, %arg4: tensor<8x4xf32>, %arg5: tensor<8x4xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.sine %arg5 : tensor<8x4xf32>
      %2 = stablehlo.multiply %1, %arg3 : tensor<8x4xf32>
      %3 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %10 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %10 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      // expected-remark@+1 {{argument 1: sharded over "data", 32 bytes a device instead of 128}}
      %5 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %10 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %10 : tensor<f32>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %cst_0 = stablehlo.constant dense<4.000000e+00> : tensor<8x4xf32>
      %6 = stablehlo.divide %5, %cst_0 : tensor<8x4xf32>
      %cst_1 = stablehlo.constant dense<0.899999976> : tensor<8x4xf32>
      %7 = stablehlo.multiply %cst_1, %arg4 : tensor<8x4xf32>
      %8 = stablehlo.add %7, %6 : tensor<8x4xf32>
      %9 = stablehlo.subtract %arg3, %8 : tensor<8x4xf32>
      sdy.return %9, %8, %4 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<32x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>)
    return %0#0, %0#1, %0#2 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
  }
}

// -----

// A slice in the update names its sizes: the update stays whole.
// CHECK-LABEL: func.func public @main
// CHECK-NOT: reduce_scatter
// CHECK: return
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]>
  func.func public @main(%arg0: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg1: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %arg2: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) -> (tensor<8x4xf32> {jax.result_info = "result[0]['w']"}, tensor<8x4xf32> {jax.result_info = "result[1].mu['w']"}, tensor<f32> {jax.result_info = "result[2]"}) {
    %0:3 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, []>] manual_axes={"data"} (%arg3: tensor<8x4xf32>, %arg4: tensor<8x4xf32>, %arg5: tensor<8x4xf32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
      %1 = stablehlo.sine %arg5 : tensor<8x4xf32>
      %2 = stablehlo.multiply %1, %arg3 : tensor<8x4xf32>
      %3 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
      %4 = "stablehlo.all_reduce"(%3) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %10 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %10 : tensor<f32>
      }) : (tensor<f32>) -> tensor<f32>
      // expected-remark@+1 {{stablehlo.slice does not compute each element from those at the same place}}
      %5 = "stablehlo.all_reduce"(%2) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%arg6: tensor<f32>, %arg7: tensor<f32>):
        %10 = stablehlo.add %arg6, %arg7 : tensor<f32>
        stablehlo.return %10 : tensor<f32>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %cst_0 = stablehlo.constant dense<4.000000e+00> : tensor<8x4xf32>
      %6 = stablehlo.divide %5, %cst_0 : tensor<8x4xf32>
      %cst_1 = stablehlo.constant dense<0.899999976> : tensor<8x4xf32>
      %7 = stablehlo.multiply %cst_1, %arg4 : tensor<8x4xf32>
      %cut = stablehlo.slice %6 [0:8, 0:4] : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %8 = stablehlo.add %7, %cut : tensor<8x4xf32>
      %9 = stablehlo.subtract %arg3, %8 : tensor<8x4xf32>
      sdy.return %9, %8, %4 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<32x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>)
    return %0#0, %0#1, %0#2 : tensor<8x4xf32>, tensor<8x4xf32>, tensor<f32>
  }
}
