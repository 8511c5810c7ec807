// A bound of which nothing is known: a collective of something new in every iteration makes all its devices run equally often.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics --split-input-file | %filecheck %s

// In the form of XLA's own tests.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK-NOT: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>
  // CHECK: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %turn = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %own = stablehlo.multiply %x, %turns : tensor<4xf32>
      %g = "stablehlo.all_reduce"(%own) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
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

// The same over replicas.
module attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 2 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK-NOT: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>
  // CHECK: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %turn = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %own = stablehlo.multiply %x, %turns : tensor<4xf32>
      %g = "stablehlo.all_reduce"(%own) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
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

// In a branch it proves nothing.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %first = stablehlo.compare EQ, %i, %i0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      %new = "stablehlo.if"(%first) ({
        // expected-remark@+4 {{argument 1 of the function may differ between devices}}
        %turn = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
        %turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> tensor<4xf32>
        %own = stablehlo.multiply %x, %turns : tensor<4xf32>
        %g = "stablehlo.all_reduce"(%own) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %both = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %both : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        stablehlo.return %g : tensor<4xf32>
      }, {
        stablehlo.return %acc : tensor<4xf32>
      }) : (tensor<i1>) -> tensor<4xf32>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
    }
    return %l#1 : tensor<4xf32>
  }
}

// -----

// A loop in a loop may run 3 and 5 times on one device, 5 and 3 on another.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK: } do {
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.return
  func.func public @main(%x: tensor<4xf32>, %n: tensor<2xi32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %outer = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %two : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %row = stablehlo.dynamic_slice %n, %i, sizes = [1] : (tensor<2xi32>, tensor<i32>) -> tensor<1xi32>
      %bound = stablehlo.reshape %row : (tensor<1xi32>) -> tensor<i32>
      %k:2 = stablehlo.while(%j = %i0, %acc = %outer) : tensor<i32>, tensor<4xf32>
      cond {
        %on = stablehlo.compare LT, %j, %bound : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %on : tensor<i1>
      } do {
        // expected-remark@+4 {{devices of a group may run the loop a different number of times}}
        %turn = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
        %turns = stablehlo.broadcast_in_dim %turn, dims = [] : (tensor<f32>) -> tensor<4xf32>
        %own = stablehlo.multiply %x, %turns : tensor<4xf32>
        %g = "stablehlo.all_reduce"(%own) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
        ^bb0(%a: tensor<f32>, %b: tensor<f32>):
          %both = stablehlo.add %a, %b : tensor<f32>
          stablehlo.return %both : tensor<f32>
        }) : (tensor<4xf32>) -> tensor<4xf32>
        %new = stablehlo.add %acc, %g : tensor<4xf32>
        %step = stablehlo.add %j, %i1 : tensor<i32>
        stablehlo.return %step, %new : tensor<i32>, tensor<4xf32>
      }
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %k#1 : tensor<i32>, tensor<4xf32>
    }
    return %l#1 : tensor<4xf32>
  }
}

// -----

// XLA moves a collective of what does not change before the loop, which may then run differently often on each device.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>
  func.func public @main(%x: tensor<4xf32>, %n: tensor<i32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %zero) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      // expected-remark@+1 {{devices of a group may run the loop a different number of times}}
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
