// RUN: %hlorewrite opt %s --pass=comm-shift --pass=cse --check=interp -o %t.out 2>&1 | %filecheck %s
// RUN: %python %S/Inputs/exit_code.py 3 %python %S/Inputs/with_wrong_pass.py opt %s --pass=wrong --check=interp -o %t.wrong 2>&1 | %filecheck %s --check-prefix=WRONG
// RUN: not ls %t.wrong

// CHECK: output {{ +}}shape {{ +}}type {{ +}}max abs error
// CHECK: @main #0 {{ +}}8 {{ +}}float32 {{.*}} equal

// WRONG: @main #0 {{ +}}8 {{ +}}float32 {{.*}} DIFFERS
// WRONG: hlorewrite: error: {{.*}}: output @main #0 differs after the passes: relative error {{.*}}, and by {{.*}} where rounding explains {{.*}}
sdy.mesh @mesh = <["x"=4]>

func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%a: tensor<2xf32>) {
    %1 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, use_global_device_ids}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %s = stablehlo.add %l, %r : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) : (tensor<2xf32>) -> tensor<2xf32>
    %2 = stablehlo.multiply %1, %a : tensor<2xf32>
    sdy.return %2 : tensor<2xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
