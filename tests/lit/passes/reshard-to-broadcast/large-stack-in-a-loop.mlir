// Large layers over slow links: a switch over owners with one broadcast each, for a sum would carry them twice.
// RUN: %hlorewrite opt %s "--pass=reshard-to-broadcast{topology=p3.8xlarge:4x1}" --remarks=blocked,missed,unprofitable,applied --verify-diagnostics --split-input-file | %filecheck %s

module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["pp"=4]>
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-NOT: all_gather
  // CHECK: %[[OWNER:.+]] = stablehlo.divide
  // CHECK: "stablehlo.case"(%[[OWNER]])
  // CHECK: "stablehlo.collective_broadcast"{{.+}}dense<{{\[\[}}0, 1, 2, 3]]>
  // CHECK: "stablehlo.collective_broadcast"{{.+}}dense<{{\[\[}}1, 0, 2, 3]]>
  // CHECK: "stablehlo.collective_broadcast"{{.+}}dense<{{\[\[}}2, 0, 1, 3]]>
  // CHECK: "stablehlo.collective_broadcast"{{.+}}dense<{{\[\[}}3, 0, 1, 2]]>
  // CHECK-NOT: all_gather
  func.func public @main(%w: tensor<8x64x512xf32>, %x: tensor<16x64xf32>, %n: tensor<i32>) -> tensor<16x64xf32> {
    %out = sdy.manual_computation(%w, %x, %n) in_shardings=[<@mesh, [{"pp"}, {}, {}]>, <@mesh, [{"pp"}, {}]>, <@mesh, []>] out_shardings=[<@mesh, [{"pp"}, {}]>] manual_axes={"pp"} (%arg0: tensor<2x64x512xf32>, %arg1: tensor<4x64xf32>, %arg2: tensor<i32>) {
      %c0 = stablehlo.constant dense<0> : tensor<i32>
      %c1 = stablehlo.constant dense<1> : tensor<i32>
      %loop:2 = stablehlo.while(%i = %c0, %h = %arg1) : tensor<i32>, tensor<4x64xf32>
      cond {
        %trips = stablehlo.constant dense<3> : tensor<i32>
        %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %more : tensor<i1>
      } do {
        // expected-remark@+1 {{one layer of 8 is sent where it is read: switch}}
        %g = "stablehlo.all_gather"(%arg0) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x64x512xf32>) -> tensor<8x64x512xf32>
        %sl = stablehlo.dynamic_slice %g, %i, %c0, %c0, sizes = [1, 64, 512] : (tensor<8x64x512xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x512xf32>
        %l = stablehlo.reshape %sl : (tensor<1x64x512xf32>) -> tensor<64x512xf32>
        %cut = stablehlo.slice %l [0:4, 0:64] : (tensor<64x512xf32>) -> tensor<4x64xf32>
        %h2 = stablehlo.add %h, %cut : tensor<4x64xf32>
        %next = stablehlo.add %i, %c1 : tensor<i32>
        stablehlo.return %next, %h2 : tensor<i32>, tensor<4x64xf32>
      }
      %y = stablehlo.add %loop#1, %arg1 : tensor<4x64xf32>
      sdy.return %y : tensor<4x64xf32>
    } : (tensor<8x64x512xf32>, tensor<16x64xf32>, tensor<i32>) -> tensor<16x64xf32>
    return %out : tensor<16x64xf32>
  }
}
