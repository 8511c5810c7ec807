// Two stages of a regression, four micro-batches: h = tanh(x w0); loss = sum((h w1 - y)^2); one step of gradient descent.
module @two_stages {
  sdy.mesh @m0 = <["data"=4]>
  sdy.mesh @m1 = <["data"=4]>
  func.func public @main(%w0: !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 0 : i32}, %w1: !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>> {tf.aliasing_output = 1 : i32}, %x: !mpmd.mesh_tensor<"m0", tensor<4x16x8xf32>, sharding=<@m0, [{}, {"data"}, {}]>>, %y: !mpmd.mesh_tensor<"m1", tensor<4x16x8xf32>, sharding=<@m1, [{}, {"data"}, {}]>>)
      -> (!mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]"}, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>> {jax.result_info = "result[1]"}, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>> {jax.result_info = "result[2]"})
      attributes {topology = #mpmd.topology<<"m0" : <["data"=4]>>, <"m1" : <["data"=4]>>>, hlorewrite.schedule = "1f1b"} {
    %z0 = mpmd.fragment_call<mesh="m0", origin=["before"]> @before_0() {hlorewrite.stage = 0 : i64, hlorewrite.task = "before"} : () -> !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>
    %z1:2 = mpmd.fragment_call<mesh="m1", origin=["before"]> @before_1() {hlorewrite.stage = 1 : i64, hlorewrite.task = "before"} : () -> (!mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>)
    %r:3 = mpmd.for (%z0, %z1#0, %z1#1) {hlorewrite.sums = array<i1: true, true, true>, iterations = 4 : ui32} (%a0: !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, %a1: !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, %l: !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, %index: tensor<ui32>) {
      %k0 = mpmd.assign %index : (tensor<ui32>) -> !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>
      %k1 = mpmd.assign %index : (tensor<ui32>) -> !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>
      %n:3 = mpmd.call @microbatch(%a0, %a1, %l, %w0, %w1, %x, %y, %k0, %k1) : (!mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x16x8xf32>, sharding=<@m0, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x16x8xf32>, sharding=<@m1, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>)
      mpmd.return %n#0, %n#1, %n#2 : !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>
    } : !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>
    %u0 = mpmd.fragment_call<mesh="m0", origin=["update"]> @update_0(%w0, %r#0) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>) -> !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>
    %u1 = mpmd.fragment_call<mesh="m1", origin=["update"]> @update_1(%w1, %r#1) {hlorewrite.stage = 1 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>
    return %u0, %u1, %r#2 : !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>
  }
  func.func private @microbatch(%a0: !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, %a1: !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, %l: !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, %w0: !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, %w1: !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, %x: !mpmd.mesh_tensor<"m0", tensor<4x16x8xf32>, sharding=<@m0, [{}, {"data"}, {}]>>, %y: !mpmd.mesh_tensor<"m1", tensor<4x16x8xf32>, sharding=<@m1, [{}, {"data"}, {}]>>, %k0: !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, %k1: !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>) attributes {topology = #mpmd.topology<<"m0" : <["data"=4]>>, <"m1" : <["data"=4]>>>} {
    %f0:2 = mpmd.fragment_call<mesh="m0", origin=["forward"]> @forward_0(%w0, %x, %k0) {hlorewrite.stage = 0 : i64, hlorewrite.task = "F"} : (!mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<4x16x8xf32>, sharding=<@m0, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<16x8xf32>, sharding=<@m0, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<16x8xf32>, sharding=<@m0, [{"data"}, {}]>>)
    %h = mpmd.transfer %f0#1 : (!mpmd.mesh_tensor<"m0", tensor<16x8xf32>, sharding=<@m0, [{"data"}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<16x8xf32>, sharding=<@m1, [{"data"}, {}]>>
    %f1:2 = mpmd.fragment_call<mesh="m1", origin=["forward"]> @forward_1(%w1, %h, %y, %k1, %l) {hlorewrite.stage = 1 : i64, hlorewrite.task = "F"} : (!mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<16x8xf32>, sharding=<@m1, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<4x16x8xf32>, sharding=<@m1, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<ui32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>) -> (!mpmd.mesh_tensor<"m1", tensor<16x8xf32>, sharding=<@m1, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>)
    %b1:2 = mpmd.fragment_call<mesh="m1", origin=["backward"]> @backward_1(%w1, %h, %f1#0, %a1) {hlorewrite.stage = 1 : i64, hlorewrite.task = "B"} : (!mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<16x8xf32>, sharding=<@m1, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<16x8xf32>, sharding=<@m1, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<16x8xf32>, sharding=<@m1, [{"data"}, {}]>>)
    %g = mpmd.transfer %b1#1 : (!mpmd.mesh_tensor<"m1", tensor<16x8xf32>, sharding=<@m1, [{"data"}, {}]>>) -> !mpmd.mesh_tensor<"m0", tensor<16x8xf32>, sharding=<@m0, [{"data"}, {}]>>
    %b0 = mpmd.fragment_call<mesh="m0", origin=["backward"]> @backward_0(%f0#0, %f0#1, %g, %a0) {hlorewrite.stage = 0 : i64, hlorewrite.task = "B"} : (!mpmd.mesh_tensor<"m0", tensor<16x8xf32>, sharding=<@m0, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<16x8xf32>, sharding=<@m0, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<16x8xf32>, sharding=<@m0, [{"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>) -> !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>
    return %b0, %b1#0, %f1#1 : !mpmd.mesh_tensor<"m0", tensor<8x8xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>
  }
  func.func private @before_0() -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %z = stablehlo.constant dense<0.000000e+00> : tensor<8x8xf32>
    return %z : tensor<8x8xf32>
  }
  func.func private @before_1() -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %z = stablehlo.constant dense<0.000000e+00> : tensor<8x8xf32>
    %l = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    return %z, %l : tensor<8x8xf32>, tensor<f32>
  }
  func.func private @forward_0(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %xs: tensor<4x16x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}]>}, %k: tensor<ui32> {sdy.sharding = #sdy.sharding<@m0, []>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{"data"}, {}]>}, tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{"data"}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %k32 = stablehlo.convert %k : (tensor<ui32>) -> tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.dynamic_slice %xs, %k32, %zero, %zero, sizes = [1, 16, 8] : (tensor<4x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>
    %x = stablehlo.reshape %one : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    %p = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %h = stablehlo.tanh %p : tensor<16x8xf32>
    return %x, %h : tensor<16x8xf32>, tensor<16x8xf32>
  }
  func.func private @forward_1(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %h: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}]>}, %xs: tensor<4x16x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}]>}, %k: tensor<ui32> {sdy.sharding = #sdy.sharding<@m1, []>}, %l: tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %k32 = stablehlo.convert %k : (tensor<ui32>) -> tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.dynamic_slice %xs, %k32, %zero, %zero, sizes = [1, 16, 8] : (tensor<4x16x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x8xf32>
    %x = stablehlo.reshape %one : (tensor<1x16x8xf32>) -> tensor<16x8xf32>
    %p = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    %d = stablehlo.subtract %p, %x : tensor<16x8xf32>
    %s = stablehlo.multiply %d, %d : tensor<16x8xf32>
    %z = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %e = stablehlo.reduce(%s init: %z) applies stablehlo.add across dimensions = [0, 1] : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
    %n = stablehlo.add %l, %e : tensor<f32>
    return %d, %n : tensor<16x8xf32>, tensor<f32>
  }
  func.func private @backward_1(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %h: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}]>}, %d: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}]>}, %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %c = stablehlo.constant dense<2.000000e+00> : tensor<16x8xf32>
    %dy = stablehlo.multiply %d, %c : tensor<16x8xf32>
    %g = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %n = stablehlo.add %a, %g : tensor<8x8xf32>
    %dh = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
    return %n, %dh : tensor<8x8xf32>, tensor<16x8xf32>
  }
  func.func private @backward_0(%x: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{"data"}, {}]>}, %h: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{"data"}, {}]>}, %dh: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{"data"}, {}]>}, %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %c = stablehlo.constant dense<1.000000e+00> : tensor<16x8xf32>
    %hh = stablehlo.multiply %h, %h : tensor<16x8xf32>
    %s = stablehlo.subtract %c, %hh : tensor<16x8xf32>
    %dp = stablehlo.multiply %dh, %s : tensor<16x8xf32>
    %g = stablehlo.dot_general %x, %dp, contracting_dims = [0] x [0] : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
    %n = stablehlo.add %a, %g : tensor<8x8xf32>
    return %n : tensor<8x8xf32>
  }
  func.func private @update_0(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %g: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %c = stablehlo.constant dense<1.000000e-03> : tensor<8x8xf32>
    %s = stablehlo.multiply %g, %c : tensor<8x8xf32>
    %n = stablehlo.subtract %w, %s : tensor<8x8xf32>
    return %n : tensor<8x8xf32>
  }
  func.func private @update_1(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %g: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=4]>} {
    %c = stablehlo.constant dense<1.000000e-03> : tensor<8x8xf32>
    %s = stablehlo.multiply %g, %c : tensor<8x8xf32>
    %n = stablehlo.subtract %w, %s : tensor<8x8xf32>
    return %n : tensor<8x8xf32>
  }
}
