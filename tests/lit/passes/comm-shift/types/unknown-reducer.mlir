// A reducer that is none of sum, product, maximum, minimum, and, or is left alone.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics | %filecheck %s

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK: "stablehlo.all_reduce"
func.func public @main(%s: tensor<4xf32>) -> tensor<4xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
      %start_l = stablehlo.constant dense<0> : tensor<i32>
      %l:2 = stablehlo.while(%i_l = %start_l, %acc = %zero) : tensor<i32>, tensor<4xf32>
      cond {
        %b_ = stablehlo.constant dense<4> : tensor<i32>
        %lt_ = stablehlo.compare LT, %i_l, %b_ : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %lt_ : tensor<i1>
      } do {
        // expected-remark@+1 {{its reducer is none of sum, product, maximum, minimum, and, or}}
        %g = "stablehlo.all_reduce"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, use_global_device_ids, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%l_: tensor<f32>, %r_: tensor<f32>):
        %both_ = stablehlo.atan2 %l_, %r_ : tensor<f32>
        stablehlo.return %both_ : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
        %new = stablehlo.add %acc, %g : tensor<4xf32>
        %step_ = stablehlo.constant dense<1> : tensor<i32>
        %next_ = stablehlo.add %i_l, %step_ : tensor<i32>
        stablehlo.return %next_, %new : tensor<i32>, tensor<4xf32>
      }
      return %l#1 : tensor<4xf32>
}
}
