// Remarks name the user's own line, the parameter, the tensor's type and the library's line; which frames are the user's
// can be said.
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks -o /dev/null 2>&1 | %filecheck %s
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks --own-frames=flax -o /dev/null 2>&1 | %filecheck %s --check-prefix=OWN
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks --skip-frames=model -o /dev/null 2>&1 | %filecheck %s --check-prefix=SKIP
// RUN: %hlorewrite opt %s --pass=comm-shift --remarks=json -o /dev/null 2>&1 | %filecheck %s --check-prefix=JSON

// CHECK: model.py:20:4: remark: applied: comm-shift: reduced where its result is needed: 4× 16 bytes before, 1× 16 bytes now [params['w'], tensor<4xf32>, in flax/linear.py:97:12]
// OWN: flax/linear.py:97:12: remark: applied: {{.*}} now [params['w'], tensor<4xf32>]
// SKIP: train.py:7:2: remark: applied: {{.*}} now [params['w'], tensor<4xf32>, in flax/linear.py:97:12]
// JSON: {"kind": "applied", {{.*}}"location": "model.py:20:4", {{.*}}"parameter": "params['w']", "type": "tensor<4xf32>", "framework": "flax/linear.py:97:12"}

func.func public @main(%w: tensor<4xf32> loc("params['w']"), %x: tensor<4xf32>) -> (tensor<4xf32> {jax.result_info = "result['w']"}, tensor<f32>) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %c1 = stablehlo.constant dense<1> : tensor<i32>
  %c4 = stablehlo.constant dense<4> : tensor<i32>
  %z = stablehlo.constant dense<0.0> : tensor<4xf32>
  %y = stablehlo.dot_general %w, %x, contracting_dims = [0] x [0] : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  %r:2 = stablehlo.while(%i = %c0, %a = %z) : tensor<i32>, tensor<4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %s = "stablehlo.all_reduce"(%x) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
    ^bb0(%b: tensor<f32>, %c: tensor<f32>):
      %t = stablehlo.add %b, %c : tensor<f32>
      stablehlo.return %t : tensor<f32>
    }) : (tensor<4xf32>) -> tensor<4xf32> loc(#add)
    %n = stablehlo.add %a, %s : tensor<4xf32>
    %j = stablehlo.add %i, %c1 : tensor<i32>
    stablehlo.return %j, %n : tensor<i32>, tensor<4xf32>
  }
  %new = stablehlo.subtract %w, %r#1 : tensor<4xf32>
  return %new, %y : tensor<4xf32>, tensor<f32>
}
#flax = loc("/venv/lib/python3.11/site-packages/flax/linear.py":97:12)
#model = loc("model.py":20:4)
#train = loc("train.py":7:2)
#outer = loc(callsite(#model at #train))
#add = loc("psum"(callsite(#flax at #outer)))
