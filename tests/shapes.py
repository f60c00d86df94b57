"""Small models as MLIR text, one dispatch each, of any shape: what families are tested on."""

from __future__ import annotations

from collections.abc import Sequence


def tensor(shape: Sequence[int], dtype: str = "f32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def contraction(
    sizes: dict[str, int],
    lhs: str = "mk",
    rhs: str = "kn",
    out: str = "mn",
    consumer: str = "",
    dtype: str = "f32",
    accumulator: str = "f32",
) -> str:
    """`out = lhs x rhs`, operands stored in any order of their letters (b, m, n, k)."""
    letters = [letter for letter in "bmnk" if letter in lhs + rhs + out]
    renumbered = {letter: f"d{position}" for position, letter in enumerate(letters)}
    loops = ", ".join(renumbered.values())
    maps = ", ".join(
        f"affine_map<({loops}) -> ({', '.join(renumbered[letter] for letter in word)})>" for word in (lhs, rhs, out)
    )
    kinds = ", ".join('"reduction"' if letter == "k" else '"parallel"' for letter in letters)
    types = {word: tensor([sizes[letter] for letter in word], dtype) for word in (lhs, rhs)}
    result = tensor([sizes[letter] for letter in out], accumulator)
    scalar = "f" if accumulator.startswith("f") else "i"
    widen = {"f16": "arith.extf", "bf16": "arith.extf", "i8": "arith.extsi"}.get(dtype, "")
    cast = "".join(f"%{x}w = {widen} %{x} : {dtype} to {accumulator}\n" for x in ("x", "y")) if widen else ""
    x, y = ("%xw", "%yw") if widen else ("%x", "%y")
    zero = "0.0" if scalar == "f" else "0"
    body = f"""
  %zero = arith.constant {zero} : {accumulator}
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : {accumulator}) outs(%empty : {result}) -> {result}
  %root = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}}
      ins(%lhs, %rhs : {types[lhs]}, {types[rhs]}) outs(%init : {result}) {{
  ^bb0(%x: {dtype}, %y: {dtype}, %acc: {accumulator}):
    {cast}%p = arith.mul{scalar} {x}, {y} : {accumulator}
    %s = arith.add{scalar} %acc, %p : {accumulator}
    linalg.yield %s : {accumulator}
  }} -> {result}"""
    return _function(
        f"%lhs: {types[lhs]}, %rhs: {types[rhs]}", body, result, consumer, len(out), accumulator, sizes[out[-1]]
    )


def convolution(
    channels: int,
    filters: int,
    size: int,
    kernel: int,
    stride: int = 1,
    dilation: int = 1,
    consumer: str = "",
    batch: int = 1,
) -> str:
    """A 2-D convolution over NCHW images; `size` is the result's."""
    span = (size - 1) * stride + (kernel - 1) * dilation + 1
    image, weights = tensor([batch, channels, span, span]), tensor([filters, channels, kernel, kernel])
    result = tensor([batch, filters, size, size])
    body = f"""
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %root = linalg.conv_2d_nchw_fchw {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<{dilation}> : tensor<2xi64>}}
      ins(%lhs, %rhs : {image}, {weights}) outs(%init : {result}) -> {result}"""
    return _function(f"%lhs: {image}, %rhs: {weights}", body, result, consumer, 4, "f32", size)


def convolution_nhwc(channels: int, filters: int, size: int, kernel: int, stride: int = 1, consumer: str = "") -> str:
    """A 2-D convolution with channels last, of one batch."""
    span = (size - 1) * stride + kernel
    image, weights = tensor([1, span, span, channels]), tensor([kernel, kernel, channels, filters])
    result = tensor([1, size, size, filters])
    body = f"""
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %root = linalg.conv_2d_nhwc_hwcf {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%lhs, %rhs : {image}, {weights}) outs(%init : {result}) -> {result}"""
    return _function(f"%lhs: {image}, %rhs: {weights}", body, result, consumer, 4, "f32", filters)


def convolution_panels(
    channels: int, panels: int, lanes: int, size: int, kernel: int, stride: int = 1, consumer: str = ""
) -> str:
    """A 2-D convolution with channels last, of one batch, whose filters are cut into panels of output channels."""
    span = (size - 1) * stride + kernel
    image, weights = tensor([span, span, channels]), tensor([panels, kernel, kernel, channels, lanes])
    result = tensor([size, size, panels, lanes])
    loops, step = "(y, x, p, l, h, w, c)", f" * {stride}" if stride > 1 else ""
    maps = [f"(y{step} + h, x{step} + w, c)", "(p, h, w, c, l)", "(y, x, p, l)"]
    kinds = ", ".join(['"parallel"'] * 4 + ['"reduction"'] * 3)
    body = f"""
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %root = linalg.generic {{
      indexing_maps = [{", ".join(f"affine_map<{loops} -> {each}>" for each in maps)}], iterator_types = [{kinds}]}}
      ins(%lhs, %rhs : {image}, {weights}) outs(%init : {result}) {{
  ^bb0(%a: f32, %b: f32, %c: f32):
    %p = arith.mulf %a, %b : f32
    %s = arith.addf %c, %p : f32
    linalg.yield %s : f32
  }} -> {result}"""
    return _function(f"%lhs: {image}, %rhs: {weights}", body, result, consumer, 4, "f32", lanes)


