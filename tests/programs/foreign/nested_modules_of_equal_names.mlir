module @outer {
  module @a {
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }
    func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.add %x, %x : tensor<4xf32> return %0 : tensor<4xf32> }
  }
  module @b {
    func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = func.call @f(%x) : (tensor<4xf32>) -> tensor<4xf32> return %0 : tensor<4xf32> }
    func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> { %0 = stablehlo.multiply %x, %x : tensor<4xf32> return %0 : tensor<4xf32> }
  }
}
