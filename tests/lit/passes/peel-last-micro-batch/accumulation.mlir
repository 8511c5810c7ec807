// RUN: %hlorewrite opt %s --pass=peel-last-micro-batch --ignore-cost --topology=h200:1x4 --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=peel-last-micro-batch --ignore-cost --topology=h200:1x4 --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// Four micro-batches; the sum of the gradients is reduced after the loop. Three are left in it.
// CHECK-LABEL: func.func @main
// CHECK: %[[LOOP:.+]]:2 = stablehlo.while
// CHECK-SAME: attributes {hlorewrite.peeled}
// CHECK: %[[BOUND:.+]] = stablehlo.constant dense<3> : tensor<i32>
// CHECK: stablehlo.compare LT, %{{.+}}, %[[BOUND]]
// CHECK: do {
// CHECK: stablehlo.return
// CHECK: %[[BEHIND:.+]]:2 = stablehlo.optimization_barrier %[[LOOP]]#0, %[[LOOP]]#1
// CHECK: %[[GRADIENT:.+]] = stablehlo.tanh %arg0
// CHECK: %[[SUM:.+]] = stablehlo.add %[[BEHIND]]#1, %[[GRADIENT]]
// CHECK: %[[REDUCED:.+]] = "stablehlo.all_reduce"(%[[SUM]])
// CHECK: return %[[REDUCED]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%batch: tensor<8xf32>) -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %micro_batches = stablehlo.constant dense<4> : tensor<i32>
    // expected-remark@+1 {{the last of 4 iterations runs after the loop: 1 reduction of 32 bytes after it take}}
    %loop:2 = stablehlo.while(%i = %first, %acc = %zero) : tensor<i32>, tensor<8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %micro_batches : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %gradient = stablehlo.tanh %batch : tensor<8xf32>
      %sum = stablehlo.add %acc, %gradient : tensor<8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8xf32>
    }
    %reduced = "stablehlo.all_reduce"(%loop#1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %reduced : tensor<8xf32>
  }
}

// -----

// The number of micro-batches is an argument, so there may be none: the last one runs in any case, and a select drops
// its results where the loop ran not at all. The condition also asks whether it will hold after the iteration.
// CHECK-LABEL: func.func @main
// CHECK: %[[RUNS:.+]] = stablehlo.compare LT, %{{.+}}, %arg1
// CHECK: %[[LOOP:.+]]:2 = stablehlo.while
// CHECK-SAME: attributes {hlorewrite.peeled}
// CHECK: %[[NOW:.+]] = stablehlo.compare LT, %{{.+}}, %arg1
// CHECK: %[[NEXT:.+]] = stablehlo.add %{{.+}}, %{{.+}}
// CHECK: %[[THEN:.+]] = stablehlo.compare LT, %[[NEXT]], %arg1
// CHECK: stablehlo.and %[[NOW]], %[[THEN]]
// CHECK: do {
// CHECK: stablehlo.return
// CHECK: %[[BEHIND:.+]]:2 = stablehlo.optimization_barrier %[[LOOP]]#0, %[[LOOP]]#1
// CHECK: %[[GRADIENT:.+]] = stablehlo.tanh %arg0
// CHECK: %[[SUM:.+]] = stablehlo.add %[[BEHIND]]#1, %[[GRADIENT]]
// CHECK: %[[RESULT:.+]] = stablehlo.select %[[RUNS]], %[[SUM]], %[[BEHIND]]#1
// CHECK: %[[REDUCED:.+]] = "stablehlo.all_reduce"(%[[RESULT]])
// CHECK: return %[[REDUCED]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%batch: tensor<8xf32>, %micro_batches: tensor<i32> {mhlo.sharding = "{replicated}"}) -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    // expected-remark@+1 {{the last of an unknown number of iterations (8 assumed) runs after the loop: 1 reduction}}
    %loop:2 = stablehlo.while(%i = %first, %acc = %zero) : tensor<i32>, tensor<8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %micro_batches : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %gradient = stablehlo.tanh %batch : tensor<8xf32>
      %sum = stablehlo.add %acc, %gradient : tensor<8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8xf32>
    }
    %reduced = "stablehlo.all_reduce"(%loop#1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %reduced : tensor<8xf32>
  }
}

// -----

// One micro-batch: the body takes the place of the loop.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.while
// CHECK: %[[GRADIENT:.+]] = stablehlo.tanh %arg0
// CHECK: %[[SUM:.+]] = stablehlo.add %{{.+}}, %[[GRADIENT]]
// CHECK: %[[REDUCED:.+]] = "stablehlo.all_reduce"(%[[SUM]])
// CHECK: return %[[REDUCED]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%batch: tensor<8xf32>) -> tensor<8xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
    %first = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %micro_batches = stablehlo.constant dense<1> : tensor<i32>
    // expected-remark@+1 {{it runs once, so its body replaces it}}
    %loop:2 = stablehlo.while(%i = %first, %acc = %zero) : tensor<i32>, tensor<8xf32>
    cond {
      %more = stablehlo.compare LT, %i, %micro_batches : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %gradient = stablehlo.tanh %batch : tensor<8xf32>
      %sum = stablehlo.add %acc, %gradient : tensor<8xf32>
      %next = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %next, %sum : tensor<i32>, tensor<8xf32>
    }
    %reduced = "stablehlo.all_reduce"(%loop#1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %reduced : tensor<8xf32>
  }
}

// -----

// A loop that ends when its sum is large: whether an iteration is the last is not known before it.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK-NOT: hlorewrite.peeled
// CHECK: "stablehlo.all_reduce"
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%batch: tensor<8xf32>) -> tensor<8xf32> {
    %limit = stablehlo.constant dense<3.0> : tensor<f32>
    %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
    %yes = stablehlo.constant dense<true> : tensor<i1>
    // expected-remark@+1 {{its last iteration stays in the loop: its condition depends on a value that its body computes from data}}
    %loop:2 = stablehlo.while(%more = %yes, %acc = %zero) : tensor<i1>, tensor<8xf32>
    cond {
      stablehlo.return %more : tensor<i1>
    } do {
      %gradient = stablehlo.exponential %batch : tensor<8xf32>
      %sum = stablehlo.add %acc, %gradient : tensor<8xf32>
      %first = stablehlo.slice %sum [0:1] : (tensor<8xf32>) -> tensor<1xf32>
      %norm = stablehlo.reshape %first : (tensor<1xf32>) -> tensor<f32>
      %small = stablehlo.compare LT, %norm, %limit : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %small, %sum : tensor<i1>, tensor<8xf32>
    }
    %reduced = "stablehlo.all_reduce"(%loop#1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8xf32>) -> tensor<8xf32>
    return %reduced : tensor<8xf32>
  }
}
