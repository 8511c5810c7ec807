// RUN: %hlorewrite opt %s --pass=rotate-collectives --ignore-cost --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=rotate-collectives --ignore-cost --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// The reduction of a layer's gradient runs concurrently with the next layer: the first gradient precedes the loop, the last reduction
// after it.
// CHECK-LABEL: func.func @main
// CHECK: %[[FIRST:.+]] = stablehlo.tanh %arg0
// CHECK: %[[SECOND:.+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK: %[[LOOP:.+]]:3 = stablehlo.while(%[[I:.+]] = %[[SECOND]], %[[H:.+]] = %[[FIRST]], %[[TOTAL:.+]] = %{{[^)]+}})
// CHECK-SAME: attributes {hlorewrite.overlapped, hlorewrite.rotated}
// CHECK: %[[REDUCED:.+]] = "stablehlo.all_reduce"(%[[H]])
// CHECK: %[[SUM:.+]] = stablehlo.add %[[TOTAL]], %[[REDUCED]]
// CHECK: %[[NEXT:.+]] = stablehlo.tanh %[[H]]
// CHECK: stablehlo.return %{{.+}}, %[[NEXT]], %[[SUM]] :
// CHECK: %[[BEHIND:.+]]:3 = stablehlo.optimization_barrier
// CHECK: %[[LAST:.+]] = "stablehlo.all_reduce"(%[[BEHIND]]#1)
// CHECK: %[[ALL:.+]] = stablehlo.add %[[BEHIND]]#2, %[[LAST]]
// CHECK: return %[[ALL]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %layers = stablehlo.constant dense<3> : tensor<i32>
    // expected-remark@+1 {{rotated: an iteration, of which a collective takes}}
    %loop:3 = stablehlo.while(%i = %first, %h = %x, %total = %zero) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %layers : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %gradient = stablehlo.tanh %h : tensor<8xf32>
      %reduced = "stablehlo.all_reduce"(%gradient) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
      %sum = stablehlo.add %total, %reduced : tensor<8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %gradient, %sum : tensor<i32>, tensor<8xf32>, tensor<8xf32>
    }
    return %loop#2 : tensor<8xf32>
  }
}
