// What was not expected, and what was and did not come, is told with its line.
// RUN: not %hlorewrite opt %s --split-input-file --verify-diagnostics 2>&1 | %filecheck %s

// CHECK: hlorewrite: error: {{.*}}verify_diagnostics_fails.mlir:{{[0-9]+}}: unexpected error: custom op 'stablehlo.nope' is unknown
func.func @a() {
  stablehlo.nope
}

// -----

// CHECK: hlorewrite: error: {{.*}}verify_diagnostics_fails.mlir:{{[0-9]+}}: expected error "something" was not produced
func.func @b() {
  // expected-error@+1 {{something}}
  return
}
