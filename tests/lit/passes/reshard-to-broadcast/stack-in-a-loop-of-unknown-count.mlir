// A stack gathered once and read in a loop of unknown count: layer by layer it would send more when the loop runs many times.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast{target=cpu topology=p3.8xlarge:4x1}" --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: all_gather
  // CHECK: stablehlo.while
  func.func public @main(%w: tensor<256x64x32xf64>, %x: tensor<256x32xf64>, %n: tensor<i32>) -> tensor<256x32xf64> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<64x64x32xf64>, %arg1: tensor<64x32xf64>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      // expected-remark@+1 {{unprofitable: reshard-to-broadcast: the gather stays: single layers would send more on a path on which stablehlo.while}}
      %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<64x64x32xf64>) -> tensor<256x64x32xf64>
      %loop:2 = stablehlo.while(%i = %c0, %h = %arg1) : tensor<i32>, tensor<64x32xf64>
      cond {
        %more = stablehlo.compare LT, %i, %arg2 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        %sl = stablehlo.dynamic_slice %g, %i, %c0, %c0, sizes = [1, 64, 32] : (tensor<256x64x32xf64>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x32xf64>
        %l = stablehlo.reshape %sl : (tensor<1x64x32xf64>) -> tensor<64x32xf64>
        %h2 = stablehlo.add %h, %l : tensor<64x32xf64>
        %next = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %next, %h2 : tensor<i32>, tensor<64x32xf64>
      }
      %y = stablehlo.add %loop#1, %arg1 : tensor<64x32xf64>
      sdy.return %y : tensor<64x32xf64>
    } : (tensor<256x64x32xf64>, tensor<256x32xf64>, tensor<i32>) -> tensor<256x32xf64>
    return %out : tensor<256x32xf64>
  }
}
