// RUN: %hlorewrite opt %s --pass='legalize-for-cpu{form=chain chunks=2}' | %filecheck %s

// Two chunks over three links: four steps.
// 
// CHECK-COUNT-4: "stablehlo.collective_permute"{{.*}}dense<{{\[\[}}2, 0], [0, 1], [1, 3]]>
// CHECK-NOT: collective_
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %y = "stablehlo.collective_broadcast"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[2, 0, 1, 3]]> : tensor<1x4xi64>}> : (tensor<8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
}
