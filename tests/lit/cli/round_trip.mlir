// Without passes, opt prints what it read; every form reads back.
// RUN: %hlorewrite opt %s | %filecheck %s
// RUN: %hlorewrite opt %s --emit=generic | %hlorewrite opt - | %filecheck %s
// RUN: %hlorewrite opt %s --mlir-print-op-generic | %filecheck %s --check-prefix=GENERIC
// RUN: %hlorewrite opt %s --emit=bytecode -o %t.bc && %hlorewrite opt %t.bc --no-debuginfo | %filecheck %s
// RUN: %hlorewrite opt %s --emit=portable -o %t.portable && %hlorewrite opt %t.portable --no-debuginfo | %filecheck %s
// RUN: %hlorewrite opt %s --mlir-print-debuginfo | %filecheck %s --check-prefix=DEBUG
// RUN: %hlorewrite opt - < %s | %filecheck %s

// CHECK: module @step attributes {mhlo.num_partitions = 2 : i32}
// CHECK: sdy.mesh @mesh = <["x"=2]>
// CHECK: func.func public @main(%[[X:.+]]: tensor<8xf32> {tf.aliasing_output = 0 : i32})
// CHECK-NEXT: %[[Y:.+]] = stablehlo.add %[[X]], %[[X]] : tensor<8xf32>
// CHECK-NEXT: return %[[Y]]
// CHECK-NOT: loc(

// GENERIC: "stablehlo.add"(%{{.+}}, %{{.+}}) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>

// DEBUG: stablehlo.add {{.+}} loc(
module @step attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["x"=2]>
  func.func public @main(%x: tensor<8xf32> {tf.aliasing_output = 0 : i32}) -> tensor<8xf32> {
    %y = stablehlo.add %x, %x : tensor<8xf32>
    return %y : tensor<8xf32>
  }
}
