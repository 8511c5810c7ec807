// What cannot be split, each with the line of the mark.
// RUN: %hlorewrite opt %s "--pass=split-stages{meshes=(2),(2)}" --split-input-file --verify-diagnostics

module @step {
  sdy.mesh @mesh = <["data"=2]>


  func.func public @main(%w0: tensor<8x8xf32> {jax.buffer_donor = true}, %w1: tensor<8x8xf32> {jax.buffer_donor = true}, %x: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %r:4 = stablehlo.while(%k = %start, %a0 = %zeros, %a1 = %zeros, %l = %zero) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %o = stablehlo.constant dense<0> : tensor<i32>
      %slice = stablehlo.dynamic_slice %x, %k, %o, %o, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
      %part = stablehlo.reshape %slice : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
      %p = stablehlo.dot_general %part, %w0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %h = stablehlo.tanh %p : tensor<4x8xf32>
      // expected-error@+1 {{stage 1 has no mark, stage 2 has one}}
      %hs = stablehlo.composite "hlorewrite.stage" %h {composite_attributes = {backward = false, stage = 2 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %q = stablehlo.dot_general %hs, %w1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %sq = stablehlo.multiply %q, %q : tensor<4x8xf32>
      %f0 = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%sq init: %f0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
      %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
      %dq = stablehlo.multiply %q, %two : tensor<4x8xf32>
      %g1 = stablehlo.dot_general %hs, %dq, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %dh = stablehlo.dot_general %dq, %w1, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %dhs = stablehlo.composite "hlorewrite.stage" %dh {composite_attributes = {backward = true, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %hh = stablehlo.multiply %h, %h : tensor<4x8xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<4x8xf32>
      %s = stablehlo.subtract %ones, %hh : tensor<4x8xf32>
      %dp = stablehlo.multiply %dhs, %s : tensor<4x8xf32>
      %g0 = stablehlo.dot_general %part, %dp, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %n0 = stablehlo.add %a0, %g0 : tensor<8x8xf32>
      %n1 = stablehlo.add %a1, %g1 : tensor<8x8xf32>
      %nl = stablehlo.add %l, %loss : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %n0, %n1, %nl : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    }
    %u0 = stablehlo.subtract %w0, %r#1 : tensor<8x8xf32>
    %u1 = stablehlo.subtract %w1, %r#2 : tensor<8x8xf32>
    return %u0, %u1, %r#3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
  }
  func.func private @same(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }
}

// -----

module @step {
  sdy.mesh @mesh = <["data"=2]>


  func.func public @main(%w0: tensor<8x8xf32> {jax.buffer_donor = true}, %w1: tensor<8x8xf32> {jax.buffer_donor = true}, %x: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %r:4 = stablehlo.while(%k = %start, %a0 = %zeros, %a1 = %zeros, %l = %zero) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %o = stablehlo.constant dense<0> : tensor<i32>
      %slice = stablehlo.dynamic_slice %x, %k, %o, %o, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
      %part = stablehlo.reshape %slice : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
      %p = stablehlo.dot_general %part, %w0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %h = stablehlo.tanh %p : tensor<4x8xf32>
      %h1 = stablehlo.composite "hlorewrite.stage" %h {composite_attributes = {backward = false, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      // expected-error@+1 {{the marks make 3 stages, and 1f1b on 2 meshes runs 2}}
      %hs = stablehlo.composite "hlorewrite.stage" %h1 {composite_attributes = {backward = false, stage = 2 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %q = stablehlo.dot_general %hs, %w1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %sq = stablehlo.multiply %q, %q : tensor<4x8xf32>
      %f0 = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%sq init: %f0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
      %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
      %dq = stablehlo.multiply %q, %two : tensor<4x8xf32>
      %g1 = stablehlo.dot_general %hs, %dq, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %dh = stablehlo.dot_general %dq, %w1, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %dhs = stablehlo.composite "hlorewrite.stage" %dh {composite_attributes = {backward = true, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %hh = stablehlo.multiply %h, %h : tensor<4x8xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<4x8xf32>
      %s = stablehlo.subtract %ones, %hh : tensor<4x8xf32>
      %dp = stablehlo.multiply %dhs, %s : tensor<4x8xf32>
      %g0 = stablehlo.dot_general %part, %dp, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %n0 = stablehlo.add %a0, %g0 : tensor<8x8xf32>
      %n1 = stablehlo.add %a1, %g1 : tensor<8x8xf32>
      %nl = stablehlo.add %l, %loss : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %n0, %n1, %nl : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    }
    %u0 = stablehlo.subtract %w0, %r#1 : tensor<8x8xf32>
    %u1 = stablehlo.subtract %w1, %r#2 : tensor<8x8xf32>
    return %u0, %u1, %r#3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
  }
  func.func private @same(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }
}

// -----

module @step {
  sdy.mesh @mesh = <["data"=2]>


  func.func public @main(%w0: tensor<8x8xf32> {jax.buffer_donor = true}, %w1: tensor<8x8xf32> {jax.buffer_donor = true}, %x: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
    %r:4 = stablehlo.while(%k = %start, %a0 = %zeros, %a1 = %zeros, %l = %zero) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    cond {
      %end = stablehlo.constant dense<4> : tensor<i32>
      %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %o = stablehlo.constant dense<0> : tensor<i32>
      %slice = stablehlo.dynamic_slice %x, %k, %o, %o, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
      %part = stablehlo.reshape %slice : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
      %p = stablehlo.dot_general %part, %w0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %h = stablehlo.tanh %p : tensor<4x8xf32>
      %hs = stablehlo.composite "hlorewrite.stage" %h {composite_attributes = {backward = false, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %q = stablehlo.dot_general %hs, %w1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %sq = stablehlo.multiply %q, %q : tensor<4x8xf32>
      %f0 = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%sq init: %f0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
      %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
      %dq = stablehlo.multiply %q, %two : tensor<4x8xf32>
      %g1 = stablehlo.dot_general %hs, %dq, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %dh = stablehlo.dot_general %dq, %w1, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %d1 = stablehlo.composite "hlorewrite.stage" %dh {composite_attributes = {backward = true, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      // expected-error@+1 {{the mark of stage 1 runs again in a backward pass, and differs from the forward pass: jax.checkpoint is around it}}
      %dhs = stablehlo.composite "hlorewrite.stage" %d1 {composite_attributes = {backward = false, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %hh = stablehlo.multiply %h, %h : tensor<4x8xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<4x8xf32>
      %s = stablehlo.subtract %ones, %hh : tensor<4x8xf32>
      %dp = stablehlo.multiply %dhs, %s : tensor<4x8xf32>
      %g0 = stablehlo.dot_general %part, %dp, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %n0 = stablehlo.add %a0, %g0 : tensor<8x8xf32>
      %n1 = stablehlo.add %a1, %g1 : tensor<8x8xf32>
      %nl = stablehlo.add %l, %loss : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %n0, %n1, %nl : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    }
    %u0 = stablehlo.subtract %w0, %r#1 : tensor<8x8xf32>
    %u1 = stablehlo.subtract %w1, %r#2 : tensor<8x8xf32>
    return %u0, %u1, %r#3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
  }
  func.func private @same(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }
}

// -----

module @step {
  sdy.mesh @mesh = <["data"=2]>


  func.func public @main(%w0: tensor<8x8xf32> {jax.buffer_donor = true}, %w1: tensor<8x8xf32> {jax.buffer_donor = true}, %x: tensor<4x4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}]>}) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>) {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
    %start = stablehlo.constant dense<0> : tensor<i32>
      // expected-error@+1 {{the trip count of the loop over micro-batches is unknown}}
    %r:4 = stablehlo.while(%k = %start, %a0 = %zeros, %a1 = %zeros, %l = %zero) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    cond {
      %end = stablehlo.convert %l : (tensor<f32>) -> tensor<i32>
      %go = stablehlo.compare LT, %k, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %go : tensor<i1>
    } do {
      %o = stablehlo.constant dense<0> : tensor<i32>
      %slice = stablehlo.dynamic_slice %x, %k, %o, %o, sizes = [1, 4, 8] : (tensor<4x4x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x4x8xf32>
      %part = stablehlo.reshape %slice : (tensor<1x4x8xf32>) -> tensor<4x8xf32>
      %p = stablehlo.dot_general %part, %w0, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %h = stablehlo.tanh %p : tensor<4x8xf32>
      %hs = stablehlo.composite "hlorewrite.stage" %h {composite_attributes = {backward = false, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %q = stablehlo.dot_general %hs, %w1, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %sq = stablehlo.multiply %q, %q : tensor<4x8xf32>
      %f0 = stablehlo.constant dense<0.0> : tensor<f32>
      %loss = stablehlo.reduce(%sq init: %f0) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
      %two = stablehlo.constant dense<2.0> : tensor<4x8xf32>
      %dq = stablehlo.multiply %q, %two : tensor<4x8xf32>
      %g1 = stablehlo.dot_general %hs, %dq, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %dh = stablehlo.dot_general %dq, %w1, contracting_dims = [1] x [1] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %dhs = stablehlo.composite "hlorewrite.stage" %dh {composite_attributes = {backward = true, stage = 1 : i64}, decomposition = @same} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      %hh = stablehlo.multiply %h, %h : tensor<4x8xf32>
      %ones = stablehlo.constant dense<1.0> : tensor<4x8xf32>
      %s = stablehlo.subtract %ones, %hh : tensor<4x8xf32>
      %dp = stablehlo.multiply %dhs, %s : tensor<4x8xf32>
      %g0 = stablehlo.dot_general %part, %dp, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
      %n0 = stablehlo.add %a0, %g0 : tensor<8x8xf32>
      %n1 = stablehlo.add %a1, %g1 : tensor<8x8xf32>
      %nl = stablehlo.add %l, %loss : tensor<f32>
      %one = stablehlo.constant dense<1> : tensor<i32>
      %next = stablehlo.add %k, %one : tensor<i32>
      stablehlo.return %next, %n0, %n1, %nl : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
    }
    %u0 = stablehlo.subtract %w0, %r#1 : tensor<8x8xf32>
    %u1 = stablehlo.subtract %w1, %r#2 : tensor<8x8xf32>
    return %u0, %u1, %r#3 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<f32>
  }
  func.func private @same(%x: tensor<4x8xf32>) -> tensor<4x8xf32> { return %x : tensor<4x8xf32> }
}
