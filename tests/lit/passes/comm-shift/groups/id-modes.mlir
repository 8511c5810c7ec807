// Reductions that count devices otherwise are different reductions: they are never taken together.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=blocked,missed,unprofitable --verify-diagnostics | %filecheck %s

module attributes {mhlo.num_partitions = 2 : i32, mhlo.num_replicas = 1 : i32} {
  // CHECK-LABEL: func.func{{.*}} @main
  // CHECK-COUNT-2: "stablehlo.all_reduce"
  // CHECK: stablehlo.add
func.func public @main(%s: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<4xf32> {
      %g = "stablehlo.all_reduce"(%s) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
      ^bb0(%l_: tensor<f32>, %r_: tensor<f32>):
        %both_ = stablehlo.add %l_, %r_ : tensor<f32>
        stablehlo.return %both_ : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      // expected-remark@+1 {{its replica groups join all partitions of their replicas}}
      %h = "stablehlo.all_reduce"(%t) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<0> : tensor<1x1xi64>}> ({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %w = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %w : tensor<f32>
      }) : (tensor<4xf32>) -> tensor<4xf32>
      %o = stablehlo.add %g, %h : tensor<4xf32>
      return %o : tensor<4xf32>
}
}
