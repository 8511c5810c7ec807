// A reduction moves only where no outcome of branches and no trip count of at least one makes the program send more.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics --split-input-file | %filecheck %s
// RUN: %hlorewrite opt %s --pass="comm-shift{expected}" --split-input-file | %filecheck %s --check-prefix=EXPECTED

// One sum that one branch in three reads, twice: cheaper in the branches on average, dearer when both are taken.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["d"=2]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.case
  // CHECK-NOT: all_reduce
  // EXPECTED-LABEL: func.func{{.*}} @main
  // EXPECTED: stablehlo.case
  // EXPECTED: stablehlo.all_reduce
  // EXPECTED: stablehlo.case
  // EXPECTED: stablehlo.all_reduce
  func.func public @main(%all: tensor<8xf32>, %k0: tensor<i32>, %n0: tensor<i32>) -> tensor<8xf32> {
    %shards = sdy.manual_computation(%all, %k0, %n0) in_shardings=[<@mesh, [{"d"}]>, <@mesh, []>, <@mesh, []>] out_shardings=[<@mesh, [{"d"}]>] manual_axes={"d"} (%x: tensor<4xf32>, %k: tensor<i32>, %n: tensor<i32>) {
      // expected-remark@+1 {{moving it would send less in expectation, but more on a path on which stablehlo.case}}
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %both = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %both : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %u = "stablehlo.case"(%k) ({
        %t = stablehlo.tanh %g : tensor<4xf32>
        stablehlo.return %t : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }, {
        stablehlo.return %x : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      %v = "stablehlo.case"(%n) ({
        %t = stablehlo.tanh %g : tensor<4xf32>
        %e = stablehlo.tanh %t : tensor<4xf32>
        stablehlo.return %e : tensor<4xf32>
      }, {
        stablehlo.return %u : tensor<4xf32>
      }, {
        stablehlo.return %u : tensor<4xf32>
      }) : (tensor<i32>) -> tensor<4xf32>
      %r = stablehlo.add %u, %v : tensor<4xf32>
      sdy.return %r : tensor<4xf32>
    } : (tensor<8xf32>, tensor<i32>, tensor<i32>) -> tensor<8xf32>
    return %shards : tensor<8xf32>
  }
}

// -----

// Six times the bytes, once: more when the loop runs fewer than six times.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>
  // EXPECTED-LABEL: func.func{{.*}} @main
  // EXPECTED: stablehlo.return {{.+}} : tensor<i32>, tensor<4
  // EXPECTED: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32> {mhlo.sharding = "{replicated}"}) -> tensor<4x6xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4x6xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4x6xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      // expected-remark@+1 {{moving it would send less in expectation}}
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %both = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %both : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %w = stablehlo.broadcast_in_dim %g, dims = [0] : (tensor<4xf32>) -> tensor<4x6xf32>
      %new = stablehlo.add %acc, %w : tensor<4x6xf32>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4x6xf32>
    }
    return %l#1 : tensor<4x6xf32>
  }
}

// -----

// The same bytes, once: no more however often the loop runs.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK-NOT: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>
  // CHECK: stablehlo.all_reduce
  // EXPECTED-LABEL: func.func{{.*}} @main
  // EXPECTED: stablehlo.return {{.+}} : tensor<i32>, tensor<4
  // EXPECTED: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32> {mhlo.sharding = "{replicated}"}) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %both = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %both : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %new = stablehlo.add %acc, %g : tensor<4xf32>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
    }
    return %l#1 : tensor<4xf32>
  }
}

// -----

// The counter decides: the branch is taken twice in four iterations, so one reduction after the loop is fewer.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK-NOT: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>
  // CHECK: stablehlo.all_reduce
  // EXPECTED-LABEL: func.func{{.*}} @main
  // EXPECTED: stablehlo.return {{.+}} : tensor<i32>, tensor<4
  // EXPECTED: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xf32>, %unused: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<4> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %two = stablehlo.constant dense<2> : tensor<i32>
      %odd = stablehlo.remainder %i, %two : tensor<i32>
      %now = stablehlo.compare EQ, %odd, %i0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %new = "stablehlo.if"(%now) ({
        %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %both = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %both : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %s = stablehlo.add %acc, %g : tensor<4xf32>
        stablehlo.return %s : tensor<4xf32>
      }, {
        stablehlo.return %acc : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
    }
    return %l#1 : tensor<4xf32>
  }
}
