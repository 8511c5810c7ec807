// RUN: %hlorewrite opt %s --pass=hoist-collectives{barriers=true} --check=proof | %filecheck %s

// A rematerialised layer holds its weights and what it computes in one optimization barrier, which returns its operands:
// the sum of %a is that of the value that the loop does not change. The sum of what the loop carries stays.
//
// CHECK: "stablehlo.all_reduce"(%arg0)
// CHECK-NOT: all_reduce
// CHECK: stablehlo.while
// CHECK: %[[HELD:.*]]:2 = stablehlo.optimization_barrier
// CHECK: "stablehlo.all_reduce"(%[[HELD]]#0)
// CHECK-NOT: all_reduce
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c3 = stablehlo.constant dense<3> : tensor<i32>
  %w:2 = stablehlo.while(%i = %c0, %v = %a) : tensor<i32>, tensor<8xf32>
  cond {
    %p = stablehlo.compare LT, %i, %c3, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
  %h:2 = stablehlo.optimization_barrier %v, %a : tensor<8xf32>, tensor<8xf32>
  %x = "stablehlo.all_reduce"(%h#1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %y = "stablehlo.all_reduce"(%h#0) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.maximum %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
    %n = stablehlo.multiply %y, %x : tensor<8xf32>
    %j = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %j, %n : tensor<i32>, tensor<8xf32>
  }
  return %w#1 : tensor<8xf32>
}
}
