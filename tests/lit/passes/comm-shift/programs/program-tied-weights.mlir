// Tied weights have a gradient on each of two meshes. The sum of one is sent before it is reduced, and the sum of both is
// reduced once, after their addition.
// RUN: %hlorewrite opt %s --pass=comm-shift | %filecheck %s
// RUN: %hlorewrite opt %s --pass=comm-shift --check=interp --remarks -o %t 2>&1 | %filecheck %s --check-prefix=SAID

// CHECK-LABEL: func.func public @main
// CHECK: mpmd.transfer {{.+}}tensor<2x4xf32>, sharding=<@m1, [{"data"}, {}]>>) -> {{.+}}tensor<2x4xf32>, sharding=<@m0, [{"data"}, {}]>>
// CHECK-LABEL: func.func private @b_0
// CHECK-NOT: all_reduce
// CHECK-LABEL: func.func private @update_0
// CHECK: %[[BOTH:.+]] = stablehlo.add
// CHECK: "stablehlo.all_reduce"(%[[BOTH]])
// CHECK-NOT: all_reduce
// SAID: sent to mesh m0 before it is reduced: one reduction there covers the sums of both meshes

module @program {
  sdy.mesh @m0 = <["data"=2]>
  sdy.mesh @m1 = <["data"=2]>
  func.func public @main(%arg0: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %arg1: !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>, %arg2: !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>, %arg3: !mpmd.mesh_tensor<"m1", tensor<4x8xf32>, sharding=<@m1, [{}, {"data"}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>> attributes {topology = #mpmd.topology<<"m0" : <["data"=2]>>, <"m1" : <["data"=2]>>>} {
    %0 = mpmd.fragment_call<mesh="m0", origin=[]> @before_0_1() {hlorewrite.stage = 0 : i64, hlorewrite.task = "before"} : () -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    %1 = mpmd.fragment_call<mesh="m1", origin=[]> @before_1_2() {hlorewrite.stage = 1 : i64, hlorewrite.task = "before"} : () -> !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>
    %2:2 = mpmd.for (%0, %1) {hlorewrite.sums = array<i1: true, true>, iterations = 4 : ui32} (%arg4: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %arg5: !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>, %index: tensor<ui32>) {
      %5 = mpmd.assign %index : (tensor<ui32>) -> !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>
      %6 = mpmd.assign %index : (tensor<ui32>) -> !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>
      %7:2 = mpmd.call @microbatch(%arg4, %arg5, %arg0, %arg1, %arg2, %arg3, %5, %6) : (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4x8xf32>, sharding=<@m1, [{}, {"data"}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>)
      mpmd.return %7#0, %7#1 : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>
    } : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>
    %3 = mpmd.transfer %2#1 : (!mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    %4 = mpmd.fragment_call<mesh="m0", origin=[]> @update_0_5(%arg0, %2#0, %3) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    return %4 : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
  }
  func.func private @microbatch(%arg0: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %arg1: !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>, %arg2: !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, %arg3: !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>, %arg4: !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>, %arg5: !mpmd.mesh_tensor<"m1", tensor<4x8xf32>, sharding=<@m1, [{}, {"data"}]>>, %arg6: !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, %arg7: !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>) attributes {topology = #mpmd.topology<<"m0" : <["data"=2]>>, <"m1" : <["data"=2]>>>} {
    %0 = mpmd.fragment_call<mesh="m0", origin=[]> @b_0_3(%arg2, %arg3, %arg6, %arg0) {hlorewrite.stage = 0 : i64, hlorewrite.task = "B"} : (!mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<4x8xf32>, sharding=<@m0, [{}, {"data"}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>
    %1 = mpmd.fragment_call<mesh="m1", origin=[]> @b_1_4(%arg4, %arg5, %arg7, %arg1) {hlorewrite.stage = 1 : i64, hlorewrite.task = "B"} : (!mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4x8xf32>, sharding=<@m1, [{}, {"data"}]>>, !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>) -> !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>
    return %0, %1 : !mpmd.mesh_tensor<"m0", tensor<4xf32>, sharding=<@m0, [{}]>>, !mpmd.mesh_tensor<"m1", tensor<4xf32>, sharding=<@m1, [{}]>>
  }
  func.func private @before_0_1() -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
    %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@m0, [{}]>] manual_axes={"data"} () {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      sdy.return %cst : tensor<4xf32>
    } : () -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @before_1_2() -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
    %0 = sdy.manual_computation() in_shardings=[] out_shardings=[<@m1, [{}]>] manual_axes={"data"} () {
      %cst = stablehlo.constant dense<0.000000e+00> : tensor<4xf32>
      sdy.return %cst : tensor<4xf32>
    } : () -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @b_0_3(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}]>}, %arg2: tensor<ui32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg3: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@m0, [{}]>, <@m0, [{}, {"data"}]>, <@m0, []>, <@m0, [{}]>] out_shardings=[<@m0, [{}]>] manual_axes={"data"} (%arg4: tensor<4xf32>, %arg5: tensor<4x4xf32>, %arg6: tensor<ui32>, %arg7: tensor<4xf32>) {
      %1 = stablehlo.convert %arg6 : (tensor<ui32>) -> tensor<i32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.dynamic_slice %arg5, %1, %c, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x4xf32>) -> tensor<4xf32>
      %4 = stablehlo.multiply %3, %arg4 : tensor<4xf32>
      %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %7 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %7 : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %6 = stablehlo.add %arg7, %5 : tensor<4xf32>
      sdy.return %6 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4x8xf32>, tensor<ui32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @b_1_4(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}]>}, %arg1: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}]>}, %arg2: tensor<ui32> {sdy.sharding = #sdy.sharding<@m1, []>}, %arg3: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2, %arg3) in_shardings=[<@m1, [{}]>, <@m1, [{}, {"data"}]>, <@m1, []>, <@m1, [{}]>] out_shardings=[<@m1, [{}]>] manual_axes={"data"} (%arg4: tensor<4xf32>, %arg5: tensor<4x4xf32>, %arg6: tensor<ui32>, %arg7: tensor<4xf32>) {
      %1 = stablehlo.convert %arg6 : (tensor<ui32>) -> tensor<i32>
      %c = stablehlo.constant dense<0> : tensor<i32>
      %2 = stablehlo.dynamic_slice %arg5, %1, %c, sizes = [1, 4] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<1x4xf32>
      %3 = stablehlo.reshape %2 : (tensor<1x4xf32>) -> tensor<4xf32>
      %4 = stablehlo.multiply %3, %arg4 : tensor<4xf32>
      %5 = "stablehlo.all_reduce"(%4) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%arg8: tensor<f32>, %arg9: tensor<f32>):
        %7 = stablehlo.add %arg8, %arg9 : tensor<f32>
        stablehlo.return %7 : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %6 = stablehlo.add %arg7, %5 : tensor<4xf32>
      sdy.return %6 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4x8xf32>, tensor<ui32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func private @update_0_5(%arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}, %arg1: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}, %arg2: tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2]>} {
    %0 = sdy.manual_computation(%arg0, %arg1, %arg2) in_shardings=[<@m0, [{}]>, <@m0, [{}]>, <@m0, [{}]>] out_shardings=[<@m0, [{}]>] manual_axes={"data"} (%arg3: tensor<4xf32>, %arg4: tensor<4xf32>, %arg5: tensor<4xf32>) {
      %1 = stablehlo.add %arg4, %arg5 : tensor<4xf32>
      %2 = stablehlo.subtract %arg3, %1 : tensor<4xf32>
      sdy.return %2 : tensor<4xf32>
    } : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
