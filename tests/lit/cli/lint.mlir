// lint names the form, the line and the affected releases, and fails.
// RUN: not %hlorewrite lint %s | %filecheck %s
// RUN: not %hlorewrite lint %s --json | %filecheck %s --check-prefix=JSON
// RUN: not %hlorewrite lint %s --jaxlib=ten 2>&1 | %filecheck %s --check-prefix=VERSION

// CHECK: lint.mlir:33:{{[0-9]+}}: warning: XLA on GPU miscompiles this all-reduce (form U2)
// CHECK: here: the predicate of the select differs between devices
// CHECK: affected: every jaxlib up to 0.11.2
// CHECK: --xla_disable_hlo_passes=while-loop-all-reduce-code-motion

// JSON: "all_reduces": 1
// JSON: "form": "U2"
// JSON: "platform": "gpu"

// VERSION: "ten" is not a release of jaxlib; write it as 0.10.2

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%arg0: tensor<4xf32>, %arg1: tensor<8xf32>, %arg2: tensor<8xf32>, %arg3: tensor<i32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{"x"}]>, <@mesh, []>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%arg4: tensor<4xf32>, %arg5: tensor<4xf32>, %arg6: tensor<4xf32>, %arg7: tensor<i32>) {
      %1 = stablehlo.partition_id : tensor<ui32>
      %2 = stablehlo.convert %1 : (tensor<ui32>) -> tensor<i32>
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %3 = stablehlo.compare EQ, %2, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %c_0 = stablehlo.constant dense<0> : tensor<i32>
      %4:2 = stablehlo.while(%iterArg = %c_0, %iterArg_1 = %cst) : tensor<i32>, tensor<4xf32>
      cond {
        %c_2 = stablehlo.constant dense<4> : tensor<i32>
        %5 = stablehlo.compare LT, %iterArg, %c_2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %5 = "stablehlo.all_reduce"(%arg5) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
          %9 = stablehlo.add %arg8, %arg9 : tensor<f32>
          stablehlo.return %9 : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %6 = stablehlo.select %3, %cst, %5 : tensor<i1>, tensor<4xf32>
        %7 = stablehlo.add %iterArg_1, %6 : tensor<4xf32>
        %c_2 = stablehlo.constant dense<1> : tensor<i32>
        %8 = stablehlo.add %iterArg, %c_2 : tensor<i32>
        stablehlo.return %8, %7 : tensor<i32>, tensor<4xf32>
      }
      sdy.return %4#1 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<i32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
