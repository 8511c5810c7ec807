module @jit_step {
  sdy.mesh @m0 = <["data"=2, "tensor"=1]>
  sdy.mesh @m1 = <["data"=2, "tensor"=1]>
  sdy.mesh @m2 = <["data"=2, "tensor"=1]>
  sdy.mesh @m3 = <["data"=2, "tensor"=1]>
  func.func public @main(%arg0: !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>> {tf.aliasing_output = 0 : i32}, %arg1: !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 1 : i32}, %arg2: !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>> {tf.aliasing_output = 2 : i32}, %arg3: !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 3 : i32}, %arg4: !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 4 : i32}, %arg5: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 5 : i32}, %arg6: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 6 : i32}, %arg7: !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 7 : i32}, %arg8: !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 8 : i32}, %arg9: !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 9 : i32}, %arg10: !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 10 : i32}, %arg11: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {tf.aliasing_output = 11 : i32}, %arg12: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {tf.aliasing_output = 12 : i32}, %arg13: !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 13 : i32}, %arg14: !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 14 : i32}, %arg15: !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 15 : i32}, %arg16: !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 16 : i32}, %arg17: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {tf.aliasing_output = 17 : i32}, %arg18: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {tf.aliasing_output = 18 : i32}, %arg19: !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 19 : i32}, %arg20: !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 20 : i32}, %arg21: !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 21 : i32}, %arg22: !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 22 : i32}, %arg23: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {tf.aliasing_output = 23 : i32}, %arg24: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {tf.aliasing_output = 24 : i32}, %arg25: !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 25 : i32}, %arg26: !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 26 : i32}, %arg27: !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 27 : i32}, %arg28: !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 28 : i32}, %arg29: !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>> {tf.aliasing_output = 29 : i32}, %arg30: !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 30 : i32}, %arg31: !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 31 : i32}, %arg32: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 32 : i32}, %arg33: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 33 : i32}, %arg34: !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 34 : i32}, %arg35: !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 35 : i32}, %arg36: !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 36 : i32}, %arg37: !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 37 : i32}, %arg38: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {tf.aliasing_output = 38 : i32}, %arg39: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {tf.aliasing_output = 39 : i32}, %arg40: !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 40 : i32}, %arg41: !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 41 : i32}, %arg42: !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 42 : i32}, %arg43: !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 43 : i32}, %arg44: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {tf.aliasing_output = 44 : i32}, %arg45: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {tf.aliasing_output = 45 : i32}, %arg46: !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 46 : i32}, %arg47: !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 47 : i32}, %arg48: !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 48 : i32}, %arg49: !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 49 : i32}, %arg50: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {tf.aliasing_output = 50 : i32}, %arg51: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {tf.aliasing_output = 51 : i32}, %arg52: !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 52 : i32}, %arg53: !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 53 : i32}, %arg54: !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 54 : i32}, %arg55: !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 55 : i32}, %arg56: !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>> {tf.aliasing_output = 56 : i32}, %arg57: !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 57 : i32}, %arg58: !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 58 : i32}, %arg59: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 59 : i32}, %arg60: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {tf.aliasing_output = 60 : i32}, %arg61: !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 61 : i32}, %arg62: !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 62 : i32}, %arg63: !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>> {tf.aliasing_output = 63 : i32}, %arg64: !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 64 : i32}, %arg65: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {tf.aliasing_output = 65 : i32}, %arg66: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {tf.aliasing_output = 66 : i32}, %arg67: !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 67 : i32}, %arg68: !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 68 : i32}, %arg69: !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>> {tf.aliasing_output = 69 : i32}, %arg70: !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 70 : i32}, %arg71: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {tf.aliasing_output = 71 : i32}, %arg72: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {tf.aliasing_output = 72 : i32}, %arg73: !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 73 : i32}, %arg74: !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 74 : i32}, %arg75: !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>> {tf.aliasing_output = 75 : i32}, %arg76: !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 76 : i32}, %arg77: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {tf.aliasing_output = 77 : i32}, %arg78: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {tf.aliasing_output = 78 : i32}, %arg79: !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 79 : i32}, %arg80: !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 80 : i32}, %arg81: !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>> {tf.aliasing_output = 81 : i32}, %arg82: !mpmd.mesh_tensor<"m0", tensor<8x8x9xi32>, sharding=<@m0, [{}, {"data"}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>> {jax.result_info = "result[0]['count']"}, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['mean']['embed']"}, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>> {jax.result_info = "result[0]['mean']['final_norm']"}, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['mean']['position']"}, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][0]['down']"}, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][0]['norm1']"}, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][0]['norm2']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][0]['out']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][0]['qkv']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][0]['up']"}, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][1]['down']"}, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][1]['norm1']"}, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][1]['norm2']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][1]['out']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][1]['qkv']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][1]['up']"}, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][2]['down']"}, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][2]['norm1']"}, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][2]['norm2']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][2]['out']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][2]['qkv']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][2]['up']"}, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][3]['down']"}, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][3]['norm1']"}, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {jax.result_info = "result[0]['mean']['stages'][3]['norm2']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][3]['out']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][3]['qkv']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['mean']['stages'][3]['up']"}, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['params']['embed']"}, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>> {jax.result_info = "result[0]['params']['final_norm']"}, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['params']['position']"}, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][0]['down']"}, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][0]['norm1']"}, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][0]['norm2']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][0]['out']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][0]['qkv']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][0]['up']"}, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][1]['down']"}, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][1]['norm1']"}, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][1]['norm2']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][1]['out']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][1]['qkv']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][1]['up']"}, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][2]['down']"}, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][2]['norm1']"}, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][2]['norm2']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][2]['out']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][2]['qkv']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][2]['up']"}, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][3]['down']"}, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][3]['norm1']"}, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {jax.result_info = "result[0]['params']['stages'][3]['norm2']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][3]['out']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][3]['qkv']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['params']['stages'][3]['up']"}, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['square']['embed']"}, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>> {jax.result_info = "result[0]['square']['final_norm']"}, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['square']['position']"}, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][0]['down']"}, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][0]['norm1']"}, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][0]['norm2']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][0]['out']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][0]['qkv']"}, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][0]['up']"}, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][1]['down']"}, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][1]['norm1']"}, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][1]['norm2']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][1]['out']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][1]['qkv']"}, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][1]['up']"}, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][2]['down']"}, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][2]['norm1']"}, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][2]['norm2']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][2]['out']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][2]['qkv']"}, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][2]['up']"}, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][3]['down']"}, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][3]['norm1']"}, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>> {jax.result_info = "result[0]['square']['stages'][3]['norm2']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][3]['out']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][3]['qkv']"}, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>> {jax.result_info = "result[0]['square']['stages'][3]['up']"}, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>> {jax.result_info = "result[1]"}) attributes {hlorewrite.schedule = "zb-h1", topology = #mpmd.topology<<"m0" : <["data"=2, "tensor"=1]>>, <"m1" : <["data"=2, "tensor"=1]>>, <"m2" : <["data"=2, "tensor"=1]>>, <"m3" : <["data"=2, "tensor"=1]>>>} {
    %0:16 = mpmd.fragment_call<mesh="m0", origin=["before"]> @before_0() {hlorewrite.stage = 0 : i64, hlorewrite.task = "before"} : () -> (!mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>)
    %1:13 = mpmd.fragment_call<mesh="m1", origin=["before"]> @before_1() {hlorewrite.stage = 1 : i64, hlorewrite.task = "before"} : () -> (!mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<i32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>)
    %2:13 = mpmd.fragment_call<mesh="m2", origin=["before"]> @before_2() {hlorewrite.stage = 2 : i64, hlorewrite.task = "before"} : () -> (!mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<i32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>)
    %3:16 = mpmd.fragment_call<mesh="m3", origin=["before"]> @before_3() {hlorewrite.stage = 3 : i64, hlorewrite.task = "before"} : () -> (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<i32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>)
    %4 = mpmd.transfer %arg28 : (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>) -> !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>
    %5 = mpmd.transfer %arg82 : (!mpmd.mesh_tensor<"m0", tensor<8x8x9xi32>, sharding=<@m0, [{}, {"data"}, {}]>>) -> !mpmd.mesh_tensor<"m3", tensor<8x8x9xi32>, sharding=<@m3, [{}, {"data"}, {}]>>
    %6:29 = mpmd.for (%0#8, %3#7, %0#9, %0#10, %0#11, %0#12, %0#13, %0#14, %0#15, %1#7, %1#8, %1#9, %1#10, %1#11, %1#12, %2#7, %2#8, %2#9, %2#10, %2#11, %2#12, %3#8, %3#9, %3#10, %3#11, %3#12, %3#13, %3#14, %3#15) {hlorewrite.sums = array<i1: true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true, true>, iterations = 8 : ui32} (%arg83: !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, %arg84: !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, %arg85: !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, %arg86: !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg87: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, %arg88: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, %arg89: !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg90: !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg91: !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg92: !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg93: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, %arg94: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, %arg95: !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg96: !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg97: !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg98: !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg99: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, %arg100: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, %arg101: !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg102: !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg103: !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg104: !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg105: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, %arg106: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, %arg107: !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg108: !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg109: !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg110: !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, %arg111: !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, %index: tensor<ui32>) {
      %26 = mpmd.assign %index : (tensor<ui32>) -> !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>
      %27 = mpmd.assign %index : (tensor<ui32>) -> !mpmd.mesh_tensor<"m3", tensor<ui32>, sharding=<@m3, []>>
      %28:29 = mpmd.call @microbatch(%arg83, %arg84, %arg85, %arg86, %arg87, %arg88, %arg89, %arg90, %arg91, %arg92, %arg93, %arg94, %arg95, %arg96, %arg97, %arg98, %arg99, %arg100, %arg101, %arg102, %arg103, %arg104, %arg105, %arg106, %arg107, %arg108, %arg109, %arg110, %arg111, %arg28, %0#0, %arg82, %arg30, %0#1, %arg36, %arg35, %arg34, %arg33, %arg32, %arg31, %1#0, %1#1, %arg42, %arg41, %arg40, %arg39, %arg38, %arg37, %2#0, %2#1, %arg48, %arg47, %arg46, %arg45, %arg44, %arg43, %3#0, %3#1, %arg54, %arg53, %arg52, %arg51, %arg50, %arg49, %arg29, %4, %5, %3#2, %3#3, %3#4, %3#5, %3#6, %2#2, %2#3, %2#4, %2#5, %2#6, %1#2, %1#3, %1#4, %1#5, %1#6, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7, %26, %27) : (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<8x8x9xi32>, sharding=<@m0, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<i32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<i32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<i32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x9xi32>, sharding=<@m3, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m3", tensor<ui32>, sharding=<@m3, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>)
      mpmd.return %28#0, %28#1, %28#2, %28#3, %28#4, %28#5, %28#6, %28#7, %28#8, %28#9, %28#10, %28#11, %28#12, %28#13, %28#14, %28#15, %28#16, %28#17, %28#18, %28#19, %28#20, %28#21, %28#22, %28#23, %28#24, %28#25, %28#26, %28#27, %28#28 : !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>
    } : !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>
    %7:15 = mpmd.fragment_call<mesh="m0", origin=["update"]> @update_0(%6#2, %6#3, %6#4, %6#5, %6#6, %6#7, %6#8, %0#1, %arg0) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>)
    %8:7 = mpmd.fragment_call<mesh="m1", origin=["update"]> @update_1(%6#9, %6#10, %6#11, %6#12, %6#13, %6#14, %1#0) {hlorewrite.stage = 1 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>) -> (!mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>)
    %9:7 = mpmd.fragment_call<mesh="m2", origin=["update"]> @update_2(%6#15, %6#16, %6#17, %6#18, %6#19, %6#20, %2#0) {hlorewrite.stage = 2 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>) -> (!mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>)
    %10:9 = mpmd.fragment_call<mesh="m3", origin=["update"]> @update_3(%6#1, %6#21, %6#22, %6#23, %6#24, %6#25, %6#26, %3#0, %6#27) {hlorewrite.stage = 3 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>) -> (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>)
    %11 = mpmd.transfer %6#28 : (!mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>) -> !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>
    %12:2 = mpmd.fragment_call<mesh="m0", origin=["update"]> @update_0_1(%11, %6#0, %0#1, %7#1, %7#2, %7#3, %7#4, %7#5, %7#6, %7#7) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>)
    %13 = mpmd.transfer %12#0 : (!mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>) -> !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>
    %14 = mpmd.transfer %8#0 : (!mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>) -> !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>
    %15 = mpmd.transfer %9#0 : (!mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>) -> !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>
    %16 = mpmd.transfer %arg0 : (!mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>) -> !mpmd.mesh_tensor<"m3", tensor<i32>, sharding=<@m3, []>>
    %17:22 = mpmd.fragment_call<mesh="m3", origin=["update"]> @update_3_1(%10#0, %13, %14, %15, %10#1, %10#2, %10#3, %10#4, %10#5, %10#6, %10#7, %arg2, %arg22, %arg23, %arg24, %arg25, %arg26, %arg27, %arg56, %arg76, %arg77, %arg78, %arg79, %arg80, %arg81, %16, %arg29, %arg49, %arg50, %arg51, %arg52, %arg53, %arg54) {hlorewrite.stage = 3 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<i32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>)
    %18 = mpmd.transfer %17#0 : (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>) -> !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>
    %19:24 = mpmd.fragment_call<mesh="m0", origin=["update"]> @update_0_2(%12#1, %18, %7#8, %7#9, %7#10, %7#11, %7#12, %7#13, %7#14, %arg1, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9, %arg55, %arg57, %arg58, %arg59, %arg60, %arg61, %arg62, %arg63, %arg0, %arg28, %arg30, %arg31, %arg32, %arg33, %arg34, %arg35, %arg36) {hlorewrite.stage = 0 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>)
    %20 = mpmd.transfer %17#0 : (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>) -> !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>
    %21 = mpmd.transfer %arg0 : (!mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>) -> !mpmd.mesh_tensor<"m1", tensor<i32>, sharding=<@m1, []>>
    %22:18 = mpmd.fragment_call<mesh="m1", origin=["update"]> @update_1_1(%8#1, %20, %8#2, %8#3, %8#4, %8#5, %8#6, %arg10, %arg11, %arg12, %arg13, %arg14, %arg15, %arg64, %arg65, %arg66, %arg67, %arg68, %arg69, %21, %arg37, %arg38, %arg39, %arg40, %arg41, %arg42) {hlorewrite.stage = 1 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<i32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>)
    %23 = mpmd.transfer %17#0 : (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>) -> !mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>
    %24 = mpmd.transfer %arg0 : (!mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>) -> !mpmd.mesh_tensor<"m2", tensor<i32>, sharding=<@m2, []>>
    %25:18 = mpmd.fragment_call<mesh="m2", origin=["update"]> @update_2_1(%9#1, %23, %9#2, %9#3, %9#4, %9#5, %9#6, %arg16, %arg17, %arg18, %arg19, %arg20, %arg21, %arg70, %arg71, %arg72, %arg73, %arg74, %arg75, %24, %arg43, %arg44, %arg45, %arg46, %arg47, %arg48) {hlorewrite.stage = 2 : i64, hlorewrite.task = "update"} : (!mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<i32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>)
    return %7#0, %19#0, %17#1, %19#1, %19#2, %19#3, %19#4, %19#5, %19#6, %19#7, %22#0, %22#1, %22#2, %22#3, %22#4, %22#5, %25#0, %25#1, %25#2, %25#3, %25#4, %25#5, %17#2, %17#3, %17#4, %17#5, %17#6, %17#7, %19#8, %17#8, %19#9, %19#10, %19#11, %19#12, %19#13, %19#14, %19#15, %22#6, %22#7, %22#8, %22#9, %22#10, %22#11, %25#6, %25#7, %25#8, %25#9, %25#10, %25#11, %17#9, %17#10, %17#11, %17#12, %17#13, %17#14, %19#16, %17#15, %19#17, %19#18, %19#19, %19#20, %19#21, %19#22, %19#23, %22#12, %22#13, %22#14, %22#15, %22#16, %22#17, %25#12, %25#13, %25#14, %25#15, %25#16, %25#17, %17#16, %17#17, %17#18, %17#19, %17#20, %17#21, %10#8 : !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>
  }
  func.func private @microbatch(%arg0: !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, %arg1: !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, %arg2: !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, %arg3: !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg4: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, %arg5: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, %arg6: !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg7: !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg8: !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg9: !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg10: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, %arg11: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, %arg12: !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg13: !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg14: !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg15: !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg16: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, %arg17: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, %arg18: !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg19: !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg20: !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg21: !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg22: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, %arg23: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, %arg24: !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg25: !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg26: !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg27: !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, %arg28: !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, %arg29: !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, %arg30: !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, %arg31: !mpmd.mesh_tensor<"m0", tensor<8x8x9xi32>, sharding=<@m0, [{}, {"data"}, {}]>>, %arg32: !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, %arg33: !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, %arg34: !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg35: !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg36: !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg37: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, %arg38: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, %arg39: !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg40: !mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, %arg41: !mpmd.mesh_tensor<"m1", tensor<i32>, sharding=<@m1, []>>, %arg42: !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg43: !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg44: !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg45: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, %arg46: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, %arg47: !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg48: !mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>, %arg49: !mpmd.mesh_tensor<"m2", tensor<i32>, sharding=<@m2, []>>, %arg50: !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg51: !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg52: !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg53: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, %arg54: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, %arg55: !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg56: !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, %arg57: !mpmd.mesh_tensor<"m3", tensor<i32>, sharding=<@m3, []>>, %arg58: !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg59: !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg60: !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg61: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, %arg62: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, %arg63: !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg64: !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, %arg65: !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, %arg66: !mpmd.mesh_tensor<"m3", tensor<8x8x9xi32>, sharding=<@m3, [{}, {"data"}, {}]>>, %arg67: !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg68: !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg69: !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg70: !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, %arg71: !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, %arg72: !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg73: !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg74: !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg75: !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, %arg76: !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, %arg77: !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg78: !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg79: !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg80: !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, %arg81: !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, %arg82: !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg83: !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg84: !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg85: !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, %arg86: !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, %arg87: !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, %arg88: !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, %arg89: !mpmd.mesh_tensor<"m3", tensor<ui32>, sharding=<@m3, []>>) -> (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>) attributes {topology = #mpmd.topology<<"m0" : <["data"=2, "tensor"=1]>>, <"m1" : <["data"=2, "tensor"=1]>>, <"m2" : <["data"=2, "tensor"=1]>>, <"m3" : <["data"=2, "tensor"=1]>>>} {
    %0:27 = mpmd.fragment_call<mesh="m0", origin=["forward"]> @forward_0(%arg29, %arg30, %arg88, %arg31, %arg32, %arg33, %arg34, %arg35, %arg36, %arg37, %arg38, %arg39) {hlorewrite.stage = 0 : i64, hlorewrite.task = "F"} : (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<8x8x9xi32>, sharding=<@m0, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<8x8x16xf32>, sharding=<@m0, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x1x1x16xf32>, sharding=<@m0, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x2x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x2x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x2x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x1x1x16xf32>, sharding=<@m0, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>)
    %1 = mpmd.transfer %0#0 : (!mpmd.mesh_tensor<"m0", tensor<8x8x16xf32>, sharding=<@m0, [{"data"}, {}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>
    %2:27 = mpmd.fragment_call<mesh="m1", origin=["forward"]> @forward_1(%arg40, %arg41, %1, %arg42, %arg43, %arg44, %arg45, %arg46, %arg47) {hlorewrite.stage = 1 : i64, hlorewrite.task = "F"} : (!mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<i32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x1x1x16xf32>, sharding=<@m1, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x2x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x2x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x2x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x1x1x16xf32>, sharding=<@m1, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>)
    %3 = mpmd.transfer %2#0 : (!mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>) -> !mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>
    %4:27 = mpmd.fragment_call<mesh="m2", origin=["forward"]> @forward_2(%arg48, %arg49, %3, %arg50, %arg51, %arg52, %arg53, %arg54, %arg55) {hlorewrite.stage = 2 : i64, hlorewrite.task = "F"} : (!mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<i32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x1x1x16xf32>, sharding=<@m2, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x2x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x2x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x2x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x1x1x16xf32>, sharding=<@m2, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>)
    %5 = mpmd.transfer %4#0 : (!mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>) -> !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>
    %6:33 = mpmd.fragment_call<mesh="m3", origin=["forward"]> @forward_3(%arg56, %arg57, %5, %arg58, %arg59, %arg60, %arg61, %arg62, %arg63, %arg64, %arg65, %arg89, %arg66, %arg27) {hlorewrite.stage = 3 : i64, hlorewrite.task = "F"} : (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<i32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<ui32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<8x8x9xi32>, sharding=<@m3, [{}, {"data"}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>) -> (!mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<8x8x1xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x64xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x1x1x16xf32>, sharding=<@m3, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x2x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x2x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x2x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x1x1x16xf32>, sharding=<@m3, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>)
    %7:9 = mpmd.fragment_call<mesh="m3", origin=["input_gradient"]> @input_gradient_3(%6#1, %6#2, %6#3, %arg65, %arg64, %6#4, %arg56, %6#5, %arg57, %arg67, %arg68, %arg69, %arg70, %arg71, %6#6, %arg63, %6#7, %6#8, %6#9, %6#10, %6#11, %6#12, %arg58, %6#13, %6#14, %6#15, %6#16, %6#17, %6#18, %arg60, %6#19, %6#20, %6#21, %6#22, %6#23, %6#24, %6#25, %6#26, %arg59, %6#27, %6#28, %6#29, %6#30, %6#31) {hlorewrite.stage = 3 : i64, hlorewrite.task = "I"} : (!mpmd.mesh_tensor<"m3", tensor<8x8x1xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x64xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<i32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x64xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x1x1x16xf32>, sharding=<@m3, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x2x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x2x8x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x2x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x2x8xf32>, sharding=<@m3, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x1x1x16xf32>, sharding=<@m3, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x1xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x8x8x16xf32>, sharding=<@m3, [{}, {"data"}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>)
    %8 = mpmd.transfer %7#0 : (!mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>) -> !mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>
    %9:7 = mpmd.fragment_call<mesh="m2", origin=["input_gradient"]> @input_gradient_2(%arg48, %arg49, %arg72, %arg73, %arg74, %arg75, %arg76, %8, %4#1, %arg55, %4#2, %4#3, %4#4, %4#5, %4#6, %4#7, %arg50, %4#8, %4#9, %4#10, %4#11, %4#12, %4#13, %arg52, %4#14, %4#15, %4#16, %4#17, %4#18, %4#19, %4#20, %4#21, %arg51, %4#22, %4#23, %4#24, %4#25, %4#26) {hlorewrite.stage = 2 : i64, hlorewrite.task = "I"} : (!mpmd.mesh_tensor<"m2", tensor<f32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<i32>, sharding=<@m2, []>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x64xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x1x1x16xf32>, sharding=<@m2, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x2x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x2x8x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x2x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x2x8xf32>, sharding=<@m2, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x1x1x16xf32>, sharding=<@m2, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x1xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x8x8x16xf32>, sharding=<@m2, [{}, {"data"}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>)
    %10 = mpmd.transfer %9#0 : (!mpmd.mesh_tensor<"m2", tensor<8x8x16xf32>, sharding=<@m2, [{"data"}, {}, {}]>>) -> !mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>
    %11:7 = mpmd.fragment_call<mesh="m1", origin=["input_gradient"]> @input_gradient_1(%arg40, %arg41, %arg77, %arg78, %arg79, %arg80, %arg81, %10, %2#1, %arg47, %2#2, %2#3, %2#4, %2#5, %2#6, %2#7, %arg42, %2#8, %2#9, %2#10, %2#11, %2#12, %2#13, %arg44, %2#14, %2#15, %2#16, %2#17, %2#18, %2#19, %2#20, %2#21, %arg43, %2#22, %2#23, %2#24, %2#25, %2#26) {hlorewrite.stage = 1 : i64, hlorewrite.task = "I"} : (!mpmd.mesh_tensor<"m1", tensor<f32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<i32>, sharding=<@m1, []>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x64xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x1x1x16xf32>, sharding=<@m1, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x2x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x2x8x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x2x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x2x8xf32>, sharding=<@m1, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x1x1x16xf32>, sharding=<@m1, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x1xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x8x8x16xf32>, sharding=<@m1, [{}, {"data"}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>)
    %12 = mpmd.transfer %11#0 : (!mpmd.mesh_tensor<"m1", tensor<8x8x16xf32>, sharding=<@m1, [{"data"}, {}, {}]>>) -> !mpmd.mesh_tensor<"m0", tensor<8x8x16xf32>, sharding=<@m0, [{"data"}, {}, {}]>>
    %13:8 = mpmd.fragment_call<mesh="m0", origin=["input_gradient"]> @input_gradient_0(%arg33, %arg30, %arg82, %arg83, %arg84, %arg85, %arg86, %12, %0#1, %arg39, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7, %arg34, %0#8, %0#9, %0#10, %0#11, %0#12, %0#13, %arg36, %0#14, %0#15, %0#16, %0#17, %0#18, %0#19, %0#20, %0#21, %arg35, %0#22, %0#23, %0#24, %0#25, %0#26, %arg87, %arg88, %arg31) {hlorewrite.stage = 0 : i64, hlorewrite.task = "I"} : (!mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<i32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x8x16xf32>, sharding=<@m0, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x64xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x1x1x16xf32>, sharding=<@m0, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x2x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x2x8x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x2x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x2x8xf32>, sharding=<@m0, [{}, {"data"}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x1x1x16xf32>, sharding=<@m0, [{}, {}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x1xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x8x8x16xf32>, sharding=<@m0, [{}, {"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<ui32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<8x8x9xi32>, sharding=<@m0, [{}, {"data"}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<1x8x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>)
    %14:8 = mpmd.fragment_call<mesh="m3", origin=["weight_gradient"]> @weight_gradient_3(%7#1, %6#32, %arg56, %arg1, %7#2, %arg21, %7#3, %arg22, %7#4, %arg23, %7#5, %arg24, %7#6, %arg25, %7#7, %arg26, %7#8, %arg28) {hlorewrite.stage = 3 : i64, hlorewrite.task = "W"} : (!mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<8x8x16xf32>, sharding=<@m3, [{"data"}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>)
    %15:6 = mpmd.fragment_call<mesh="m2", origin=["weight_gradient"]> @weight_gradient_2(%9#1, %arg15, %9#2, %arg16, %9#3, %arg17, %9#4, %arg18, %9#5, %arg19, %9#6, %arg20) {hlorewrite.stage = 2 : i64, hlorewrite.task = "W"} : (!mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>)
    %16:6 = mpmd.fragment_call<mesh="m1", origin=["weight_gradient"]> @weight_gradient_1(%11#1, %arg9, %11#2, %arg10, %11#3, %arg11, %11#4, %arg12, %11#5, %arg13, %11#6, %arg14) {hlorewrite.stage = 1 : i64, hlorewrite.task = "W"} : (!mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>) -> (!mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>)
    %17:8 = mpmd.fragment_call<mesh="m0", origin=["weight_gradient"]> @weight_gradient_0(%arg33, %13#0, %arg2, %13#1, %arg3, %13#2, %arg4, %13#3, %arg5, %13#4, %arg6, %13#5, %arg7, %13#6, %arg8, %13#7, %arg0) {hlorewrite.stage = 0 : i64, hlorewrite.task = "W"} : (!mpmd.mesh_tensor<"m0", tensor<f32>, sharding=<@m0, []>>, !mpmd.mesh_tensor<"m0", tensor<1x8x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>) -> (!mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>)
    return %17#0, %14#0, %17#1, %17#2, %17#3, %17#4, %17#5, %17#6, %17#7, %16#0, %16#1, %16#2, %16#3, %16#4, %16#5, %15#0, %15#1, %15#2, %15#3, %15#4, %15#5, %14#1, %14#2, %14#3, %14#4, %14#5, %14#6, %6#0, %14#7 : !mpmd.mesh_tensor<"m0", tensor<64x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<16xf32>, sharding=<@m3, [{}]>>, !mpmd.mesh_tensor<"m0", tensor<8x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x64x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16xf32>, sharding=<@m0, [{}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x16xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x48xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m0", tensor<1x16x64xf32>, sharding=<@m0, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x64x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16xf32>, sharding=<@m1, [{}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x16xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x48xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m1", tensor<1x16x64xf32>, sharding=<@m1, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x64x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16xf32>, sharding=<@m2, [{}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x16xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x48xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m2", tensor<1x16x64xf32>, sharding=<@m2, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x64x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16xf32>, sharding=<@m3, [{}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x16xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x48xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<1x16x64xf32>, sharding=<@m3, [{}, {}, {}]>>, !mpmd.mesh_tensor<"m3", tensor<f32>, sharding=<@m3, []>>, !mpmd.mesh_tensor<"m3", tensor<64x16xf32>, sharding=<@m3, [{}, {}]>>
  }
  func.func private @before_0() -> (tensor<i32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %c = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %6 = stablehlo.convert %5 : tensor<64x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %8 = stablehlo.convert %4 : tensor<1x64x16xf32>
    %9 = stablehlo.convert %3 : tensor<1x16xf32>
    %10 = stablehlo.convert %3 : tensor<1x16xf32>
    %11 = stablehlo.convert %2 : tensor<1x16x16xf32>
    %12 = stablehlo.convert %1 : tensor<1x16x48xf32>
    %13 = stablehlo.convert %0 : tensor<1x16x64xf32>
    return %c, %cst, %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13 : tensor<i32>, tensor<f32>, tensor<1x16x64xf32>, tensor<1x16x48xf32>, tensor<1x16x16xf32>, tensor<1x16xf32>, tensor<1x64x16xf32>, tensor<64x16xf32>, tensor<64x16xf32>, tensor<8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @before_1() -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}, tensor<i32> {sdy.sharding = #sdy.sharding<@m1, []>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %5 = stablehlo.convert %4 : tensor<1x64x16xf32>
    %6 = stablehlo.convert %3 : tensor<1x16xf32>
    %7 = stablehlo.convert %3 : tensor<1x16xf32>
    %8 = stablehlo.convert %2 : tensor<1x16x16xf32>
    %9 = stablehlo.convert %1 : tensor<1x16x48xf32>
    %10 = stablehlo.convert %0 : tensor<1x16x64xf32>
    return %cst, %c, %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : tensor<f32>, tensor<i32>, tensor<1x16x64xf32>, tensor<1x16x48xf32>, tensor<1x16x16xf32>, tensor<1x16xf32>, tensor<1x64x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @before_2() -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m2, []>}, tensor<i32> {sdy.sharding = #sdy.sharding<@m2, []>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %5 = stablehlo.convert %4 : tensor<1x64x16xf32>
    %6 = stablehlo.convert %3 : tensor<1x16xf32>
    %7 = stablehlo.convert %3 : tensor<1x16xf32>
    %8 = stablehlo.convert %2 : tensor<1x16x16xf32>
    %9 = stablehlo.convert %1 : tensor<1x16x48xf32>
    %10 = stablehlo.convert %0 : tensor<1x16x64xf32>
    return %cst, %c, %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : tensor<f32>, tensor<i32>, tensor<1x16x64xf32>, tensor<1x16x48xf32>, tensor<1x16x16xf32>, tensor<1x16xf32>, tensor<1x64x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @before_3() -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, tensor<i32> {sdy.sharding = #sdy.sharding<@m3, []>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %3 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %6 = stablehlo.convert %4 : tensor<1x64x16xf32>
    %7 = stablehlo.convert %3 : tensor<1x16xf32>
    %8 = stablehlo.convert %3 : tensor<1x16xf32>
    %9 = stablehlo.convert %2 : tensor<1x16x16xf32>
    %10 = stablehlo.convert %1 : tensor<1x16x48xf32>
    %11 = stablehlo.convert %0 : tensor<1x16x64xf32>
    %12 = stablehlo.convert %cst : tensor<f32>
    %cst_0 = stablehlo.constant dense<0.000000e+00> : tensor<64x16xf32>
    return %cst, %c, %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %cst_0 : tensor<f32>, tensor<i32>, tensor<1x16x64xf32>, tensor<1x16x48xf32>, tensor<1x16x16xf32>, tensor<1x16xf32>, tensor<1x64x16xf32>, tensor<16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<64x16xf32>
  }
  func.func private @forward_0(%arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg2: tensor<ui32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg3: tensor<8x8x9xi32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}]>}, %arg4: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg5: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg6: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg7: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg8: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg9: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg10: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg11: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}) -> (tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.convert %arg2 : (tensor<ui32>) -> tensor<i32>
    %1 = stablehlo.dynamic_slice %arg3, %0, %arg1, %arg1, sizes = [1, 8, 9] : (tensor<8x8x9xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x9xi32>
    %2 = stablehlo.reshape %1 : (tensor<1x8x9xi32>) -> tensor<8x9xi32>
    %3 = stablehlo.slice %2 [0:8, 0:8] : (tensor<8x9xi32>) -> tensor<8x8xi32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %5 = stablehlo.compare LT, %3, %4, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<64> : tensor<i32>
    %6 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %7 = stablehlo.add %3, %6 : tensor<8x8xi32>
    %8 = stablehlo.select %5, %7, %3 : tensor<8x8xi1>, tensor<8x8xi32>
    %9 = stablehlo.broadcast_in_dim %8, dims = [0, 1] : (tensor<8x8xi32>) -> tensor<8x8x1xi32>
    %10 = "stablehlo.gather"(%arg0, %9) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<64x16xf32>, tensor<8x8x1xi32>) -> tensor<8x8x16xf32>
    %11 = stablehlo.broadcast_in_dim %arg4, dims = [1, 2] : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [0, 1, 2] : (tensor<1x8x16xf32>) -> tensor<8x8x16xf32>
    %13 = stablehlo.add %10, %12 : tensor<8x8x16xf32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %14 = stablehlo.sqrt %cst : tensor<f32>
    %15 = stablehlo.convert %14 : tensor<f32>
    %16 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %17 = stablehlo.add %16, %4 : tensor<8x8xi32>
    %18 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %19 = stablehlo.compare GE, %17, %18, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<true> : tensor<i1>
    %20 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_1 = stablehlo.constant dense<false> : tensor<i1>
    %21 = stablehlo.broadcast_in_dim %c_1, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %22 = stablehlo.select %19, %20, %21 : tensor<8x8xi1>, tensor<8x8xi1>
    %23 = stablehlo.broadcast_in_dim %22, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %cst_2 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %24 = stablehlo.convert %cst_2 : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %24, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %26 = stablehlo.broadcast_in_dim %arg5, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %27 = stablehlo.broadcast_in_dim %arg5, dims = [] : (tensor<f32>) -> tensor<1x8x8x1xf32>
    %28 = stablehlo.broadcast_in_dim %arg5, dims = [] : (tensor<f32>) -> tensor<1x1x1x16xf32>
    %29 = stablehlo.broadcast_in_dim %arg5, dims = [] : (tensor<f32>) -> tensor<1x8x8x2x8xf32>
    %30 = stablehlo.broadcast_in_dim %arg5, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x8xf32>
    %31 = stablehlo.broadcast_in_dim %arg5, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x1xf32>
    %32 = stablehlo.broadcast_in_dim %arg5, dims = [] : (tensor<f32>) -> tensor<1x8x8x64xf32>
    %33:37 = stablehlo.while(%iterArg = %arg11, %iterArg_3 = %arg10, %iterArg_4 = %arg9, %iterArg_5 = %arg8, %iterArg_6 = %arg7, %iterArg_7 = %arg6, %iterArg_8 = %15, %iterArg_9 = %23, %iterArg_10 = %25, %iterArg_11 = %arg1, %iterArg_12 = %13, %iterArg_13 = %26, %iterArg_14 = %27, %iterArg_15 = %27, %iterArg_16 = %28, %iterArg_17 = %26, %iterArg_18 = %26, %iterArg_19 = %29, %iterArg_20 = %29, %iterArg_21 = %30, %iterArg_22 = %31, %iterArg_23 = %31, %iterArg_24 = %30, %iterArg_25 = %29, %iterArg_26 = %26, %iterArg_27 = %26, %iterArg_28 = %27, %iterArg_29 = %27, %iterArg_30 = %28, %iterArg_31 = %26, %iterArg_32 = %26, %iterArg_33 = %32, %iterArg_34 = %32, %iterArg_35 = %32, %iterArg_36 = %32, %iterArg_37 = %32, %iterArg_38 = %32) : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    cond {
      %c_39 = stablehlo.constant dense<1> : tensor<i32>
      %34 = stablehlo.compare LT, %iterArg_11, %c_39, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %34 : tensor<i1>
    } do {
      %34 = stablehlo.dynamic_slice %iterArg, %iterArg_11, %arg1, %arg1, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %35 = stablehlo.reshape %34 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %36 = stablehlo.dynamic_slice %iterArg_3, %iterArg_11, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %37 = stablehlo.reshape %36 : (tensor<1x16xf32>) -> tensor<16xf32>
      %38 = stablehlo.dynamic_slice %iterArg_4, %iterArg_11, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %39 = stablehlo.reshape %38 : (tensor<1x16xf32>) -> tensor<16xf32>
      %40 = stablehlo.dynamic_slice %iterArg_5, %iterArg_11, %arg1, %arg1, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %41 = stablehlo.reshape %40 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %42 = stablehlo.dynamic_slice %iterArg_6, %iterArg_11, %arg1, %arg1, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %43 = stablehlo.reshape %42 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %44 = stablehlo.dynamic_slice %iterArg_7, %iterArg_11, %arg1, %arg1, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %45 = stablehlo.reshape %44 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %46 = stablehlo.multiply %iterArg_12, %iterArg_12 : tensor<8x8x16xf32>
      %47 = stablehlo.reduce(%46 init: %arg5) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %cst_39 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %49 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %50 = stablehlo.divide %48, %49 : tensor<8x8x1xf32>
      %cst_40 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
      %51 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %52 = stablehlo.add %50, %51 : tensor<8x8x1xf32>
      %53 = stablehlo.rsqrt %52 : tensor<8x8x1xf32>
      %54 = stablehlo.divide %53, %52 : tensor<8x8x1xf32>
      %cst_41 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
      %55 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %56 = stablehlo.multiply %55, %54 : tensor<8x8x1xf32>
      %57 = stablehlo.broadcast_in_dim %53, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %58 = stablehlo.multiply %iterArg_12, %57 : tensor<8x8x16xf32>
      %59 = stablehlo.broadcast_in_dim %37, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %60 = stablehlo.broadcast_in_dim %59, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %61 = stablehlo.multiply %58, %60 : tensor<8x8x16xf32>
      %62 = stablehlo.dot_general %61, %43, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x48xf32>) -> tensor<8x8x48xf32>
      %63 = stablehlo.reshape %62 : (tensor<8x8x48xf32>) -> tensor<8x8x2x24xf32>
      %64 = stablehlo.slice %63 [0:8, 0:8, 0:2, 0:8] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %65 = stablehlo.slice %63 [0:8, 0:8, 0:2, 8:16] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %66 = stablehlo.slice %63 [0:8, 0:8, 0:2, 16:24] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %67 = stablehlo.dot_general %64, %65, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %68 = stablehlo.broadcast_in_dim %iterArg_8, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %69 = stablehlo.divide %67, %68 : tensor<8x2x8x8xf32>
      %70 = stablehlo.select %iterArg_9, %69, %iterArg_10 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %cst_42 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %71 = stablehlo.reduce(%70 init: %cst_42) applies stablehlo.maximum across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %72 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<8x2x8xf32>
      %73 = stablehlo.maximum %72, %71 : tensor<8x2x8xf32>
      %74 = stablehlo.broadcast_in_dim %73, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %75 = stablehlo.broadcast_in_dim %74, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %76 = stablehlo.subtract %70, %75 : tensor<8x2x8x8xf32>
      %77 = stablehlo.exponential %76 : tensor<8x2x8x8xf32>
      %78 = stablehlo.reduce(%77 init: %arg5) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %80 = stablehlo.broadcast_in_dim %79, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %81 = stablehlo.divide %77, %80 : tensor<8x2x8x8xf32>
      %82 = stablehlo.multiply %79, %79 : tensor<8x2x8x1xf32>
      %cst_43 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %83 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<8x2x8x1xf32>
      %84 = stablehlo.divide %83, %82 : tensor<8x2x8x1xf32>
      %85 = stablehlo.dot_general %66, %81, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %86 = stablehlo.transpose %85, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %87 = stablehlo.reshape %86 : (tensor<8x8x2x8xf32>) -> tensor<8x8x16xf32>
      %88 = stablehlo.dot_general %87, %41, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %89 = stablehlo.add %iterArg_12, %88 : tensor<8x8x16xf32>
      %90 = stablehlo.multiply %89, %89 : tensor<8x8x16xf32>
      %91 = stablehlo.reduce(%90 init: %arg5) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %92 = stablehlo.broadcast_in_dim %91, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %93 = stablehlo.divide %92, %49 : tensor<8x8x1xf32>
      %94 = stablehlo.add %93, %51 : tensor<8x8x1xf32>
      %95 = stablehlo.rsqrt %94 : tensor<8x8x1xf32>
      %96 = stablehlo.divide %95, %94 : tensor<8x8x1xf32>
      %97 = stablehlo.multiply %55, %96 : tensor<8x8x1xf32>
      %98 = stablehlo.broadcast_in_dim %95, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %99 = stablehlo.multiply %89, %98 : tensor<8x8x16xf32>
      %100 = stablehlo.broadcast_in_dim %39, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %101 = stablehlo.broadcast_in_dim %100, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %102 = stablehlo.multiply %99, %101 : tensor<8x8x16xf32>
      %103 = stablehlo.dot_general %102, %45, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x64xf32>) -> tensor<8x8x64xf32>
      %104 = stablehlo.multiply %103, %103 : tensor<8x8x64xf32>
      %105 = stablehlo.multiply %104, %103 : tensor<8x8x64xf32>
      %cst_44 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %106 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %107 = stablehlo.multiply %106, %104 : tensor<8x8x64xf32>
      %cst_45 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %108 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %109 = stablehlo.multiply %108, %105 : tensor<8x8x64xf32>
      %110 = stablehlo.add %103, %109 : tensor<8x8x64xf32>
      %cst_46 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %111 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %112 = stablehlo.multiply %111, %110 : tensor<8x8x64xf32>
      %113 = stablehlo.tanh %112 : tensor<8x8x64xf32>
      %114 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %115 = stablehlo.subtract %114, %113 : tensor<8x8x64xf32>
      %116 = stablehlo.add %114, %113 : tensor<8x8x64xf32>
      %cst_47 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %117 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %118 = stablehlo.multiply %117, %116 : tensor<8x8x64xf32>
      %119 = stablehlo.multiply %103, %118 : tensor<8x8x64xf32>
      %120 = stablehlo.dot_general %119, %35, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<64x16xf32>) -> tensor<8x8x16xf32>
      %121 = stablehlo.add %89, %120 : tensor<8x8x16xf32>
      %122 = stablehlo.broadcast_in_dim %iterArg_12, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %123 = stablehlo.dynamic_update_slice %iterArg_13, %122, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %124 = stablehlo.broadcast_in_dim %56, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %125 = stablehlo.dynamic_update_slice %iterArg_14, %124, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %126 = stablehlo.broadcast_in_dim %53, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %127 = stablehlo.dynamic_update_slice %iterArg_15, %126, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %128 = stablehlo.broadcast_in_dim %59, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %129 = stablehlo.dynamic_update_slice %iterArg_16, %128, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %130 = stablehlo.broadcast_in_dim %58, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %131 = stablehlo.dynamic_update_slice %iterArg_17, %130, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %132 = stablehlo.broadcast_in_dim %61, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %133 = stablehlo.dynamic_update_slice %iterArg_18, %132, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %134 = stablehlo.broadcast_in_dim %65, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %135 = stablehlo.dynamic_update_slice %iterArg_19, %134, %iterArg_11, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %136 = stablehlo.broadcast_in_dim %64, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %137 = stablehlo.dynamic_update_slice %iterArg_20, %136, %iterArg_11, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %138 = stablehlo.broadcast_in_dim %77, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %139 = stablehlo.dynamic_update_slice %iterArg_21, %138, %iterArg_11, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %140 = stablehlo.broadcast_in_dim %79, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %141 = stablehlo.dynamic_update_slice %iterArg_22, %140, %iterArg_11, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %142 = stablehlo.broadcast_in_dim %84, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %143 = stablehlo.dynamic_update_slice %iterArg_23, %142, %iterArg_11, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %144 = stablehlo.broadcast_in_dim %81, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %145 = stablehlo.dynamic_update_slice %iterArg_24, %144, %iterArg_11, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %146 = stablehlo.broadcast_in_dim %66, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %147 = stablehlo.dynamic_update_slice %iterArg_25, %146, %iterArg_11, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %148 = stablehlo.broadcast_in_dim %87, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %149 = stablehlo.dynamic_update_slice %iterArg_26, %148, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %150 = stablehlo.broadcast_in_dim %89, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %151 = stablehlo.dynamic_update_slice %iterArg_27, %150, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %152 = stablehlo.broadcast_in_dim %97, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %153 = stablehlo.dynamic_update_slice %iterArg_28, %152, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %154 = stablehlo.broadcast_in_dim %95, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %155 = stablehlo.dynamic_update_slice %iterArg_29, %154, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %156 = stablehlo.broadcast_in_dim %100, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %157 = stablehlo.dynamic_update_slice %iterArg_30, %156, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %158 = stablehlo.broadcast_in_dim %99, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %159 = stablehlo.dynamic_update_slice %iterArg_31, %158, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %160 = stablehlo.broadcast_in_dim %102, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %161 = stablehlo.dynamic_update_slice %iterArg_32, %160, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %162 = stablehlo.broadcast_in_dim %107, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %163 = stablehlo.dynamic_update_slice %iterArg_33, %162, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %164 = stablehlo.broadcast_in_dim %113, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %165 = stablehlo.dynamic_update_slice %iterArg_34, %164, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %166 = stablehlo.broadcast_in_dim %115, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %167 = stablehlo.dynamic_update_slice %iterArg_35, %166, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %168 = stablehlo.broadcast_in_dim %118, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %169 = stablehlo.dynamic_update_slice %iterArg_36, %168, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %170 = stablehlo.broadcast_in_dim %103, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %171 = stablehlo.dynamic_update_slice %iterArg_37, %170, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %172 = stablehlo.broadcast_in_dim %119, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %173 = stablehlo.dynamic_update_slice %iterArg_38, %172, %iterArg_11, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %c_48 = stablehlo.constant dense<1> : tensor<i32>
      %174 = stablehlo.add %iterArg_11, %c_48 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %174, %121, %123, %125, %127, %129, %131, %133, %135, %137, %139, %141, %143, %145, %147, %149, %151, %153, %155, %157, %159, %161, %163, %165, %167, %169, %171, %173 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    }
    return %33#10, %33#36, %33#35, %33#34, %33#33, %33#32, %33#31, %33#30, %33#29, %33#28, %33#27, %33#26, %33#25, %33#24, %33#23, %33#22, %33#21, %33#20, %33#19, %33#18, %33#17, %33#16, %33#15, %33#14, %33#13, %33#12, %33#11 : tensor<8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>
  }
  func.func private @forward_1(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}, %arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@m1, []>}, %arg2: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}, {}]>}, %arg3: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg4: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg5: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg6: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg7: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg8: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) -> (tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.sqrt %cst : tensor<f32>
    %1 = stablehlo.convert %0 : tensor<f32>
    %2 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %4 = stablehlo.add %2, %3 : tensor<8x8xi32>
    %5 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %9 = stablehlo.select %6, %7, %8 : tensor<8x8xi1>, tensor<8x8xi1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %cst_1 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %11 = stablehlo.convert %cst_1 : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %13 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %14 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x1xf32>
    %15 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x1x1x16xf32>
    %16 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x2x8xf32>
    %17 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x8xf32>
    %18 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x1xf32>
    %19 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x64xf32>
    %20:37 = stablehlo.while(%iterArg = %arg8, %iterArg_2 = %arg7, %iterArg_3 = %arg6, %iterArg_4 = %arg5, %iterArg_5 = %arg4, %iterArg_6 = %arg3, %iterArg_7 = %1, %iterArg_8 = %10, %iterArg_9 = %12, %iterArg_10 = %arg1, %iterArg_11 = %arg2, %iterArg_12 = %13, %iterArg_13 = %14, %iterArg_14 = %14, %iterArg_15 = %15, %iterArg_16 = %13, %iterArg_17 = %13, %iterArg_18 = %16, %iterArg_19 = %16, %iterArg_20 = %17, %iterArg_21 = %18, %iterArg_22 = %18, %iterArg_23 = %17, %iterArg_24 = %16, %iterArg_25 = %13, %iterArg_26 = %13, %iterArg_27 = %14, %iterArg_28 = %14, %iterArg_29 = %15, %iterArg_30 = %13, %iterArg_31 = %13, %iterArg_32 = %19, %iterArg_33 = %19, %iterArg_34 = %19, %iterArg_35 = %19, %iterArg_36 = %19, %iterArg_37 = %19) : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    cond {
      %c_38 = stablehlo.constant dense<1> : tensor<i32>
      %21 = stablehlo.compare LT, %iterArg_10, %c_38, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %21 : tensor<i1>
    } do {
      %21 = stablehlo.dynamic_slice %iterArg, %iterArg_10, %arg1, %arg1, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %22 = stablehlo.reshape %21 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %23 = stablehlo.dynamic_slice %iterArg_2, %iterArg_10, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %24 = stablehlo.reshape %23 : (tensor<1x16xf32>) -> tensor<16xf32>
      %25 = stablehlo.dynamic_slice %iterArg_3, %iterArg_10, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %26 = stablehlo.reshape %25 : (tensor<1x16xf32>) -> tensor<16xf32>
      %27 = stablehlo.dynamic_slice %iterArg_4, %iterArg_10, %arg1, %arg1, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %28 = stablehlo.reshape %27 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %29 = stablehlo.dynamic_slice %iterArg_5, %iterArg_10, %arg1, %arg1, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %30 = stablehlo.reshape %29 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %31 = stablehlo.dynamic_slice %iterArg_6, %iterArg_10, %arg1, %arg1, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %32 = stablehlo.reshape %31 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %33 = stablehlo.multiply %iterArg_11, %iterArg_11 : tensor<8x8x16xf32>
      %34 = stablehlo.reduce(%33 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %cst_38 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %36 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %37 = stablehlo.divide %35, %36 : tensor<8x8x1xf32>
      %cst_39 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
      %38 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %39 = stablehlo.add %37, %38 : tensor<8x8x1xf32>
      %40 = stablehlo.rsqrt %39 : tensor<8x8x1xf32>
      %41 = stablehlo.divide %40, %39 : tensor<8x8x1xf32>
      %cst_40 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
      %42 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %43 = stablehlo.multiply %42, %41 : tensor<8x8x1xf32>
      %44 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %45 = stablehlo.multiply %iterArg_11, %44 : tensor<8x8x16xf32>
      %46 = stablehlo.broadcast_in_dim %24, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %48 = stablehlo.multiply %45, %47 : tensor<8x8x16xf32>
      %49 = stablehlo.dot_general %48, %30, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x48xf32>) -> tensor<8x8x48xf32>
      %50 = stablehlo.reshape %49 : (tensor<8x8x48xf32>) -> tensor<8x8x2x24xf32>
      %51 = stablehlo.slice %50 [0:8, 0:8, 0:2, 0:8] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %52 = stablehlo.slice %50 [0:8, 0:8, 0:2, 8:16] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %53 = stablehlo.slice %50 [0:8, 0:8, 0:2, 16:24] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %54 = stablehlo.dot_general %51, %52, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %55 = stablehlo.broadcast_in_dim %iterArg_7, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %56 = stablehlo.divide %54, %55 : tensor<8x2x8x8xf32>
      %57 = stablehlo.select %iterArg_8, %56, %iterArg_9 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %cst_41 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %58 = stablehlo.reduce(%57 init: %cst_41) applies stablehlo.maximum across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %59 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<8x2x8xf32>
      %60 = stablehlo.maximum %59, %58 : tensor<8x2x8xf32>
      %61 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %63 = stablehlo.subtract %57, %62 : tensor<8x2x8x8xf32>
      %64 = stablehlo.exponential %63 : tensor<8x2x8x8xf32>
      %65 = stablehlo.reduce(%64 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %66 = stablehlo.broadcast_in_dim %65, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %67 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %68 = stablehlo.divide %64, %67 : tensor<8x2x8x8xf32>
      %69 = stablehlo.multiply %66, %66 : tensor<8x2x8x1xf32>
      %cst_42 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %70 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<8x2x8x1xf32>
      %71 = stablehlo.divide %70, %69 : tensor<8x2x8x1xf32>
      %72 = stablehlo.dot_general %53, %68, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %73 = stablehlo.transpose %72, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %74 = stablehlo.reshape %73 : (tensor<8x8x2x8xf32>) -> tensor<8x8x16xf32>
      %75 = stablehlo.dot_general %74, %28, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %76 = stablehlo.add %iterArg_11, %75 : tensor<8x8x16xf32>
      %77 = stablehlo.multiply %76, %76 : tensor<8x8x16xf32>
      %78 = stablehlo.reduce(%77 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %80 = stablehlo.divide %79, %36 : tensor<8x8x1xf32>
      %81 = stablehlo.add %80, %38 : tensor<8x8x1xf32>
      %82 = stablehlo.rsqrt %81 : tensor<8x8x1xf32>
      %83 = stablehlo.divide %82, %81 : tensor<8x8x1xf32>
      %84 = stablehlo.multiply %42, %83 : tensor<8x8x1xf32>
      %85 = stablehlo.broadcast_in_dim %82, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %86 = stablehlo.multiply %76, %85 : tensor<8x8x16xf32>
      %87 = stablehlo.broadcast_in_dim %26, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %88 = stablehlo.broadcast_in_dim %87, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %89 = stablehlo.multiply %86, %88 : tensor<8x8x16xf32>
      %90 = stablehlo.dot_general %89, %32, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x64xf32>) -> tensor<8x8x64xf32>
      %91 = stablehlo.multiply %90, %90 : tensor<8x8x64xf32>
      %92 = stablehlo.multiply %91, %90 : tensor<8x8x64xf32>
      %cst_43 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %93 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %94 = stablehlo.multiply %93, %91 : tensor<8x8x64xf32>
      %cst_44 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %95 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %96 = stablehlo.multiply %95, %92 : tensor<8x8x64xf32>
      %97 = stablehlo.add %90, %96 : tensor<8x8x64xf32>
      %cst_45 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %98 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %99 = stablehlo.multiply %98, %97 : tensor<8x8x64xf32>
      %100 = stablehlo.tanh %99 : tensor<8x8x64xf32>
      %101 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %102 = stablehlo.subtract %101, %100 : tensor<8x8x64xf32>
      %103 = stablehlo.add %101, %100 : tensor<8x8x64xf32>
      %cst_46 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %104 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %105 = stablehlo.multiply %104, %103 : tensor<8x8x64xf32>
      %106 = stablehlo.multiply %90, %105 : tensor<8x8x64xf32>
      %107 = stablehlo.dot_general %106, %22, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<64x16xf32>) -> tensor<8x8x16xf32>
      %108 = stablehlo.add %76, %107 : tensor<8x8x16xf32>
      %109 = stablehlo.broadcast_in_dim %iterArg_11, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %110 = stablehlo.dynamic_update_slice %iterArg_12, %109, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %111 = stablehlo.broadcast_in_dim %43, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %112 = stablehlo.dynamic_update_slice %iterArg_13, %111, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %113 = stablehlo.broadcast_in_dim %40, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %114 = stablehlo.dynamic_update_slice %iterArg_14, %113, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %115 = stablehlo.broadcast_in_dim %46, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %116 = stablehlo.dynamic_update_slice %iterArg_15, %115, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %117 = stablehlo.broadcast_in_dim %45, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %118 = stablehlo.dynamic_update_slice %iterArg_16, %117, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %119 = stablehlo.broadcast_in_dim %48, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %120 = stablehlo.dynamic_update_slice %iterArg_17, %119, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %121 = stablehlo.broadcast_in_dim %52, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %122 = stablehlo.dynamic_update_slice %iterArg_18, %121, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %123 = stablehlo.broadcast_in_dim %51, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %124 = stablehlo.dynamic_update_slice %iterArg_19, %123, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %125 = stablehlo.broadcast_in_dim %64, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %126 = stablehlo.dynamic_update_slice %iterArg_20, %125, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %127 = stablehlo.broadcast_in_dim %66, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %128 = stablehlo.dynamic_update_slice %iterArg_21, %127, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %129 = stablehlo.broadcast_in_dim %71, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %130 = stablehlo.dynamic_update_slice %iterArg_22, %129, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %131 = stablehlo.broadcast_in_dim %68, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %132 = stablehlo.dynamic_update_slice %iterArg_23, %131, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %133 = stablehlo.broadcast_in_dim %53, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %134 = stablehlo.dynamic_update_slice %iterArg_24, %133, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %135 = stablehlo.broadcast_in_dim %74, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %136 = stablehlo.dynamic_update_slice %iterArg_25, %135, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %137 = stablehlo.broadcast_in_dim %76, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %138 = stablehlo.dynamic_update_slice %iterArg_26, %137, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %139 = stablehlo.broadcast_in_dim %84, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %140 = stablehlo.dynamic_update_slice %iterArg_27, %139, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %141 = stablehlo.broadcast_in_dim %82, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %142 = stablehlo.dynamic_update_slice %iterArg_28, %141, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %143 = stablehlo.broadcast_in_dim %87, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %144 = stablehlo.dynamic_update_slice %iterArg_29, %143, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %145 = stablehlo.broadcast_in_dim %86, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %146 = stablehlo.dynamic_update_slice %iterArg_30, %145, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %147 = stablehlo.broadcast_in_dim %89, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %148 = stablehlo.dynamic_update_slice %iterArg_31, %147, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %149 = stablehlo.broadcast_in_dim %94, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %150 = stablehlo.dynamic_update_slice %iterArg_32, %149, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %151 = stablehlo.broadcast_in_dim %100, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %152 = stablehlo.dynamic_update_slice %iterArg_33, %151, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %153 = stablehlo.broadcast_in_dim %102, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %154 = stablehlo.dynamic_update_slice %iterArg_34, %153, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %155 = stablehlo.broadcast_in_dim %105, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %156 = stablehlo.dynamic_update_slice %iterArg_35, %155, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %157 = stablehlo.broadcast_in_dim %90, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %158 = stablehlo.dynamic_update_slice %iterArg_36, %157, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %159 = stablehlo.broadcast_in_dim %106, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %160 = stablehlo.dynamic_update_slice %iterArg_37, %159, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %c_47 = stablehlo.constant dense<1> : tensor<i32>
      %161 = stablehlo.add %iterArg_10, %c_47 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %161, %108, %110, %112, %114, %116, %118, %120, %122, %124, %126, %128, %130, %132, %134, %136, %138, %140, %142, %144, %146, %148, %150, %152, %154, %156, %158, %160 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    }
    return %20#10, %20#36, %20#35, %20#34, %20#33, %20#32, %20#31, %20#30, %20#29, %20#28, %20#27, %20#26, %20#25, %20#24, %20#23, %20#22, %20#21, %20#20, %20#19, %20#18, %20#17, %20#16, %20#15, %20#14, %20#13, %20#12, %20#11 : tensor<8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>
  }
  func.func private @forward_2(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m2, []>}, %arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@m2, []>}, %arg2: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{"data"}, {}, {}]>}, %arg3: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg4: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg5: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg6: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg7: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg8: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) -> (tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.sqrt %cst : tensor<f32>
    %1 = stablehlo.convert %0 : tensor<f32>
    %2 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %4 = stablehlo.add %2, %3 : tensor<8x8xi32>
    %5 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %9 = stablehlo.select %6, %7, %8 : tensor<8x8xi1>, tensor<8x8xi1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %cst_1 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %11 = stablehlo.convert %cst_1 : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %11, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %13 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %14 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x1xf32>
    %15 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x1x1x16xf32>
    %16 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x2x8xf32>
    %17 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x8xf32>
    %18 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x1xf32>
    %19 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x64xf32>
    %20:37 = stablehlo.while(%iterArg = %arg8, %iterArg_2 = %arg7, %iterArg_3 = %arg6, %iterArg_4 = %arg5, %iterArg_5 = %arg4, %iterArg_6 = %arg3, %iterArg_7 = %1, %iterArg_8 = %10, %iterArg_9 = %12, %iterArg_10 = %arg1, %iterArg_11 = %arg2, %iterArg_12 = %13, %iterArg_13 = %14, %iterArg_14 = %14, %iterArg_15 = %15, %iterArg_16 = %13, %iterArg_17 = %13, %iterArg_18 = %16, %iterArg_19 = %16, %iterArg_20 = %17, %iterArg_21 = %18, %iterArg_22 = %18, %iterArg_23 = %17, %iterArg_24 = %16, %iterArg_25 = %13, %iterArg_26 = %13, %iterArg_27 = %14, %iterArg_28 = %14, %iterArg_29 = %15, %iterArg_30 = %13, %iterArg_31 = %13, %iterArg_32 = %19, %iterArg_33 = %19, %iterArg_34 = %19, %iterArg_35 = %19, %iterArg_36 = %19, %iterArg_37 = %19) : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    cond {
      %c_38 = stablehlo.constant dense<1> : tensor<i32>
      %21 = stablehlo.compare LT, %iterArg_10, %c_38, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %21 : tensor<i1>
    } do {
      %21 = stablehlo.dynamic_slice %iterArg, %iterArg_10, %arg1, %arg1, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %22 = stablehlo.reshape %21 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %23 = stablehlo.dynamic_slice %iterArg_2, %iterArg_10, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %24 = stablehlo.reshape %23 : (tensor<1x16xf32>) -> tensor<16xf32>
      %25 = stablehlo.dynamic_slice %iterArg_3, %iterArg_10, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %26 = stablehlo.reshape %25 : (tensor<1x16xf32>) -> tensor<16xf32>
      %27 = stablehlo.dynamic_slice %iterArg_4, %iterArg_10, %arg1, %arg1, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %28 = stablehlo.reshape %27 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %29 = stablehlo.dynamic_slice %iterArg_5, %iterArg_10, %arg1, %arg1, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %30 = stablehlo.reshape %29 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %31 = stablehlo.dynamic_slice %iterArg_6, %iterArg_10, %arg1, %arg1, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %32 = stablehlo.reshape %31 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %33 = stablehlo.multiply %iterArg_11, %iterArg_11 : tensor<8x8x16xf32>
      %34 = stablehlo.reduce(%33 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %35 = stablehlo.broadcast_in_dim %34, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %cst_38 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %36 = stablehlo.broadcast_in_dim %cst_38, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %37 = stablehlo.divide %35, %36 : tensor<8x8x1xf32>
      %cst_39 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
      %38 = stablehlo.broadcast_in_dim %cst_39, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %39 = stablehlo.add %37, %38 : tensor<8x8x1xf32>
      %40 = stablehlo.rsqrt %39 : tensor<8x8x1xf32>
      %41 = stablehlo.divide %40, %39 : tensor<8x8x1xf32>
      %cst_40 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
      %42 = stablehlo.broadcast_in_dim %cst_40, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %43 = stablehlo.multiply %42, %41 : tensor<8x8x1xf32>
      %44 = stablehlo.broadcast_in_dim %40, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %45 = stablehlo.multiply %iterArg_11, %44 : tensor<8x8x16xf32>
      %46 = stablehlo.broadcast_in_dim %24, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %47 = stablehlo.broadcast_in_dim %46, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %48 = stablehlo.multiply %45, %47 : tensor<8x8x16xf32>
      %49 = stablehlo.dot_general %48, %30, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x48xf32>) -> tensor<8x8x48xf32>
      %50 = stablehlo.reshape %49 : (tensor<8x8x48xf32>) -> tensor<8x8x2x24xf32>
      %51 = stablehlo.slice %50 [0:8, 0:8, 0:2, 0:8] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %52 = stablehlo.slice %50 [0:8, 0:8, 0:2, 8:16] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %53 = stablehlo.slice %50 [0:8, 0:8, 0:2, 16:24] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %54 = stablehlo.dot_general %51, %52, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %55 = stablehlo.broadcast_in_dim %iterArg_7, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %56 = stablehlo.divide %54, %55 : tensor<8x2x8x8xf32>
      %57 = stablehlo.select %iterArg_8, %56, %iterArg_9 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %cst_41 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %58 = stablehlo.reduce(%57 init: %cst_41) applies stablehlo.maximum across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %59 = stablehlo.broadcast_in_dim %cst_41, dims = [] : (tensor<f32>) -> tensor<8x2x8xf32>
      %60 = stablehlo.maximum %59, %58 : tensor<8x2x8xf32>
      %61 = stablehlo.broadcast_in_dim %60, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %62 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %63 = stablehlo.subtract %57, %62 : tensor<8x2x8x8xf32>
      %64 = stablehlo.exponential %63 : tensor<8x2x8x8xf32>
      %65 = stablehlo.reduce(%64 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %66 = stablehlo.broadcast_in_dim %65, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %67 = stablehlo.broadcast_in_dim %66, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %68 = stablehlo.divide %64, %67 : tensor<8x2x8x8xf32>
      %69 = stablehlo.multiply %66, %66 : tensor<8x2x8x1xf32>
      %cst_42 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %70 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<8x2x8x1xf32>
      %71 = stablehlo.divide %70, %69 : tensor<8x2x8x1xf32>
      %72 = stablehlo.dot_general %53, %68, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %73 = stablehlo.transpose %72, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %74 = stablehlo.reshape %73 : (tensor<8x8x2x8xf32>) -> tensor<8x8x16xf32>
      %75 = stablehlo.dot_general %74, %28, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %76 = stablehlo.add %iterArg_11, %75 : tensor<8x8x16xf32>
      %77 = stablehlo.multiply %76, %76 : tensor<8x8x16xf32>
      %78 = stablehlo.reduce(%77 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %79 = stablehlo.broadcast_in_dim %78, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %80 = stablehlo.divide %79, %36 : tensor<8x8x1xf32>
      %81 = stablehlo.add %80, %38 : tensor<8x8x1xf32>
      %82 = stablehlo.rsqrt %81 : tensor<8x8x1xf32>
      %83 = stablehlo.divide %82, %81 : tensor<8x8x1xf32>
      %84 = stablehlo.multiply %42, %83 : tensor<8x8x1xf32>
      %85 = stablehlo.broadcast_in_dim %82, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %86 = stablehlo.multiply %76, %85 : tensor<8x8x16xf32>
      %87 = stablehlo.broadcast_in_dim %26, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %88 = stablehlo.broadcast_in_dim %87, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %89 = stablehlo.multiply %86, %88 : tensor<8x8x16xf32>
      %90 = stablehlo.dot_general %89, %32, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x64xf32>) -> tensor<8x8x64xf32>
      %91 = stablehlo.multiply %90, %90 : tensor<8x8x64xf32>
      %92 = stablehlo.multiply %91, %90 : tensor<8x8x64xf32>
      %cst_43 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %93 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %94 = stablehlo.multiply %93, %91 : tensor<8x8x64xf32>
      %cst_44 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %95 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %96 = stablehlo.multiply %95, %92 : tensor<8x8x64xf32>
      %97 = stablehlo.add %90, %96 : tensor<8x8x64xf32>
      %cst_45 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %98 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %99 = stablehlo.multiply %98, %97 : tensor<8x8x64xf32>
      %100 = stablehlo.tanh %99 : tensor<8x8x64xf32>
      %101 = stablehlo.broadcast_in_dim %cst_42, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %102 = stablehlo.subtract %101, %100 : tensor<8x8x64xf32>
      %103 = stablehlo.add %101, %100 : tensor<8x8x64xf32>
      %cst_46 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %104 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %105 = stablehlo.multiply %104, %103 : tensor<8x8x64xf32>
      %106 = stablehlo.multiply %90, %105 : tensor<8x8x64xf32>
      %107 = stablehlo.dot_general %106, %22, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<64x16xf32>) -> tensor<8x8x16xf32>
      %108 = stablehlo.add %76, %107 : tensor<8x8x16xf32>
      %109 = stablehlo.broadcast_in_dim %iterArg_11, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %110 = stablehlo.dynamic_update_slice %iterArg_12, %109, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %111 = stablehlo.broadcast_in_dim %43, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %112 = stablehlo.dynamic_update_slice %iterArg_13, %111, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %113 = stablehlo.broadcast_in_dim %40, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %114 = stablehlo.dynamic_update_slice %iterArg_14, %113, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %115 = stablehlo.broadcast_in_dim %46, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %116 = stablehlo.dynamic_update_slice %iterArg_15, %115, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %117 = stablehlo.broadcast_in_dim %45, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %118 = stablehlo.dynamic_update_slice %iterArg_16, %117, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %119 = stablehlo.broadcast_in_dim %48, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %120 = stablehlo.dynamic_update_slice %iterArg_17, %119, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %121 = stablehlo.broadcast_in_dim %52, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %122 = stablehlo.dynamic_update_slice %iterArg_18, %121, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %123 = stablehlo.broadcast_in_dim %51, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %124 = stablehlo.dynamic_update_slice %iterArg_19, %123, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %125 = stablehlo.broadcast_in_dim %64, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %126 = stablehlo.dynamic_update_slice %iterArg_20, %125, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %127 = stablehlo.broadcast_in_dim %66, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %128 = stablehlo.dynamic_update_slice %iterArg_21, %127, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %129 = stablehlo.broadcast_in_dim %71, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %130 = stablehlo.dynamic_update_slice %iterArg_22, %129, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %131 = stablehlo.broadcast_in_dim %68, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %132 = stablehlo.dynamic_update_slice %iterArg_23, %131, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %133 = stablehlo.broadcast_in_dim %53, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %134 = stablehlo.dynamic_update_slice %iterArg_24, %133, %iterArg_10, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %135 = stablehlo.broadcast_in_dim %74, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %136 = stablehlo.dynamic_update_slice %iterArg_25, %135, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %137 = stablehlo.broadcast_in_dim %76, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %138 = stablehlo.dynamic_update_slice %iterArg_26, %137, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %139 = stablehlo.broadcast_in_dim %84, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %140 = stablehlo.dynamic_update_slice %iterArg_27, %139, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %141 = stablehlo.broadcast_in_dim %82, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %142 = stablehlo.dynamic_update_slice %iterArg_28, %141, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %143 = stablehlo.broadcast_in_dim %87, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %144 = stablehlo.dynamic_update_slice %iterArg_29, %143, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %145 = stablehlo.broadcast_in_dim %86, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %146 = stablehlo.dynamic_update_slice %iterArg_30, %145, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %147 = stablehlo.broadcast_in_dim %89, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %148 = stablehlo.dynamic_update_slice %iterArg_31, %147, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %149 = stablehlo.broadcast_in_dim %94, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %150 = stablehlo.dynamic_update_slice %iterArg_32, %149, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %151 = stablehlo.broadcast_in_dim %100, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %152 = stablehlo.dynamic_update_slice %iterArg_33, %151, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %153 = stablehlo.broadcast_in_dim %102, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %154 = stablehlo.dynamic_update_slice %iterArg_34, %153, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %155 = stablehlo.broadcast_in_dim %105, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %156 = stablehlo.dynamic_update_slice %iterArg_35, %155, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %157 = stablehlo.broadcast_in_dim %90, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %158 = stablehlo.dynamic_update_slice %iterArg_36, %157, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %159 = stablehlo.broadcast_in_dim %106, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %160 = stablehlo.dynamic_update_slice %iterArg_37, %159, %iterArg_10, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %c_47 = stablehlo.constant dense<1> : tensor<i32>
      %161 = stablehlo.add %iterArg_10, %c_47 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %161, %108, %110, %112, %114, %116, %118, %120, %122, %124, %126, %128, %130, %132, %134, %136, %138, %140, %142, %144, %146, %148, %150, %152, %154, %156, %158, %160 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    }
    return %20#10, %20#36, %20#35, %20#34, %20#33, %20#32, %20#31, %20#30, %20#29, %20#28, %20#27, %20#26, %20#25, %20#24, %20#23, %20#22, %20#21, %20#20, %20#19, %20#18, %20#17, %20#16, %20#15, %20#14, %20#13, %20#12, %20#11 : tensor<8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>
  }
  func.func private @forward_3(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg2: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg3: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg4: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg5: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg6: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg7: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg8: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg9: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg10: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg11: tensor<ui32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg12: tensor<8x8x9xi32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}]>}, %arg13: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, tensor<8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, tensor<8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.convert %arg11 : (tensor<ui32>) -> tensor<i32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %1 = stablehlo.sqrt %cst : tensor<f32>
    %2 = stablehlo.convert %1 : tensor<f32>
    %3 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %5 = stablehlo.add %3, %4 : tensor<8x8xi32>
    %6 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %9 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %10 = stablehlo.select %7, %8, %9 : tensor<8x8xi1>, tensor<8x8xi1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %cst_1 = stablehlo.constant dense<-1.000000e+09> : tensor<f32>
    %12 = stablehlo.convert %cst_1 : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %12, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %14 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x16xf32>
    %15 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x1xf32>
    %16 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x1x1x16xf32>
    %17 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x2x8xf32>
    %18 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x8xf32>
    %19 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x2x8x1xf32>
    %20 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<1x8x8x64xf32>
    %21:37 = stablehlo.while(%iterArg = %arg8, %iterArg_10 = %arg7, %iterArg_11 = %arg6, %iterArg_12 = %arg5, %iterArg_13 = %arg4, %iterArg_14 = %arg3, %iterArg_15 = %2, %iterArg_16 = %11, %iterArg_17 = %13, %iterArg_18 = %arg1, %iterArg_19 = %arg2, %iterArg_20 = %14, %iterArg_21 = %15, %iterArg_22 = %15, %iterArg_23 = %16, %iterArg_24 = %14, %iterArg_25 = %14, %iterArg_26 = %17, %iterArg_27 = %17, %iterArg_28 = %18, %iterArg_29 = %19, %iterArg_30 = %19, %iterArg_31 = %18, %iterArg_32 = %17, %iterArg_33 = %14, %iterArg_34 = %14, %iterArg_35 = %15, %iterArg_36 = %15, %iterArg_37 = %16, %iterArg_38 = %14, %iterArg_39 = %14, %iterArg_40 = %20, %iterArg_41 = %20, %iterArg_42 = %20, %iterArg_43 = %20, %iterArg_44 = %20, %iterArg_45 = %20) : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    cond {
      %c_46 = stablehlo.constant dense<1> : tensor<i32>
      %87 = stablehlo.compare LT, %iterArg_18, %c_46, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %87 : tensor<i1>
    } do {
      %87 = stablehlo.dynamic_slice %iterArg, %iterArg_18, %arg1, %arg1, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %88 = stablehlo.reshape %87 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %89 = stablehlo.dynamic_slice %iterArg_10, %iterArg_18, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %90 = stablehlo.reshape %89 : (tensor<1x16xf32>) -> tensor<16xf32>
      %91 = stablehlo.dynamic_slice %iterArg_11, %iterArg_18, %arg1, sizes = [1, 16] : (tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %92 = stablehlo.reshape %91 : (tensor<1x16xf32>) -> tensor<16xf32>
      %93 = stablehlo.dynamic_slice %iterArg_12, %iterArg_18, %arg1, %arg1, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %94 = stablehlo.reshape %93 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %95 = stablehlo.dynamic_slice %iterArg_13, %iterArg_18, %arg1, %arg1, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %96 = stablehlo.reshape %95 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %97 = stablehlo.dynamic_slice %iterArg_14, %iterArg_18, %arg1, %arg1, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %98 = stablehlo.reshape %97 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %99 = stablehlo.multiply %iterArg_19, %iterArg_19 : tensor<8x8x16xf32>
      %100 = stablehlo.reduce(%99 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %101 = stablehlo.broadcast_in_dim %100, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %cst_46 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
      %102 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %103 = stablehlo.divide %101, %102 : tensor<8x8x1xf32>
      %cst_47 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
      %104 = stablehlo.broadcast_in_dim %cst_47, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %105 = stablehlo.add %103, %104 : tensor<8x8x1xf32>
      %106 = stablehlo.rsqrt %105 : tensor<8x8x1xf32>
      %107 = stablehlo.divide %106, %105 : tensor<8x8x1xf32>
      %cst_48 = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
      %108 = stablehlo.broadcast_in_dim %cst_48, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
      %109 = stablehlo.multiply %108, %107 : tensor<8x8x1xf32>
      %110 = stablehlo.broadcast_in_dim %106, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %111 = stablehlo.multiply %iterArg_19, %110 : tensor<8x8x16xf32>
      %112 = stablehlo.broadcast_in_dim %90, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %113 = stablehlo.broadcast_in_dim %112, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %114 = stablehlo.multiply %111, %113 : tensor<8x8x16xf32>
      %115 = stablehlo.dot_general %114, %96, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x48xf32>) -> tensor<8x8x48xf32>
      %116 = stablehlo.reshape %115 : (tensor<8x8x48xf32>) -> tensor<8x8x2x24xf32>
      %117 = stablehlo.slice %116 [0:8, 0:8, 0:2, 0:8] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %118 = stablehlo.slice %116 [0:8, 0:8, 0:2, 8:16] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %119 = stablehlo.slice %116 [0:8, 0:8, 0:2, 16:24] : (tensor<8x8x2x24xf32>) -> tensor<8x8x2x8xf32>
      %120 = stablehlo.dot_general %117, %118, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %121 = stablehlo.broadcast_in_dim %iterArg_15, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %122 = stablehlo.divide %120, %121 : tensor<8x2x8x8xf32>
      %123 = stablehlo.select %iterArg_16, %122, %iterArg_17 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %cst_49 = stablehlo.constant dense<0xFF800000> : tensor<f32>
      %124 = stablehlo.reduce(%123 init: %cst_49) applies stablehlo.maximum across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %125 = stablehlo.broadcast_in_dim %cst_49, dims = [] : (tensor<f32>) -> tensor<8x2x8xf32>
      %126 = stablehlo.maximum %125, %124 : tensor<8x2x8xf32>
      %127 = stablehlo.broadcast_in_dim %126, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %128 = stablehlo.broadcast_in_dim %127, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %129 = stablehlo.subtract %123, %128 : tensor<8x2x8x8xf32>
      %130 = stablehlo.exponential %129 : tensor<8x2x8x8xf32>
      %131 = stablehlo.reduce(%130 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %132 = stablehlo.broadcast_in_dim %131, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %133 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %134 = stablehlo.divide %130, %133 : tensor<8x2x8x8xf32>
      %135 = stablehlo.multiply %132, %132 : tensor<8x2x8x1xf32>
      %cst_50 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
      %136 = stablehlo.broadcast_in_dim %cst_50, dims = [] : (tensor<f32>) -> tensor<8x2x8x1xf32>
      %137 = stablehlo.divide %136, %135 : tensor<8x2x8x1xf32>
      %138 = stablehlo.dot_general %119, %134, batching_dims = [0, 2] x [0, 1], contracting_dims = [1] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x8x2x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %139 = stablehlo.transpose %138, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %140 = stablehlo.reshape %139 : (tensor<8x8x2x8xf32>) -> tensor<8x8x16xf32>
      %141 = stablehlo.dot_general %140, %94, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %142 = stablehlo.add %iterArg_19, %141 : tensor<8x8x16xf32>
      %143 = stablehlo.multiply %142, %142 : tensor<8x8x16xf32>
      %144 = stablehlo.reduce(%143 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %146 = stablehlo.divide %145, %102 : tensor<8x8x1xf32>
      %147 = stablehlo.add %146, %104 : tensor<8x8x1xf32>
      %148 = stablehlo.rsqrt %147 : tensor<8x8x1xf32>
      %149 = stablehlo.divide %148, %147 : tensor<8x8x1xf32>
      %150 = stablehlo.multiply %108, %149 : tensor<8x8x1xf32>
      %151 = stablehlo.broadcast_in_dim %148, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %152 = stablehlo.multiply %142, %151 : tensor<8x8x16xf32>
      %153 = stablehlo.broadcast_in_dim %92, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %154 = stablehlo.broadcast_in_dim %153, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %155 = stablehlo.multiply %152, %154 : tensor<8x8x16xf32>
      %156 = stablehlo.dot_general %155, %98, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x64xf32>) -> tensor<8x8x64xf32>
      %157 = stablehlo.multiply %156, %156 : tensor<8x8x64xf32>
      %158 = stablehlo.multiply %157, %156 : tensor<8x8x64xf32>
      %cst_51 = stablehlo.constant dense<3.000000e+00> : tensor<f32>
      %159 = stablehlo.broadcast_in_dim %cst_51, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %160 = stablehlo.multiply %159, %157 : tensor<8x8x64xf32>
      %cst_52 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %161 = stablehlo.broadcast_in_dim %cst_52, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %162 = stablehlo.multiply %161, %158 : tensor<8x8x64xf32>
      %163 = stablehlo.add %156, %162 : tensor<8x8x64xf32>
      %cst_53 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %164 = stablehlo.broadcast_in_dim %cst_53, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %165 = stablehlo.multiply %164, %163 : tensor<8x8x64xf32>
      %166 = stablehlo.tanh %165 : tensor<8x8x64xf32>
      %167 = stablehlo.broadcast_in_dim %cst_50, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %168 = stablehlo.subtract %167, %166 : tensor<8x8x64xf32>
      %169 = stablehlo.add %167, %166 : tensor<8x8x64xf32>
      %cst_54 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %170 = stablehlo.broadcast_in_dim %cst_54, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %171 = stablehlo.multiply %170, %169 : tensor<8x8x64xf32>
      %172 = stablehlo.multiply %156, %171 : tensor<8x8x64xf32>
      %173 = stablehlo.dot_general %172, %88, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<64x16xf32>) -> tensor<8x8x16xf32>
      %174 = stablehlo.add %142, %173 : tensor<8x8x16xf32>
      %175 = stablehlo.broadcast_in_dim %iterArg_19, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %176 = stablehlo.dynamic_update_slice %iterArg_20, %175, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %177 = stablehlo.broadcast_in_dim %109, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %178 = stablehlo.dynamic_update_slice %iterArg_21, %177, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %179 = stablehlo.broadcast_in_dim %106, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %180 = stablehlo.dynamic_update_slice %iterArg_22, %179, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %181 = stablehlo.broadcast_in_dim %112, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %182 = stablehlo.dynamic_update_slice %iterArg_23, %181, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %183 = stablehlo.broadcast_in_dim %111, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %184 = stablehlo.dynamic_update_slice %iterArg_24, %183, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %185 = stablehlo.broadcast_in_dim %114, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %186 = stablehlo.dynamic_update_slice %iterArg_25, %185, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %187 = stablehlo.broadcast_in_dim %118, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %188 = stablehlo.dynamic_update_slice %iterArg_26, %187, %iterArg_18, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %189 = stablehlo.broadcast_in_dim %117, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %190 = stablehlo.dynamic_update_slice %iterArg_27, %189, %iterArg_18, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %191 = stablehlo.broadcast_in_dim %130, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %192 = stablehlo.dynamic_update_slice %iterArg_28, %191, %iterArg_18, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %193 = stablehlo.broadcast_in_dim %132, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %194 = stablehlo.dynamic_update_slice %iterArg_29, %193, %iterArg_18, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %195 = stablehlo.broadcast_in_dim %137, dims = [1, 2, 3, 4] : (tensor<8x2x8x1xf32>) -> tensor<1x8x2x8x1xf32>
      %196 = stablehlo.dynamic_update_slice %iterArg_30, %195, %iterArg_18, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %197 = stablehlo.broadcast_in_dim %134, dims = [1, 2, 3, 4] : (tensor<8x2x8x8xf32>) -> tensor<1x8x2x8x8xf32>
      %198 = stablehlo.dynamic_update_slice %iterArg_31, %197, %iterArg_18, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %199 = stablehlo.broadcast_in_dim %119, dims = [1, 2, 3, 4] : (tensor<8x8x2x8xf32>) -> tensor<1x8x8x2x8xf32>
      %200 = stablehlo.dynamic_update_slice %iterArg_32, %199, %iterArg_18, %arg1, %arg1, %arg1, %arg1 : (tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %201 = stablehlo.broadcast_in_dim %140, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %202 = stablehlo.dynamic_update_slice %iterArg_33, %201, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %203 = stablehlo.broadcast_in_dim %142, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %204 = stablehlo.dynamic_update_slice %iterArg_34, %203, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %205 = stablehlo.broadcast_in_dim %150, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %206 = stablehlo.dynamic_update_slice %iterArg_35, %205, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %207 = stablehlo.broadcast_in_dim %148, dims = [1, 2, 3] : (tensor<8x8x1xf32>) -> tensor<1x8x8x1xf32>
      %208 = stablehlo.dynamic_update_slice %iterArg_36, %207, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %209 = stablehlo.broadcast_in_dim %153, dims = [1, 2, 3] : (tensor<1x1x16xf32>) -> tensor<1x1x1x16xf32>
      %210 = stablehlo.dynamic_update_slice %iterArg_37, %209, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x1x1x16xf32>, tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %211 = stablehlo.broadcast_in_dim %152, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %212 = stablehlo.dynamic_update_slice %iterArg_38, %211, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %213 = stablehlo.broadcast_in_dim %155, dims = [1, 2, 3] : (tensor<8x8x16xf32>) -> tensor<1x8x8x16xf32>
      %214 = stablehlo.dynamic_update_slice %iterArg_39, %213, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %215 = stablehlo.broadcast_in_dim %160, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %216 = stablehlo.dynamic_update_slice %iterArg_40, %215, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %217 = stablehlo.broadcast_in_dim %166, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %218 = stablehlo.dynamic_update_slice %iterArg_41, %217, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %219 = stablehlo.broadcast_in_dim %168, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %220 = stablehlo.dynamic_update_slice %iterArg_42, %219, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %221 = stablehlo.broadcast_in_dim %171, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %222 = stablehlo.dynamic_update_slice %iterArg_43, %221, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %223 = stablehlo.broadcast_in_dim %156, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %224 = stablehlo.dynamic_update_slice %iterArg_44, %223, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %225 = stablehlo.broadcast_in_dim %172, dims = [1, 2, 3] : (tensor<8x8x64xf32>) -> tensor<1x8x8x64xf32>
      %226 = stablehlo.dynamic_update_slice %iterArg_45, %225, %iterArg_18, %arg1, %arg1, %arg1 : (tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %c_55 = stablehlo.constant dense<1> : tensor<i32>
      %227 = stablehlo.add %iterArg_18, %c_55 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %227, %174, %176, %178, %180, %182, %184, %186, %188, %190, %192, %194, %196, %198, %200, %202, %204, %206, %208, %210, %212, %214, %216, %218, %220, %222, %224, %226 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>
    }
    %22 = stablehlo.multiply %21#10, %21#10 : tensor<8x8x16xf32>
    %23 = stablehlo.reduce(%22 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
    %cst_2 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %25 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %26 = stablehlo.divide %24, %25 : tensor<8x8x1xf32>
    %cst_3 = stablehlo.constant dense<9.99999997E-7> : tensor<f32>
    %27 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %28 = stablehlo.add %26, %27 : tensor<8x8x1xf32>
    %29 = stablehlo.rsqrt %28 : tensor<8x8x1xf32>
    %30 = stablehlo.divide %29, %28 : tensor<8x8x1xf32>
    %31 = stablehlo.broadcast_in_dim %29, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
    %32 = stablehlo.multiply %21#10, %31 : tensor<8x8x16xf32>
    %33 = stablehlo.broadcast_in_dim %arg9, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %34 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
    %35 = stablehlo.multiply %32, %34 : tensor<8x8x16xf32>
    %36 = stablehlo.transpose %arg10, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %37 = stablehlo.dot_general %35, %36, contracting_dims = [2] x [0], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x64xf32>) -> tensor<8x8x64xf32>
    %cst_4 = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %38 = stablehlo.reduce(%37 init: %cst_4) applies stablehlo.maximum across dimensions = [2] : (tensor<8x8x64xf32>, tensor<f32>) -> tensor<8x8xf32>
    %39 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<8x8xf32>
    %40 = stablehlo.maximum %39, %38 : tensor<8x8xf32>
    %41 = stablehlo.broadcast_in_dim %40, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
    %42 = stablehlo.broadcast_in_dim %41, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x64xf32>
    %43 = stablehlo.subtract %37, %42 : tensor<8x8x64xf32>
    %44 = stablehlo.exponential %43 : tensor<8x8x64xf32>
    %45 = stablehlo.reduce(%44 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x64xf32>, tensor<f32>) -> tensor<8x8xf32>
    %46 = stablehlo.broadcast_in_dim %45, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
    %47 = stablehlo.log %46 : tensor<8x8x1xf32>
    %48 = stablehlo.broadcast_in_dim %47, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x64xf32>
    %49 = stablehlo.subtract %43, %48 : tensor<8x8x64xf32>
    %50 = stablehlo.dynamic_slice %arg12, %0, %arg1, %arg1, sizes = [1, 8, 9] : (tensor<8x8x9xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x9xi32>
    %51 = stablehlo.reshape %50 : (tensor<1x8x9xi32>) -> tensor<8x9xi32>
    %52 = stablehlo.slice %51 [0:8, 1:9] : (tensor<8x9xi32>) -> tensor<8x8xi32>
    %53 = stablehlo.broadcast_in_dim %52, dims = [0, 1] : (tensor<8x8xi32>) -> tensor<8x8x1xi32>
    %54 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8x1xi32>
    %55 = stablehlo.compare LT, %53, %54, SIGNED : (tensor<8x8x1xi32>, tensor<8x8x1xi32>) -> tensor<8x8x1xi1>
    %c_5 = stablehlo.constant dense<64> : tensor<i32>
    %56 = stablehlo.broadcast_in_dim %c_5, dims = [] : (tensor<i32>) -> tensor<8x8x1xi32>
    %57 = stablehlo.add %53, %56 : tensor<8x8x1xi32>
    %58 = stablehlo.select %55, %57, %53 : tensor<8x8x1xi1>, tensor<8x8x1xi32>
    %59 = stablehlo.reshape %58 : (tensor<8x8x1xi32>) -> tensor<8x8x1x1xi32>
    %60 = "stablehlo.gather"(%49, %59) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [2], operand_batching_dims = [0, 1], start_indices_batching_dims = [0, 1], start_index_map = [2], index_vector_dim = 3>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 1>}> : (tensor<8x8x64xf32>, tensor<8x8x1x1xi32>) -> tensor<8x8x1xf32>
    %61 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8x1x1xi32>
    %62 = stablehlo.compare GE, %59, %61, SIGNED : (tensor<8x8x1x1xi32>, tensor<8x8x1x1xi32>) -> tensor<8x8x1x1xi1>
    %c_6 = stablehlo.constant dense<63> : tensor<1xi32>
    %63 = stablehlo.broadcast_in_dim %c_6, dims = [3] : (tensor<1xi32>) -> tensor<1x1x1x1xi32>
    %64 = stablehlo.broadcast_in_dim %63, dims = [0, 1, 2, 3] : (tensor<1x1x1x1xi32>) -> tensor<8x8x1x1xi32>
    %65 = stablehlo.compare LE, %59, %64, SIGNED : (tensor<8x8x1x1xi32>, tensor<8x8x1x1xi32>) -> tensor<8x8x1x1xi1>
    %66 = stablehlo.and %62, %65 : tensor<8x8x1x1xi1>
    %67 = stablehlo.reduce(%66 init: %c) applies stablehlo.and across dimensions = [3] : (tensor<8x8x1x1xi1>, tensor<i1>) -> tensor<8x8x1xi1>
    %cst_7 = stablehlo.constant dense<0x7FC00000> : tensor<f32>
    %68 = stablehlo.broadcast_in_dim %cst_7, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %69 = stablehlo.select %67, %60, %68 : tensor<8x8x1xi1>, tensor<8x8x1xf32>
    %70 = stablehlo.reduce(%69 init: %arg0) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<f32>
    %cst_8 = stablehlo.constant dense<6.400000e+01> : tensor<f32>
    %71 = stablehlo.divide %70, %cst_8 : tensor<f32>
    %72 = stablehlo.negate %71 : tensor<f32>
    %73 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
    %cst_9 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %74 = stablehlo.negate %cst_9 : tensor<f32>
    %75 = stablehlo.divide %74, %cst_8 : tensor<f32>
    %76 = stablehlo.broadcast_in_dim %75, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %77 = "stablehlo.scatter"(%73, %59, %76) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [2], input_batching_dims = [0, 1], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [2], index_vector_dim = 3>, unique_indices = false}> ({
    ^bb0(%arg14: tensor<f32>, %arg15: tensor<f32>):
      %87 = stablehlo.add %arg14, %arg15 : tensor<f32>
      stablehlo.return %87 : tensor<f32>
    }) : (tensor<8x8x64xf32>, tensor<8x8x1x1xi32>, tensor<8x8x1xf32>) -> tensor<8x8x64xf32>
    %78 = stablehlo.negate %77 : tensor<8x8x64xf32>
    %79 = stablehlo.reduce(%78 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x64xf32>, tensor<f32>) -> tensor<8x8xf32>
    %80 = stablehlo.reshape %79 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
    %81 = stablehlo.divide %80, %46 : tensor<8x8x1xf32>
    %82 = stablehlo.reduce(%81 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
    %83 = stablehlo.broadcast_in_dim %82, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x64xf32>
    %84 = stablehlo.multiply %83, %44 : tensor<8x8x64xf32>
    %85 = stablehlo.add %77, %84 : tensor<8x8x64xf32>
    %86 = stablehlo.add %arg13, %72 : tensor<f32>
    return %86, %30, %35, %85, %21#10, %31, %21#36, %21#35, %21#34, %21#33, %21#32, %21#31, %21#30, %21#29, %21#28, %21#27, %21#26, %21#25, %21#24, %21#23, %21#22, %21#21, %21#20, %21#19, %21#18, %21#17, %21#16, %21#15, %21#14, %21#13, %21#12, %21#11, %32 : tensor<f32>, tensor<8x8x1xf32>, tensor<8x8x16xf32>, tensor<8x8x64xf32>, tensor<8x8x16xf32>, tensor<8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x16xf32>, tensor<8x8x16xf32>
  }
  func.func private @input_gradient_3(%arg0: tensor<8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg1: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg2: tensor<8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg3: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg4: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg5: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg6: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg7: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg8: tensor<i32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg9: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg10: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg11: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg12: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg13: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg14: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg15: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg16: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg17: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg18: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg19: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg20: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg21: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg22: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg23: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg24: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}, {}]>}, %arg25: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg26: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg27: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg28: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg29: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg30: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, %arg31: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, %arg32: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, %arg33: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, %arg34: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, %arg35: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, %arg36: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}, {}]>}, %arg37: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg38: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg39: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg40: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}, {}]>}, %arg41: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg42: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}, %arg43: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {"data"}, {}, {}]>}) -> (tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<-5.000000e-01> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %1 = stablehlo.multiply %0, %arg0 : tensor<8x8x1xf32>
    %2 = stablehlo.dot_general %arg2, %arg1, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<8x8x16xf32>) -> tensor<64x16xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %4 = stablehlo.transpose %arg3, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
    %5 = stablehlo.dot_general %arg2, %4, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<16x64xf32>) -> tensor<8x8x16xf32>
    %6 = stablehlo.transpose %3, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
    %7 = stablehlo.broadcast_in_dim %arg4, dims = [2] : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %8 = stablehlo.broadcast_in_dim %7, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
    %9 = stablehlo.multiply %5, %8 : tensor<8x8x16xf32>
    %10 = stablehlo.multiply %arg5, %9 : tensor<8x8x16xf32>
    %11 = stablehlo.reduce(%10 init: %arg6) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
    %12 = stablehlo.reshape %11 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
    %13 = stablehlo.multiply %9, %arg7 : tensor<8x8x16xf32>
    %14 = stablehlo.multiply %12, %1 : tensor<8x8x1xf32>
    %cst_0 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %16 = stablehlo.divide %14, %15 : tensor<8x8x1xf32>
    %17 = stablehlo.reduce(%16 init: %arg6) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
    %18 = stablehlo.broadcast_in_dim %17, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
    %19 = stablehlo.multiply %arg5, %18 : tensor<8x8x16xf32>
    %20 = stablehlo.add %13, %19 : tensor<8x8x16xf32>
    %21 = stablehlo.multiply %18, %arg5 : tensor<8x8x16xf32>
    %22 = stablehlo.add %20, %21 : tensor<8x8x16xf32>
    %cst_1 = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %23 = stablehlo.sqrt %cst_1 : tensor<f32>
    %24 = stablehlo.convert %23 : tensor<f32>
    %25 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %26 = stablehlo.broadcast_in_dim %arg8, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %27 = stablehlo.add %25, %26 : tensor<8x8xi32>
    %28 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %29 = stablehlo.compare GE, %27, %28, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %30 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_2 = stablehlo.constant dense<false> : tensor<i1>
    %31 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %32 = stablehlo.select %29, %30, %31 : tensor<8x8xi1>, tensor<8x8xi1>
    %33 = stablehlo.broadcast_in_dim %32, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %34 = stablehlo.broadcast_in_dim %arg6, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %35:41 = stablehlo.while(%iterArg = %arg43, %iterArg_3 = %arg42, %iterArg_4 = %arg41, %iterArg_5 = %arg40, %iterArg_6 = %arg39, %iterArg_7 = %arg38, %iterArg_8 = %arg37, %iterArg_9 = %arg36, %iterArg_10 = %arg35, %iterArg_11 = %arg34, %iterArg_12 = %arg33, %iterArg_13 = %arg32, %iterArg_14 = %arg31, %iterArg_15 = %arg30, %iterArg_16 = %arg29, %iterArg_17 = %arg28, %iterArg_18 = %arg27, %iterArg_19 = %arg26, %iterArg_20 = %arg25, %iterArg_21 = %arg24, %iterArg_22 = %arg23, %iterArg_23 = %arg22, %iterArg_24 = %arg21, %iterArg_25 = %arg20, %iterArg_26 = %arg19, %iterArg_27 = %arg18, %iterArg_28 = %arg17, %iterArg_29 = %arg16, %iterArg_30 = %arg15, %iterArg_31 = %arg14, %iterArg_32 = %24, %iterArg_33 = %33, %iterArg_34 = %34, %iterArg_35 = %arg8, %iterArg_36 = %22, %iterArg_37 = %arg13, %iterArg_38 = %arg12, %iterArg_39 = %arg12, %iterArg_40 = %arg11, %iterArg_41 = %arg10, %iterArg_42 = %arg9) : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    cond {
      %c_43 = stablehlo.constant dense<1> : tensor<i32>
      %36 = stablehlo.compare LT, %iterArg_35, %c_43, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %36 : tensor<i1>
    } do {
      %c_43 = stablehlo.constant dense<1> : tensor<i32>
      %36 = stablehlo.subtract %c_43, %iterArg_35 : tensor<i32>
      %37 = stablehlo.subtract %36, %c_43 : tensor<i32>
      %38 = stablehlo.dynamic_slice %iterArg, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %39 = stablehlo.reshape %38 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %40 = stablehlo.dynamic_slice %iterArg_3, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %41 = stablehlo.reshape %40 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %42 = stablehlo.dynamic_slice %iterArg_4, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %43 = stablehlo.reshape %42 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %44 = stablehlo.dynamic_slice %iterArg_5, %37, %arg8, %arg8, %arg8, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %45 = stablehlo.reshape %44 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %46 = stablehlo.dynamic_slice %iterArg_6, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %47 = stablehlo.reshape %46 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %48 = stablehlo.dynamic_slice %iterArg_7, %37, %arg8, %arg8, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %49 = stablehlo.reshape %48 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %50 = stablehlo.dynamic_slice %iterArg_8, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %51 = stablehlo.reshape %50 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %52 = stablehlo.dynamic_slice %iterArg_9, %37, %arg8, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %53 = stablehlo.reshape %52 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %54 = stablehlo.dynamic_slice %iterArg_10, %37, %arg8, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %55 = stablehlo.reshape %54 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %56 = stablehlo.dynamic_slice %iterArg_11, %37, %arg8, %arg8, %arg8, %arg8, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %57 = stablehlo.reshape %56 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %58 = stablehlo.dynamic_slice %iterArg_12, %37, %arg8, %arg8, %arg8, %arg8, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %59 = stablehlo.reshape %58 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %60 = stablehlo.dynamic_slice %iterArg_13, %37, %arg8, %arg8, %arg8, %arg8, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %61 = stablehlo.reshape %60 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %62 = stablehlo.dynamic_slice %iterArg_14, %37, %arg8, %arg8, %arg8, %arg8, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %63 = stablehlo.reshape %62 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %64 = stablehlo.dynamic_slice %iterArg_15, %37, %arg8, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %65 = stablehlo.reshape %64 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %66 = stablehlo.dynamic_slice %iterArg_16, %37, %arg8, %arg8, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %67 = stablehlo.reshape %66 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %68 = stablehlo.dynamic_slice %iterArg_17, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %69 = stablehlo.reshape %68 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %70 = stablehlo.dynamic_slice %iterArg_18, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %71 = stablehlo.reshape %70 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %72 = stablehlo.dynamic_slice %iterArg_19, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %73 = stablehlo.reshape %72 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %74 = stablehlo.dynamic_slice %iterArg_20, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %75 = stablehlo.reshape %74 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %76 = stablehlo.dynamic_slice %iterArg_21, %37, %arg8, %arg8, %arg8, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %77 = stablehlo.reshape %76 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %78 = stablehlo.dynamic_slice %iterArg_22, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %79 = stablehlo.reshape %78 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %80 = stablehlo.dynamic_slice %iterArg_23, %37, %arg8, %arg8, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %81 = stablehlo.reshape %80 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %82 = stablehlo.dynamic_slice %iterArg_24, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %83 = stablehlo.reshape %82 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %84 = stablehlo.dynamic_slice %iterArg_25, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %85 = stablehlo.reshape %84 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %86 = stablehlo.dynamic_slice %iterArg_26, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %87 = stablehlo.reshape %86 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %88 = stablehlo.dynamic_slice %iterArg_27, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %89 = stablehlo.reshape %88 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %90 = stablehlo.dynamic_slice %iterArg_28, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %91 = stablehlo.reshape %90 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %92 = stablehlo.dynamic_slice %iterArg_29, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %93 = stablehlo.reshape %92 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %94 = stablehlo.dynamic_slice %iterArg_30, %37, %arg8, %arg8, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %95 = stablehlo.reshape %94 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %96 = stablehlo.dynamic_slice %iterArg_31, %37, %arg8, %arg8, %arg8, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %97 = stablehlo.reshape %96 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %98 = stablehlo.dot_general %iterArg_36, %97, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x64xf32>) -> tensor<16x64xf32>
      %99 = stablehlo.transpose %98, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
      %100 = stablehlo.dot_general %iterArg_36, %95, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<64x16xf32>) -> tensor<8x8x64xf32>
      %101 = stablehlo.multiply %93, %100 : tensor<8x8x64xf32>
      %102 = stablehlo.multiply %100, %91 : tensor<8x8x64xf32>
      %cst_44 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %103 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %104 = stablehlo.multiply %103, %101 : tensor<8x8x64xf32>
      %105 = stablehlo.multiply %104, %89 : tensor<8x8x64xf32>
      %106 = stablehlo.multiply %105, %87 : tensor<8x8x64xf32>
      %107 = stablehlo.add %105, %106 : tensor<8x8x64xf32>
      %cst_45 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %108 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %109 = stablehlo.multiply %108, %107 : tensor<8x8x64xf32>
      %110 = stablehlo.add %102, %109 : tensor<8x8x64xf32>
      %cst_46 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %111 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %112 = stablehlo.multiply %111, %109 : tensor<8x8x64xf32>
      %113 = stablehlo.multiply %112, %85 : tensor<8x8x64xf32>
      %114 = stablehlo.add %110, %113 : tensor<8x8x64xf32>
      %115 = stablehlo.dot_general %114, %83, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<8x8x16xf32>) -> tensor<64x16xf32>
      %116 = stablehlo.transpose %115, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
      %117 = stablehlo.dot_general %114, %81, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<16x64xf32>) -> tensor<8x8x16xf32>
      %118 = stablehlo.multiply %79, %117 : tensor<8x8x16xf32>
      %119 = stablehlo.reduce(%118 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %120 = stablehlo.reshape %119 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %121 = stablehlo.broadcast_in_dim %77, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %122 = stablehlo.multiply %117, %121 : tensor<8x8x16xf32>
      %123 = stablehlo.reduce(%120 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %124 = stablehlo.multiply %71, %122 : tensor<8x8x16xf32>
      %125 = stablehlo.reduce(%124 init: %arg6) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %126 = stablehlo.reshape %125 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %127 = stablehlo.broadcast_in_dim %75, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %128 = stablehlo.multiply %122, %127 : tensor<8x8x16xf32>
      %129 = stablehlo.add %iterArg_36, %128 : tensor<8x8x16xf32>
      %130 = stablehlo.multiply %126, %73 : tensor<8x8x1xf32>
      %131 = stablehlo.divide %130, %15 : tensor<8x8x1xf32>
      %132 = stablehlo.reduce(%131 init: %arg6) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %133 = stablehlo.broadcast_in_dim %132, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %134 = stablehlo.multiply %71, %133 : tensor<8x8x16xf32>
      %135 = stablehlo.add %129, %134 : tensor<8x8x16xf32>
      %136 = stablehlo.multiply %133, %71 : tensor<8x8x16xf32>
      %137 = stablehlo.add %135, %136 : tensor<8x8x16xf32>
      %138 = stablehlo.dot_general %137, %69, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<16x16xf32>
      %139 = stablehlo.transpose %138, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
      %140 = stablehlo.dot_general %137, %67, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %141 = stablehlo.reshape %140 : (tensor<8x8x16xf32>) -> tensor<8x8x2x8xf32>
      %142 = stablehlo.transpose %141, dims = [0, 2, 3, 1] : (tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %143 = stablehlo.dot_general %142, %65, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %144 = stablehlo.dot_general %142, %63, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %145 = stablehlo.transpose %144, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %146 = stablehlo.broadcast_in_dim %61, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %147 = stablehlo.multiply %143, %146 : tensor<8x2x8x8xf32>
      %148 = stablehlo.multiply %147, %57 : tensor<8x2x8x8xf32>
      %149 = stablehlo.reduce(%148 init: %arg6) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %150 = stablehlo.reshape %149 : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %151 = stablehlo.negate %150 : tensor<8x2x8x1xf32>
      %152 = stablehlo.broadcast_in_dim %59, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %153 = stablehlo.divide %143, %152 : tensor<8x2x8x8xf32>
      %154 = stablehlo.reduce(%151 init: %arg6) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x1xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %155 = stablehlo.broadcast_in_dim %154, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %156 = stablehlo.add %153, %155 : tensor<8x2x8x8xf32>
      %157 = stablehlo.multiply %156, %57 : tensor<8x2x8x8xf32>
      %158 = stablehlo.select %iterArg_33, %157, %34 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %159 = stablehlo.broadcast_in_dim %iterArg_32, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %160 = stablehlo.divide %158, %159 : tensor<8x2x8x8xf32>
      %161 = stablehlo.dot_general %160, %55, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %162 = stablehlo.transpose %161, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %163 = stablehlo.dot_general %160, %53, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %164 = stablehlo.transpose %163, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %165 = stablehlo.concatenate %164, %162, %145, dim = 3 : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x8x2x24xf32>
      %166 = stablehlo.reshape %165 : (tensor<8x8x2x24xf32>) -> tensor<8x8x48xf32>
      %167 = stablehlo.dot_general %166, %51, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<8x8x16xf32>) -> tensor<48x16xf32>
      %168 = stablehlo.transpose %167, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
      %169 = stablehlo.dot_general %166, %49, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<16x48xf32>) -> tensor<8x8x16xf32>
      %170 = stablehlo.multiply %47, %169 : tensor<8x8x16xf32>
      %171 = stablehlo.reduce(%170 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %172 = stablehlo.reshape %171 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %173 = stablehlo.broadcast_in_dim %45, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %174 = stablehlo.multiply %169, %173 : tensor<8x8x16xf32>
      %175 = stablehlo.reduce(%172 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %176 = stablehlo.multiply %39, %174 : tensor<8x8x16xf32>
      %177 = stablehlo.reduce(%176 init: %arg6) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %178 = stablehlo.reshape %177 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %179 = stablehlo.broadcast_in_dim %43, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %180 = stablehlo.multiply %174, %179 : tensor<8x8x16xf32>
      %181 = stablehlo.add %137, %180 : tensor<8x8x16xf32>
      %182 = stablehlo.multiply %178, %41 : tensor<8x8x1xf32>
      %183 = stablehlo.divide %182, %15 : tensor<8x8x1xf32>
      %184 = stablehlo.reduce(%183 init: %arg6) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %185 = stablehlo.broadcast_in_dim %184, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %186 = stablehlo.multiply %39, %185 : tensor<8x8x16xf32>
      %187 = stablehlo.add %181, %186 : tensor<8x8x16xf32>
      %188 = stablehlo.multiply %185, %39 : tensor<8x8x16xf32>
      %189 = stablehlo.add %187, %188 : tensor<8x8x16xf32>
      %190 = stablehlo.broadcast_in_dim %99, dims = [1, 2] : (tensor<64x16xf32>) -> tensor<1x64x16xf32>
      %191 = stablehlo.dynamic_update_slice %iterArg_37, %190, %37, %arg8, %arg8 : (tensor<1x64x16xf32>, tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %192 = stablehlo.broadcast_in_dim %175, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %193 = stablehlo.dynamic_update_slice %iterArg_38, %192, %37, %arg8 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %194 = stablehlo.broadcast_in_dim %123, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %195 = stablehlo.dynamic_update_slice %iterArg_39, %194, %37, %arg8 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %196 = stablehlo.broadcast_in_dim %139, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
      %197 = stablehlo.dynamic_update_slice %iterArg_40, %196, %37, %arg8, %arg8 : (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %198 = stablehlo.broadcast_in_dim %168, dims = [1, 2] : (tensor<16x48xf32>) -> tensor<1x16x48xf32>
      %199 = stablehlo.dynamic_update_slice %iterArg_41, %198, %37, %arg8, %arg8 : (tensor<1x16x48xf32>, tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %200 = stablehlo.broadcast_in_dim %116, dims = [1, 2] : (tensor<16x64xf32>) -> tensor<1x16x64xf32>
      %201 = stablehlo.dynamic_update_slice %iterArg_42, %200, %37, %arg8, %arg8 : (tensor<1x16x64xf32>, tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %202 = stablehlo.add %iterArg_35, %c_43 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %iterArg_21, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_27, %iterArg_28, %iterArg_29, %iterArg_30, %iterArg_31, %iterArg_32, %iterArg_33, %iterArg_34, %202, %189, %191, %193, %195, %197, %199, %201 : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    }
    return %35#34, %5, %35#35, %35#36, %35#37, %35#38, %35#39, %35#40, %6 : tensor<8x8x16xf32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<64x16xf32>
  }
  func.func private @input_gradient_2(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m2, []>}, %arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@m2, []>}, %arg2: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg3: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg4: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg5: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg6: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg7: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{"data"}, {}, {}]>}, %arg8: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg9: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg10: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg11: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg12: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg13: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg14: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg15: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg16: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg17: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg18: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}, {}]>}, %arg19: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg20: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg21: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg22: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg23: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg24: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, %arg25: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, %arg26: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, %arg27: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, %arg28: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, %arg29: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, %arg30: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}, {}]>}, %arg31: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg32: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg33: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg34: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}, {}]>}, %arg35: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg36: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}, %arg37: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {"data"}, {}, {}]>}) -> (tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{"data"}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.sqrt %cst : tensor<f32>
    %1 = stablehlo.convert %0 : tensor<f32>
    %2 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %4 = stablehlo.add %2, %3 : tensor<8x8xi32>
    %5 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %9 = stablehlo.select %6, %7, %8 : tensor<8x8xi1>, tensor<8x8xi1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %11 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %13:41 = stablehlo.while(%iterArg = %arg37, %iterArg_2 = %arg36, %iterArg_3 = %arg35, %iterArg_4 = %arg34, %iterArg_5 = %arg33, %iterArg_6 = %arg32, %iterArg_7 = %arg31, %iterArg_8 = %arg30, %iterArg_9 = %arg29, %iterArg_10 = %arg28, %iterArg_11 = %arg27, %iterArg_12 = %arg26, %iterArg_13 = %arg25, %iterArg_14 = %arg24, %iterArg_15 = %arg23, %iterArg_16 = %arg22, %iterArg_17 = %arg21, %iterArg_18 = %arg20, %iterArg_19 = %arg19, %iterArg_20 = %arg18, %iterArg_21 = %arg17, %iterArg_22 = %arg16, %iterArg_23 = %arg15, %iterArg_24 = %arg14, %iterArg_25 = %arg13, %iterArg_26 = %arg12, %iterArg_27 = %arg11, %iterArg_28 = %arg10, %iterArg_29 = %arg9, %iterArg_30 = %arg8, %iterArg_31 = %1, %iterArg_32 = %10, %iterArg_33 = %11, %iterArg_34 = %arg1, %iterArg_35 = %arg7, %iterArg_36 = %arg6, %iterArg_37 = %arg5, %iterArg_38 = %arg5, %iterArg_39 = %arg4, %iterArg_40 = %arg3, %iterArg_41 = %arg2) : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    cond {
      %c_42 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.compare LT, %iterArg_34, %c_42, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    } do {
      %c_42 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.subtract %c_42, %iterArg_34 : tensor<i32>
      %15 = stablehlo.subtract %14, %c_42 : tensor<i32>
      %16 = stablehlo.dynamic_slice %iterArg, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %17 = stablehlo.reshape %16 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %18 = stablehlo.dynamic_slice %iterArg_2, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %19 = stablehlo.reshape %18 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %20 = stablehlo.dynamic_slice %iterArg_3, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %21 = stablehlo.reshape %20 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %22 = stablehlo.dynamic_slice %iterArg_4, %15, %arg1, %arg1, %arg1, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %23 = stablehlo.reshape %22 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %24 = stablehlo.dynamic_slice %iterArg_5, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %25 = stablehlo.reshape %24 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %26 = stablehlo.dynamic_slice %iterArg_6, %15, %arg1, %arg1, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %27 = stablehlo.reshape %26 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %28 = stablehlo.dynamic_slice %iterArg_7, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %29 = stablehlo.reshape %28 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %30 = stablehlo.dynamic_slice %iterArg_8, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %31 = stablehlo.reshape %30 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %32 = stablehlo.dynamic_slice %iterArg_9, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %33 = stablehlo.reshape %32 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %34 = stablehlo.dynamic_slice %iterArg_10, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %35 = stablehlo.reshape %34 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %36 = stablehlo.dynamic_slice %iterArg_11, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %37 = stablehlo.reshape %36 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %38 = stablehlo.dynamic_slice %iterArg_12, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %39 = stablehlo.reshape %38 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %40 = stablehlo.dynamic_slice %iterArg_13, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %41 = stablehlo.reshape %40 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %42 = stablehlo.dynamic_slice %iterArg_14, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %43 = stablehlo.reshape %42 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %44 = stablehlo.dynamic_slice %iterArg_15, %15, %arg1, %arg1, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %45 = stablehlo.reshape %44 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %46 = stablehlo.dynamic_slice %iterArg_16, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %47 = stablehlo.reshape %46 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %48 = stablehlo.dynamic_slice %iterArg_17, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %49 = stablehlo.reshape %48 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %50 = stablehlo.dynamic_slice %iterArg_18, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %51 = stablehlo.reshape %50 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %52 = stablehlo.dynamic_slice %iterArg_19, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %53 = stablehlo.reshape %52 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %54 = stablehlo.dynamic_slice %iterArg_20, %15, %arg1, %arg1, %arg1, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %55 = stablehlo.reshape %54 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %56 = stablehlo.dynamic_slice %iterArg_21, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %57 = stablehlo.reshape %56 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %58 = stablehlo.dynamic_slice %iterArg_22, %15, %arg1, %arg1, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %59 = stablehlo.reshape %58 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %60 = stablehlo.dynamic_slice %iterArg_23, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %61 = stablehlo.reshape %60 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %62 = stablehlo.dynamic_slice %iterArg_24, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %63 = stablehlo.reshape %62 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %64 = stablehlo.dynamic_slice %iterArg_25, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %65 = stablehlo.reshape %64 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %66 = stablehlo.dynamic_slice %iterArg_26, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %67 = stablehlo.reshape %66 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %68 = stablehlo.dynamic_slice %iterArg_27, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %69 = stablehlo.reshape %68 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %70 = stablehlo.dynamic_slice %iterArg_28, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %71 = stablehlo.reshape %70 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %72 = stablehlo.dynamic_slice %iterArg_29, %15, %arg1, %arg1, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %73 = stablehlo.reshape %72 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %74 = stablehlo.dynamic_slice %iterArg_30, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %75 = stablehlo.reshape %74 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %76 = stablehlo.dot_general %iterArg_35, %75, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x64xf32>) -> tensor<16x64xf32>
      %77 = stablehlo.transpose %76, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
      %78 = stablehlo.dot_general %iterArg_35, %73, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<64x16xf32>) -> tensor<8x8x64xf32>
      %79 = stablehlo.multiply %71, %78 : tensor<8x8x64xf32>
      %80 = stablehlo.multiply %78, %69 : tensor<8x8x64xf32>
      %cst_43 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %81 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %82 = stablehlo.multiply %81, %79 : tensor<8x8x64xf32>
      %83 = stablehlo.multiply %82, %67 : tensor<8x8x64xf32>
      %84 = stablehlo.multiply %83, %65 : tensor<8x8x64xf32>
      %85 = stablehlo.add %83, %84 : tensor<8x8x64xf32>
      %cst_44 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %86 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %87 = stablehlo.multiply %86, %85 : tensor<8x8x64xf32>
      %88 = stablehlo.add %80, %87 : tensor<8x8x64xf32>
      %cst_45 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %89 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %90 = stablehlo.multiply %89, %87 : tensor<8x8x64xf32>
      %91 = stablehlo.multiply %90, %63 : tensor<8x8x64xf32>
      %92 = stablehlo.add %88, %91 : tensor<8x8x64xf32>
      %93 = stablehlo.dot_general %92, %61, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<8x8x16xf32>) -> tensor<64x16xf32>
      %94 = stablehlo.transpose %93, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
      %95 = stablehlo.dot_general %92, %59, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<16x64xf32>) -> tensor<8x8x16xf32>
      %96 = stablehlo.multiply %57, %95 : tensor<8x8x16xf32>
      %97 = stablehlo.reduce(%96 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %98 = stablehlo.reshape %97 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %99 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %100 = stablehlo.multiply %95, %99 : tensor<8x8x16xf32>
      %101 = stablehlo.reduce(%98 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %102 = stablehlo.multiply %49, %100 : tensor<8x8x16xf32>
      %103 = stablehlo.reduce(%102 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %104 = stablehlo.reshape %103 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %105 = stablehlo.broadcast_in_dim %53, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %106 = stablehlo.multiply %100, %105 : tensor<8x8x16xf32>
      %107 = stablehlo.add %iterArg_35, %106 : tensor<8x8x16xf32>
      %108 = stablehlo.multiply %104, %51 : tensor<8x8x1xf32>
      %109 = stablehlo.divide %108, %12 : tensor<8x8x1xf32>
      %110 = stablehlo.reduce(%109 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %111 = stablehlo.broadcast_in_dim %110, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %112 = stablehlo.multiply %49, %111 : tensor<8x8x16xf32>
      %113 = stablehlo.add %107, %112 : tensor<8x8x16xf32>
      %114 = stablehlo.multiply %111, %49 : tensor<8x8x16xf32>
      %115 = stablehlo.add %113, %114 : tensor<8x8x16xf32>
      %116 = stablehlo.dot_general %115, %47, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<16x16xf32>
      %117 = stablehlo.transpose %116, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
      %118 = stablehlo.dot_general %115, %45, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %119 = stablehlo.reshape %118 : (tensor<8x8x16xf32>) -> tensor<8x8x2x8xf32>
      %120 = stablehlo.transpose %119, dims = [0, 2, 3, 1] : (tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %121 = stablehlo.dot_general %120, %43, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %122 = stablehlo.dot_general %120, %41, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %123 = stablehlo.transpose %122, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %124 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %125 = stablehlo.multiply %121, %124 : tensor<8x2x8x8xf32>
      %126 = stablehlo.multiply %125, %35 : tensor<8x2x8x8xf32>
      %127 = stablehlo.reduce(%126 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %128 = stablehlo.reshape %127 : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %129 = stablehlo.negate %128 : tensor<8x2x8x1xf32>
      %130 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %131 = stablehlo.divide %121, %130 : tensor<8x2x8x8xf32>
      %132 = stablehlo.reduce(%129 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x1xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %133 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %134 = stablehlo.add %131, %133 : tensor<8x2x8x8xf32>
      %135 = stablehlo.multiply %134, %35 : tensor<8x2x8x8xf32>
      %136 = stablehlo.select %iterArg_32, %135, %11 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %137 = stablehlo.broadcast_in_dim %iterArg_31, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %138 = stablehlo.divide %136, %137 : tensor<8x2x8x8xf32>
      %139 = stablehlo.dot_general %138, %33, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %140 = stablehlo.transpose %139, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %141 = stablehlo.dot_general %138, %31, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %142 = stablehlo.transpose %141, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %143 = stablehlo.concatenate %142, %140, %123, dim = 3 : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x8x2x24xf32>
      %144 = stablehlo.reshape %143 : (tensor<8x8x2x24xf32>) -> tensor<8x8x48xf32>
      %145 = stablehlo.dot_general %144, %29, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<8x8x16xf32>) -> tensor<48x16xf32>
      %146 = stablehlo.transpose %145, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
      %147 = stablehlo.dot_general %144, %27, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<16x48xf32>) -> tensor<8x8x16xf32>
      %148 = stablehlo.multiply %25, %147 : tensor<8x8x16xf32>
      %149 = stablehlo.reduce(%148 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %150 = stablehlo.reshape %149 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %151 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %152 = stablehlo.multiply %147, %151 : tensor<8x8x16xf32>
      %153 = stablehlo.reduce(%150 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %154 = stablehlo.multiply %17, %152 : tensor<8x8x16xf32>
      %155 = stablehlo.reduce(%154 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %156 = stablehlo.reshape %155 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %157 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %158 = stablehlo.multiply %152, %157 : tensor<8x8x16xf32>
      %159 = stablehlo.add %115, %158 : tensor<8x8x16xf32>
      %160 = stablehlo.multiply %156, %19 : tensor<8x8x1xf32>
      %161 = stablehlo.divide %160, %12 : tensor<8x8x1xf32>
      %162 = stablehlo.reduce(%161 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %163 = stablehlo.broadcast_in_dim %162, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %164 = stablehlo.multiply %17, %163 : tensor<8x8x16xf32>
      %165 = stablehlo.add %159, %164 : tensor<8x8x16xf32>
      %166 = stablehlo.multiply %163, %17 : tensor<8x8x16xf32>
      %167 = stablehlo.add %165, %166 : tensor<8x8x16xf32>
      %168 = stablehlo.broadcast_in_dim %77, dims = [1, 2] : (tensor<64x16xf32>) -> tensor<1x64x16xf32>
      %169 = stablehlo.dynamic_update_slice %iterArg_36, %168, %15, %arg1, %arg1 : (tensor<1x64x16xf32>, tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %170 = stablehlo.broadcast_in_dim %153, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %171 = stablehlo.dynamic_update_slice %iterArg_37, %170, %15, %arg1 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %172 = stablehlo.broadcast_in_dim %101, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %173 = stablehlo.dynamic_update_slice %iterArg_38, %172, %15, %arg1 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %174 = stablehlo.broadcast_in_dim %117, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
      %175 = stablehlo.dynamic_update_slice %iterArg_39, %174, %15, %arg1, %arg1 : (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %176 = stablehlo.broadcast_in_dim %146, dims = [1, 2] : (tensor<16x48xf32>) -> tensor<1x16x48xf32>
      %177 = stablehlo.dynamic_update_slice %iterArg_40, %176, %15, %arg1, %arg1 : (tensor<1x16x48xf32>, tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %178 = stablehlo.broadcast_in_dim %94, dims = [1, 2] : (tensor<16x64xf32>) -> tensor<1x16x64xf32>
      %179 = stablehlo.dynamic_update_slice %iterArg_41, %178, %15, %arg1, %arg1 : (tensor<1x16x64xf32>, tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %180 = stablehlo.add %iterArg_34, %c_42 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %iterArg_21, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_27, %iterArg_28, %iterArg_29, %iterArg_30, %iterArg_31, %iterArg_32, %iterArg_33, %180, %167, %169, %171, %173, %175, %177, %179 : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    }
    return %13#34, %13#35, %13#36, %13#37, %13#38, %13#39, %13#40 : tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @input_gradient_1(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}, %arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@m1, []>}, %arg2: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg3: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg4: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg5: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg6: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg7: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}, {}]>}, %arg8: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg9: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg10: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg11: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg12: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg13: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg14: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg15: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg16: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg17: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg18: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}, {}]>}, %arg19: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg20: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg21: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg22: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg23: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg24: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, %arg25: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, %arg26: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, %arg27: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, %arg28: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, %arg29: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, %arg30: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}, {}]>}, %arg31: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg32: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg33: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg34: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}, {}]>}, %arg35: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg36: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}, %arg37: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {"data"}, {}, {}]>}) -> (tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{"data"}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.sqrt %cst : tensor<f32>
    %1 = stablehlo.convert %0 : tensor<f32>
    %2 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %3 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %4 = stablehlo.add %2, %3 : tensor<8x8xi32>
    %5 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %6 = stablehlo.compare GE, %4, %5, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %7 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %8 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %9 = stablehlo.select %6, %7, %8 : tensor<8x8xi1>, tensor<8x8xi1>
    %10 = stablehlo.broadcast_in_dim %9, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %11 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %12 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %13:41 = stablehlo.while(%iterArg = %arg37, %iterArg_2 = %arg36, %iterArg_3 = %arg35, %iterArg_4 = %arg34, %iterArg_5 = %arg33, %iterArg_6 = %arg32, %iterArg_7 = %arg31, %iterArg_8 = %arg30, %iterArg_9 = %arg29, %iterArg_10 = %arg28, %iterArg_11 = %arg27, %iterArg_12 = %arg26, %iterArg_13 = %arg25, %iterArg_14 = %arg24, %iterArg_15 = %arg23, %iterArg_16 = %arg22, %iterArg_17 = %arg21, %iterArg_18 = %arg20, %iterArg_19 = %arg19, %iterArg_20 = %arg18, %iterArg_21 = %arg17, %iterArg_22 = %arg16, %iterArg_23 = %arg15, %iterArg_24 = %arg14, %iterArg_25 = %arg13, %iterArg_26 = %arg12, %iterArg_27 = %arg11, %iterArg_28 = %arg10, %iterArg_29 = %arg9, %iterArg_30 = %arg8, %iterArg_31 = %1, %iterArg_32 = %10, %iterArg_33 = %11, %iterArg_34 = %arg1, %iterArg_35 = %arg7, %iterArg_36 = %arg6, %iterArg_37 = %arg5, %iterArg_38 = %arg5, %iterArg_39 = %arg4, %iterArg_40 = %arg3, %iterArg_41 = %arg2) : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    cond {
      %c_42 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.compare LT, %iterArg_34, %c_42, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %14 : tensor<i1>
    } do {
      %c_42 = stablehlo.constant dense<1> : tensor<i32>
      %14 = stablehlo.subtract %c_42, %iterArg_34 : tensor<i32>
      %15 = stablehlo.subtract %14, %c_42 : tensor<i32>
      %16 = stablehlo.dynamic_slice %iterArg, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %17 = stablehlo.reshape %16 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %18 = stablehlo.dynamic_slice %iterArg_2, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %19 = stablehlo.reshape %18 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %20 = stablehlo.dynamic_slice %iterArg_3, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %21 = stablehlo.reshape %20 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %22 = stablehlo.dynamic_slice %iterArg_4, %15, %arg1, %arg1, %arg1, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %23 = stablehlo.reshape %22 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %24 = stablehlo.dynamic_slice %iterArg_5, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %25 = stablehlo.reshape %24 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %26 = stablehlo.dynamic_slice %iterArg_6, %15, %arg1, %arg1, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %27 = stablehlo.reshape %26 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %28 = stablehlo.dynamic_slice %iterArg_7, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %29 = stablehlo.reshape %28 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %30 = stablehlo.dynamic_slice %iterArg_8, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %31 = stablehlo.reshape %30 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %32 = stablehlo.dynamic_slice %iterArg_9, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %33 = stablehlo.reshape %32 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %34 = stablehlo.dynamic_slice %iterArg_10, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %35 = stablehlo.reshape %34 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %36 = stablehlo.dynamic_slice %iterArg_11, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %37 = stablehlo.reshape %36 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %38 = stablehlo.dynamic_slice %iterArg_12, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %39 = stablehlo.reshape %38 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %40 = stablehlo.dynamic_slice %iterArg_13, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %41 = stablehlo.reshape %40 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %42 = stablehlo.dynamic_slice %iterArg_14, %15, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %43 = stablehlo.reshape %42 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %44 = stablehlo.dynamic_slice %iterArg_15, %15, %arg1, %arg1, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %45 = stablehlo.reshape %44 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %46 = stablehlo.dynamic_slice %iterArg_16, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %47 = stablehlo.reshape %46 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %48 = stablehlo.dynamic_slice %iterArg_17, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %49 = stablehlo.reshape %48 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %50 = stablehlo.dynamic_slice %iterArg_18, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %51 = stablehlo.reshape %50 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %52 = stablehlo.dynamic_slice %iterArg_19, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %53 = stablehlo.reshape %52 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %54 = stablehlo.dynamic_slice %iterArg_20, %15, %arg1, %arg1, %arg1, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %55 = stablehlo.reshape %54 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %56 = stablehlo.dynamic_slice %iterArg_21, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %57 = stablehlo.reshape %56 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %58 = stablehlo.dynamic_slice %iterArg_22, %15, %arg1, %arg1, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %59 = stablehlo.reshape %58 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %60 = stablehlo.dynamic_slice %iterArg_23, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %61 = stablehlo.reshape %60 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %62 = stablehlo.dynamic_slice %iterArg_24, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %63 = stablehlo.reshape %62 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %64 = stablehlo.dynamic_slice %iterArg_25, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %65 = stablehlo.reshape %64 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %66 = stablehlo.dynamic_slice %iterArg_26, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %67 = stablehlo.reshape %66 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %68 = stablehlo.dynamic_slice %iterArg_27, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %69 = stablehlo.reshape %68 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %70 = stablehlo.dynamic_slice %iterArg_28, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %71 = stablehlo.reshape %70 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %72 = stablehlo.dynamic_slice %iterArg_29, %15, %arg1, %arg1, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %73 = stablehlo.reshape %72 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %74 = stablehlo.dynamic_slice %iterArg_30, %15, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %75 = stablehlo.reshape %74 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %76 = stablehlo.dot_general %iterArg_35, %75, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x64xf32>) -> tensor<16x64xf32>
      %77 = stablehlo.transpose %76, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
      %78 = stablehlo.dot_general %iterArg_35, %73, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<64x16xf32>) -> tensor<8x8x64xf32>
      %79 = stablehlo.multiply %71, %78 : tensor<8x8x64xf32>
      %80 = stablehlo.multiply %78, %69 : tensor<8x8x64xf32>
      %cst_43 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %81 = stablehlo.broadcast_in_dim %cst_43, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %82 = stablehlo.multiply %81, %79 : tensor<8x8x64xf32>
      %83 = stablehlo.multiply %82, %67 : tensor<8x8x64xf32>
      %84 = stablehlo.multiply %83, %65 : tensor<8x8x64xf32>
      %85 = stablehlo.add %83, %84 : tensor<8x8x64xf32>
      %cst_44 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %86 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %87 = stablehlo.multiply %86, %85 : tensor<8x8x64xf32>
      %88 = stablehlo.add %80, %87 : tensor<8x8x64xf32>
      %cst_45 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %89 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %90 = stablehlo.multiply %89, %87 : tensor<8x8x64xf32>
      %91 = stablehlo.multiply %90, %63 : tensor<8x8x64xf32>
      %92 = stablehlo.add %88, %91 : tensor<8x8x64xf32>
      %93 = stablehlo.dot_general %92, %61, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<8x8x16xf32>) -> tensor<64x16xf32>
      %94 = stablehlo.transpose %93, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
      %95 = stablehlo.dot_general %92, %59, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<16x64xf32>) -> tensor<8x8x16xf32>
      %96 = stablehlo.multiply %57, %95 : tensor<8x8x16xf32>
      %97 = stablehlo.reduce(%96 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %98 = stablehlo.reshape %97 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %99 = stablehlo.broadcast_in_dim %55, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %100 = stablehlo.multiply %95, %99 : tensor<8x8x16xf32>
      %101 = stablehlo.reduce(%98 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %102 = stablehlo.multiply %49, %100 : tensor<8x8x16xf32>
      %103 = stablehlo.reduce(%102 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %104 = stablehlo.reshape %103 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %105 = stablehlo.broadcast_in_dim %53, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %106 = stablehlo.multiply %100, %105 : tensor<8x8x16xf32>
      %107 = stablehlo.add %iterArg_35, %106 : tensor<8x8x16xf32>
      %108 = stablehlo.multiply %104, %51 : tensor<8x8x1xf32>
      %109 = stablehlo.divide %108, %12 : tensor<8x8x1xf32>
      %110 = stablehlo.reduce(%109 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %111 = stablehlo.broadcast_in_dim %110, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %112 = stablehlo.multiply %49, %111 : tensor<8x8x16xf32>
      %113 = stablehlo.add %107, %112 : tensor<8x8x16xf32>
      %114 = stablehlo.multiply %111, %49 : tensor<8x8x16xf32>
      %115 = stablehlo.add %113, %114 : tensor<8x8x16xf32>
      %116 = stablehlo.dot_general %115, %47, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<16x16xf32>
      %117 = stablehlo.transpose %116, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
      %118 = stablehlo.dot_general %115, %45, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %119 = stablehlo.reshape %118 : (tensor<8x8x16xf32>) -> tensor<8x8x2x8xf32>
      %120 = stablehlo.transpose %119, dims = [0, 2, 3, 1] : (tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %121 = stablehlo.dot_general %120, %43, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %122 = stablehlo.dot_general %120, %41, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %123 = stablehlo.transpose %122, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %124 = stablehlo.broadcast_in_dim %39, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %125 = stablehlo.multiply %121, %124 : tensor<8x2x8x8xf32>
      %126 = stablehlo.multiply %125, %35 : tensor<8x2x8x8xf32>
      %127 = stablehlo.reduce(%126 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %128 = stablehlo.reshape %127 : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %129 = stablehlo.negate %128 : tensor<8x2x8x1xf32>
      %130 = stablehlo.broadcast_in_dim %37, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %131 = stablehlo.divide %121, %130 : tensor<8x2x8x8xf32>
      %132 = stablehlo.reduce(%129 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x1xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %133 = stablehlo.broadcast_in_dim %132, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %134 = stablehlo.add %131, %133 : tensor<8x2x8x8xf32>
      %135 = stablehlo.multiply %134, %35 : tensor<8x2x8x8xf32>
      %136 = stablehlo.select %iterArg_32, %135, %11 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %137 = stablehlo.broadcast_in_dim %iterArg_31, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %138 = stablehlo.divide %136, %137 : tensor<8x2x8x8xf32>
      %139 = stablehlo.dot_general %138, %33, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %140 = stablehlo.transpose %139, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %141 = stablehlo.dot_general %138, %31, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %142 = stablehlo.transpose %141, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %143 = stablehlo.concatenate %142, %140, %123, dim = 3 : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x8x2x24xf32>
      %144 = stablehlo.reshape %143 : (tensor<8x8x2x24xf32>) -> tensor<8x8x48xf32>
      %145 = stablehlo.dot_general %144, %29, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<8x8x16xf32>) -> tensor<48x16xf32>
      %146 = stablehlo.transpose %145, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
      %147 = stablehlo.dot_general %144, %27, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<16x48xf32>) -> tensor<8x8x16xf32>
      %148 = stablehlo.multiply %25, %147 : tensor<8x8x16xf32>
      %149 = stablehlo.reduce(%148 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %150 = stablehlo.reshape %149 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %151 = stablehlo.broadcast_in_dim %23, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %152 = stablehlo.multiply %147, %151 : tensor<8x8x16xf32>
      %153 = stablehlo.reduce(%150 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %154 = stablehlo.multiply %17, %152 : tensor<8x8x16xf32>
      %155 = stablehlo.reduce(%154 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %156 = stablehlo.reshape %155 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %157 = stablehlo.broadcast_in_dim %21, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %158 = stablehlo.multiply %152, %157 : tensor<8x8x16xf32>
      %159 = stablehlo.add %115, %158 : tensor<8x8x16xf32>
      %160 = stablehlo.multiply %156, %19 : tensor<8x8x1xf32>
      %161 = stablehlo.divide %160, %12 : tensor<8x8x1xf32>
      %162 = stablehlo.reduce(%161 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %163 = stablehlo.broadcast_in_dim %162, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %164 = stablehlo.multiply %17, %163 : tensor<8x8x16xf32>
      %165 = stablehlo.add %159, %164 : tensor<8x8x16xf32>
      %166 = stablehlo.multiply %163, %17 : tensor<8x8x16xf32>
      %167 = stablehlo.add %165, %166 : tensor<8x8x16xf32>
      %168 = stablehlo.broadcast_in_dim %77, dims = [1, 2] : (tensor<64x16xf32>) -> tensor<1x64x16xf32>
      %169 = stablehlo.dynamic_update_slice %iterArg_36, %168, %15, %arg1, %arg1 : (tensor<1x64x16xf32>, tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %170 = stablehlo.broadcast_in_dim %153, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %171 = stablehlo.dynamic_update_slice %iterArg_37, %170, %15, %arg1 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %172 = stablehlo.broadcast_in_dim %101, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %173 = stablehlo.dynamic_update_slice %iterArg_38, %172, %15, %arg1 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %174 = stablehlo.broadcast_in_dim %117, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
      %175 = stablehlo.dynamic_update_slice %iterArg_39, %174, %15, %arg1, %arg1 : (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %176 = stablehlo.broadcast_in_dim %146, dims = [1, 2] : (tensor<16x48xf32>) -> tensor<1x16x48xf32>
      %177 = stablehlo.dynamic_update_slice %iterArg_40, %176, %15, %arg1, %arg1 : (tensor<1x16x48xf32>, tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %178 = stablehlo.broadcast_in_dim %94, dims = [1, 2] : (tensor<16x64xf32>) -> tensor<1x16x64xf32>
      %179 = stablehlo.dynamic_update_slice %iterArg_41, %178, %15, %arg1, %arg1 : (tensor<1x16x64xf32>, tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %180 = stablehlo.add %iterArg_34, %c_42 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_2, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %iterArg_21, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_27, %iterArg_28, %iterArg_29, %iterArg_30, %iterArg_31, %iterArg_32, %iterArg_33, %180, %167, %169, %171, %173, %175, %177, %179 : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    }
    return %13#34, %13#35, %13#36, %13#37, %13#38, %13#39, %13#40 : tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @input_gradient_0(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg1: tensor<i32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg2: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg3: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg4: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg5: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg6: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg7: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{"data"}, {}, {}]>}, %arg8: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg9: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg10: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg11: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg12: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg13: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg14: tensor<1x8x8x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg15: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg16: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg17: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg18: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}, {}]>}, %arg19: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg20: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg21: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg22: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg23: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg24: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, %arg25: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, %arg26: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, %arg27: tensor<1x8x2x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, %arg28: tensor<1x8x2x8x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, %arg29: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, %arg30: tensor<1x8x8x2x8xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}, {}]>}, %arg31: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg32: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg33: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg34: tensor<1x1x1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}, {}]>}, %arg35: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg36: tensor<1x8x8x1xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg37: tensor<1x8x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}, {}]>}, %arg38: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg39: tensor<ui32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg40: tensor<8x8x9xi32> {sdy.sharding = #sdy.sharding<@m0, [{}, {"data"}, {}]>}) -> (tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.convert %arg39 : (tensor<ui32>) -> tensor<i32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %1 = stablehlo.sqrt %cst : tensor<f32>
    %2 = stablehlo.convert %1 : tensor<f32>
    %3 = stablehlo.iota dim = 0 : tensor<8x8xi32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %5 = stablehlo.add %3, %4 : tensor<8x8xi32>
    %6 = stablehlo.iota dim = 1 : tensor<8x8xi32>
    %7 = stablehlo.compare GE, %5, %6, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c = stablehlo.constant dense<true> : tensor<i1>
    %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %c_0 = stablehlo.constant dense<false> : tensor<i1>
    %9 = stablehlo.broadcast_in_dim %c_0, dims = [] : (tensor<i1>) -> tensor<8x8xi1>
    %10 = stablehlo.select %7, %8, %9 : tensor<8x8xi1>, tensor<8x8xi1>
    %11 = stablehlo.broadcast_in_dim %10, dims = [2, 3] : (tensor<8x8xi1>) -> tensor<8x2x8x8xi1>
    %12 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
    %cst_1 = stablehlo.constant dense<1.600000e+01> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x8x1xf32>
    %14:41 = stablehlo.while(%iterArg = %arg37, %iterArg_3 = %arg36, %iterArg_4 = %arg35, %iterArg_5 = %arg34, %iterArg_6 = %arg33, %iterArg_7 = %arg32, %iterArg_8 = %arg31, %iterArg_9 = %arg30, %iterArg_10 = %arg29, %iterArg_11 = %arg28, %iterArg_12 = %arg27, %iterArg_13 = %arg26, %iterArg_14 = %arg25, %iterArg_15 = %arg24, %iterArg_16 = %arg23, %iterArg_17 = %arg22, %iterArg_18 = %arg21, %iterArg_19 = %arg20, %iterArg_20 = %arg19, %iterArg_21 = %arg18, %iterArg_22 = %arg17, %iterArg_23 = %arg16, %iterArg_24 = %arg15, %iterArg_25 = %arg14, %iterArg_26 = %arg13, %iterArg_27 = %arg12, %iterArg_28 = %arg11, %iterArg_29 = %arg10, %iterArg_30 = %arg9, %iterArg_31 = %arg8, %iterArg_32 = %2, %iterArg_33 = %11, %iterArg_34 = %12, %iterArg_35 = %arg1, %iterArg_36 = %arg7, %iterArg_37 = %arg6, %iterArg_38 = %arg5, %iterArg_39 = %arg5, %iterArg_40 = %arg4, %iterArg_41 = %arg3, %iterArg_42 = %arg2) : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    cond {
      %c_43 = stablehlo.constant dense<1> : tensor<i32>
      %26 = stablehlo.compare LT, %iterArg_35, %c_43, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %26 : tensor<i1>
    } do {
      %c_43 = stablehlo.constant dense<1> : tensor<i32>
      %26 = stablehlo.subtract %c_43, %iterArg_35 : tensor<i32>
      %27 = stablehlo.subtract %26, %c_43 : tensor<i32>
      %28 = stablehlo.dynamic_slice %iterArg, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %29 = stablehlo.reshape %28 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %30 = stablehlo.dynamic_slice %iterArg_3, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %31 = stablehlo.reshape %30 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %32 = stablehlo.dynamic_slice %iterArg_4, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %33 = stablehlo.reshape %32 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %34 = stablehlo.dynamic_slice %iterArg_5, %27, %arg1, %arg1, %arg1, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %35 = stablehlo.reshape %34 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %36 = stablehlo.dynamic_slice %iterArg_6, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %37 = stablehlo.reshape %36 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %38 = stablehlo.dynamic_slice %iterArg_7, %27, %arg1, %arg1, sizes = [1, 16, 48] : (tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %39 = stablehlo.reshape %38 : (tensor<1x16x48xf32>) -> tensor<16x48xf32>
      %40 = stablehlo.dynamic_slice %iterArg_8, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %41 = stablehlo.reshape %40 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %42 = stablehlo.dynamic_slice %iterArg_9, %27, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %43 = stablehlo.reshape %42 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %44 = stablehlo.dynamic_slice %iterArg_10, %27, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %45 = stablehlo.reshape %44 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %46 = stablehlo.dynamic_slice %iterArg_11, %27, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %47 = stablehlo.reshape %46 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %48 = stablehlo.dynamic_slice %iterArg_12, %27, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %49 = stablehlo.reshape %48 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %50 = stablehlo.dynamic_slice %iterArg_13, %27, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 1] : (tensor<1x8x2x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x1xf32>
      %51 = stablehlo.reshape %50 : (tensor<1x8x2x8x1xf32>) -> tensor<8x2x8x1xf32>
      %52 = stablehlo.dynamic_slice %iterArg_14, %27, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 2, 8, 8] : (tensor<1x8x2x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2x8x8xf32>
      %53 = stablehlo.reshape %52 : (tensor<1x8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %54 = stablehlo.dynamic_slice %iterArg_15, %27, %arg1, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 2, 8] : (tensor<1x8x8x2x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x2x8xf32>
      %55 = stablehlo.reshape %54 : (tensor<1x8x8x2x8xf32>) -> tensor<8x8x2x8xf32>
      %56 = stablehlo.dynamic_slice %iterArg_16, %27, %arg1, %arg1, sizes = [1, 16, 16] : (tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %57 = stablehlo.reshape %56 : (tensor<1x16x16xf32>) -> tensor<16x16xf32>
      %58 = stablehlo.dynamic_slice %iterArg_17, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %59 = stablehlo.reshape %58 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %60 = stablehlo.dynamic_slice %iterArg_18, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %61 = stablehlo.reshape %60 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %62 = stablehlo.dynamic_slice %iterArg_19, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %63 = stablehlo.reshape %62 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %64 = stablehlo.dynamic_slice %iterArg_20, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 1] : (tensor<1x8x8x1xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x1xf32>
      %65 = stablehlo.reshape %64 : (tensor<1x8x8x1xf32>) -> tensor<8x8x1xf32>
      %66 = stablehlo.dynamic_slice %iterArg_21, %27, %arg1, %arg1, %arg1, sizes = [1, 1, 1, 16] : (tensor<1x1x1x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x1x1x16xf32>
      %67 = stablehlo.reshape %66 : (tensor<1x1x1x16xf32>) -> tensor<1x1x16xf32>
      %68 = stablehlo.dynamic_slice %iterArg_22, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %69 = stablehlo.reshape %68 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %70 = stablehlo.dynamic_slice %iterArg_23, %27, %arg1, %arg1, sizes = [1, 16, 64] : (tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %71 = stablehlo.reshape %70 : (tensor<1x16x64xf32>) -> tensor<16x64xf32>
      %72 = stablehlo.dynamic_slice %iterArg_24, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 16] : (tensor<1x8x8x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x16xf32>
      %73 = stablehlo.reshape %72 : (tensor<1x8x8x16xf32>) -> tensor<8x8x16xf32>
      %74 = stablehlo.dynamic_slice %iterArg_25, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %75 = stablehlo.reshape %74 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %76 = stablehlo.dynamic_slice %iterArg_26, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %77 = stablehlo.reshape %76 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %78 = stablehlo.dynamic_slice %iterArg_27, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %79 = stablehlo.reshape %78 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %80 = stablehlo.dynamic_slice %iterArg_28, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %81 = stablehlo.reshape %80 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %82 = stablehlo.dynamic_slice %iterArg_29, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %83 = stablehlo.reshape %82 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %84 = stablehlo.dynamic_slice %iterArg_30, %27, %arg1, %arg1, sizes = [1, 64, 16] : (tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %85 = stablehlo.reshape %84 : (tensor<1x64x16xf32>) -> tensor<64x16xf32>
      %86 = stablehlo.dynamic_slice %iterArg_31, %27, %arg1, %arg1, %arg1, sizes = [1, 8, 8, 64] : (tensor<1x8x8x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8x64xf32>
      %87 = stablehlo.reshape %86 : (tensor<1x8x8x64xf32>) -> tensor<8x8x64xf32>
      %88 = stablehlo.dot_general %iterArg_36, %87, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x64xf32>) -> tensor<16x64xf32>
      %89 = stablehlo.transpose %88, dims = [1, 0] : (tensor<16x64xf32>) -> tensor<64x16xf32>
      %90 = stablehlo.dot_general %iterArg_36, %85, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<64x16xf32>) -> tensor<8x8x64xf32>
      %91 = stablehlo.multiply %83, %90 : tensor<8x8x64xf32>
      %92 = stablehlo.multiply %90, %81 : tensor<8x8x64xf32>
      %cst_44 = stablehlo.constant dense<5.000000e-01> : tensor<f32>
      %93 = stablehlo.broadcast_in_dim %cst_44, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %94 = stablehlo.multiply %93, %91 : tensor<8x8x64xf32>
      %95 = stablehlo.multiply %94, %79 : tensor<8x8x64xf32>
      %96 = stablehlo.multiply %95, %77 : tensor<8x8x64xf32>
      %97 = stablehlo.add %95, %96 : tensor<8x8x64xf32>
      %cst_45 = stablehlo.constant dense<0.797884583> : tensor<f32>
      %98 = stablehlo.broadcast_in_dim %cst_45, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %99 = stablehlo.multiply %98, %97 : tensor<8x8x64xf32>
      %100 = stablehlo.add %92, %99 : tensor<8x8x64xf32>
      %cst_46 = stablehlo.constant dense<4.471500e-02> : tensor<f32>
      %101 = stablehlo.broadcast_in_dim %cst_46, dims = [] : (tensor<f32>) -> tensor<8x8x64xf32>
      %102 = stablehlo.multiply %101, %99 : tensor<8x8x64xf32>
      %103 = stablehlo.multiply %102, %75 : tensor<8x8x64xf32>
      %104 = stablehlo.add %100, %103 : tensor<8x8x64xf32>
      %105 = stablehlo.dot_general %104, %73, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<8x8x16xf32>) -> tensor<64x16xf32>
      %106 = stablehlo.transpose %105, dims = [1, 0] : (tensor<64x16xf32>) -> tensor<16x64xf32>
      %107 = stablehlo.dot_general %104, %71, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x64xf32>, tensor<16x64xf32>) -> tensor<8x8x16xf32>
      %108 = stablehlo.multiply %69, %107 : tensor<8x8x16xf32>
      %109 = stablehlo.reduce(%108 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %110 = stablehlo.reshape %109 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %111 = stablehlo.broadcast_in_dim %67, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %112 = stablehlo.multiply %107, %111 : tensor<8x8x16xf32>
      %113 = stablehlo.reduce(%110 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %114 = stablehlo.multiply %61, %112 : tensor<8x8x16xf32>
      %115 = stablehlo.reduce(%114 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %116 = stablehlo.reshape %115 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %117 = stablehlo.broadcast_in_dim %65, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %118 = stablehlo.multiply %112, %117 : tensor<8x8x16xf32>
      %119 = stablehlo.add %iterArg_36, %118 : tensor<8x8x16xf32>
      %120 = stablehlo.multiply %116, %63 : tensor<8x8x1xf32>
      %121 = stablehlo.divide %120, %13 : tensor<8x8x1xf32>
      %122 = stablehlo.reduce(%121 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %123 = stablehlo.broadcast_in_dim %122, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %124 = stablehlo.multiply %61, %123 : tensor<8x8x16xf32>
      %125 = stablehlo.add %119, %124 : tensor<8x8x16xf32>
      %126 = stablehlo.multiply %123, %61 : tensor<8x8x16xf32>
      %127 = stablehlo.add %125, %126 : tensor<8x8x16xf32>
      %128 = stablehlo.dot_general %127, %59, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<8x8x16xf32>) -> tensor<16x16xf32>
      %129 = stablehlo.transpose %128, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
      %130 = stablehlo.dot_general %127, %57, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x16xf32>, tensor<16x16xf32>) -> tensor<8x8x16xf32>
      %131 = stablehlo.reshape %130 : (tensor<8x8x16xf32>) -> tensor<8x8x2x8xf32>
      %132 = stablehlo.transpose %131, dims = [0, 2, 3, 1] : (tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %133 = stablehlo.dot_general %132, %55, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %134 = stablehlo.dot_general %132, %53, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [2], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x2x8x8xf32>) -> tensor<8x2x8x8xf32>
      %135 = stablehlo.transpose %134, dims = [0, 3, 1, 2] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %136 = stablehlo.broadcast_in_dim %51, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %137 = stablehlo.multiply %133, %136 : tensor<8x2x8x8xf32>
      %138 = stablehlo.multiply %137, %47 : tensor<8x2x8x8xf32>
      %139 = stablehlo.reduce(%138 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x8xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %140 = stablehlo.reshape %139 : (tensor<8x2x8xf32>) -> tensor<8x2x8x1xf32>
      %141 = stablehlo.negate %140 : tensor<8x2x8x1xf32>
      %142 = stablehlo.broadcast_in_dim %49, dims = [0, 1, 2, 3] : (tensor<8x2x8x1xf32>) -> tensor<8x2x8x8xf32>
      %143 = stablehlo.divide %133, %142 : tensor<8x2x8x8xf32>
      %144 = stablehlo.reduce(%141 init: %arg0) applies stablehlo.add across dimensions = [3] : (tensor<8x2x8x1xf32>, tensor<f32>) -> tensor<8x2x8xf32>
      %145 = stablehlo.broadcast_in_dim %144, dims = [0, 1, 2] : (tensor<8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %146 = stablehlo.add %143, %145 : tensor<8x2x8x8xf32>
      %147 = stablehlo.multiply %146, %47 : tensor<8x2x8x8xf32>
      %148 = stablehlo.select %iterArg_33, %147, %12 : tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>
      %149 = stablehlo.broadcast_in_dim %iterArg_32, dims = [] : (tensor<f32>) -> tensor<8x2x8x8xf32>
      %150 = stablehlo.divide %148, %149 : tensor<8x2x8x8xf32>
      %151 = stablehlo.dot_general %150, %45, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %152 = stablehlo.transpose %151, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %153 = stablehlo.dot_general %150, %43, batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x2x8x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x2x8x8xf32>
      %154 = stablehlo.transpose %153, dims = [0, 2, 1, 3] : (tensor<8x2x8x8xf32>) -> tensor<8x8x2x8xf32>
      %155 = stablehlo.concatenate %154, %152, %135, dim = 3 : (tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>, tensor<8x8x2x8xf32>) -> tensor<8x8x2x24xf32>
      %156 = stablehlo.reshape %155 : (tensor<8x8x2x24xf32>) -> tensor<8x8x48xf32>
      %157 = stablehlo.dot_general %156, %41, contracting_dims = [0, 1] x [0, 1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<8x8x16xf32>) -> tensor<48x16xf32>
      %158 = stablehlo.transpose %157, dims = [1, 0] : (tensor<48x16xf32>) -> tensor<16x48xf32>
      %159 = stablehlo.dot_general %156, %39, contracting_dims = [2] x [1], precision = [DEFAULT, DEFAULT] : (tensor<8x8x48xf32>, tensor<16x48xf32>) -> tensor<8x8x16xf32>
      %160 = stablehlo.multiply %37, %159 : tensor<8x8x16xf32>
      %161 = stablehlo.reduce(%160 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
      %162 = stablehlo.reshape %161 : (tensor<16xf32>) -> tensor<1x1x16xf32>
      %163 = stablehlo.broadcast_in_dim %35, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<8x8x16xf32>
      %164 = stablehlo.multiply %159, %163 : tensor<8x8x16xf32>
      %165 = stablehlo.reduce(%162 init: %arg0) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
      %166 = stablehlo.multiply %29, %164 : tensor<8x8x16xf32>
      %167 = stablehlo.reduce(%166 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x8xf32>
      %168 = stablehlo.reshape %167 : (tensor<8x8xf32>) -> tensor<8x8x1xf32>
      %169 = stablehlo.broadcast_in_dim %33, dims = [0, 1, 2] : (tensor<8x8x1xf32>) -> tensor<8x8x16xf32>
      %170 = stablehlo.multiply %164, %169 : tensor<8x8x16xf32>
      %171 = stablehlo.add %127, %170 : tensor<8x8x16xf32>
      %172 = stablehlo.multiply %168, %31 : tensor<8x8x1xf32>
      %173 = stablehlo.divide %172, %13 : tensor<8x8x1xf32>
      %174 = stablehlo.reduce(%173 init: %arg0) applies stablehlo.add across dimensions = [2] : (tensor<8x8x1xf32>, tensor<f32>) -> tensor<8x8xf32>
      %175 = stablehlo.broadcast_in_dim %174, dims = [0, 1] : (tensor<8x8xf32>) -> tensor<8x8x16xf32>
      %176 = stablehlo.multiply %29, %175 : tensor<8x8x16xf32>
      %177 = stablehlo.add %171, %176 : tensor<8x8x16xf32>
      %178 = stablehlo.multiply %175, %29 : tensor<8x8x16xf32>
      %179 = stablehlo.add %177, %178 : tensor<8x8x16xf32>
      %180 = stablehlo.broadcast_in_dim %89, dims = [1, 2] : (tensor<64x16xf32>) -> tensor<1x64x16xf32>
      %181 = stablehlo.dynamic_update_slice %iterArg_37, %180, %27, %arg1, %arg1 : (tensor<1x64x16xf32>, tensor<1x64x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x64x16xf32>
      %182 = stablehlo.broadcast_in_dim %165, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %183 = stablehlo.dynamic_update_slice %iterArg_38, %182, %27, %arg1 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %184 = stablehlo.broadcast_in_dim %113, dims = [1] : (tensor<16xf32>) -> tensor<1x16xf32>
      %185 = stablehlo.dynamic_update_slice %iterArg_39, %184, %27, %arg1 : (tensor<1x16xf32>, tensor<1x16xf32>, tensor<i32>, tensor<i32>) -> tensor<1x16xf32>
      %186 = stablehlo.broadcast_in_dim %129, dims = [1, 2] : (tensor<16x16xf32>) -> tensor<1x16x16xf32>
      %187 = stablehlo.dynamic_update_slice %iterArg_40, %186, %27, %arg1, %arg1 : (tensor<1x16x16xf32>, tensor<1x16x16xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x16xf32>
      %188 = stablehlo.broadcast_in_dim %158, dims = [1, 2] : (tensor<16x48xf32>) -> tensor<1x16x48xf32>
      %189 = stablehlo.dynamic_update_slice %iterArg_41, %188, %27, %arg1, %arg1 : (tensor<1x16x48xf32>, tensor<1x16x48xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x48xf32>
      %190 = stablehlo.broadcast_in_dim %106, dims = [1, 2] : (tensor<16x64xf32>) -> tensor<1x16x64xf32>
      %191 = stablehlo.dynamic_update_slice %iterArg_42, %190, %27, %arg1, %arg1 : (tensor<1x16x64xf32>, tensor<1x16x64xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x64xf32>
      %192 = stablehlo.add %iterArg_35, %c_43 : tensor<i32>
      stablehlo.return %iterArg, %iterArg_3, %iterArg_4, %iterArg_5, %iterArg_6, %iterArg_7, %iterArg_8, %iterArg_9, %iterArg_10, %iterArg_11, %iterArg_12, %iterArg_13, %iterArg_14, %iterArg_15, %iterArg_16, %iterArg_17, %iterArg_18, %iterArg_19, %iterArg_20, %iterArg_21, %iterArg_22, %iterArg_23, %iterArg_24, %iterArg_25, %iterArg_26, %iterArg_27, %iterArg_28, %iterArg_29, %iterArg_30, %iterArg_31, %iterArg_32, %iterArg_33, %iterArg_34, %192, %179, %181, %183, %185, %187, %189, %191 : tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x48xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x1xf32>, tensor<1x8x2x8x8xf32>, tensor<1x8x8x2x8xf32>, tensor<1x16x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x1xf32>, tensor<1x8x8x1xf32>, tensor<1x1x1x16xf32>, tensor<1x8x8x16xf32>, tensor<1x16x64xf32>, tensor<1x8x8x16xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x8x8x64xf32>, tensor<1x64x16xf32>, tensor<1x8x8x64xf32>, tensor<f32>, tensor<8x2x8x8xi1>, tensor<8x2x8x8xf32>, tensor<i32>, tensor<8x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
    }
    %15 = stablehlo.reduce(%14#34 init: %arg0) applies stablehlo.add across dimensions = [0] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
    %16 = stablehlo.reshape %15 : (tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %17 = stablehlo.dynamic_slice %arg40, %0, %arg1, %arg1, sizes = [1, 8, 9] : (tensor<8x8x9xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x9xi32>
    %18 = stablehlo.reshape %17 : (tensor<1x8x9xi32>) -> tensor<8x9xi32>
    %19 = stablehlo.slice %18 [0:8, 0:8] : (tensor<8x9xi32>) -> tensor<8x8xi32>
    %20 = stablehlo.compare LT, %19, %4, SIGNED : (tensor<8x8xi32>, tensor<8x8xi32>) -> tensor<8x8xi1>
    %c_2 = stablehlo.constant dense<64> : tensor<i32>
    %21 = stablehlo.broadcast_in_dim %c_2, dims = [] : (tensor<i32>) -> tensor<8x8xi32>
    %22 = stablehlo.add %19, %21 : tensor<8x8xi32>
    %23 = stablehlo.select %20, %22, %19 : tensor<8x8xi1>, tensor<8x8xi32>
    %24 = stablehlo.broadcast_in_dim %23, dims = [0, 1] : (tensor<8x8xi32>) -> tensor<8x8x1xi32>
    %25 = "stablehlo.scatter"(%arg38, %24, %14#34) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
    ^bb0(%arg41: tensor<f32>, %arg42: tensor<f32>):
      %26 = stablehlo.add %arg41, %arg42 : tensor<f32>
      stablehlo.return %26 : tensor<f32>
    }) : (tensor<64x16xf32>, tensor<8x8x1xi32>, tensor<8x8x16xf32>) -> tensor<64x16xf32>
    return %16, %14#35, %14#36, %14#37, %14#38, %14#39, %14#40, %25 : tensor<1x8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<64x16xf32>
  }
  func.func private @weight_gradient_3(%arg0: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg1: tensor<8x8x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{"data"}, {}, {}]>}, %arg2: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg3: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg4: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg5: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg6: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg7: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg8: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg9: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg10: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg11: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg12: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg13: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg14: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg15: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg16: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg17: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}) -> (tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.multiply %arg1, %arg0 : tensor<8x8x16xf32>
    %1 = stablehlo.reduce(%0 init: %arg2) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8x16xf32>, tensor<f32>) -> tensor<16xf32>
    %2 = stablehlo.reshape %1 : (tensor<16xf32>) -> tensor<1x1x16xf32>
    %3 = stablehlo.reduce(%2 init: %arg2) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x1x16xf32>, tensor<f32>) -> tensor<16xf32>
    %4 = stablehlo.add %arg3, %3 : tensor<16xf32>
    %5 = stablehlo.add %arg5, %arg4 : tensor<1x64x16xf32>
    %6 = stablehlo.add %arg7, %arg6 : tensor<1x16xf32>
    %7 = stablehlo.add %arg9, %arg8 : tensor<1x16xf32>
    %8 = stablehlo.add %arg11, %arg10 : tensor<1x16x16xf32>
    %9 = stablehlo.add %arg13, %arg12 : tensor<1x16x48xf32>
    %10 = stablehlo.add %arg15, %arg14 : tensor<1x16x64xf32>
    %11 = stablehlo.add %arg17, %arg16 : tensor<64x16xf32>
    return %4, %5, %6, %7, %8, %9, %10, %11 : tensor<16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<64x16xf32>
  }
  func.func private @weight_gradient_2(%arg0: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg1: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg3: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg4: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg5: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg6: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg7: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg8: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg9: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg10: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg11: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) -> (tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.add %arg1, %arg0 : tensor<1x64x16xf32>
    %1 = stablehlo.add %arg3, %arg2 : tensor<1x16xf32>
    %2 = stablehlo.add %arg5, %arg4 : tensor<1x16xf32>
    %3 = stablehlo.add %arg7, %arg6 : tensor<1x16x16xf32>
    %4 = stablehlo.add %arg9, %arg8 : tensor<1x16x48xf32>
    %5 = stablehlo.add %arg11, %arg10 : tensor<1x16x64xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @weight_gradient_1(%arg0: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg1: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg3: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg4: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg5: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg6: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg7: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg8: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg9: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg10: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg11: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) -> (tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.add %arg1, %arg0 : tensor<1x64x16xf32>
    %1 = stablehlo.add %arg3, %arg2 : tensor<1x16xf32>
    %2 = stablehlo.add %arg5, %arg4 : tensor<1x16xf32>
    %3 = stablehlo.add %arg7, %arg6 : tensor<1x16x16xf32>
    %4 = stablehlo.add %arg9, %arg8 : tensor<1x16x48xf32>
    %5 = stablehlo.add %arg11, %arg10 : tensor<1x16x64xf32>
    return %0, %1, %2, %3, %4, %5 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @weight_gradient_0(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg1: tensor<1x8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg3: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg4: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg5: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg6: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg7: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg8: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg9: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg10: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg11: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg12: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg13: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg14: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg15: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg16: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) -> (tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.reduce(%arg1 init: %arg0) applies stablehlo.add across dimensions = [0] : (tensor<1x8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
    %1 = stablehlo.add %arg2, %0 : tensor<8x16xf32>
    %2 = stablehlo.add %arg4, %arg3 : tensor<1x64x16xf32>
    %3 = stablehlo.add %arg6, %arg5 : tensor<1x16xf32>
    %4 = stablehlo.add %arg8, %arg7 : tensor<1x16xf32>
    %5 = stablehlo.add %arg10, %arg9 : tensor<1x16x16xf32>
    %6 = stablehlo.add %arg12, %arg11 : tensor<1x16x48xf32>
    %7 = stablehlo.add %arg14, %arg13 : tensor<1x16x64xf32>
    %8 = stablehlo.add %arg16, %arg15 : tensor<64x16xf32>
    return %8, %1, %2, %3, %4, %5, %6, %7 : tensor<64x16xf32>, tensor<8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @update_0(%arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg1: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg3: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg4: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg5: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg6: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg7: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg8: tensor<i32> {sdy.sharding = #sdy.sharding<@m0, []>}) -> (tensor<i32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<8x16xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %3 = stablehlo.divide %arg1, %2 : tensor<1x64x16xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %5 = stablehlo.divide %arg2, %4 : tensor<1x16xf32>
    %6 = stablehlo.divide %arg3, %4 : tensor<1x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %8 = stablehlo.divide %arg4, %7 : tensor<1x16x16xf32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %10 = stablehlo.divide %arg5, %9 : tensor<1x16x48xf32>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %12 = stablehlo.divide %arg6, %11 : tensor<1x16x64xf32>
    %13 = stablehlo.multiply %1, %1 : tensor<8x16xf32>
    %14 = stablehlo.reduce(%13 init: %arg7) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
    %15 = stablehlo.multiply %3, %3 : tensor<1x64x16xf32>
    %16 = stablehlo.reduce(%15 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x64x16xf32>, tensor<f32>) -> tensor<f32>
    %17 = stablehlo.multiply %5, %5 : tensor<1x16xf32>
    %18 = stablehlo.reduce(%17 init: %arg7) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %19 = stablehlo.multiply %6, %6 : tensor<1x16xf32>
    %20 = stablehlo.reduce(%19 init: %arg7) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %21 = stablehlo.multiply %8, %8 : tensor<1x16x16xf32>
    %22 = stablehlo.reduce(%21 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x16xf32>, tensor<f32>) -> tensor<f32>
    %23 = stablehlo.multiply %10, %10 : tensor<1x16x48xf32>
    %24 = stablehlo.reduce(%23 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x48xf32>, tensor<f32>) -> tensor<f32>
    %25 = stablehlo.multiply %12, %12 : tensor<1x16x64xf32>
    %26 = stablehlo.reduce(%25 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x64xf32>, tensor<f32>) -> tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %27 = stablehlo.add %arg8, %c : tensor<i32>
    return %27, %14, %16, %18, %20, %22, %24, %26, %1, %3, %5, %6, %8, %10, %12 : tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @update_1(%arg0: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg1: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg3: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg4: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg5: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg6: tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<1x64x16xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %3 = stablehlo.divide %arg1, %2 : tensor<1x16xf32>
    %4 = stablehlo.divide %arg2, %2 : tensor<1x16xf32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %6 = stablehlo.divide %arg3, %5 : tensor<1x16x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %8 = stablehlo.divide %arg4, %7 : tensor<1x16x48xf32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %10 = stablehlo.divide %arg5, %9 : tensor<1x16x64xf32>
    %11 = stablehlo.multiply %1, %1 : tensor<1x64x16xf32>
    %12 = stablehlo.reduce(%11 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x64x16xf32>, tensor<f32>) -> tensor<f32>
    %13 = stablehlo.multiply %3, %3 : tensor<1x16xf32>
    %14 = stablehlo.reduce(%13 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %15 = stablehlo.multiply %4, %4 : tensor<1x16xf32>
    %16 = stablehlo.reduce(%15 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %17 = stablehlo.multiply %6, %6 : tensor<1x16x16xf32>
    %18 = stablehlo.reduce(%17 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x16xf32>, tensor<f32>) -> tensor<f32>
    %19 = stablehlo.multiply %8, %8 : tensor<1x16x48xf32>
    %20 = stablehlo.reduce(%19 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x48xf32>, tensor<f32>) -> tensor<f32>
    %21 = stablehlo.multiply %10, %10 : tensor<1x16x64xf32>
    %22 = stablehlo.reduce(%21 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x64xf32>, tensor<f32>) -> tensor<f32>
    %23 = stablehlo.add %12, %14 : tensor<f32>
    %24 = stablehlo.add %23, %16 : tensor<f32>
    %25 = stablehlo.add %24, %18 : tensor<f32>
    %26 = stablehlo.add %25, %20 : tensor<f32>
    %27 = stablehlo.add %26, %22 : tensor<f32>
    return %27, %1, %3, %4, %6, %8, %10 : tensor<f32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @update_2(%arg0: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg1: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg3: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg4: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg5: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg6: tensor<f32> {sdy.sharding = #sdy.sharding<@m2, []>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m2, []>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<1x64x16xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %3 = stablehlo.divide %arg1, %2 : tensor<1x16xf32>
    %4 = stablehlo.divide %arg2, %2 : tensor<1x16xf32>
    %5 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %6 = stablehlo.divide %arg3, %5 : tensor<1x16x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %8 = stablehlo.divide %arg4, %7 : tensor<1x16x48xf32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %10 = stablehlo.divide %arg5, %9 : tensor<1x16x64xf32>
    %11 = stablehlo.multiply %1, %1 : tensor<1x64x16xf32>
    %12 = stablehlo.reduce(%11 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x64x16xf32>, tensor<f32>) -> tensor<f32>
    %13 = stablehlo.multiply %3, %3 : tensor<1x16xf32>
    %14 = stablehlo.reduce(%13 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %15 = stablehlo.multiply %4, %4 : tensor<1x16xf32>
    %16 = stablehlo.reduce(%15 init: %arg6) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %17 = stablehlo.multiply %6, %6 : tensor<1x16x16xf32>
    %18 = stablehlo.reduce(%17 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x16xf32>, tensor<f32>) -> tensor<f32>
    %19 = stablehlo.multiply %8, %8 : tensor<1x16x48xf32>
    %20 = stablehlo.reduce(%19 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x48xf32>, tensor<f32>) -> tensor<f32>
    %21 = stablehlo.multiply %10, %10 : tensor<1x16x64xf32>
    %22 = stablehlo.reduce(%21 init: %arg6) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x64xf32>, tensor<f32>) -> tensor<f32>
    %23 = stablehlo.add %12, %14 : tensor<f32>
    %24 = stablehlo.add %23, %16 : tensor<f32>
    %25 = stablehlo.add %24, %18 : tensor<f32>
    %26 = stablehlo.add %25, %20 : tensor<f32>
    %27 = stablehlo.add %26, %22 : tensor<f32>
    return %27, %1, %3, %4, %6, %8, %10 : tensor<f32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @update_3(%arg0: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg1: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg3: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg4: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg5: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg6: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg7: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg8: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %1 = stablehlo.divide %arg0, %0 : tensor<16xf32>
    %2 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %3 = stablehlo.divide %arg1, %2 : tensor<1x64x16xf32>
    %4 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %5 = stablehlo.divide %arg2, %4 : tensor<1x16xf32>
    %6 = stablehlo.divide %arg3, %4 : tensor<1x16xf32>
    %7 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %8 = stablehlo.divide %arg4, %7 : tensor<1x16x16xf32>
    %9 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %10 = stablehlo.divide %arg5, %9 : tensor<1x16x48xf32>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %12 = stablehlo.divide %arg6, %11 : tensor<1x16x64xf32>
    %13 = stablehlo.multiply %1, %1 : tensor<16xf32>
    %14 = stablehlo.reduce(%13 init: %arg7) applies stablehlo.add across dimensions = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
    %15 = stablehlo.multiply %3, %3 : tensor<1x64x16xf32>
    %16 = stablehlo.reduce(%15 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x64x16xf32>, tensor<f32>) -> tensor<f32>
    %17 = stablehlo.multiply %5, %5 : tensor<1x16xf32>
    %18 = stablehlo.reduce(%17 init: %arg7) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %19 = stablehlo.multiply %6, %6 : tensor<1x16xf32>
    %20 = stablehlo.reduce(%19 init: %arg7) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x16xf32>, tensor<f32>) -> tensor<f32>
    %21 = stablehlo.multiply %8, %8 : tensor<1x16x16xf32>
    %22 = stablehlo.reduce(%21 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x16xf32>, tensor<f32>) -> tensor<f32>
    %23 = stablehlo.multiply %10, %10 : tensor<1x16x48xf32>
    %24 = stablehlo.reduce(%23 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x48xf32>, tensor<f32>) -> tensor<f32>
    %25 = stablehlo.multiply %12, %12 : tensor<1x16x64xf32>
    %26 = stablehlo.reduce(%25 init: %arg7) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x16x64xf32>, tensor<f32>) -> tensor<f32>
    %27 = stablehlo.add %14, %16 : tensor<f32>
    %28 = stablehlo.add %27, %18 : tensor<f32>
    %29 = stablehlo.add %28, %20 : tensor<f32>
    %30 = stablehlo.add %29, %22 : tensor<f32>
    %31 = stablehlo.add %30, %24 : tensor<f32>
    %32 = stablehlo.add %31, %26 : tensor<f32>
    %33 = stablehlo.divide %arg8, %cst : tensor<f32>
    return %32, %1, %3, %5, %6, %8, %10, %12, %33 : tensor<f32>, tensor<16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<f32>
  }
  func.func private @update_0_1(%arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg1: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg2: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg3: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg4: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg5: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg6: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg7: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg8: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg9: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.add %arg1, %arg0 : tensor<64x16xf32>
    %cst = stablehlo.constant dense<8.000000e+00> : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %2 = stablehlo.divide %0, %1 : tensor<64x16xf32>
    %3 = stablehlo.multiply %2, %2 : tensor<64x16xf32>
    %4 = stablehlo.reduce(%3 init: %arg2) applies stablehlo.add across dimensions = [0, 1] : (tensor<64x16xf32>, tensor<f32>) -> tensor<f32>
    %5 = stablehlo.add %arg2, %4 : tensor<f32>
    %6 = stablehlo.add %5, %arg3 : tensor<f32>
    %7 = stablehlo.add %6, %arg4 : tensor<f32>
    %8 = stablehlo.add %7, %arg5 : tensor<f32>
    %9 = stablehlo.add %8, %arg6 : tensor<f32>
    %10 = stablehlo.add %9, %arg7 : tensor<f32>
    %11 = stablehlo.add %10, %arg8 : tensor<f32>
    %12 = stablehlo.add %11, %arg9 : tensor<f32>
    return %12, %2 : tensor<f32>, tensor<64x16xf32>
  }
  func.func private @update_3_1(%arg0: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg1: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg2: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg3: tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg4: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg5: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg6: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg7: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg8: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg9: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg10: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg11: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg12: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg13: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg14: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg15: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg16: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg17: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg18: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg19: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg20: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg21: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg22: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg23: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg24: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg25: tensor<i32> {sdy.sharding = #sdy.sharding<@m3, []>}, %arg26: tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, %arg27: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg28: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg29: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, %arg30: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg31: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, %arg32: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}) -> (tensor<f32> {sdy.sharding = #sdy.sharding<@m3, []>}, tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m3, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.add %arg1, %arg0 : tensor<f32>
    %1 = stablehlo.add %0, %arg2 : tensor<f32>
    %2 = stablehlo.add %1, %arg3 : tensor<f32>
    %3 = stablehlo.sqrt %2 : tensor<f32>
    %cst = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %4 = stablehlo.divide %cst, %3 : tensor<f32>
    %5 = stablehlo.minimum %cst, %4 : tensor<f32>
    %6 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %7 = stablehlo.multiply %arg4, %6 : tensor<16xf32>
    %8 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %9 = stablehlo.multiply %arg5, %8 : tensor<1x64x16xf32>
    %10 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %11 = stablehlo.multiply %arg6, %10 : tensor<1x16xf32>
    %12 = stablehlo.multiply %arg7, %10 : tensor<1x16xf32>
    %13 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %14 = stablehlo.multiply %arg8, %13 : tensor<1x16x16xf32>
    %15 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %16 = stablehlo.multiply %arg9, %15 : tensor<1x16x48xf32>
    %17 = stablehlo.broadcast_in_dim %5, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %18 = stablehlo.multiply %arg10, %17 : tensor<1x16x64xf32>
    %cst_0 = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %19 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %20 = stablehlo.multiply %19, %7 : tensor<16xf32>
    %cst_1 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %21 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %22 = stablehlo.multiply %21, %arg11 : tensor<16xf32>
    %23 = stablehlo.add %22, %20 : tensor<16xf32>
    %24 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %25 = stablehlo.multiply %24, %9 : tensor<1x64x16xf32>
    %26 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %27 = stablehlo.multiply %26, %arg12 : tensor<1x64x16xf32>
    %28 = stablehlo.add %27, %25 : tensor<1x64x16xf32>
    %29 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %30 = stablehlo.multiply %29, %11 : tensor<1x16xf32>
    %31 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %32 = stablehlo.multiply %31, %arg13 : tensor<1x16xf32>
    %33 = stablehlo.add %32, %30 : tensor<1x16xf32>
    %34 = stablehlo.multiply %29, %12 : tensor<1x16xf32>
    %35 = stablehlo.multiply %31, %arg14 : tensor<1x16xf32>
    %36 = stablehlo.add %35, %34 : tensor<1x16xf32>
    %37 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %38 = stablehlo.multiply %37, %14 : tensor<1x16x16xf32>
    %39 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %40 = stablehlo.multiply %39, %arg15 : tensor<1x16x16xf32>
    %41 = stablehlo.add %40, %38 : tensor<1x16x16xf32>
    %42 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %43 = stablehlo.multiply %42, %16 : tensor<1x16x48xf32>
    %44 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %45 = stablehlo.multiply %44, %arg16 : tensor<1x16x48xf32>
    %46 = stablehlo.add %45, %43 : tensor<1x16x48xf32>
    %47 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %48 = stablehlo.multiply %47, %18 : tensor<1x16x64xf32>
    %49 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %50 = stablehlo.multiply %49, %arg17 : tensor<1x16x64xf32>
    %51 = stablehlo.add %50, %48 : tensor<1x16x64xf32>
    %cst_2 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %52 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %53 = stablehlo.multiply %52, %7 : tensor<16xf32>
    %54 = stablehlo.multiply %53, %7 : tensor<16xf32>
    %cst_3 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %55 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %56 = stablehlo.multiply %55, %arg18 : tensor<16xf32>
    %57 = stablehlo.add %56, %54 : tensor<16xf32>
    %58 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %59 = stablehlo.multiply %58, %9 : tensor<1x64x16xf32>
    %60 = stablehlo.multiply %59, %9 : tensor<1x64x16xf32>
    %61 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %62 = stablehlo.multiply %61, %arg19 : tensor<1x64x16xf32>
    %63 = stablehlo.add %62, %60 : tensor<1x64x16xf32>
    %64 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %65 = stablehlo.multiply %64, %11 : tensor<1x16xf32>
    %66 = stablehlo.multiply %65, %11 : tensor<1x16xf32>
    %67 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %68 = stablehlo.multiply %67, %arg20 : tensor<1x16xf32>
    %69 = stablehlo.add %68, %66 : tensor<1x16xf32>
    %70 = stablehlo.multiply %64, %12 : tensor<1x16xf32>
    %71 = stablehlo.multiply %70, %12 : tensor<1x16xf32>
    %72 = stablehlo.multiply %67, %arg21 : tensor<1x16xf32>
    %73 = stablehlo.add %72, %71 : tensor<1x16xf32>
    %74 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %75 = stablehlo.multiply %74, %14 : tensor<1x16x16xf32>
    %76 = stablehlo.multiply %75, %14 : tensor<1x16x16xf32>
    %77 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %78 = stablehlo.multiply %77, %arg22 : tensor<1x16x16xf32>
    %79 = stablehlo.add %78, %76 : tensor<1x16x16xf32>
    %80 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %81 = stablehlo.multiply %80, %16 : tensor<1x16x48xf32>
    %82 = stablehlo.multiply %81, %16 : tensor<1x16x48xf32>
    %83 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %84 = stablehlo.multiply %83, %arg23 : tensor<1x16x48xf32>
    %85 = stablehlo.add %84, %82 : tensor<1x16x48xf32>
    %86 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %87 = stablehlo.multiply %86, %18 : tensor<1x16x64xf32>
    %88 = stablehlo.multiply %87, %18 : tensor<1x16x64xf32>
    %89 = stablehlo.broadcast_in_dim %cst_3, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %90 = stablehlo.multiply %89, %arg24 : tensor<1x16x64xf32>
    %91 = stablehlo.add %90, %88 : tensor<1x16x64xf32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %92 = stablehlo.add %arg25, %c : tensor<i32>
    %93 = stablehlo.convert %92 : (tensor<i32>) -> tensor<f32>
    %94 = stablehlo.power %cst_1, %93 : tensor<f32>
    %95 = stablehlo.subtract %cst, %94 : tensor<f32>
    %96 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %97 = stablehlo.divide %23, %96 : tensor<16xf32>
    %98 = stablehlo.power %cst_3, %93 : tensor<f32>
    %99 = stablehlo.subtract %cst, %98 : tensor<f32>
    %100 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %101 = stablehlo.divide %57, %100 : tensor<16xf32>
    %102 = stablehlo.sqrt %101 : tensor<16xf32>
    %cst_4 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %104 = stablehlo.add %102, %103 : tensor<16xf32>
    %105 = stablehlo.divide %97, %104 : tensor<16xf32>
    %106 = stablehlo.multiply %19, %arg26 : tensor<16xf32>
    %107 = stablehlo.add %105, %106 : tensor<16xf32>
    %cst_5 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %108 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<16xf32>
    %109 = stablehlo.multiply %108, %107 : tensor<16xf32>
    %110 = stablehlo.subtract %arg26, %109 : tensor<16xf32>
    %111 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %112 = stablehlo.divide %28, %111 : tensor<1x64x16xf32>
    %113 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %114 = stablehlo.divide %63, %113 : tensor<1x64x16xf32>
    %115 = stablehlo.sqrt %114 : tensor<1x64x16xf32>
    %116 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %117 = stablehlo.add %115, %116 : tensor<1x64x16xf32>
    %118 = stablehlo.divide %112, %117 : tensor<1x64x16xf32>
    %119 = stablehlo.multiply %24, %arg27 : tensor<1x64x16xf32>
    %120 = stablehlo.add %118, %119 : tensor<1x64x16xf32>
    %121 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %122 = stablehlo.multiply %121, %120 : tensor<1x64x16xf32>
    %123 = stablehlo.subtract %arg27, %122 : tensor<1x64x16xf32>
    %124 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %125 = stablehlo.divide %33, %124 : tensor<1x16xf32>
    %126 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %127 = stablehlo.divide %69, %126 : tensor<1x16xf32>
    %128 = stablehlo.sqrt %127 : tensor<1x16xf32>
    %129 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %130 = stablehlo.add %128, %129 : tensor<1x16xf32>
    %131 = stablehlo.divide %125, %130 : tensor<1x16xf32>
    %132 = stablehlo.multiply %29, %arg28 : tensor<1x16xf32>
    %133 = stablehlo.add %131, %132 : tensor<1x16xf32>
    %134 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %135 = stablehlo.multiply %134, %133 : tensor<1x16xf32>
    %136 = stablehlo.subtract %arg28, %135 : tensor<1x16xf32>
    %137 = stablehlo.divide %36, %124 : tensor<1x16xf32>
    %138 = stablehlo.divide %73, %126 : tensor<1x16xf32>
    %139 = stablehlo.sqrt %138 : tensor<1x16xf32>
    %140 = stablehlo.add %139, %129 : tensor<1x16xf32>
    %141 = stablehlo.divide %137, %140 : tensor<1x16xf32>
    %142 = stablehlo.multiply %29, %arg29 : tensor<1x16xf32>
    %143 = stablehlo.add %141, %142 : tensor<1x16xf32>
    %144 = stablehlo.multiply %134, %143 : tensor<1x16xf32>
    %145 = stablehlo.subtract %arg29, %144 : tensor<1x16xf32>
    %146 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %147 = stablehlo.divide %41, %146 : tensor<1x16x16xf32>
    %148 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %149 = stablehlo.divide %79, %148 : tensor<1x16x16xf32>
    %150 = stablehlo.sqrt %149 : tensor<1x16x16xf32>
    %151 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %152 = stablehlo.add %150, %151 : tensor<1x16x16xf32>
    %153 = stablehlo.divide %147, %152 : tensor<1x16x16xf32>
    %154 = stablehlo.multiply %37, %arg30 : tensor<1x16x16xf32>
    %155 = stablehlo.add %153, %154 : tensor<1x16x16xf32>
    %156 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %157 = stablehlo.multiply %156, %155 : tensor<1x16x16xf32>
    %158 = stablehlo.subtract %arg30, %157 : tensor<1x16x16xf32>
    %159 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %160 = stablehlo.divide %46, %159 : tensor<1x16x48xf32>
    %161 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %162 = stablehlo.divide %85, %161 : tensor<1x16x48xf32>
    %163 = stablehlo.sqrt %162 : tensor<1x16x48xf32>
    %164 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %165 = stablehlo.add %163, %164 : tensor<1x16x48xf32>
    %166 = stablehlo.divide %160, %165 : tensor<1x16x48xf32>
    %167 = stablehlo.multiply %42, %arg31 : tensor<1x16x48xf32>
    %168 = stablehlo.add %166, %167 : tensor<1x16x48xf32>
    %169 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %170 = stablehlo.multiply %169, %168 : tensor<1x16x48xf32>
    %171 = stablehlo.subtract %arg31, %170 : tensor<1x16x48xf32>
    %172 = stablehlo.broadcast_in_dim %95, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %173 = stablehlo.divide %51, %172 : tensor<1x16x64xf32>
    %174 = stablehlo.broadcast_in_dim %99, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %175 = stablehlo.divide %91, %174 : tensor<1x16x64xf32>
    %176 = stablehlo.sqrt %175 : tensor<1x16x64xf32>
    %177 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %178 = stablehlo.add %176, %177 : tensor<1x16x64xf32>
    %179 = stablehlo.divide %173, %178 : tensor<1x16x64xf32>
    %180 = stablehlo.multiply %47, %arg32 : tensor<1x16x64xf32>
    %181 = stablehlo.add %179, %180 : tensor<1x16x64xf32>
    %182 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %183 = stablehlo.multiply %182, %181 : tensor<1x16x64xf32>
    %184 = stablehlo.subtract %arg32, %183 : tensor<1x16x64xf32>
    return %5, %23, %28, %33, %36, %41, %46, %51, %110, %123, %136, %145, %158, %171, %184, %57, %63, %69, %73, %79, %85, %91 : tensor<f32>, tensor<16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @update_0_2(%arg0: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg1: tensor<f32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg2: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg3: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg4: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg5: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg6: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg7: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg8: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg9: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg10: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg11: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg12: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg13: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg14: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg15: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg16: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg17: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg18: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg19: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg20: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg21: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg22: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg23: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg24: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg25: tensor<i32> {sdy.sharding = #sdy.sharding<@m0, []>}, %arg26: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg27: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg28: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg29: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg30: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, %arg31: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg32: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, %arg33: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}) -> (tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m0, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<64x16xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %3 = stablehlo.multiply %arg2, %2 : tensor<8x16xf32>
    %4 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %5 = stablehlo.multiply %arg3, %4 : tensor<1x64x16xf32>
    %6 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %7 = stablehlo.multiply %arg4, %6 : tensor<1x16xf32>
    %8 = stablehlo.multiply %arg5, %6 : tensor<1x16xf32>
    %9 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %10 = stablehlo.multiply %arg6, %9 : tensor<1x16x16xf32>
    %11 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %12 = stablehlo.multiply %arg7, %11 : tensor<1x16x48xf32>
    %13 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %14 = stablehlo.multiply %arg8, %13 : tensor<1x16x64xf32>
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %15 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %16 = stablehlo.multiply %15, %1 : tensor<64x16xf32>
    %cst_0 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %17 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %18 = stablehlo.multiply %17, %arg9 : tensor<64x16xf32>
    %19 = stablehlo.add %18, %16 : tensor<64x16xf32>
    %20 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %21 = stablehlo.multiply %20, %3 : tensor<8x16xf32>
    %22 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %23 = stablehlo.multiply %22, %arg10 : tensor<8x16xf32>
    %24 = stablehlo.add %23, %21 : tensor<8x16xf32>
    %25 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %26 = stablehlo.multiply %25, %5 : tensor<1x64x16xf32>
    %27 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %28 = stablehlo.multiply %27, %arg11 : tensor<1x64x16xf32>
    %29 = stablehlo.add %28, %26 : tensor<1x64x16xf32>
    %30 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %31 = stablehlo.multiply %30, %7 : tensor<1x16xf32>
    %32 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %33 = stablehlo.multiply %32, %arg12 : tensor<1x16xf32>
    %34 = stablehlo.add %33, %31 : tensor<1x16xf32>
    %35 = stablehlo.multiply %30, %8 : tensor<1x16xf32>
    %36 = stablehlo.multiply %32, %arg13 : tensor<1x16xf32>
    %37 = stablehlo.add %36, %35 : tensor<1x16xf32>
    %38 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %39 = stablehlo.multiply %38, %10 : tensor<1x16x16xf32>
    %40 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %41 = stablehlo.multiply %40, %arg14 : tensor<1x16x16xf32>
    %42 = stablehlo.add %41, %39 : tensor<1x16x16xf32>
    %43 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %44 = stablehlo.multiply %43, %12 : tensor<1x16x48xf32>
    %45 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %46 = stablehlo.multiply %45, %arg15 : tensor<1x16x48xf32>
    %47 = stablehlo.add %46, %44 : tensor<1x16x48xf32>
    %48 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %49 = stablehlo.multiply %48, %14 : tensor<1x16x64xf32>
    %50 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %51 = stablehlo.multiply %50, %arg16 : tensor<1x16x64xf32>
    %52 = stablehlo.add %51, %49 : tensor<1x16x64xf32>
    %cst_1 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %53 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %54 = stablehlo.multiply %53, %1 : tensor<64x16xf32>
    %55 = stablehlo.multiply %54, %1 : tensor<64x16xf32>
    %cst_2 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %56 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %57 = stablehlo.multiply %56, %arg17 : tensor<64x16xf32>
    %58 = stablehlo.add %57, %55 : tensor<64x16xf32>
    %59 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %60 = stablehlo.multiply %59, %3 : tensor<8x16xf32>
    %61 = stablehlo.multiply %60, %3 : tensor<8x16xf32>
    %62 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %63 = stablehlo.multiply %62, %arg18 : tensor<8x16xf32>
    %64 = stablehlo.add %63, %61 : tensor<8x16xf32>
    %65 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %66 = stablehlo.multiply %65, %5 : tensor<1x64x16xf32>
    %67 = stablehlo.multiply %66, %5 : tensor<1x64x16xf32>
    %68 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %69 = stablehlo.multiply %68, %arg19 : tensor<1x64x16xf32>
    %70 = stablehlo.add %69, %67 : tensor<1x64x16xf32>
    %71 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %72 = stablehlo.multiply %71, %7 : tensor<1x16xf32>
    %73 = stablehlo.multiply %72, %7 : tensor<1x16xf32>
    %74 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %75 = stablehlo.multiply %74, %arg20 : tensor<1x16xf32>
    %76 = stablehlo.add %75, %73 : tensor<1x16xf32>
    %77 = stablehlo.multiply %71, %8 : tensor<1x16xf32>
    %78 = stablehlo.multiply %77, %8 : tensor<1x16xf32>
    %79 = stablehlo.multiply %74, %arg21 : tensor<1x16xf32>
    %80 = stablehlo.add %79, %78 : tensor<1x16xf32>
    %81 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %82 = stablehlo.multiply %81, %10 : tensor<1x16x16xf32>
    %83 = stablehlo.multiply %82, %10 : tensor<1x16x16xf32>
    %84 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %85 = stablehlo.multiply %84, %arg22 : tensor<1x16x16xf32>
    %86 = stablehlo.add %85, %83 : tensor<1x16x16xf32>
    %87 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %88 = stablehlo.multiply %87, %12 : tensor<1x16x48xf32>
    %89 = stablehlo.multiply %88, %12 : tensor<1x16x48xf32>
    %90 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %91 = stablehlo.multiply %90, %arg23 : tensor<1x16x48xf32>
    %92 = stablehlo.add %91, %89 : tensor<1x16x48xf32>
    %93 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %94 = stablehlo.multiply %93, %14 : tensor<1x16x64xf32>
    %95 = stablehlo.multiply %94, %14 : tensor<1x16x64xf32>
    %96 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %97 = stablehlo.multiply %96, %arg24 : tensor<1x16x64xf32>
    %98 = stablehlo.add %97, %95 : tensor<1x16x64xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %99 = stablehlo.add %arg25, %c : tensor<i32>
    %100 = stablehlo.convert %99 : (tensor<i32>) -> tensor<f32>
    %101 = stablehlo.power %cst_0, %100 : tensor<f32>
    %102 = stablehlo.subtract %cst_3, %101 : tensor<f32>
    %103 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %104 = stablehlo.divide %19, %103 : tensor<64x16xf32>
    %105 = stablehlo.power %cst_2, %100 : tensor<f32>
    %106 = stablehlo.subtract %cst_3, %105 : tensor<f32>
    %107 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %108 = stablehlo.divide %58, %107 : tensor<64x16xf32>
    %109 = stablehlo.sqrt %108 : tensor<64x16xf32>
    %cst_4 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %110 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %111 = stablehlo.add %109, %110 : tensor<64x16xf32>
    %112 = stablehlo.divide %104, %111 : tensor<64x16xf32>
    %113 = stablehlo.multiply %15, %arg26 : tensor<64x16xf32>
    %114 = stablehlo.add %112, %113 : tensor<64x16xf32>
    %cst_5 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %115 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<64x16xf32>
    %116 = stablehlo.multiply %115, %114 : tensor<64x16xf32>
    %117 = stablehlo.subtract %arg26, %116 : tensor<64x16xf32>
    %118 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %119 = stablehlo.divide %24, %118 : tensor<8x16xf32>
    %120 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %121 = stablehlo.divide %64, %120 : tensor<8x16xf32>
    %122 = stablehlo.sqrt %121 : tensor<8x16xf32>
    %123 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %124 = stablehlo.add %122, %123 : tensor<8x16xf32>
    %125 = stablehlo.divide %119, %124 : tensor<8x16xf32>
    %126 = stablehlo.multiply %20, %arg27 : tensor<8x16xf32>
    %127 = stablehlo.add %125, %126 : tensor<8x16xf32>
    %128 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %129 = stablehlo.multiply %128, %127 : tensor<8x16xf32>
    %130 = stablehlo.subtract %arg27, %129 : tensor<8x16xf32>
    %131 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %132 = stablehlo.divide %29, %131 : tensor<1x64x16xf32>
    %133 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %134 = stablehlo.divide %70, %133 : tensor<1x64x16xf32>
    %135 = stablehlo.sqrt %134 : tensor<1x64x16xf32>
    %136 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %137 = stablehlo.add %135, %136 : tensor<1x64x16xf32>
    %138 = stablehlo.divide %132, %137 : tensor<1x64x16xf32>
    %139 = stablehlo.multiply %25, %arg28 : tensor<1x64x16xf32>
    %140 = stablehlo.add %138, %139 : tensor<1x64x16xf32>
    %141 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %142 = stablehlo.multiply %141, %140 : tensor<1x64x16xf32>
    %143 = stablehlo.subtract %arg28, %142 : tensor<1x64x16xf32>
    %144 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %145 = stablehlo.divide %34, %144 : tensor<1x16xf32>
    %146 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %147 = stablehlo.divide %76, %146 : tensor<1x16xf32>
    %148 = stablehlo.sqrt %147 : tensor<1x16xf32>
    %149 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %150 = stablehlo.add %148, %149 : tensor<1x16xf32>
    %151 = stablehlo.divide %145, %150 : tensor<1x16xf32>
    %152 = stablehlo.multiply %30, %arg29 : tensor<1x16xf32>
    %153 = stablehlo.add %151, %152 : tensor<1x16xf32>
    %154 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %155 = stablehlo.multiply %154, %153 : tensor<1x16xf32>
    %156 = stablehlo.subtract %arg29, %155 : tensor<1x16xf32>
    %157 = stablehlo.divide %37, %144 : tensor<1x16xf32>
    %158 = stablehlo.divide %80, %146 : tensor<1x16xf32>
    %159 = stablehlo.sqrt %158 : tensor<1x16xf32>
    %160 = stablehlo.add %159, %149 : tensor<1x16xf32>
    %161 = stablehlo.divide %157, %160 : tensor<1x16xf32>
    %162 = stablehlo.multiply %30, %arg30 : tensor<1x16xf32>
    %163 = stablehlo.add %161, %162 : tensor<1x16xf32>
    %164 = stablehlo.multiply %154, %163 : tensor<1x16xf32>
    %165 = stablehlo.subtract %arg30, %164 : tensor<1x16xf32>
    %166 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %167 = stablehlo.divide %42, %166 : tensor<1x16x16xf32>
    %168 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %169 = stablehlo.divide %86, %168 : tensor<1x16x16xf32>
    %170 = stablehlo.sqrt %169 : tensor<1x16x16xf32>
    %171 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %172 = stablehlo.add %170, %171 : tensor<1x16x16xf32>
    %173 = stablehlo.divide %167, %172 : tensor<1x16x16xf32>
    %174 = stablehlo.multiply %38, %arg31 : tensor<1x16x16xf32>
    %175 = stablehlo.add %173, %174 : tensor<1x16x16xf32>
    %176 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %177 = stablehlo.multiply %176, %175 : tensor<1x16x16xf32>
    %178 = stablehlo.subtract %arg31, %177 : tensor<1x16x16xf32>
    %179 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %180 = stablehlo.divide %47, %179 : tensor<1x16x48xf32>
    %181 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %182 = stablehlo.divide %92, %181 : tensor<1x16x48xf32>
    %183 = stablehlo.sqrt %182 : tensor<1x16x48xf32>
    %184 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %185 = stablehlo.add %183, %184 : tensor<1x16x48xf32>
    %186 = stablehlo.divide %180, %185 : tensor<1x16x48xf32>
    %187 = stablehlo.multiply %43, %arg32 : tensor<1x16x48xf32>
    %188 = stablehlo.add %186, %187 : tensor<1x16x48xf32>
    %189 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %190 = stablehlo.multiply %189, %188 : tensor<1x16x48xf32>
    %191 = stablehlo.subtract %arg32, %190 : tensor<1x16x48xf32>
    %192 = stablehlo.broadcast_in_dim %102, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %193 = stablehlo.divide %52, %192 : tensor<1x16x64xf32>
    %194 = stablehlo.broadcast_in_dim %106, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %195 = stablehlo.divide %98, %194 : tensor<1x16x64xf32>
    %196 = stablehlo.sqrt %195 : tensor<1x16x64xf32>
    %197 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %198 = stablehlo.add %196, %197 : tensor<1x16x64xf32>
    %199 = stablehlo.divide %193, %198 : tensor<1x16x64xf32>
    %200 = stablehlo.multiply %48, %arg33 : tensor<1x16x64xf32>
    %201 = stablehlo.add %199, %200 : tensor<1x16x64xf32>
    %202 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %203 = stablehlo.multiply %202, %201 : tensor<1x16x64xf32>
    %204 = stablehlo.subtract %arg33, %203 : tensor<1x16x64xf32>
    return %19, %24, %29, %34, %37, %42, %47, %52, %117, %130, %143, %156, %165, %178, %191, %204, %58, %64, %70, %76, %80, %86, %92, %98 : tensor<64x16xf32>, tensor<8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<64x16xf32>, tensor<8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<64x16xf32>, tensor<8x16xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @update_1_1(%arg0: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg1: tensor<f32> {sdy.sharding = #sdy.sharding<@m1, []>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg3: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg4: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg5: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg6: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg7: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg8: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg9: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg10: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg11: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg12: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg13: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg14: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg15: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg16: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg17: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg18: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg19: tensor<i32> {sdy.sharding = #sdy.sharding<@m1, []>}, %arg20: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg21: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg22: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, %arg23: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg24: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, %arg25: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) -> (tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m1, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<1x64x16xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %3 = stablehlo.multiply %arg2, %2 : tensor<1x16xf32>
    %4 = stablehlo.multiply %arg3, %2 : tensor<1x16xf32>
    %5 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %6 = stablehlo.multiply %arg4, %5 : tensor<1x16x16xf32>
    %7 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %8 = stablehlo.multiply %arg5, %7 : tensor<1x16x48xf32>
    %9 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %10 = stablehlo.multiply %arg6, %9 : tensor<1x16x64xf32>
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %12 = stablehlo.multiply %11, %1 : tensor<1x64x16xf32>
    %cst_0 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %14 = stablehlo.multiply %13, %arg7 : tensor<1x64x16xf32>
    %15 = stablehlo.add %14, %12 : tensor<1x64x16xf32>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %17 = stablehlo.multiply %16, %3 : tensor<1x16xf32>
    %18 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %19 = stablehlo.multiply %18, %arg8 : tensor<1x16xf32>
    %20 = stablehlo.add %19, %17 : tensor<1x16xf32>
    %21 = stablehlo.multiply %16, %4 : tensor<1x16xf32>
    %22 = stablehlo.multiply %18, %arg9 : tensor<1x16xf32>
    %23 = stablehlo.add %22, %21 : tensor<1x16xf32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %25 = stablehlo.multiply %24, %6 : tensor<1x16x16xf32>
    %26 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %27 = stablehlo.multiply %26, %arg10 : tensor<1x16x16xf32>
    %28 = stablehlo.add %27, %25 : tensor<1x16x16xf32>
    %29 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %30 = stablehlo.multiply %29, %8 : tensor<1x16x48xf32>
    %31 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %32 = stablehlo.multiply %31, %arg11 : tensor<1x16x48xf32>
    %33 = stablehlo.add %32, %30 : tensor<1x16x48xf32>
    %34 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %35 = stablehlo.multiply %34, %10 : tensor<1x16x64xf32>
    %36 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %37 = stablehlo.multiply %36, %arg12 : tensor<1x16x64xf32>
    %38 = stablehlo.add %37, %35 : tensor<1x16x64xf32>
    %cst_1 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %40 = stablehlo.multiply %39, %1 : tensor<1x64x16xf32>
    %41 = stablehlo.multiply %40, %1 : tensor<1x64x16xf32>
    %cst_2 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %43 = stablehlo.multiply %42, %arg13 : tensor<1x64x16xf32>
    %44 = stablehlo.add %43, %41 : tensor<1x64x16xf32>
    %45 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %46 = stablehlo.multiply %45, %3 : tensor<1x16xf32>
    %47 = stablehlo.multiply %46, %3 : tensor<1x16xf32>
    %48 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %49 = stablehlo.multiply %48, %arg14 : tensor<1x16xf32>
    %50 = stablehlo.add %49, %47 : tensor<1x16xf32>
    %51 = stablehlo.multiply %45, %4 : tensor<1x16xf32>
    %52 = stablehlo.multiply %51, %4 : tensor<1x16xf32>
    %53 = stablehlo.multiply %48, %arg15 : tensor<1x16xf32>
    %54 = stablehlo.add %53, %52 : tensor<1x16xf32>
    %55 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %56 = stablehlo.multiply %55, %6 : tensor<1x16x16xf32>
    %57 = stablehlo.multiply %56, %6 : tensor<1x16x16xf32>
    %58 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %59 = stablehlo.multiply %58, %arg16 : tensor<1x16x16xf32>
    %60 = stablehlo.add %59, %57 : tensor<1x16x16xf32>
    %61 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %62 = stablehlo.multiply %61, %8 : tensor<1x16x48xf32>
    %63 = stablehlo.multiply %62, %8 : tensor<1x16x48xf32>
    %64 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %65 = stablehlo.multiply %64, %arg17 : tensor<1x16x48xf32>
    %66 = stablehlo.add %65, %63 : tensor<1x16x48xf32>
    %67 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %68 = stablehlo.multiply %67, %10 : tensor<1x16x64xf32>
    %69 = stablehlo.multiply %68, %10 : tensor<1x16x64xf32>
    %70 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %71 = stablehlo.multiply %70, %arg18 : tensor<1x16x64xf32>
    %72 = stablehlo.add %71, %69 : tensor<1x16x64xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %73 = stablehlo.add %arg19, %c : tensor<i32>
    %74 = stablehlo.convert %73 : (tensor<i32>) -> tensor<f32>
    %75 = stablehlo.power %cst_0, %74 : tensor<f32>
    %76 = stablehlo.subtract %cst_3, %75 : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %78 = stablehlo.divide %15, %77 : tensor<1x64x16xf32>
    %79 = stablehlo.power %cst_2, %74 : tensor<f32>
    %80 = stablehlo.subtract %cst_3, %79 : tensor<f32>
    %81 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %82 = stablehlo.divide %44, %81 : tensor<1x64x16xf32>
    %83 = stablehlo.sqrt %82 : tensor<1x64x16xf32>
    %cst_4 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %85 = stablehlo.add %83, %84 : tensor<1x64x16xf32>
    %86 = stablehlo.divide %78, %85 : tensor<1x64x16xf32>
    %87 = stablehlo.multiply %11, %arg20 : tensor<1x64x16xf32>
    %88 = stablehlo.add %86, %87 : tensor<1x64x16xf32>
    %cst_5 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %89 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %90 = stablehlo.multiply %89, %88 : tensor<1x64x16xf32>
    %91 = stablehlo.subtract %arg20, %90 : tensor<1x64x16xf32>
    %92 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %93 = stablehlo.divide %20, %92 : tensor<1x16xf32>
    %94 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %95 = stablehlo.divide %50, %94 : tensor<1x16xf32>
    %96 = stablehlo.sqrt %95 : tensor<1x16xf32>
    %97 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %98 = stablehlo.add %96, %97 : tensor<1x16xf32>
    %99 = stablehlo.divide %93, %98 : tensor<1x16xf32>
    %100 = stablehlo.multiply %16, %arg21 : tensor<1x16xf32>
    %101 = stablehlo.add %99, %100 : tensor<1x16xf32>
    %102 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %103 = stablehlo.multiply %102, %101 : tensor<1x16xf32>
    %104 = stablehlo.subtract %arg21, %103 : tensor<1x16xf32>
    %105 = stablehlo.divide %23, %92 : tensor<1x16xf32>
    %106 = stablehlo.divide %54, %94 : tensor<1x16xf32>
    %107 = stablehlo.sqrt %106 : tensor<1x16xf32>
    %108 = stablehlo.add %107, %97 : tensor<1x16xf32>
    %109 = stablehlo.divide %105, %108 : tensor<1x16xf32>
    %110 = stablehlo.multiply %16, %arg22 : tensor<1x16xf32>
    %111 = stablehlo.add %109, %110 : tensor<1x16xf32>
    %112 = stablehlo.multiply %102, %111 : tensor<1x16xf32>
    %113 = stablehlo.subtract %arg22, %112 : tensor<1x16xf32>
    %114 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %115 = stablehlo.divide %28, %114 : tensor<1x16x16xf32>
    %116 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %117 = stablehlo.divide %60, %116 : tensor<1x16x16xf32>
    %118 = stablehlo.sqrt %117 : tensor<1x16x16xf32>
    %119 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %120 = stablehlo.add %118, %119 : tensor<1x16x16xf32>
    %121 = stablehlo.divide %115, %120 : tensor<1x16x16xf32>
    %122 = stablehlo.multiply %24, %arg23 : tensor<1x16x16xf32>
    %123 = stablehlo.add %121, %122 : tensor<1x16x16xf32>
    %124 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %125 = stablehlo.multiply %124, %123 : tensor<1x16x16xf32>
    %126 = stablehlo.subtract %arg23, %125 : tensor<1x16x16xf32>
    %127 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %128 = stablehlo.divide %33, %127 : tensor<1x16x48xf32>
    %129 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %130 = stablehlo.divide %66, %129 : tensor<1x16x48xf32>
    %131 = stablehlo.sqrt %130 : tensor<1x16x48xf32>
    %132 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %133 = stablehlo.add %131, %132 : tensor<1x16x48xf32>
    %134 = stablehlo.divide %128, %133 : tensor<1x16x48xf32>
    %135 = stablehlo.multiply %29, %arg24 : tensor<1x16x48xf32>
    %136 = stablehlo.add %134, %135 : tensor<1x16x48xf32>
    %137 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %138 = stablehlo.multiply %137, %136 : tensor<1x16x48xf32>
    %139 = stablehlo.subtract %arg24, %138 : tensor<1x16x48xf32>
    %140 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %141 = stablehlo.divide %38, %140 : tensor<1x16x64xf32>
    %142 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %143 = stablehlo.divide %72, %142 : tensor<1x16x64xf32>
    %144 = stablehlo.sqrt %143 : tensor<1x16x64xf32>
    %145 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %146 = stablehlo.add %144, %145 : tensor<1x16x64xf32>
    %147 = stablehlo.divide %141, %146 : tensor<1x16x64xf32>
    %148 = stablehlo.multiply %34, %arg25 : tensor<1x16x64xf32>
    %149 = stablehlo.add %147, %148 : tensor<1x16x64xf32>
    %150 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %151 = stablehlo.multiply %150, %149 : tensor<1x16x64xf32>
    %152 = stablehlo.subtract %arg25, %151 : tensor<1x16x64xf32>
    return %15, %20, %23, %28, %33, %38, %91, %104, %113, %126, %139, %152, %44, %50, %54, %60, %66, %72 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
  func.func private @update_2_1(%arg0: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg1: tensor<f32> {sdy.sharding = #sdy.sharding<@m2, []>}, %arg2: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg3: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg4: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg5: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg6: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg7: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg8: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg9: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg10: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg11: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg12: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg13: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg14: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg15: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg16: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg17: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg18: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg19: tensor<i32> {sdy.sharding = #sdy.sharding<@m2, []>}, %arg20: tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg21: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg22: tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, %arg23: tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg24: tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, %arg25: tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) -> (tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x64x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}]>}, tensor<1x16x16xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x48xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}, tensor<1x16x64xf32> {sdy.sharding = #sdy.sharding<@m2, [{}, {}, {}]>}) attributes {mesh_shape = #sdy.mesh<["data"=2, "tensor"=1]>} {
    %0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %1 = stablehlo.multiply %arg0, %0 : tensor<1x64x16xf32>
    %2 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %3 = stablehlo.multiply %arg2, %2 : tensor<1x16xf32>
    %4 = stablehlo.multiply %arg3, %2 : tensor<1x16xf32>
    %5 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %6 = stablehlo.multiply %arg4, %5 : tensor<1x16x16xf32>
    %7 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %8 = stablehlo.multiply %arg5, %7 : tensor<1x16x48xf32>
    %9 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %10 = stablehlo.multiply %arg6, %9 : tensor<1x16x64xf32>
    %cst = stablehlo.constant dense<1.000000e-01> : tensor<f32>
    %11 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %12 = stablehlo.multiply %11, %1 : tensor<1x64x16xf32>
    %cst_0 = stablehlo.constant dense<0.899999976> : tensor<f32>
    %13 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %14 = stablehlo.multiply %13, %arg7 : tensor<1x64x16xf32>
    %15 = stablehlo.add %14, %12 : tensor<1x64x16xf32>
    %16 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %17 = stablehlo.multiply %16, %3 : tensor<1x16xf32>
    %18 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %19 = stablehlo.multiply %18, %arg8 : tensor<1x16xf32>
    %20 = stablehlo.add %19, %17 : tensor<1x16xf32>
    %21 = stablehlo.multiply %16, %4 : tensor<1x16xf32>
    %22 = stablehlo.multiply %18, %arg9 : tensor<1x16xf32>
    %23 = stablehlo.add %22, %21 : tensor<1x16xf32>
    %24 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %25 = stablehlo.multiply %24, %6 : tensor<1x16x16xf32>
    %26 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %27 = stablehlo.multiply %26, %arg10 : tensor<1x16x16xf32>
    %28 = stablehlo.add %27, %25 : tensor<1x16x16xf32>
    %29 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %30 = stablehlo.multiply %29, %8 : tensor<1x16x48xf32>
    %31 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %32 = stablehlo.multiply %31, %arg11 : tensor<1x16x48xf32>
    %33 = stablehlo.add %32, %30 : tensor<1x16x48xf32>
    %34 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %35 = stablehlo.multiply %34, %10 : tensor<1x16x64xf32>
    %36 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %37 = stablehlo.multiply %36, %arg12 : tensor<1x16x64xf32>
    %38 = stablehlo.add %37, %35 : tensor<1x16x64xf32>
    %cst_1 = stablehlo.constant dense<5.000000e-02> : tensor<f32>
    %39 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %40 = stablehlo.multiply %39, %1 : tensor<1x64x16xf32>
    %41 = stablehlo.multiply %40, %1 : tensor<1x64x16xf32>
    %cst_2 = stablehlo.constant dense<0.949999988> : tensor<f32>
    %42 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %43 = stablehlo.multiply %42, %arg13 : tensor<1x64x16xf32>
    %44 = stablehlo.add %43, %41 : tensor<1x64x16xf32>
    %45 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %46 = stablehlo.multiply %45, %3 : tensor<1x16xf32>
    %47 = stablehlo.multiply %46, %3 : tensor<1x16xf32>
    %48 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %49 = stablehlo.multiply %48, %arg14 : tensor<1x16xf32>
    %50 = stablehlo.add %49, %47 : tensor<1x16xf32>
    %51 = stablehlo.multiply %45, %4 : tensor<1x16xf32>
    %52 = stablehlo.multiply %51, %4 : tensor<1x16xf32>
    %53 = stablehlo.multiply %48, %arg15 : tensor<1x16xf32>
    %54 = stablehlo.add %53, %52 : tensor<1x16xf32>
    %55 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %56 = stablehlo.multiply %55, %6 : tensor<1x16x16xf32>
    %57 = stablehlo.multiply %56, %6 : tensor<1x16x16xf32>
    %58 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %59 = stablehlo.multiply %58, %arg16 : tensor<1x16x16xf32>
    %60 = stablehlo.add %59, %57 : tensor<1x16x16xf32>
    %61 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %62 = stablehlo.multiply %61, %8 : tensor<1x16x48xf32>
    %63 = stablehlo.multiply %62, %8 : tensor<1x16x48xf32>
    %64 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %65 = stablehlo.multiply %64, %arg17 : tensor<1x16x48xf32>
    %66 = stablehlo.add %65, %63 : tensor<1x16x48xf32>
    %67 = stablehlo.broadcast_in_dim %cst_1, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %68 = stablehlo.multiply %67, %10 : tensor<1x16x64xf32>
    %69 = stablehlo.multiply %68, %10 : tensor<1x16x64xf32>
    %70 = stablehlo.broadcast_in_dim %cst_2, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %71 = stablehlo.multiply %70, %arg18 : tensor<1x16x64xf32>
    %72 = stablehlo.add %71, %69 : tensor<1x16x64xf32>
    %cst_3 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %c = stablehlo.constant dense<1> : tensor<i32>
    %73 = stablehlo.add %arg19, %c : tensor<i32>
    %74 = stablehlo.convert %73 : (tensor<i32>) -> tensor<f32>
    %75 = stablehlo.power %cst_0, %74 : tensor<f32>
    %76 = stablehlo.subtract %cst_3, %75 : tensor<f32>
    %77 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %78 = stablehlo.divide %15, %77 : tensor<1x64x16xf32>
    %79 = stablehlo.power %cst_2, %74 : tensor<f32>
    %80 = stablehlo.subtract %cst_3, %79 : tensor<f32>
    %81 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %82 = stablehlo.divide %44, %81 : tensor<1x64x16xf32>
    %83 = stablehlo.sqrt %82 : tensor<1x64x16xf32>
    %cst_4 = stablehlo.constant dense<9.99999993E-9> : tensor<f32>
    %84 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %85 = stablehlo.add %83, %84 : tensor<1x64x16xf32>
    %86 = stablehlo.divide %78, %85 : tensor<1x64x16xf32>
    %87 = stablehlo.multiply %11, %arg20 : tensor<1x64x16xf32>
    %88 = stablehlo.add %86, %87 : tensor<1x64x16xf32>
    %cst_5 = stablehlo.constant dense<1.000000e-03> : tensor<f32>
    %89 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x64x16xf32>
    %90 = stablehlo.multiply %89, %88 : tensor<1x64x16xf32>
    %91 = stablehlo.subtract %arg20, %90 : tensor<1x64x16xf32>
    %92 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %93 = stablehlo.divide %20, %92 : tensor<1x16xf32>
    %94 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %95 = stablehlo.divide %50, %94 : tensor<1x16xf32>
    %96 = stablehlo.sqrt %95 : tensor<1x16xf32>
    %97 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %98 = stablehlo.add %96, %97 : tensor<1x16xf32>
    %99 = stablehlo.divide %93, %98 : tensor<1x16xf32>
    %100 = stablehlo.multiply %16, %arg21 : tensor<1x16xf32>
    %101 = stablehlo.add %99, %100 : tensor<1x16xf32>
    %102 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16xf32>
    %103 = stablehlo.multiply %102, %101 : tensor<1x16xf32>
    %104 = stablehlo.subtract %arg21, %103 : tensor<1x16xf32>
    %105 = stablehlo.divide %23, %92 : tensor<1x16xf32>
    %106 = stablehlo.divide %54, %94 : tensor<1x16xf32>
    %107 = stablehlo.sqrt %106 : tensor<1x16xf32>
    %108 = stablehlo.add %107, %97 : tensor<1x16xf32>
    %109 = stablehlo.divide %105, %108 : tensor<1x16xf32>
    %110 = stablehlo.multiply %16, %arg22 : tensor<1x16xf32>
    %111 = stablehlo.add %109, %110 : tensor<1x16xf32>
    %112 = stablehlo.multiply %102, %111 : tensor<1x16xf32>
    %113 = stablehlo.subtract %arg22, %112 : tensor<1x16xf32>
    %114 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %115 = stablehlo.divide %28, %114 : tensor<1x16x16xf32>
    %116 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %117 = stablehlo.divide %60, %116 : tensor<1x16x16xf32>
    %118 = stablehlo.sqrt %117 : tensor<1x16x16xf32>
    %119 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %120 = stablehlo.add %118, %119 : tensor<1x16x16xf32>
    %121 = stablehlo.divide %115, %120 : tensor<1x16x16xf32>
    %122 = stablehlo.multiply %24, %arg23 : tensor<1x16x16xf32>
    %123 = stablehlo.add %121, %122 : tensor<1x16x16xf32>
    %124 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x16xf32>
    %125 = stablehlo.multiply %124, %123 : tensor<1x16x16xf32>
    %126 = stablehlo.subtract %arg23, %125 : tensor<1x16x16xf32>
    %127 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %128 = stablehlo.divide %33, %127 : tensor<1x16x48xf32>
    %129 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %130 = stablehlo.divide %66, %129 : tensor<1x16x48xf32>
    %131 = stablehlo.sqrt %130 : tensor<1x16x48xf32>
    %132 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %133 = stablehlo.add %131, %132 : tensor<1x16x48xf32>
    %134 = stablehlo.divide %128, %133 : tensor<1x16x48xf32>
    %135 = stablehlo.multiply %29, %arg24 : tensor<1x16x48xf32>
    %136 = stablehlo.add %134, %135 : tensor<1x16x48xf32>
    %137 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x48xf32>
    %138 = stablehlo.multiply %137, %136 : tensor<1x16x48xf32>
    %139 = stablehlo.subtract %arg24, %138 : tensor<1x16x48xf32>
    %140 = stablehlo.broadcast_in_dim %76, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %141 = stablehlo.divide %38, %140 : tensor<1x16x64xf32>
    %142 = stablehlo.broadcast_in_dim %80, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %143 = stablehlo.divide %72, %142 : tensor<1x16x64xf32>
    %144 = stablehlo.sqrt %143 : tensor<1x16x64xf32>
    %145 = stablehlo.broadcast_in_dim %cst_4, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %146 = stablehlo.add %144, %145 : tensor<1x16x64xf32>
    %147 = stablehlo.divide %141, %146 : tensor<1x16x64xf32>
    %148 = stablehlo.multiply %34, %arg25 : tensor<1x16x64xf32>
    %149 = stablehlo.add %147, %148 : tensor<1x16x64xf32>
    %150 = stablehlo.broadcast_in_dim %cst_5, dims = [] : (tensor<f32>) -> tensor<1x16x64xf32>
    %151 = stablehlo.multiply %150, %149 : tensor<1x16x64xf32>
    %152 = stablehlo.subtract %arg25, %151 : tensor<1x16x64xf32>
    return %15, %20, %23, %28, %33, %38, %91, %104, %113, %126, %139, %152, %44, %50, %54, %60, %66, %72 : tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>, tensor<1x64x16xf32>, tensor<1x16xf32>, tensor<1x16xf32>, tensor<1x16x16xf32>, tensor<1x16x48xf32>, tensor<1x16x64xf32>
  }
}
