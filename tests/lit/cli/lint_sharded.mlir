// A program that XLA shards contains no collective yet: lint says where they come from.
// RUN: %hlorewrite lint %s | %filecheck %s
// RUN: %hlorewrite lint %s --json | %filecheck %s --check-prefix=JSON

// CHECK: note: the module contains no collective yet: XLA adds them when it partitions the program
// CHECK-SAME: --pass=expose-collectives
// JSON: "hazards": []
// JSON: "note": "the module contains no collective yet
sdy.mesh @mesh = <["x"=2]>

func.func public @main(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
