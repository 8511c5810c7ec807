module @nested attributes {mhlo.num_partitions = 4 : i32} {
  sdy.mesh @mesh = <["x"=2, "y"=2]>
  func.func public @main(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = call @layer0(%a) : (tensor<8xf32>) -> tensor<8xf32>
    %1 = call @layer1(%0) : (tensor<8xf32>) -> tensor<8xf32>
    %2 = call @layer2(%1) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = call @layer3(%2) : (tensor<8xf32>) -> tensor<8xf32>
    %4 = call @layer4(%3) : (tensor<8xf32>) -> tensor<8xf32>
    %5 = call @layer5(%4) : (tensor<8xf32>) -> tensor<8xf32>
    %6 = call @layer6(%5) : (tensor<8xf32>) -> tensor<8xf32>
    %7 = call @layer7(%6) : (tensor<8xf32>) -> tensor<8xf32>
    return %7 : tensor<8xf32>
  }
  func.func private @layer0(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @layer1(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @layer2(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @layer3(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @layer4(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @layer5(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @layer6(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
  func.func private @layer7(%a: tensor<8xf32>) -> tensor<8xf32> {
    %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
      %inner = sdy.manual_computation(%b) in_shardings=[<@mesh, [{"y"}]>] out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%c: tensor<2xf32>) {
        %sum = "stablehlo.all_reduce"(%c) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, use_global_device_ids}> ({
        ^bb0(%p: tensor<f32>, %q: tensor<f32>):
          %add = stablehlo.add %p, %q : tensor<f32>
          stablehlo.return %add : tensor<f32>
        }) : (tensor<2xf32>) -> tensor<2xf32>
        %part = stablehlo.slice %sum [0:2] : (tensor<2xf32>) -> tensor<2xf32>
        sdy.return %part : tensor<2xf32>
      } : (tensor<4xf32>) -> tensor<4xf32>
      sdy.return %inner : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}
