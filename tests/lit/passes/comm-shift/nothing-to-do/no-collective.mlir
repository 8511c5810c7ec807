// A module without a collective is told where collectives come from.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=missed -o %t 2>&1 | %filecheck %s --check-prefix=REMARK
// RUN: %filecheck %s < %t
// REMARK: run expose-collectives first

  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: stablehlo.negate
func.func public @main(%s: tensor<4xf32>) -> tensor<4xf32> {
  %t = stablehlo.negate %s : tensor<4xf32>
  return %t : tensor<4xf32>
}
