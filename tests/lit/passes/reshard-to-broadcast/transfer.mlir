// Transfers between meshes: layouts that differ get a plan that a reader may ignore; the rest stays as it is.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast{topology=p3.8xlarge:4x4}" --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: mpmd.transfer {hlorewrite.reshard = {digest = "{{[0-9a-f]+}}", order = "optimal", strategy = "broadcast",
  // CHECK-SAME: receivers = array<i64: 8, 9, 10, 11>, sender = 0 : i64, slice = array<i64: 0, 512, 0, 32>
  // CHECK-SAME: receivers = array<i64: 12, 13, 14, 15>, sender = 4 : i64, slice = array<i64: 512, 1024, 32, 64>
  func.func public @main(%x: !mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"x"}]>> attributes {topology = #mpmd.topology<<"m0" : <["x"=2, "y"=4]>>, <"m1" : <["x"=2, "y"=4]>>>} {
    // expected-remark@+1 {{applied: reshard-to-broadcast: the transfer is planned as broadcast}}
    %0 = mpmd.transfer %x : (!mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"x"}]>>
    return %0 : !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"x"}]>>
  }
}

// -----

module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: mpmd.transfer %
  func.func public @main(%x: !mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>> attributes {topology = #mpmd.topology<<"m0" : <["x"=2, "y"=4]>>, <"m1" : <["x"=2, "y"=4]>>>} {
    // expected-remark@+1 {{missed: reshard-to-broadcast: the transfer needs no plan}}
    %0 = mpmd.transfer %x : (!mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>
    return %0 : !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>
  }
}

// -----

module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: mpmd.transfer {hlorewrite.reshard = {
  func.func public @main(%x: !mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"y":(2)2}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>> attributes {topology = #mpmd.topology<<"m0" : <["x"=2, "y"=4]>>, <"m1" : <["x"=2, "y"=4]>>>} {
    // expected-remark@+1 {{applied: reshard-to-broadcast}}
    %0 = mpmd.transfer %x : (!mpmd.mesh_tensor<"m0", tensor<1024x64xf32>, sharding=<@mesh, [{}, {"y":(2)2}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>
    return %0 : !mpmd.mesh_tensor<"m1", tensor<1024x64xf32>, sharding=<@mesh, [{"x"}, {}]>>
  }
}

// -----

module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: mpmd.transfer %
  func.func public @main(%x: !mpmd.mesh_tensor<"m0", tensor<0x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<0x64xf32>, sharding=<@mesh, [{}, {"x"}]>> attributes {topology = #mpmd.topology<<"m0" : <["x"=2, "y"=4]>>, <"m1" : <["x"=2, "y"=4]>>>} {
    // expected-remark@+1 {{blocked: reshard-to-broadcast: the transfer gets no plan: it moves nothing}}
    %0 = mpmd.transfer %x : (!mpmd.mesh_tensor<"m0", tensor<0x64xf32>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<0x64xf32>, sharding=<@mesh, [{}, {"x"}]>>
    return %0 : !mpmd.mesh_tensor<"m1", tensor<0x64xf32>, sharding=<@mesh, [{}, {"x"}]>>
  }
}

// -----

module {
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: mpmd.transfer %
  func.func public @main(%x: !mpmd.mesh_tensor<"m0", tensor<1024x64xi4>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xi4>, sharding=<@mesh, [{}, {"x"}]>> attributes {topology = #mpmd.topology<<"m0" : <["x"=2, "y"=4]>>, <"m1" : <["x"=2, "y"=4]>>>} {
    // expected-remark@+1 {{blocked: reshard-to-broadcast: the transfer gets no plan: elements of type i4 share bytes}}
    %0 = mpmd.transfer %x : (!mpmd.mesh_tensor<"m0", tensor<1024x64xi4>, sharding=<@mesh, [{"x"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<1024x64xi4>, sharding=<@mesh, [{}, {"x"}]>>
    return %0 : !mpmd.mesh_tensor<"m1", tensor<1024x64xi4>, sharding=<@mesh, [{}, {"x"}]>>
  }
}
