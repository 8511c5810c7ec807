// RUN: %hlorewrite opt %s --pass=shard-update{axis=data} --split-input-file --check=interp | %filecheck %s
// RUN: %hlorewrite opt %s --pass=shard-update{axis=data} --split-input-file --remarks=applied,blocked --verify-diagnostics -o %t.out

// Four devices hold the same parameter and momentum, and gradients are divided by their norm. Each device updates one shard of the
// momentum: the norm is added up of shards, and new parameters are gathered. Arguments and results keep their global types.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{.+}}: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, %{{.+}}: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}
// CHECK-SAME: -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
// CHECK: (%[[P:[a-z0-9_]+]]: tensor<8x4xf32>, %[[OLD:[a-z0-9_]+]]: tensor<2x4xf32>, %[[ROWS:[a-z0-9_]+]]: tensor<8x4xf32>)
// CHECK: %[[OWN:[a-z0-9_]+]] = stablehlo.dynamic_slice %[[P]], {{.*}} -> tensor<2x4xf32>
// CHECK: %[[GRAD:[a-z0-9_]+]] = "stablehlo.reduce_scatter"
// CHECK: stablehlo.multiply %[[GRAD]], %[[GRAD]] : tensor<2x4xf32>
// CHECK: %[[PART:[a-z0-9_]+]] = stablehlo.reduce
// CHECK: %[[SUM:[a-z0-9_]+]] = "stablehlo.all_reduce"(%[[PART]])
// CHECK: stablehlo.sqrt %[[SUM]]
// CHECK: %[[NEW:[a-z0-9_]+]] = stablehlo.add {{.*}} : tensor<2x4xf32>
// CHECK: %[[NEXT:[a-z0-9_]+]] = stablehlo.subtract %[[OWN]], %[[NEW]] : tensor<2x4xf32>
// CHECK: %[[WHOLE:[a-z0-9_]+]] = "stablehlo.all_gather"(%[[NEXT]])
// CHECK: sdy.return %[[WHOLE]], %[[NEW]] : tensor<8x4xf32>, tensor<2x4xf32>
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]>
  func.func @main(%w: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
                  %m: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
                  %x: tensor<32x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>})
      -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
    %0:2 = sdy.manual_computation(%w, %m, %x)
        in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>]
        out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"data"}
        (%p: tensor<8x4xf32>, %old: tensor<8x4xf32>, %rows: tensor<8x4xf32>) {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %beta = stablehlo.constant dense<0.5> : tensor<8x4xf32>
      %local = stablehlo.multiply %rows, %p : tensor<8x4xf32>
      // expected-remark@+1 {{argument 1: sharded over "data", 32 bytes a device instead of 128}}
      %grad = "stablehlo.all_reduce"(%local) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
      %square = stablehlo.multiply %grad, %grad : tensor<8x4xf32>
      %sum = stablehlo.reduce(%square init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
      %norm = stablehlo.sqrt %sum : tensor<f32>
      %spread = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
      %clipped = stablehlo.divide %grad, %spread : tensor<8x4xf32>
      %kept = stablehlo.multiply %beta, %old : tensor<8x4xf32>
      %new = stablehlo.add %kept, %clipped : tensor<8x4xf32>
      %next = stablehlo.subtract %p, %new : tensor<8x4xf32>
      sdy.return %next, %new : tensor<8x4xf32>, tensor<8x4xf32>
    } : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<32x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
    return %0#0, %0#1 : tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// Six rows and three columns are not divided by four devices, so the momentum stays whole.
// CHECK-LABEL: func.func @main
// CHECK-NOT: reduce_scatter
module attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4]>
  func.func @main(%w: tensor<6x3xf32>, %m: tensor<6x3xf32>, %x: tensor<24x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xf32>) {
    %0:2 = sdy.manual_computation(%w, %m, %x)
        in_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>, <@mesh, [{"data"}, {}]>]
        out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>] manual_axes={"data"}
        (%p: tensor<6x3xf32>, %old: tensor<6x3xf32>, %rows: tensor<6x3xf32>) {
      %local = stablehlo.multiply %rows, %p : tensor<6x3xf32>
      // expected-remark@+1 {{no dimension is divisible by 4, so their state stays whole: one (tensor<6x3xf32>)}}
      %grad = "stablehlo.all_reduce"(%local) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %c = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %c : tensor<f32>
      }) : (tensor<6x3xf32>) -> tensor<6x3xf32>
      %new = stablehlo.add %old, %grad : tensor<6x3xf32>
      %next = stablehlo.subtract %p, %new : tensor<6x3xf32>
      sdy.return %next, %new : tensor<6x3xf32>, tensor<6x3xf32>
    } : (tensor<6x3xf32>, tensor<6x3xf32>, tensor<24x3xf32>) -> (tensor<6x3xf32>, tensor<6x3xf32>)
    return %0#0, %0#1 : tensor<6x3xf32>, tensor<6x3xf32>
  }
}
