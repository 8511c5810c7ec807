// f32 and bf16 gradients side by side, each in its own type.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics | %filecheck %s

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: %[[LOOP:.+]]:{{[0-9]+}} = stablehlo.while
  // CHECK-NOT: all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  // CHECK-DAG: "stablehlo.all_reduce"(%[[LOOP]]#1)
  // CHECK-DAG: "stablehlo.all_reduce"(%[[LOOP]]#2)
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<4xbf16>
      %1 = stablehlo.convert %arg5 : (tensor<4xf32>) -> tensor<4xbf16>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %2:3 = stablehlo.while(%iterArg = %c, %iterArg_1 = %cst, %iterArg_2 = %cst_0) : tensor<i32>, tensor<4xf32>, tensor<4xbf16>
      cond {
        %c_3 = stablehlo.constant dense<4> : tensor<i32>
        %5 = stablehlo.compare LT, %iterArg, %c_3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %5 = "stablehlo.all_reduce"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %10 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %10 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %6 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<bf16>, %arg9: tensor<bf16>):
          %10 = stablehlo.add %arg8, %arg9 : tensor<bf16>
          stablehlo.return %10 : tensor<bf16>
        }) : (tensor<4xbf16>) -> tensor<4xbf16>
        %7 = stablehlo.add %iterArg_1, %5 : tensor<4xf32>
        %8 = stablehlo.add %iterArg_2, %6 : tensor<4xbf16>
        %c_3 = stablehlo.constant dense<1> : tensor<i32>
        %9 = stablehlo.add %iterArg, %c_3 : tensor<i32>
        stablehlo.return %9, %7, %8 : tensor<i32>, tensor<4xf32>, tensor<4xbf16>
      }
      %3 = stablehlo.convert %2#2 : (tensor<4xbf16>) -> tensor<4xf32>
      %4 = stablehlo.multiply %2#1, %3 : tensor<4xf32>
      sdy.return %4 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
