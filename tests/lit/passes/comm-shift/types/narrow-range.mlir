// Sums of floats of a narrow range stay, unless a wider type adds them up; extrema of types without infinity stay at an addition.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics --split-input-file | %filecheck %s

// Values that cancel over the devices: finite here, and local sums would not be.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  func.func public @main(%x: tensor<4xf16>, %start: tensor<4xf16>) -> tensor<4xf16> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<30> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %start) : tensor<i32>, tensor<4xf16>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      // expected-remark@+1 {{the sum of f16 would be taken in another order, and could overflow or underflow}}
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f16>, %b: tensor<f16>):
        %both = stablehlo.add %a, %b : tensor<f16>
        stablehlo.return %both : tensor<f16>
      }) : (tensor<4xf16>) -> tensor<4xf16>
      %new = stablehlo.add %acc, %g : tensor<4xf16>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf16>
    }
    return %l#1 : tensor<4xf16>
  }
}

// -----

// A factor below one: the sum of small numbers is normal, and each of them times the factor may be zero.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  func.func public @main(%x: tensor<4xf16>, %start: tensor<4xf16>) -> tensor<4xf16> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<30> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %start) : tensor<i32>, tensor<4xf16>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      // expected-remark@+1 {{the sum of f16 would be taken in another order, and could overflow or underflow}}
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f16>, %b: tensor<f16>):
        %both = stablehlo.add %a, %b : tensor<f16>
        stablehlo.return %both : tensor<f16>
      }) : (tensor<4xf16>) -> tensor<4xf16>
      %k = stablehlo.constant dense<1.250000e-01> : tensor<4xf16>
      %s = stablehlo.multiply %g, %k : tensor<4xf16>
      %new = stablehlo.add %acc, %s : tensor<4xf16>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf16>
    }
    return %l#1 : tensor<4xf16>
  }
}

// -----

// Added up in f32: the sum over the devices is then taken in f32, too.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK-NOT: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  // CHECK: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xf16>, %start: tensor<4xf32>) -> tensor<4xf32> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<30> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %start) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f16>, %b: tensor<f16>):
        %both = stablehlo.add %a, %b : tensor<f16>
        stablehlo.return %both : tensor<f16>
      }) : (tensor<4xf16>) -> tensor<4xf16>
      %w = stablehlo.convert %g : (tensor<4xf16>) -> tensor<4xf32>
      %new = stablehlo.add %acc, %w : tensor<4xf32>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf32>
    }
    return %l#1 : tensor<4xf32>
  }
}

// -----

// bf16 has the range of f32.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK-NOT: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  // CHECK: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xbf16>, %start: tensor<4xbf16>) -> tensor<4xbf16> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<30> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %start) : tensor<i32>, tensor<4xbf16>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<bf16>, %b: tensor<bf16>):
        %both = stablehlo.add %a, %b : tensor<bf16>
        stablehlo.return %both : tensor<bf16>
      }) : (tensor<4xbf16>) -> tensor<4xbf16>
      %new = stablehlo.add %acc, %g : tensor<4xbf16>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xbf16>
    }
    return %l#1 : tensor<4xbf16>
  }
}

// -----

// An 8-bit float with infinities: the identity of the maximum stays one when a number is added to it.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK-NOT: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  // CHECK: stablehlo.all_reduce
  func.func public @main(%x: tensor<4xf8E5M2>, %start: tensor<4xf8E5M2>) -> tensor<4xf8E5M2> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<30> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %start) : tensor<i32>, tensor<4xf8E5M2>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f8E5M2>, %b: tensor<f8E5M2>):
        %both = stablehlo.maximum %a, %b : tensor<f8E5M2>
        stablehlo.return %both : tensor<f8E5M2>
      }) : (tensor<4xf8E5M2>) -> tensor<4xf8E5M2>
      %k = stablehlo.constant dense<-5.000000e-01> : tensor<4xf8E5M2>
      %m = stablehlo.add %acc, %k : tensor<4xf8E5M2>
      %new = stablehlo.maximum %m, %g : tensor<4xf8E5M2>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf8E5M2>
    }
    return %l#1 : tensor<4xf8E5M2>
  }
}

// -----

// One without: -448 plus a number is another number, or not-a-number.
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: } do {
  // CHECK: stablehlo.all_reduce
  // CHECK: stablehlo.return {{.+}} : tensor<i32>,
  func.func public @main(%x: tensor<4xf8E4M3FN>, %start: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
    %i0 = stablehlo.constant dense<0> : tensor<i32>
    %i1 = stablehlo.constant dense<1> : tensor<i32>
    %n = stablehlo.constant dense<30> : tensor<i32>
    %l:2 = stablehlo.while(%i = %i0, %acc = %start) : tensor<i32>, tensor<4xf8E4M3FN>
    cond {
      %go = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      // expected-remark@+1 {{f8E4M3FN has no infinity}}
      %g = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f8E4M3FN>, %b: tensor<f8E4M3FN>):
        %both = stablehlo.maximum %a, %b : tensor<f8E4M3FN>
        stablehlo.return %both : tensor<f8E4M3FN>
      }) : (tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN>
      %k = stablehlo.constant dense<-5.000000e-01> : tensor<4xf8E4M3FN>
      %m = stablehlo.add %acc, %k : tensor<4xf8E4M3FN>
      %new = stablehlo.maximum %m, %g : tensor<4xf8E4M3FN>
      %next = stablehlo.add %i, %i1 : tensor<i32>
      stablehlo.return %next, %new : tensor<i32>, tensor<4xf8E4M3FN>
    }
    return %l#1 : tensor<4xf8E4M3FN>
  }
}
