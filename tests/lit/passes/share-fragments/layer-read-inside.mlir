// The fragment reads a value of the layer that the layer alone does not return: it stays whole.
// RUN: %hlorewrite opt %s --pass='share-fragments{least=4}' --remarks=blocked --verify-diagnostics -o %t.out

module @two {
  sdy.mesh @m0 = <["d"=1]>
  sdy.mesh @m1 = <["d"=1]>
  func.func public @main(%arg0: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %arg1: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %arg2: !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, %arg3: !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>, %arg4: !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) attributes {topology = #mpmd.topology<<"m0" : <["d"=1]>>, <"m1" : <["d"=1]>>>} {
    // expected-remark @below {{@large stays whole: it contains what @small does, but a value is read or returned that the part does not return}}
    %0:3 = mpmd.fragment_call<mesh="m0", origin=["x"]> @large(%arg0, %arg1, %arg2) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>)
    %1 = mpmd.fragment_call<mesh="m1", origin=["x"]> @small(%arg3, %arg4) {hlorewrite.stage = 1 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>
    return %0#0, %0#1, %0#2, %1 : !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x4xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x4xf32>, sharding=<@m1, [{}, {}]>>
  }
  func.func private @large(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg2: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["d"=1]>} {
    %0 = stablehlo.tanh %arg0 : tensor<4x4xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.add %1, %arg0 : tensor<4x4xf32>
    %3 = stablehlo.sine %2 : tensor<4x4xf32>
    %4 = stablehlo.cosine %arg2 : tensor<4x4xf32>
    %5 = stablehlo.add %1, %4 : tensor<4x4xf32>
    return %4, %3, %5 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
  }
  func.func private @small(%arg0: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg1: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) -> (tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["d"=1]>} {
    %0 = stablehlo.tanh %arg0 : tensor<4x4xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.add %1, %arg0 : tensor<4x4xf32>
    %3 = stablehlo.sine %2 : tensor<4x4xf32>
    return %3 : tensor<4x4xf32>
  }
}
