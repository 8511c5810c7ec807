// RUN: %hlorewrite opt %s --pass=sink-reductions --ignore-cost --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=sink-reductions --ignore-cost --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// Gradients of three layers, stacked by a loop and added to the sums of earlier micro-batches: each is reduced in its iteration, and
// the stacked tensor starts as the sums.
// CHECK-LABEL: func.func @main
// CHECK: %[[LOOP:.+]]:3 = stablehlo.while(%[[I:.+]] = %{{.+}}, %[[H:.+]] = %arg0, %[[ROWS:.+]] = %arg1)
// CHECK-SAME: attributes {hlorewrite.overlapped}
// CHECK: %[[ROW:.+]] = stablehlo.reshape
// CHECK: %[[OLD:.+]] = stablehlo.dynamic_slice %[[ROWS]], %[[I]], %{{.+}}, sizes = [1, 8]
// CHECK: %[[SUM:.+]] = stablehlo.add %[[OLD]], %[[ROW]] : tensor<1x8xf32>
// CHECK: %[[REDUCED:.+]] = "stablehlo.all_reduce"(%[[SUM]])
// CHECK: stablehlo.dynamic_update_slice %[[ROWS]], %[[REDUCED]], %[[I]]
// CHECK: return %[[LOOP]]#2
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<8xf32>, %sums: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %zeros = stablehlo.constant dense<0.0> : tensor<3x8xf32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %layers = stablehlo.constant dense<3> : tensor<i32>
    // expected-remark@+1 {{1 reductions of what it stacks go into it: reducing 96 bytes in 3 parts leaves}}
    %loop:3 = stablehlo.while(%i = %first, %h = %x, %rows = %zeros) : tensor<i32>, tensor<8xf32>, tensor<3x8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %layers : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %gradient = stablehlo.tanh %h : tensor<8xf32>
      %row = stablehlo.reshape %gradient : (tensor<8xf32>) -> tensor<1x8xf32>
      %stacked = stablehlo.dynamic_update_slice %rows, %row, %i, %zero : (tensor<3x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %gradient, %stacked : tensor<i32>, tensor<8xf32>, tensor<3x8xf32>
    }
    %sum = stablehlo.add %sums, %loop#2 : tensor<3x8xf32>
    %reduced = "stablehlo.all_reduce"(%sum) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<3x8xf32>) -> tensor<3x8xf32>
    return %reduced : tensor<3x8xf32>
  }
}

// -----

// Each iteration writes the same row, so two are lost and one is none of the gradients: the reduction stays after the loop.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK-NOT: hlorewrite.overlapped
// CHECK: "stablehlo.all_reduce"(%{{.+}}) {{.+}}
// CHECK: (tensor<3x8xf32>) -> tensor<3x8xf32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<8xf32>, %sums: tensor<3x8xf32>) -> tensor<3x8xf32> {
    %zeros = stablehlo.constant dense<0.0> : tensor<3x8xf32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %layers = stablehlo.constant dense<3> : tensor<i32>
    %loop:3 = stablehlo.while(%i = %first, %h = %x, %rows = %zeros) : tensor<i32>, tensor<8xf32>, tensor<3x8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %layers : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %gradient = stablehlo.tanh %h : tensor<8xf32>
      %row = stablehlo.reshape %gradient : (tensor<8xf32>) -> tensor<1x8xf32>
      %stacked = stablehlo.dynamic_update_slice %rows, %row, %zero, %zero : (tensor<3x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %gradient, %stacked : tensor<i32>, tensor<8xf32>, tensor<3x8xf32>
    }
    %sum = stablehlo.add %sums, %loop#2 : tensor<3x8xf32>
    %reduced = "stablehlo.all_reduce"(%sum) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<3x8xf32>) -> tensor<3x8xf32>
    return %reduced : tensor<3x8xf32>
  }
}
