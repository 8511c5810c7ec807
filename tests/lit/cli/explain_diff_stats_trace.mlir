// RUN: %hlorewrite opt %s --rules=collectives --explain=add-of-all-reduces | %filecheck %s --check-prefix=EXPLAIN
// RUN: %hlorewrite opt %s --rules=collectives --diff | %filecheck %s --check-prefix=DIFF
// RUN: %hlorewrite opt %s --rules=collectives --stats --timing -o %t.out 2>&1 | %filecheck %s --check-prefix=STATS
// RUN: %hlorewrite opt %s --rules=collectives --trace=%t.trace -o %t.out && %filecheck %s --check-prefix=TRACE --input-file %t.trace/rewrites.jsonl
// RUN: %hlorewrite opt %s --rules=collectives --remarks=json -o %t.out 2>&1 | %filecheck %s --check-prefix=REMARKS

// EXPLAIN: rule add-of-all-reduces (patterns/collectives.hlopat:{{[0-9]+}}):
// EXPLAIN: matched {{[0-9]+}} of {{[0-9]+}} steps

// DIFF: --- {{.*}} (before)
// DIFF: +++ {{.*}} (after)
// DIFF: {{^-.*}}stablehlo.collective_permute

// STATS: rule {{ +}}applied
// STATS: permute-to-oneself {{ +}}1
// STATS: parse
// STATS: total

// TRACE: "rule": "permute-to-oneself"
// TRACE-SAME: "before": "{{.*}}stablehlo.collective_permute

// REMARKS: {"kind": "applied", "rule": "permute-to-oneself"
module attributes {mhlo.num_partitions = 2 : i32} {
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 0], [1, 1]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}
}
