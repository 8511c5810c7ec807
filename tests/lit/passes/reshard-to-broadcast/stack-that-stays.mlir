// Stacks that must be gathered, or had better be, each with its reason.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast" --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: "stablehlo.all_gather"
  // CHECK-NOT: collective_broadcast
  // CHECK-NOT: all_reduce
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %pid = stablehlo.partition_id : tensor<ui32>
      %me = stablehlo.convert %pid : (tensor<ui32>) -> tensor<i32>
      %mine = stablehlo.add %me, %arg2 : tensor<i32>
      // expected-remark@+1 {{blocked: reshard-to-broadcast: the gather stays: the devices of a group may read different layers}}
      %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
      %sl = stablehlo.dynamic_slice %g, %mine, %c0, %c0, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
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
  // CHECK: "stablehlo.all_gather"
  // CHECK-NOT: collective_broadcast
  // CHECK-NOT: all_reduce
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      // expected-remark@+1 {{stablehlo.add reads all of it}}
      %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
      %sl = stablehlo.dynamic_slice %g, %arg2, %c0, %c0, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %l = stablehlo.reshape %sl : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %h = stablehlo.dot_general %arg1, %l, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
      %all = stablehlo.add %g, %g : tensor<8x16x16xf32>
      %first = stablehlo.slice %all [7:8, 0:4, 0:16] : (tensor<8x16x16xf32>) -> tensor<1x4x16xf32>
      %flat = stablehlo.reshape %first : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
      %y = stablehlo.add %h, %flat : tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: "stablehlo.all_gather"
  // CHECK-NOT: collective_broadcast
  // CHECK-NOT: all_reduce
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      // expected-remark@+1 {{a slice of it reads 2 layers, which may be on several devices}}
      %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
      %two = stablehlo.dynamic_slice %g, %arg2, %c0, %c0, sizes = [2, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x16x16xf32>
      %part = stablehlo.slice %two [1:2, 0:4, 0:16] : (tensor<2x16x16xf32>) -> tensor<1x4x16xf32>
      %y = stablehlo.reshape %part : (tensor<1x4x16xf32>) -> tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: "stablehlo.all_gather"
  // CHECK-NOT: collective_broadcast
  // CHECK-NOT: all_reduce
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      // expected-remark@+1 {{unprofitable: reshard-to-broadcast: the gather stays: sending single layers takes}}
      %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %loop:2 = stablehlo.while(%i = %c0, %h = %arg1) : tensor<i32>, tensor<4x16xf32>
      cond {
        %trips = stablehlo.constant dense<3> : tensor<i32>
        %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %sl = stablehlo.dynamic_slice %g, %i, %c0, %c0, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
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
  // CHECK: "stablehlo.all_gather"
  // CHECK-NOT: collective_broadcast
  // CHECK-NOT: all_reduce
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %pid = stablehlo.partition_id : tensor<ui32>
      %me = stablehlo.convert %pid : (tensor<ui32>) -> tensor<i32>
      %taken = stablehlo.compare EQ, %me, %c0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      // expected-remark@+1 {{blocked: reshard-to-broadcast: the gather stays: not all devices of a group may reach a slice of it}}
      %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x16x16xf32>) -> tensor<8x16x16xf32>
      %y = "stablehlo.if"(%taken) ({
        %sl = stablehlo.dynamic_slice %g, %arg2, %c0, %c0, sizes = [1, 16, 16] : (tensor<8x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
        %l = stablehlo.reshape %sl : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
        %h2 = stablehlo.dot_general %arg1, %l, contracting_dims = [1] x [0] : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
        stablehlo.return %h2 : tensor<4x16xf32>
      }, {
        stablehlo.return %arg1 : tensor<4x16xf32>
      }) : (tensor<i1>) -> tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NEXT: sdy.manual_computation
  // CHECK-NEXT: stablehlo.add
  // CHECK-NEXT: sdy.return
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %y = stablehlo.add %arg1, %arg1 : tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}
