// Equal collectives of equal operands become one.
// RUN: %hlorewrite opt %s --pass=collective-cse --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=collective-cse --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[ALL_REDUCE]], %[[ALL_REDUCE]]
// CHECK: return %[[MULTIPLY]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+2 {{collective-cse: its result is that of}}
    // expected-remark@+1 {{collective-cse: no op reads it: it is removed}}
    %sum2 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %product = stablehlo.multiply %sum, %sum2 : tensor<4xf32>
    return %product : tensor<4xf32>
  }
}

// -----

// It fires.
// CHECK-LABEL: func.func @main
// CHECK: %[[COLLECTIVE_PERMUTE:.+]] = "stablehlo.collective_permute"(%arg0)
// CHECK: %[[ADD:.+]] = stablehlo.add %[[COLLECTIVE_PERMUTE]], %[[COLLECTIVE_PERMUTE]]
// CHECK: return %[[ADD]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sent = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+2 {{collective-cse: its result is that of}}
    // expected-remark@+1 {{collective-cse: no op reads it: it is removed}}
    %sent2 = "stablehlo.collective_permute"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    %total = stablehlo.add %sent, %sent2 : tensor<4xf32>
    return %total : tensor<4xf32>
  }
}

// -----

// It stays away: the groups differ.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[ALL_REDUCE_1:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[ALL_REDUCE]], %[[ALL_REDUCE_1]]
// CHECK: return %[[MULTIPLY]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %sum2 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %product = stablehlo.multiply %sum, %sum2 : tensor<4xf32>
    return %product : tensor<4xf32>
  }
}

// -----

// It stays away: the reductions differ.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL_REDUCE:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[ALL_REDUCE_1:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK: %[[MULTIPLY:.+]] = stablehlo.multiply %[[ALL_REDUCE]], %[[ALL_REDUCE_1]]
// CHECK: return %[[MULTIPLY]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %max = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.maximum %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %product = stablehlo.multiply %sum, %max : tensor<4xf32>
    return %product : tensor<4xf32>
  }
}

// -----

// It stays away: its result is not available there.
// CHECK-LABEL: func.func @main
// CHECK: %[[CONSTANT:.+]] = stablehlo.constant dense<3>
// CHECK: %[[CONSTANT_1:.+]] = stablehlo.constant dense<0>
// CHECK: %[[CONSTANT_2:.+]] = stablehlo.constant dense<1>
// CHECK: stablehlo.while
// CHECK: stablehlo.all_reduce
// CHECK: stablehlo.all_reduce
// CHECK: return
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
    %c3 = stablehlo.constant dense<3> : tensor<i32>
    %c0 = stablehlo.constant dense<0> : tensor<i32>
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %loop:2 = stablehlo.while(%i = %c0, %acc = %y) : tensor<i32>, tensor<4xf32>
    cond {
      %more = stablehlo.compare LT, %i, %c3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %more : tensor<i1>
    } do {
      %more = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %s = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %total = stablehlo.add %acc, %more : tensor<4xf32>
      %total2 = stablehlo.add %i, %c1 : tensor<i32>
      stablehlo.return %total2, %total : tensor<i32>, tensor<4xf32>
    }
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %total3 = stablehlo.add %loop#1, %sum : tensor<4xf32>
    return %total3 : tensor<4xf32>
  }
}

// -----

// Groups in another order are the same groups.
// CHECK-LABEL: func.func @groups
// CHECK: %[[SUM:.+]] = "stablehlo.all_reduce"(%arg0)
// CHECK-NOT: stablehlo.all_reduce
// CHECK: stablehlo.multiply %[[SUM]], %[[SUM]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @groups(%x: tensor<4xf32>) -> tensor<4xf32> {
    %sum = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+2 {{collective-cse: its result is that of}}
    // expected-remark@+1 {{collective-cse: no op reads it: it is removed}}
    %sum2 = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[2, 3], [0, 1]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32>
    %product = stablehlo.multiply %sum, %sum2 : tensor<4xf32>
    return %product : tensor<4xf32>
  }
}