def convolution_grouped(groups: int, channels: int, filters: int, size: int, kernel: int, consumer: str = "") -> str:
    """A 2-D convolution in groups, NCHW, of one batch."""
    span = size + kernel - 1
    image, weights = tensor([1, groups, channels, span, span]), tensor([groups, filters, channels, kernel, kernel])
    result = tensor([1, groups, filters, size, size])
    body = f"""
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %root = linalg.conv_2d_ngchw_gfchw {{strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%lhs, %rhs : {image}, {weights}) outs(%init : {result}) -> {result}"""
    return _function(f"%lhs: {image}, %rhs: {weights}", body, result, consumer, 5, "f32", size)


def depthwise(channels: int, size: int, kernel: int, stride: int = 1, consumer: str = "") -> str:
    """A depthwise 2-D convolution over an NCHW image of one batch."""
    span = (size - 1) * stride + kernel
    image, weights = tensor([1, channels, span, span]), tensor([channels, kernel, kernel])
    result = tensor([1, channels, size, size])
    body = f"""
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %root = linalg.depthwise_conv_2d_nchw_chw {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%lhs, %rhs : {image}, {weights}) outs(%init : {result}) -> {result}"""
    return _function(f"%lhs: {image}, %rhs: {weights}", body, result, consumer, 4, "f32", size)


def pooling(
    channels: int, size: int, kernel: int, stride: int = 1, kind: str = "max", consumer: str = "", batch: int = 1
) -> str:
    """Maxima (`max`) or sums (`sum`) over windows of an NCHW image; `size` is the result's."""
    side = (size - 1) * stride + kernel
    image, window = tensor([batch, channels, side, side]), tensor([kernel, kernel])
    result = tensor([batch, channels, size, size])
    body = f"""
  %zero = arith.constant {"0xFF800000" if kind == "max" else "0.0"} : f32
  %empty = tensor.empty() : {result}
  %init = linalg.fill ins(%zero : f32) outs(%empty : {result}) -> {result}
  %window = tensor.empty() : {window}
  %root = linalg.pooling_nchw_{kind} {{strides = dense<{stride}> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}}
      ins(%lhs, %window : {image}, {window}) outs(%init : {result}) -> {result}"""
    return _function(f"%lhs: {image}", body, result, consumer, 4, "f32", size)


def _function(arguments: str, body: str, result: str, consumer: str, rank: int, dtype: str, innermost: int) -> str:
    """Wrap a root; `consumer` is empty, `relu`, or `bias` (along the innermost dimension, then relu)."""
    value, bias = "%root", tensor([innermost], dtype)
    if consumer:
        dims = ", ".join(f"d{index}" for index in range(rank))
        identity = f"affine_map<({dims}) -> ({dims})>"
        last = f"affine_map<({dims}) -> (d{rank - 1})>"
        with_bias = consumer == "bias"
        arguments += f", %bias: {bias}" if with_bias else ""
        ins = f"%root, %bias : {result}, {bias}" if with_bias else f"%root : {result}"
        maps = f"{identity}, {last}, {identity}" if with_bias else f"{identity}, {identity}"
        block = f"%r: {dtype}, %b: {dtype}, %o: {dtype}" if with_bias else f"%r: {dtype}, %o: {dtype}"
        add = f"%t = arith.addf %r, %b : {dtype}" if with_bias else f"%t = arith.addf %r, %r : {dtype}"
        kinds = ", ".join(['"parallel"'] * rank)
        body += f"""
  %out = tensor.empty() : {result}
  %act = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{kinds}]}} ins({ins}) outs(%out : {result}) {{
  ^bb0({block}):
    {add}
    %m = arith.maximumf %t, %zero : {dtype}
    linalg.yield %m : {dtype}
  }} -> {result}"""
        value = "%act"
    return f"func.func @main({arguments}) -> {result} {{{body}\n  return {value} : {result}\n}}\n"


def attention(heads: int, rows: int, columns: int, depth: int, keys: int) -> str:
    """Attention without a mask: queries (heads, rows, depth), keys (heads, keys, depth), values (heads, keys, columns)."""
    query, key = tensor([heads, rows, depth]), tensor([heads, keys, depth])
    value, result = tensor([heads, keys, columns]), tensor([heads, rows, columns])
    words = ["d0, d1, d3", "d0, d4, d3", "d0, d4, d2", "", "d0, d1, d2"]
    maps = ", ".join(f"affine_map<(d0, d1, d2, d3, d4) -> ({word})>" for word in words)
    return f"""func.func @main(%q: {query}, %k: {key}, %v: {value}) -> {result} {{
  %scale = arith.constant 0.125 : f32
  %empty = tensor.empty() : {result}
  %o = iree_linalg_ext.attention <indexing_maps = [{maps}]>
      ins(%q, %k, %v, %scale : {query}, {key}, {value}, f32) outs(%empty : {result}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {result}
  return %o : {result}
}}
"""
