// One layer of a stack by an argument; next to a fixed layer; from groups of their own; narrow indices; layers cut further.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast" --ignore-cost --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NOT: all_gather
  // CHECK: "stablehlo.all_reduce"
  // CHECK-NOT: all_gather
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      // expected-remark@+1 {{sent where it is read: masked-sum}}
      %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
      %sl = stablehlo.dynamic_slice %g, %arg2, %c0, %c0, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %l = stablehlo.reshape %sl : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %y = stablehlo.dot_general %arg1, %l, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NOT: all_gather
  // CHECK: stablehlo.slice %{{.+}} [1:2, 0:16, 0:16] : (tensor<2x16x16xf32>)
  // CHECK: "stablehlo.collective_broadcast"{{.+}}dense<{{\[\[}}2, 0, 1, 3]]>
  // CHECK: "stablehlo.all_reduce"
  // CHECK-NOT: all_gather
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %loop:2 = stablehlo.while(%i = %c0, %h = %arg1) : tensor<i32>, tensor<4x16xf32>
      cond {
        %trips = stablehlo.constant dense<3> : tensor<i32>
        %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        // expected-remark@+1 {{sent where it is read: broadcast, masked-sum}}
        %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
        %fixed = stablehlo.slice %g [5:6, 0:4, 0:16] : (tensor<8x16x16xf32>) -> tensor<1x4x16xf32>
        %flat = stablehlo.reshape %fixed : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
        %h1 = stablehlo.add %h, %flat : tensor<4x16xf32>
        %sl = stablehlo.dynamic_slice %g, %i, %c0, %c0, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
        %l = stablehlo.reshape %sl : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
        %h2 = stablehlo.dot_general %h1, %l, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
        %next = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %next, %h2 : tensor<i32>, tensor<4x16xf32>
      }
      %y = stablehlo.add %loop#1, %arg1 : tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NOT: all_gather
  // CHECK: dense<[1, 1, 0, 0]>
  // CHECK: "stablehlo.all_reduce"{{.+}}dense<{{\[\[}}3, 0], [2, 1]]>
  // CHECK-NOT: all_gather
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %loop:2 = stablehlo.while(%i = %c0, %h = %arg1) : tensor<i32>, tensor<4x16xf32>
      cond {
        %trips = stablehlo.constant dense<3> : tensor<i32>
        %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        // expected-remark@+1 {{sent where it is read: masked-sum}}
        %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[3, 0], [2, 1]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<4x16x16xf32>
        %sl = stablehlo.dynamic_slice %g, %i, %c0, %c0, sizes = [1, 16, 16] : (tensor<4x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
        %l = stablehlo.reshape %sl : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
        %h2 = stablehlo.dot_general %h, %l, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
        %next = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %next, %h2 : tensor<i32>, tensor<4x16xf32>
      }
      %y = stablehlo.add %loop#1, %arg1 : tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NOT: all_gather
  // CHECK: stablehlo.convert %{{.+}} : (tensor<ui8>) -> tensor<i32>
  // CHECK: stablehlo.clamp
  // CHECK-NOT: stablehlo.remainder
  // CHECK: %[[LAYER:.+]] = stablehlo.bitcast_convert %{{.+}} : (tensor<1x16x16xui32>) -> tensor<1x16x16xf32>
  // CHECK: stablehlo.dynamic_slice %[[LAYER]]
  // CHECK-NOT: all_gather
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %narrow = stablehlo.convert %arg2 : (tensor<i32>) -> tensor<ui8>
      %z = stablehlo.constant dense<0> : tensor<ui8>
      %k = stablehlo.constant dense<3> : tensor<ui8>
      %one = stablehlo.slice %arg0 [1:2, 0:16, 0:16] : (tensor<2x16x16xf32>) -> tensor<1x16x16xf32>
      // expected-remark@+1 {{sent where it is read: masked-sum}}
      %g = "stablehlo.all_gather"(%one) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<1x16x16xf32>) -> tensor<4x16x16xf32>
      %s = stablehlo.dynamic_slice %g, %narrow, %k, %z, sizes = [1, 4, 16] : (tensor<4x16x16xf32>, tensor<ui8>, tensor<ui8>, tensor<ui8>) -> tensor<1x4x16xf32>
      %y = stablehlo.reshape %s : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}
