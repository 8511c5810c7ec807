// RUN: %hlorewrite opt %s --pass='comm-shift{memory-budget=1KiB}' | %filecheck %s
// RUN: %hlorewrite opt %s --pass='comm-shift{memory-budget=10}' --remarks 2>&1 | %filecheck %s --check-prefix=SMALL

// CHECK-LABEL: func.func @main
// CHECK:         %[[LOOP:.+]]:3 = stablehlo.while
// CHECK-NOT:       reduce_scatter
// CHECK:           stablehlo.return {{.*}} : tensor<i32>, tensor<4xf32>, tensor<8xf32>
// CHECK:         %[[SUM:.+]] = "stablehlo.reduce_scatter"(%[[LOOP]]#2)
// CHECK:         %[[TOTAL:.+]] = stablehlo.add %[[SUM]], %[[LOOP]]#1
// CHECK:         return %[[TOTAL]]

// SMALL: unprofitable: comm-shift: deferring it would save 96 executed bytes for 32 bytes of local sums; the budget has 10 bytes
module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%x: tensor<8xf32>, %acc: tensor<4xf32>) -> tensor<4xf32> {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %four = stablehlo.constant dense<4> : tensor<i32>
    %loop:2 = stablehlo.while(%i = %zero, %a = %acc) : tensor<i32>, tensor<4xf32>
    cond {
      %go = stablehlo.compare LT, %i, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %s = "stablehlo.reduce_scatter"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> ({
      ^bb0(%l: tensor<f32>, %r: tensor<f32>):
        %t = stablehlo.add %l, %r : tensor<f32>
        stablehlo.return %t : tensor<f32>
      }) : (tensor<8xf32>) -> tensor<4xf32>
      %n = stablehlo.add %a, %s : tensor<4xf32>
      %j = stablehlo.add %i, %one : tensor<i32>
      stablehlo.return %j, %n : tensor<i32>, tensor<4xf32>
    }
    return %loop#1 : tensor<4xf32>
  }
}
