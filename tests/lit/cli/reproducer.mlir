// A failing pass leaves a file that contains the module and the pipeline, and fails again in the same way.
// RUN: not %hlorewrite opt %s "--pass-pipeline=cse,sdy-convert-global-to-local" --reproducer=%t.repro.mlir -o %t.out 2>&1 | %filecheck %s
// RUN: %filecheck %s --check-prefix=FILE --input-file %t.repro.mlir
// RUN: not %hlorewrite opt --run-reproducer %t.repro.mlir 2>&1 | %filecheck %s --check-prefix=AGAIN
// RUN: not ls %t.out

// CHECK: hlorewrite: error: {{.*}}reproducer.mlir:19:8: pass "sdy-convert-global-to-local" failed: {{.*}}; the reproducer is {{.*}}.repro.mlir: hlorewrite opt --run-reproducer {{.*}}.repro.mlir

// FILE: sdy.mesh @mesh
// FILE: external_resources: {
// FILE-NEXT: mlir_reproducer: {
// FILE-NEXT: pipeline: "builtin.module(cse,sdy-convert-global-to-local)",

// AGAIN: hlorewrite: error: {{.*}}.repro.mlir:{{[0-9]+}}:8: pass "sdy-convert-global-to-local" failed

sdy.mesh @mesh = <["x"=2]>

func.func @main() -> tensor<4xf32> {
  %c = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  return %c : tensor<4xf32>
}
