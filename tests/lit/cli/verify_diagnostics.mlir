// Errors, each where its comment expects it, are success.
// RUN: %hlorewrite opt %s --split-input-file --verify-diagnostics | %filecheck %s

// CHECK: func.func @good
func.func @good() { return }

// -----

func.func @unknown_op() {
  // expected-error@+1 {{custom op 'stablehlo.nope' is unknown}}
  stablehlo.nope
}

// -----

// expected-error-re@below {{type of return operand {{[0-9]}}}}
func.func @wrong_type(%x: tensor<4xf32>) -> tensor<5xf32> { return %x : tensor<4xf32> }
