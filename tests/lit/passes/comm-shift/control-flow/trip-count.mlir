// A trip count known only at run time is not an obstacle when it is uniform; one that differs between devices is.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: %[[LOOP:.+]]:{{[0-9]+}} = stablehlo.while
  // CHECK-NOT: all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  // CHECK: "stablehlo.all_reduce"(%[[LOOP]]#1)
  // CHECK-NOT: all_reduce
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %1:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %cst) : tensor<i32>, tensor<4xf32>
      cond {
        %2 = stablehlo.add %arg7, %c : tensor<i32>
        %3 = stablehlo.compare LT, %iterArg, %2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      } do {
        %2 = "stablehlo.all_reduce"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %5 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %5 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %3 = stablehlo.add %iterArg_1, %2 : tensor<4xf32>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %4 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %4, %3 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %1#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: stablehlo.while
  // CHECK: } do {
  // CHECK: "stablehlo.all_reduce"
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %3:2 = stablehlo.while(%iterArg = %c, %iterArg_0 = %cst) : tensor<i32>, tensor<4xf32>
      cond {
        %c_1 = stablehlo.constant dense<3> : tensor<i32>
        %4 = stablehlo.compare LT, %iterArg, %c_1 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %4 : tensor<i1>
      } do {
        // expected-remark@+1 {{may run the loop a different number of times}}
        %4 = "stablehlo.all_reduce"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %8 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %8 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %c_1 = stablehlo.constant dense<0> : tensor<i32>
        %c_2 = stablehlo.constant dense<0> : tensor<i32>
        %5:2 = stablehlo.while(%iterArg_4 = %c_2, %iterArg_5 = %4) : tensor<i32>, tensor<4xf32>
        cond {
          %8 = stablehlo.add %2, %c_1 : tensor<i32>
          %9 = stablehlo.compare LT, %iterArg_4, %8 : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %9 : tensor<i1>
        } do {
          %8 = stablehlo.add %iterArg_5, %iterArg_5 : tensor<4xf32>
          %c_6 = stablehlo.constant dense<1> : tensor<i32>
          %9 = stablehlo.add %iterArg_4, %c_6 : tensor<i32>
          stablehlo.return %9, %8 : tensor<i32>, tensor<4xf32>
        }
        %6 = stablehlo.add %iterArg_0, %5#1 : tensor<4xf32>
        %c_3 = stablehlo.constant dense<1> : tensor<i32>
        %7 = stablehlo.add %iterArg, %c_3 : tensor<i32>
        stablehlo.return %7, %6 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %3#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
