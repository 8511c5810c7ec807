// RUN: %hlorewrite opt %s --pass=merge-statistics --topology=h200:1x4 | %filecheck %s
// RUN: %hlorewrite opt %s --pass=merge-statistics --topology=h200:1x4 --check=interp -o %t

// A batch norm over eight rows of four devices: its mean, its variance, and a gradient that waits for another one.
//
// CHECK-LABEL: func.func public @main
// The sums of a device, of its distances from its own mean, and of their squares:
// CHECK: %[[S:.*]] = stablehlo.reduce(%arg0
// CHECK: %[[R:.*]] = stablehlo.reduce
// CHECK: %[[Q:.*]] = stablehlo.reduce
// CHECK: stablehlo.concatenate
// CHECK: "stablehlo.all_gather"
// CHECK-SAME: (tensor<1x6xf32>) -> tensor<4x6xf32>
// CHECK-NOT: stablehlo.all_reduce
// CHECK: %[[G:.*]] = stablehlo.multiply %arg1
// CHECK: %[[T:.*]] = "stablehlo.all_reduce"
// The second gradient no longer reads the first one before it is reduced:
// CHECK: %[[L:.*]] = stablehlo.reduce
// CHECK: %[[A:.*]] = "stablehlo.all_reduce"(%[[L]])
// CHECK: %[[P:.*]] = stablehlo.multiply %[[T]], %[[A]]
// CHECK: stablehlo.negate %[[P]]
// CHECK-NOT: stablehlo.all_reduce
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%x: tensor<2x2xf32>, %g: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %count = stablehlo.constant dense<8.0> : tensor<2xf32>
  %s = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
  %sum = "stablehlo.all_reduce"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %a = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %mean = stablehlo.divide %sum, %count : tensor<2xf32>
  %means = stablehlo.broadcast_in_dim %mean, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %distance = stablehlo.subtract %x, %means : tensor<2x2xf32>
  %square = stablehlo.multiply %distance, %distance : tensor<2x2xf32>
  %q = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
  %squares = "stablehlo.all_reduce"(%q) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %a = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %variance = stablehlo.divide %squares, %count : tensor<2xf32>
  %scale = stablehlo.rsqrt %variance : tensor<2xf32>
  %scales = stablehlo.broadcast_in_dim %scale, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %normed = stablehlo.multiply %distance, %scales : tensor<2x2xf32>
  %slope = stablehlo.multiply %g, %normed : tensor<2x2xf32>
  %d = stablehlo.reduce(%slope init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
  %first = "stablehlo.all_reduce"(%d) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %a = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  %factor = stablehlo.broadcast_in_dim %first, dims = [1] : (tensor<2xf32>) -> tensor<2x2xf32>
  %wave = stablehlo.exponential %distance : tensor<2x2xf32>
  %product = stablehlo.multiply %factor, %wave : tensor<2x2xf32>
  %minus = stablehlo.negate %product : tensor<2x2xf32>
  %e = stablehlo.reduce(%minus init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32>
  %second = "stablehlo.all_reduce"(%e) <{channel_handle = #stablehlo.channel_handle<handle = 4, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %a = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }) : (tensor<2xf32>) -> tensor<2xf32>
  return %normed, %first, %second : tensor<2x2xf32>, tensor<2xf32>, tensor<2xf32>
}
}
