// One dispatch with a dynamic shape beside one that can be tuned.
func.func @main(%a: tensor<?x64xf32>, %b: tensor<64x64xf32>) -> (tensor<?x64xf32>, tensor<64x64xf32>) {
  %x = arith.mulf %a, %a : tensor<?x64xf32>
  %y = math.exp %b : tensor<64x64xf32>
  return %x, %y : tensor<?x64xf32>, tensor<64x64xf32>
}
