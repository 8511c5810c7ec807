// RUN: %hlorewrite opt %s --pass=interleave-halves --topology=h200:1x4 --ignore-cost --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=interleave-halves --topology=h200:1x4 --ignore-cost --split-input-file --remarks=applied,unprofitable,missed --verify-diagnostics -o %t.out

// A layer reduces what the next one reads. The loop carries two halves of the batch; each is reduced by itself, and the
// second one reads the weight behind a barrier. Before and after the loop the batch is whole.
// CHECK-LABEL: func.func @main
// CHECK: %[[FIRST:.+]] = stablehlo.slice %arg0 [0:4, 0:6]
// CHECK: %[[SECOND:.+]] = stablehlo.slice %arg0 [4:8, 0:6]
// CHECK: %[[HELD:.+]] = stablehlo.optimization_barrier %arg1 : tensor<6x6xf32>
// CHECK: %[[LOOP:.+]]:3 = stablehlo.while(%{{.+}} = %{{.+}}, %[[X0:.+]] = %[[FIRST]], %[[X1:.+]] = %[[SECOND]])
// CHECK: %[[T0:.+]] = stablehlo.tanh %[[X0]] : tensor<4x6xf32>
// CHECK: %[[T1:.+]] = stablehlo.tanh %[[X1]] : tensor<4x6xf32>
// CHECK: %[[P0:.+]] = stablehlo.dot_general %[[T0]], %arg1
// CHECK: %[[P1:.+]] = stablehlo.dot_general %[[T1]], %[[HELD]]
// CHECK: %[[R0:.+]] = "stablehlo.all_reduce"(%[[P0]])
// CHECK: %[[R1:.+]] = "stablehlo.all_reduce"(%[[P1]])
// CHECK: }) {hlorewrite.half, mhlo.frontend_attributes = {combiner_key = "hlorewrite.second-half"}}
// CHECK: stablehlo.return %{{.+}}, %[[R0]], %[[R1]]
// CHECK: %[[WHOLE:.+]] = stablehlo.concatenate %[[LOOP]]#1, %[[LOOP]]#2, dim = 0
// CHECK: return %[[WHOLE]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<8x6xf32>, %w: tensor<6x6xf32>) -> tensor<8x6xf32> {
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %layers = stablehlo.constant dense<3> : tensor<i32>
    %loop:2 = stablehlo.while(%i = %first, %h = %x) : tensor<i32>, tensor<8x6xf32>
    cond {
      %more = stablehlo.compare LT, %i, %layers : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %t = stablehlo.tanh %h : tensor<8x6xf32>
      %p = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
      // expected-remark@+1 {{it runs in two halves along dimension 0, each concurrently with compute of the other half}}
      %r = "stablehlo.all_reduce"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %o: tensor<f32>):
      %s = stablehlo.add %l, %o : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8x6xf32>) -> tensor<8x6xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %r : tensor<i32>, tensor<8x6xf32>
    }
    return %loop#1 : tensor<8x6xf32>
  }
}

// -----

// No other collective waits for a gradient's reduction, so there is nothing to run beside: it stays.
// CHECK-LABEL: func.func public @gradient
// CHECK: "stablehlo.all_reduce"
// CHECK-NOT: "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @gradient(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    // expected-remark@+1 {{it stays as it is: it is in no chain of collectives that wait for one another}}
    %r = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %o: tensor<f32>):
      %s = stablehlo.add %l, %o : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %y = stablehlo.tanh %r : tensor<8x6xf32>
    return %y : tensor<8x6xf32>
  }
}

// -----

// One sequence, whose rows the devices share: each has two of eight. Half of the rows is one row of each device, so that
// the scatter of a half begins while the product of the other half is computed.
// CHECK-LABEL: func.func public @shared
// CHECK: %[[A:.+]] = stablehlo.slice %arg0 [0:1, 0:6]
// CHECK: %[[B:.+]] = stablehlo.slice %arg0 [1:2, 0:6]
// CHECK: %[[G0:.+]] = "stablehlo.all_gather"(%[[A]]) {{.*}} -> tensor<4x6xf32>
// CHECK: %[[G1:.+]] = "stablehlo.all_gather"(%[[B]]) {{.*}} -> tensor<4x6xf32>
// CHECK: %[[P0:.+]] = stablehlo.dot_general %[[G0]], %arg1
// CHECK: %[[P1:.+]] = stablehlo.dot_general %[[G1]],
// CHECK: %[[S0:.+]] = "stablehlo.reduce_scatter"(%[[P0]])
// CHECK: %[[S1:.+]] = "stablehlo.reduce_scatter"(%[[P1]])
// CHECK: stablehlo.concatenate %[[S0]], %[[S1]], dim = 0 : (tensor<1x6xf32>, tensor<1x6xf32>) -> tensor<2x6xf32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @shared(%x: tensor<2x6xf32>, %w: tensor<6x6xf32>) -> tensor<2x6xf32> {
    %g = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x6xf32>) -> tensor<8x6xf32>
    %p = stablehlo.dot_general %g, %w, contracting_dims = [1] x [0] : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    // expected-remark@+1 {{it runs in two halves along dimension 0, with 1 more, each concurrently with compute of the other half}}
    %s = "stablehlo.reduce_scatter"(%p) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %o: tensor<f32>):
      %t = stablehlo.add %l, %o : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) : (tensor<8x6xf32>) -> tensor<2x6xf32>
    return %s : tensor<2x6xf32>
  }
}
