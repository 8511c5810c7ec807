// RUN: %hlorewrite opt %s --pass=partial-state{axis=data} --split-input-file | %filecheck %s
// RUN: %hlorewrite opt %s --pass=partial-state{axis=data} --split-input-file --remarks=applied,blocked,unprofitable --verify-diagnostics -o %t.out

// Four devices add up gradients from call to call, and update the parameter where a counter says so. Each keeps its own sum, a row of
// an array that has one for each device; the all-reduce moves into the branch that reads the sum.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{.+}}: tensor<4x8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {}]>}
// CHECK-SAME: -> (tensor<8x4xf32> {{{.*}}}, tensor<4x8x4xf32> {{{.*}}sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}, {}]>}
// CHECK: (%[[P:[a-z0-9_]+]]: tensor<8x4xf32>{{.*}}, %[[ROW:[a-z0-9_]+]]: tensor<1x8x4xf32>{{.*}}, %[[LAST:[a-z0-9_]+]]: tensor<i1>
// CHECK: %[[OLD:[a-z0-9_]+]] = stablehlo.reshape %[[ROW]] : (tensor<1x8x4xf32>) -> tensor<8x4xf32>
// CHECK: %[[LOCAL:[a-z0-9_]+]] = stablehlo.multiply
// CHECK-NOT: all_reduce
// CHECK: %[[NEW:[a-z0-9_]+]] = stablehlo.add %[[OLD]], %[[LOCAL]]
// CHECK: %[[ENDS:[a-z0-9_]+]]:2 = "stablehlo.if"(%[[LAST]])
// CHECK: "stablehlo.all_reduce"(%[[NEW]])
// CHECK-NOT: all_reduce
// CHECK: %[[OUT:[a-z0-9_]+]] = stablehlo.reshape %[[ENDS]]#1 : (tensor<8x4xf32>) -> tensor<1x8x4xf32>
// CHECK: sdy.return %[[ENDS]]#0, %[[OUT]]
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]>
  func.func @main(%w: tensor<8x4xf32> loc("params['w']"), %t: tensor<8x4xf32> loc("total['w']"), %c: tensor<i1>, %x: tensor<32x4xf32>)
      -> (tensor<8x4xf32> {jax.result_info = "result[0]['w']"}, tensor<8x4xf32> {jax.result_info = "result[1].total['w']"}) {
    // expected-remark@+1 {{applied: partial-state: total['w']: local sums between calls, added up over "data" where they are read}}
    %0:2 = sdy.manual_computation(%w, %t, %c, %x)
        in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, []>, <@mesh, [{"data"}, {}]>]
        out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"data"}
        (%p: tensor<8x4xf32>, %old: tensor<8x4xf32>, %last: tensor<i1>, %rows: tensor<8x4xf32>) {
      %local = stablehlo.multiply %rows, %p : tensor<8x4xf32>
      %grad = "stablehlo.all_reduce"(%local) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %new = stablehlo.add %old, %grad : tensor<8x4xf32>
      %ends:2 = "stablehlo.if"(%last) ({
        %zeros = stablehlo.constant dense<0.0> : tensor<8x4xf32>
        %next = stablehlo.subtract %p, %new : tensor<8x4xf32>
        stablehlo.return %next, %zeros : tensor<8x4xf32>, tensor<8x4xf32>
      }, {
        stablehlo.return %p, %new : tensor<8x4xf32>, tensor<8x4xf32>
      }) : (tensor<i1>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
      sdy.return %ends#0, %ends#1 : tensor<8x4xf32>, tensor<8x4xf32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<i1>, tensor<32x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    return %0#0, %0#1 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// The update reads the sum in each call, so each call has to reduce it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor<4x8x4xf32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]>
  func.func @main(%w: tensor<8x4xf32> loc("params['w']"), %t: tensor<8x4xf32> loc("total['w']"), %x: tensor<32x4xf32>)
      -> (tensor<8x4xf32> {jax.result_info = "result[0]['w']"}, tensor<8x4xf32> {jax.result_info = "result[1].total['w']"}) {
    %0:2 = sdy.manual_computation(%w, %t, %x)
        in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>]
        out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"data"}
        (%p: tensor<8x4xf32>, %old: tensor<8x4xf32>, %rows: tensor<8x4xf32>) {
      %local = stablehlo.multiply %rows, %p : tensor<8x4xf32>
      %grad = "stablehlo.all_reduce"(%local) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %new = stablehlo.add %old, %grad : tensor<8x4xf32>
      // expected-remark@+1 {{unprofitable: partial-state: total['w'] is added to, but its sum is needed in each call: stablehlo.tanh is not linear}}
      %step = stablehlo.tanh %new : tensor<8x4xf32>
      %next = stablehlo.subtract %p, %step : tensor<8x4xf32>
      sdy.return %next, %new : tensor<8x4xf32>, tensor<8x4xf32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<32x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    return %0#0, %0#1 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
