// Two permutes are faster than a chain through all devices.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast{target=cpu chain-bytes=0 chunks=1 topology=p3.8xlarge:4x1}" --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-COUNT-2: collective_permute
  // CHECK-NOT: all_reduce
  func.func public @main(%w: tensor<8x16x16xf32>, %x: tensor<16x16xf32>, %n: tensor<i32>) -> tensor<16x16xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x16x16xf32>, %arg1: tensor<4x16xf32>, %arg2: tensor<i32>) {
      // expected-remark@+1 {{unprofitable: permutes-to-broadcast: the 2 permutes stay}}
      %p = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[1, 0]]> : tensor<1x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %q = "stablehlo.collective_permute"(%arg1) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, source_target_pairs = dense<[[1, 2]]> : tensor<1x2xi64>}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
      %y = stablehlo.add %p, %q : tensor<4x16xf32>
      sdy.return %y : tensor<4x16xf32>
    } : (tensor<8x16x16xf32>, tensor<16x16xf32>, tensor<i32>) -> tensor<16x16xf32>
    return %out : tensor<16x16xf32>
  }
}
