// The strategy and the order of transfers can be chosen.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast{strategy=all-gather order=size topology=p3.8xlarge:4x4}" --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: mpmd.transfer {hlorewrite.reshard = {{{.+}}order = "size", strategy = "all-gather"
  func.func public @main(%x: !mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"x"}]>> attributes {topology = #mpmd.topology<<"m0" : <["x"=2, "y"=4]>>, <"m1" : <["x"=2, "y"=4]>>>} {
    // expected-remark@+1 {{the transfer is planned as all-gather}}
    %0 = mpmd.transfer %x : (!mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"x"}]>>
    return %0 : !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"x"}]>>
  }
}
