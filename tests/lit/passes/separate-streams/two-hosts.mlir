// RUN: %hlorewrite opt %s --pass=separate-streams --topology=h200:2x2 --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=separate-streams --topology=h200:2x2 --split-input-file --remarks=applied,missed --verify-diagnostics -o %t.out

// Gradients go from host to host, activations stay within one. The ports carry the first, the links the second.
// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.all_reduce"(%arg0)
// CHECK: {mhlo.frontend_attributes = {_xla_stream_annotation = "1"}}
// CHECK: "stablehlo.all_reduce"(%arg1)
// CHECK: {mhlo.frontend_attributes = {_xla_stream_annotation = "0"}}
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func @main(%gradient: tensor<8x6xf32>, %activation: tensor<8x6xf32>) -> (tensor<8x6xf32>, tensor<8x6xf32>) {
    // expected-remark@+1 {{it runs on a separate stream, with 0 more collectives that only network ports of h200:2x2 carry; XLA needs the options --xla_gpu_enable_latency_hiding_scheduler=true}}
    %r = "stablehlo.all_reduce"(%gradient) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %t = "stablehlo.all_reduce"(%activation) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %r, %t : tensor<8x6xf32>, tensor<8x6xf32>
  }
}

// -----

// Groups of all four devices use ports and links, so there is nothing to separate.
// CHECK-LABEL: func.func public @everyone
// CHECK-NOT: _xla_stream_annotation
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @everyone(%x: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %r = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %s = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %r : tensor<8x6xf32>
  }
}
