// Modules are printed to stderr under MLIR's banner, around the passes named.
// RUN: %hlorewrite opt %s --pass=inline --pass=cse --print-ir-before=inline --print-ir-after=cse 2>&1 >/dev/null | %filecheck %s
// RUN: %hlorewrite opt %s --pass=inline --pass=cse --mlir-print-ir-after-all 2>&1 >/dev/null | %filecheck %s --check-prefix=ALL
// RUN: %hlorewrite opt %s --pass=inline --pass=canonicalize --pass=cse --print-ir-after-change 2>&1 >/dev/null | %filecheck %s --check-prefix=CHANGE

// CHECK: // -----// IR Dump Before inline //----- //
// CHECK-NEXT: module {
// CHECK: // -----// IR Dump After cse //----- //
// CHECK-NEXT: module {

// ALL: IR Dump After inline
// ALL: IR Dump After cse

// CHANGE-NOT: IR Dump After inline
// CHANGE-NOT: IR Dump After canonicalize
// CHANGE: IR Dump After cse
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.add %x, %x : tensor<4xf32>
  %1 = stablehlo.add %x, %x : tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
