// Two permutes of one value that name a device the module does not have: left alone by every pass.
// RUN: %hlorewrite opt %s --pass=permutes-to-broadcast,all-reduce-fusion --remarks=blocked --verify-diagnostics | %filecheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-COUNT-2: "stablehlo.collective_permute"
  func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    // expected-remark@+2 {{the permute stays: its source-target pairs name device 4, but the module has 4}}
    // expected-remark@+1 {{it keeps its own call: its source-target pairs name device 4, but the module has 4}}
    %a = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 4]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    // expected-remark@+2 {{the permute stays: its source-target pairs name device 5, but the module has 4}}
    // expected-remark@+1 {{it keeps its own call: its source-target pairs name device 5, but the module has 4}}
    %b = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 5]]> : tensor<1x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>
    return %a, %b : tensor<4xf32>, tensor<4xf32>
  }
}
