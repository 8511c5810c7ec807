// What the interpreter cannot run is refused, with the user's line and the op.
// RUN: not %hlorewrite opt %s --pass=cse --check=interp --no-reproducer 2>&1 | %filecheck %s

// CHECK: hlorewrite: error: train.py:3:4: the StableHLO interpreter cannot run stablehlo.custom_call "magic"; use --check=none for this module
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @magic(%x) : (tensor<8xf32>) -> tensor<8xf32> loc("train.py":3:4)
  return %0 : tensor<8xf32>
}
