// RUN: %hlorewrite opt %s --pass=gather-once{memory-budget=1MiB} --check=interp --check=proof | %filecheck %s
// RUN: %hlorewrite opt %s -O comm --memory-budget=1MiB --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=gather-once --memory-budget=100B --remarks=unprofitable --verify-diagnostics -o %t.out

// Each micro-batch gathers the slice of each layer. The stack is gathered once, before both loops, in the type it is sent in; loops
// slice what was gathered. With a smaller budget it stays.
// CHECK-LABEL: func.func public @main
// CHECK: %[[NARROW:.+]] = stablehlo.convert %arg0 : (tensor<3x2x5xf32>) -> tensor<3x2x5xbf16>
// CHECK: %[[WHOLE:.+]] = "stablehlo.all_gather"(%[[NARROW]])
// CHECK-SAME: all_gather_dim = 1
// CHECK-SAME: -> tensor<3x8x5xbf16>
// CHECK: stablehlo.while
// CHECK: stablehlo.while
// CHECK-NOT: all_gather
// CHECK: %[[ROW:.+]] = stablehlo.dynamic_slice %[[WHOLE]], %{{.+}}, %{{.+}}, %{{.+}}, sizes = [1, 8, 5]
// CHECK: stablehlo.reshape %[[ROW]] : (tensor<1x8x5xbf16>) -> tensor<8x5xbf16>
// CHECK-NOT: all_gather
module @m attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<3x2x5xf32>, %arg1: tensor<8x5xf32>, %arg2: tensor<i32>) -> tensor<8x5xf32> {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %c_0 = stablehlo.constant dense<1> : tensor<i32>
    %0:3 = stablehlo.while(%iterArg = %c, %iterArg_1 = %arg1, %iterArg_2 = %arg0) : tensor<i32>, tensor<8x5xf32>, tensor<3x2x5xf32>
    cond {
      %c_3 = stablehlo.constant dense<4> : tensor<i32>
      %1 = stablehlo.compare LT, %iterArg, %c_3 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1:3 = stablehlo.while(%iterArg_3 = %c, %iterArg_4 = %iterArg_1, %iterArg_5 = %iterArg_2) : tensor<i32>, tensor<8x5xf32>, tensor<3x2x5xf32>
      cond {
        %c_6 = stablehlo.constant dense<3> : tensor<i32>
        %5 = stablehlo.compare LT, %iterArg_3, %c_6 : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %5 : tensor<i1>
      } do {
        %5 = stablehlo.dynamic_slice %iterArg_5, %iterArg_3, %c, %c, sizes = [1, 2, 5] : (tensor<3x2x5xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x2x5xf32>
        %6 = stablehlo.reshape %5 : (tensor<1x2x5xf32>) -> tensor<2x5xf32>
        %7 = stablehlo.convert %6 : (tensor<2x5xf32>) -> tensor<2x5xbf16>
        // expected-remark@+1 {{gathered once it would send 240 bytes and keep 160, but only 100 are left of the memory budget}}
        %8 = "stablehlo.all_gather"(%7) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> : (tensor<2x5xbf16>) -> tensor<8x5xbf16>
        %9 = stablehlo.convert %8 : (tensor<8x5xbf16>) -> tensor<8x5xf32>
        %10 = stablehlo.add %iterArg_4, %9 : tensor<8x5xf32>
        %11 = stablehlo.add %iterArg_3, %c_0 : tensor<i32>
        stablehlo.return %11, %10, %iterArg_5 : tensor<i32>, tensor<8x5xf32>, tensor<3x2x5xf32>
      }
      %2 = stablehlo.tanh %1#1 : tensor<8x5xf32>
      %3 = stablehlo.add %iterArg_1, %2 : tensor<8x5xf32>
      %4 = stablehlo.add %iterArg, %c_0 : tensor<i32>
      stablehlo.return %4, %3, %iterArg_2 : tensor<i32>, tensor<8x5xf32>, tensor<3x2x5xf32>
    }
    return %0#1 : tensor<8x5xf32>
  }
}

