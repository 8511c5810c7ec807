// RUN: %hlorewrite opt %s --pass=interleave-micro-batches --topology=h200:1x4 --ignore-cost --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=interleave-micro-batches --topology=h200:1x4 --ignore-cost --split-input-file --check=proof -o %t.proved
// RUN: %hlorewrite opt %s --pass=interleave-micro-batches --topology=h200:1x4 --ignore-cost --split-input-file --remarks=applied,missed --verify-diagnostics -o %t.out

// Each of four micro-batches runs through three layers, and the gradients of the layers are stacked and summed up. Two
// micro-batches run through the layers together: weights are read once, sums are reduced one after the other, and one
// tensor stacks the gradients of both.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while(%[[BATCH:.+]] = %{{.+}}, %[[TOTAL:.+]] = %{{.+}}) : tensor<i32>, tensor<3x8xf32> attributes {hlorewrite.paired}
// CHECK: %[[ROW0:.+]] = stablehlo.dynamic_slice %arg0, %[[BATCH]]
// CHECK: %[[NEXT:.+]] = stablehlo.add %[[BATCH]], %{{.+}} : tensor<i32>
// CHECK: %[[ROW1:.+]] = stablehlo.dynamic_slice %arg0, %[[NEXT]]
// CHECK: %[[LAYERS:.+]]:4 = stablehlo.while(%{{.+}} = %{{.+}}, %[[X0:.+]] = %{{.+}}, %[[GRADS:.+]] = %{{.+}}, %[[X1:.+]] = %{{.+}})
// CHECK: %[[W:.+]] = stablehlo.reshape
// CHECK: %[[M0:.+]] = stablehlo.multiply %[[X0]], %[[W]]
// CHECK: %[[M1:.+]] = stablehlo.multiply %[[X1]], %[[W]]
// CHECK: %[[R0:.+]] = "stablehlo.all_reduce"(%[[M0]])
// CHECK: %[[R1:.+]] = "stablehlo.all_reduce"(%[[M1]])
// CHECK: combiner_key = "hlorewrite.second-micro-batch"
// CHECK: %[[T0:.+]] = stablehlo.tanh %[[R0]]
// CHECK: %[[T1:.+]] = stablehlo.tanh %[[R1]]
// CHECK: %[[G0:.+]] = stablehlo.reshape %[[T0]]
// CHECK: %[[G1:.+]] = stablehlo.reshape %[[T1]]
// CHECK: %[[G:.+]] = stablehlo.add %[[G0]], %[[G1]]
// CHECK: stablehlo.dynamic_update_slice %[[GRADS]], %[[G]]
// CHECK: stablehlo.add %[[TOTAL]], %[[LAYERS]]#2
// CHECK: %[[TWO:.+]] = stablehlo.constant dense<2>
// CHECK: stablehlo.add %[[BATCH]], %[[TWO]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%xs: tensor<4x8xf32>, %w: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %batches = stablehlo.constant dense<4> : tensor<i32>
    %layers = stablehlo.constant dense<3> : tensor<i32>
    %none = stablehlo.constant dense<0.0> : tensor<3x8xf32>
    // expected-remark@+1 {{its 4 iterations run two at a time, which keeps 32 bytes more}}
    %sum:2 = stablehlo.while(%i = %zero, %total = %none) : tensor<i32>, tensor<3x8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %batches : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %xs, %i, %zero, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
      %x = stablehlo.reshape %row : (tensor<1x8xf32>) -> tensor<8xf32>
      %out:3 = stablehlo.while(%j = %zero, %h = %x, %grads = %none) : tensor<i32>, tensor<8xf32>, tensor<3x8xf32>
      cond {
        %go = stablehlo.compare LT, %j, %layers : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %go : tensor<i1>
      } do {
        %cut = stablehlo.dynamic_slice %w, %j, %zero, sizes = [1, 8] : (tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
        %weight = stablehlo.reshape %cut : (tensor<1x8xf32>) -> tensor<8xf32>
        %m = stablehlo.multiply %h, %weight : tensor<8xf32>
        %r = "stablehlo.all_reduce"(%m) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
        ^bb0(%l: tensor<f32>, %o: tensor<f32>):
          %s = stablehlo.add %l, %o : tensor<f32>
          stablehlo.return %s : tensor<f32>
        }) : (tensor<8xf32>) -> tensor<8xf32>
        %t = stablehlo.tanh %r : tensor<8xf32>
        %g = stablehlo.reshape %t : (tensor<8xf32>) -> tensor<1x8xf32>
        %stack = stablehlo.dynamic_update_slice %grads, %g, %j, %zero : (tensor<3x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
        %k = stablehlo.add %j, %one : tensor<i32>
        stablehlo.return %k, %r, %stack : tensor<i32>, tensor<8xf32>, tensor<3x8xf32>
      }
      %added = stablehlo.add %total, %out#2 : tensor<3x8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %added : tensor<i32>, tensor<3x8xf32>
    }
    return %sum#1 : tensor<3x8xf32>
  }
}

// -----

// Each layer needs the one before it: a loop over layers has no micro-batches.
// CHECK-LABEL: func.func public @layers
// CHECK: stablehlo.while
// CHECK: "stablehlo.all_reduce"
// CHECK-NOT: "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @layers(%x: tensor<8xf32>) -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %layers = stablehlo.constant dense<4> : tensor<i32>
    // expected-remark@+1 {{its iterations stay apart: a collective, a product or a loop in it needs what it computes in the iteration before}}
    %out:2 = stablehlo.while(%i = %zero, %h = %x) : tensor<i32>, tensor<8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %layers : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %r = "stablehlo.all_reduce"(%h) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %o: tensor<f32>):
        %s = stablehlo.add %l, %o : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8xf32>) -> tensor<8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %r : tensor<i32>, tensor<8xf32>
    }
    return %out#1 : tensor<8xf32>
  }
}
