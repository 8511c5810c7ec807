// RUN: %hlorewrite opt %s --elide-large-constants=4 | %filecheck %s

// CHECK: stablehlo.constant dense_resource<__elided__> : tensor<8xi32>
// CHECK: stablehlo.constant dense<[1, 2]> : tensor<2xi32>
func.func @main() -> (tensor<8xi32>, tensor<2xi32>) {
  %0 = stablehlo.constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>
  %1 = stablehlo.constant dense<[1, 2]> : tensor<2xi32>
  return %0, %1 : tensor<8xi32>, tensor<2xi32>
}
