// A layer beside an op of its own, and the layer alone on another mesh: it becomes a fragment that is equal to the other one
// except for the mesh.
// RUN: %hlorewrite opt %s --pass='share-fragments{least=4}' --check=interp | %filecheck %s

module @two {
  sdy.mesh @m0 = <["d"=1]>
  sdy.mesh @m1 = <["d"=1]>
// CHECK-LABEL: func.func public @main
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %[[ARG_1:[A-Za-z0-9_]+]]: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %[[ARG_2:[A-Za-z0-9_]+]]: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %[[ARG_3:[A-Za-z0-9_]+]]: !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>, %[[ARG_4:[A-Za-z0-9_]+]]: !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) attributes {topology = #mpmd.topology<<"m0" : <["d"=1]>>, <"m1" : <["d"=1]>>>} {
// CHECK-NEXT: %[[FRAGMENT_CALL_0:[A-Za-z0-9_]+]] = mpmd.fragment_call<mesh="m0", origin=["x"]> @large(%[[ARG_0]], %[[ARG_1]]) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>
// CHECK-NEXT: %[[FRAGMENT_CALL_1:[A-Za-z0-9_]+]] = mpmd.fragment_call<mesh="m0", origin=["x"]> @large_1(%[[ARG_2]]) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>) -> !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>
// CHECK-NEXT: %[[FRAGMENT_CALL_2:[A-Za-z0-9_]+]] = mpmd.fragment_call<mesh="m1", origin=["x"]> @small(%[[ARG_3]], %[[ARG_4]]) {hlorewrite.stage = 1 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>
// CHECK-NEXT: return %[[FRAGMENT_CALL_1]], %[[FRAGMENT_CALL_0]], %[[FRAGMENT_CALL_2]] : !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>
// CHECK-NEXT: }
  func.func public @main(%arg0: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %arg1: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %arg2: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %arg3: !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>, %arg4: !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) attributes {topology = #mpmd.topology<<"m0" : <["d"=1]>>, <"m1" : <["d"=1]>>>} {
    %0:2 = mpmd.fragment_call<mesh="m0", origin=["x"]> @large(%arg0, %arg1, %arg2) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>)
    %1 = mpmd.fragment_call<mesh="m1", origin=["x"]> @small(%arg3, %arg4) {hlorewrite.stage = 1 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>
    return %0#0, %0#1, %1 : !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>
  }
// CHECK-LABEL: func.func private @large
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["d"=1]>} {
// CHECK-NEXT: %[[TANH_0:[A-Za-z0-9_]+]] = stablehlo.tanh %[[ARG_0]] : tensor<4x4xf32>
// CHECK-NEXT: %[[DOT_GENERAL_0:[A-Za-z0-9_]+]] = stablehlo.dot_general %[[TANH_0]], %[[ARG_1]], contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[DOT_GENERAL_0]], %[[ARG_0]] : tensor<4x4xf32>
// CHECK-NEXT: %[[SINE_0:[A-Za-z0-9_]+]] = stablehlo.sine %[[ADD_0]] : tensor<4x4xf32>
// CHECK-NEXT: return %[[SINE_0]] : tensor<4x4xf32>
// CHECK-NEXT: }
  func.func private @large(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg2: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["d"=1]>} {
    %0 = stablehlo.tanh %arg0 : tensor<4x4xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.add %1, %arg0 : tensor<4x4xf32>
    %3 = stablehlo.sine %2 : tensor<4x4xf32>
    %4 = stablehlo.cosine %arg2 : tensor<4x4xf32>
    return %4, %3 : tensor<4x4xf32>, tensor<4x4xf32>
  }
// CHECK-LABEL: func.func private @large_1
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["d"=1]>} {
// CHECK-NEXT: %[[COSINE_0:[A-Za-z0-9_]+]] = stablehlo.cosine %[[ARG_0]] : tensor<4x4xf32>
// CHECK-NEXT: return %[[COSINE_0]] : tensor<4x4xf32>
// CHECK-NEXT: }
// CHECK-LABEL: func.func private @small
// CHECK-SAME: (%[[ARG_0:[A-Za-z0-9_]+]]: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %[[ARG_1:[A-Za-z0-9_]+]]: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["d"=1]>} {
// CHECK-NEXT: %[[TANH_0:[A-Za-z0-9_]+]] = stablehlo.tanh %[[ARG_0]] : tensor<4x4xf32>
// CHECK-NEXT: %[[DOT_GENERAL_0:[A-Za-z0-9_]+]] = stablehlo.dot_general %[[TANH_0]], %[[ARG_1]], contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT: %[[ADD_0:[A-Za-z0-9_]+]] = stablehlo.add %[[DOT_GENERAL_0]], %[[ARG_0]] : tensor<4x4xf32>
// CHECK-NEXT: %[[SINE_0:[A-Za-z0-9_]+]] = stablehlo.sine %[[ADD_0]] : tensor<4x4xf32>
// CHECK-NEXT: return %[[SINE_0]] : tensor<4x4xf32>
// CHECK-NEXT: }
  func.func private @small(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["d"=1]>} {
    %0 = stablehlo.tanh %arg0 : tensor<4x4xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.add %1, %arg0 : tensor<4x4xf32>
    %3 = stablehlo.sine %2 : tensor<4x4xf32>
    return %3 : tensor<4x4xf32>
  }
}
