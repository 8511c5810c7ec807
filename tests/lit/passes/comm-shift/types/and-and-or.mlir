// Flags: and of and, or of or; the xor of ors stays.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: %[[LOOP:.+]]:{{[0-9]+}} = stablehlo.while
  // CHECK-NOT: all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  // CHECK: "stablehlo.all_reduce"(%[[LOOP]]#1)
  // CHECK-NOT: all_reduce
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xi1> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %1 = stablehlo.compare GT, %arg5, %cst : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %c = stablehlo.constant dense<true> : tensor<4xi1>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %2:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %c) : tensor<i32>, tensor<4xi1>
      cond {
        %c_2 = stablehlo.constant dense<4> : tensor<i32>
        %3 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      } do {
        %3 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<i1>, %arg9: tensor<i1>):
          %6 = stablehlo.and %arg8, %arg9 : tensor<i1>
          stablehlo.return %6 : tensor<i1>
        }) : (tensor<4xi1>) -> tensor<4xi1>
        %4 = stablehlo.and %iterArg_1, %3 : tensor<4xi1>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %5 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %5, %4 : tensor<i32>, tensor<4xi1>
      }
      sdy.return %2#1 : tensor<4xi1>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xi1>
    return %0 : tensor<8xi1>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: %[[LOOP:.+]]:{{[0-9]+}} = stablehlo.while
  // CHECK-NOT: all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  // CHECK: "stablehlo.all_reduce"(%[[LOOP]]#1)
  // CHECK-NOT: all_reduce
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xi1> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %1 = stablehlo.compare GT, %arg5, %cst : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %c = stablehlo.constant dense<false> : tensor<4xi1>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %2:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %c) : tensor<i32>, tensor<4xi1>
      cond {
        %c_2 = stablehlo.constant dense<4> : tensor<i32>
        %3 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      } do {
        %3 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<i1>, %arg9: tensor<i1>):
          %6 = stablehlo.or %arg8, %arg9 : tensor<i1>
          stablehlo.return %6 : tensor<i1>
        }) : (tensor<4xi1>) -> tensor<4xi1>
        %4 = stablehlo.or %iterArg_1, %3 : tensor<4xi1>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %5 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %5, %4 : tensor<i32>, tensor<4xi1>
      }
      sdy.return %2#1 : tensor<4xi1>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xi1>
    return %0 : tensor<8xi1>
  }
}

// -----

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: stablehlo.while
  // CHECK: } do {
  // CHECK: "stablehlo.all_reduce"
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xi1> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %1 = stablehlo.compare GT, %arg5, %cst : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      %c = stablehlo.constant dense<false> : tensor<4xi1>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %2:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %c) : tensor<i32>, tensor<4xi1>
      cond {
        %c_2 = stablehlo.constant dense<4> : tensor<i32>
        %3 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %3 : tensor<i1>
      } do {
        // expected-remark@+1 {{stablehlo.xor is not linear}}
        %3 = "stablehlo.all_reduce"(%1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<i1>, %arg9: tensor<i1>):
          %6 = stablehlo.or %arg8, %arg9 : tensor<i1>
          stablehlo.return %6 : tensor<i1>
        }) : (tensor<4xi1>) -> tensor<4xi1>
        %4 = stablehlo.xor %iterArg_1, %3 : tensor<4xi1>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %5 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %5, %4 : tensor<i32>, tensor<4xi1>
      }
      sdy.return %2#1 : tensor<4xi1>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xi1>
    return %0 : tensor<8xi1>
  }
}
