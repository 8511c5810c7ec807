// --pass and --pass-pipeline mix in order; the pipeline prints back.
// RUN: %hlorewrite opt %s --pass=inline "--pass-pipeline=builtin.module(cse,func.func(canonicalize{max-iterations=3}))" --pass=symbol-dce --dump-pass-pipeline 2>&1 | %filecheck %s

// CHECK: Pass Manager with 4 passes:
// CHECK-NEXT: builtin.module(inline,cse,func.func(canonicalize{max-iterations=3}),symbol-dce)
// CHECK: func.func @main
// CHECK-NOT: call
// CHECK-NOT: @id
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @id(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @id(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
