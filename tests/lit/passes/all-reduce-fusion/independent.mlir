// RUN: %hlorewrite opt %s --pass=all-reduce-fusion --topology=h200:1x4 | %filecheck %s

// Two all-reduces, a reader of the first in between: one call, and the reader after it.
// 
// CHECK: %[[JOINED:.+]] = stablehlo.concatenate %{{.+}}, %{{.+}}, dim = 0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
// CHECK-NEXT: %[[CALL:.+]] = "stablehlo.all_reduce"(%[[JOINED]])
// CHECK: combiner_key = "hlorewrite.0"
// CHECK-NEXT: %[[X:.+]] = stablehlo.slice %[[CALL]] [0:8]
// CHECK-NEXT: %[[Y:.+]] = stablehlo.slice %[[CALL]] [8:16]
// CHECK-NEXT: %[[N:.+]] = stablehlo.negate %[[X]]
// CHECK-NEXT: return %[[N]], %[[Y]]
// CHECK-NOT: all_reduce
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %x = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %n = stablehlo.negate %x : tensor<8xf32>
  %y = "stablehlo.all_reduce"(%b) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %n, %y : tensor<8xf32>, tensor<8xf32>
}
}
