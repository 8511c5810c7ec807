// The same for CPU: no broadcast is left, and what would only become itself again stays.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast{target=cpu topology=p3.8xlarge:4x1}" --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: stablehlo.select
  // CHECK: "stablehlo.all_reduce"
  // CHECK-NOT: bitcast_convert
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      %pid = stablehlo.partition_id : tensor<ui32>
      %two = stablehlo.constant dense<2> : tensor<ui32>
      %mine = stablehlo.compare EQ, %pid, %two : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
      %zero = stablehlo.constant dense<0.000000e+00> : tensor<4x16xf32>
      %kept = stablehlo.select %mine, %arg1, %zero : tensor<i1>, tensor<4x16xf32>
      // expected-remark@+1 {{missed: masked-sum-to-broadcast: the reduction stays: no chain of permutes is faster}}
      %y = "stablehlo.all_reduce"(%kept) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%u: tensor<f32>, %v: tensor<f32>):
        %t = stablehlo.add %u, %v : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }) : (tensor<4x16xf32>) -> tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NOT: {{collective_permute|collective_broadcast}}
  // CHECK: "stablehlo.all_reduce"
  // CHECK-NOT: {{collective_permute|collective_broadcast}}
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      // expected-remark@+1 {{applied: permutes-to-broadcast}}
      %p = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %q = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[1, 2]]> : tensor<1x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %r = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[1, 3]]> : tensor<1x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %pq = stablehlo.add %p, %q : tensor<4x16xf32>
      %y = stablehlo.add %pq, %r : tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}

// -----

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NOT: {{all_gather|collective_broadcast}}
  // CHECK: "stablehlo.all_reduce"
  // CHECK-NOT: {{all_gather|collective_broadcast}}
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      // expected-remark@+1 {{applied: gather-to-broadcast}}
      %g = "stablehlo.all_gather"(%arg1) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<4x16xf32>) -> tensor<16x16xf32>
      %y = stablehlo.slice %g [8:12, 0:16] : (tensor<16x16xf32>) -> tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}
