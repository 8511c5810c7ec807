// With --remarks, remarks are diagnostics like others.
// RUN: %hlorewrite opt %s --rules=collectives --remarks --verify-diagnostics | %filecheck %s

// CHECK-LABEL: func.func @main
// CHECK-NOT: collective_permute
module attributes {mhlo.num_partitions = 2 : i32} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark@+1 {{applied: permute-to-oneself}}
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
}
