// A program of several meshes: the gradient's reduction leaves the backward fragments for the update, once a step. The
// accumulator then holds each device's own sum: one more dimension, before it, cut over the axis that is still to be reduced.
// RUN: %hlorewrite opt %s --pass=comm-shift | %filecheck %s
// RUN: %hlorewrite opt %s --pass=comm-shift --check=interp -o %t && %hlorewrite opt %t --pass=comm-shift -o %t.again && cmp %t %t.again

// CHECK: mpmd.for ({{.+}}) {hlorewrite.sums = array<i1: true>
// CHECK-SAME: tensor<2x4xf32>, sharding=<@m0, [{"data"}, {}]>>
// CHECK-LABEL: func.func private @before_0
// CHECK: stablehlo.reshape {{.+}} : (tensor<4xf32>) -> tensor<1x4xf32>
// CHECK-LABEL: func.func private @b_0
// CHECK-NOT: all_reduce
// CHECK-LABEL: func.func private @update_0
// CHECK: "stablehlo.all_reduce"
// CHECK-SAME: replica_groups = dense<{{\[\[}}0, 2], [1, 3]]>
// CHECK: stablehlo.subtract

module @program {
  sdy.mesh @m0 = <["data"=2, "tensor"=2]>
  func.func public @main(%arg0: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %arg1: !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>> attributes {topology = #mpmd.topology<<"m0" : <["data"=2, "tensor"=2]>>>} {
    %0 = mpmd.fragment_call<mesh="m0", origin=[]> @before_0_1() {hlorewrite.stage = 0 : i64, hlorewrite.task = "before"} : () -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    %1 = mpmd.for (%0) {hlorewrite.sums = array<i1: true>, iterations = 4 : ui32} (%arg2: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %index: tensor<ui32>) {
      %3 = mpmd.assign %index : (tensor<ui32>) -> !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>
      %4 = mpmd.call @microbatch(%arg2, %arg0, %arg1, %3) : (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
      mpmd.return %4 : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    } : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    %2 = mpmd.fragment_call<mesh="m0", origin=[]> @update_0_3(%arg0, %1) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    return %2 : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
  }
  func.func private @microbatch(%arg0: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %arg1: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %arg2: !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>, %arg3: !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>> attributes {topology = #mpmd.topology<<"m0" : <["data"=2, "tensor"=2]>>>} {
    %0 = mpmd.fragment_call<mesh="m0", origin=[]> @b_0_2(%arg1, %arg2, %arg3, %arg0) {hlorewrite.stage = 0 : i64, hlorewrite.task = "B"} : (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    return %0 : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
  }
  func.func private @before_0_1() -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=2]>} {
    %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@m0, [{}]>] manual_axes={"data", "tensor"} () {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      sdy.return %cst : tensor<4xf32>
    } : () -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @b_0_2(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}]>}, %arg2: tensor<ui32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg3: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=2]>} {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@m0, [{}]>, <@m0, [{}, {"data"}]>, <@m0, []>, <@m0, [{}]>] out_shardings=[<@m0, [{}]>] manual_axes={"data", "tensor"} (%arg4: tensor<4xf32>, %arg5: tensor<4x4xf32>, %arg6: tensor<ui32>, %arg7: tensor<4xf32>) {
      %1 = stablehlo.convert %arg6 : (tensor<ui32>) -> tensor<i32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.dynamic_slice %arg5, %1, %c, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x4xf32>) -> tensor<4xf32>
      %4 = stablehlo.multiply %3, %arg4 : tensor<4xf32>
      %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %7 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %7 : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %6 = stablehlo.add %arg7, %5 : tensor<4xf32>
      sdy.return %6 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4x8xf32>, tensor<ui32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @update_0_3(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=2]>} {
    %0 = sdy.manual_computation(%arg0, %arg1) in_shardings=[<@m0, [{}]>, <@m0, [{}]>] out_shardings=[<@m0, [{}]>] manual_axes={"data", "tensor"} (%arg2: tensor<4xf32>, %arg3: tensor<4xf32>) {
      %cst = stablehlo.constant dense<1.000000e-01> : tensor<4xf32>
      %1 = stablehlo.multiply %arg3, %cst : tensor<4xf32>
      %2 = stablehlo.subtract %arg2, %1 : tensor<4xf32>
      sdy.return %2 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
