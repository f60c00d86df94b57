"""Small models as MLIR text, one dispatch each: elementwise ops, row-wise work and attention of any shape."""

from __future__ import annotations

from collections.abc import Sequence

from shapes import tensor


def _map(rank: int, results: Sequence[int]) -> str:
    loops = ", ".join(f"d{loop}" for loop in range(rank))
    return f"affine_map<({loops}) -> ({', '.join(f'd{loop}' for loop in results)})>"


def elementwise(sizes: Sequence[int], reads: Sequence[Sequence[int]], writes: Sequence[int], results: int = 1) -> str:
    """`result = exp(x) / (sum of the operands)`; operands and result are stored by any order of (some of) the loops."""
    rank = len(sizes)
    types = [tensor([sizes[loop] for loop in loops]) for loops in reads]
    made = tensor([sizes[loop] for loop in writes])
    maps = ", ".join([*(_map(rank, loops) for loops in reads), *[_map(rank, writes)] * results])
    arguments = ", ".join(f"%a{index}: {given}" for index, given in enumerate(types))
    scalars = ", ".join([f"%x{index}: f32" for index in range(len(types))] + [f"%o{i}: f32" for i in range(results)])
    sums = "\n".join(f"%s{i + 1} = arith.addf %s{i}, %x{i} : f32" for i in range(len(types)))
    every = ", ".join([made] * results)
    return f"""func.func @main({arguments}) -> ({every}) {{
  %empty = tensor.empty() : {made}
  %r:{results} = linalg.generic {{indexing_maps = [{maps}], iterator_types = [{", ".join(['"parallel"'] * rank)}]}}
      ins({", ".join(f"%a{i}" for i in range(len(types)))} : {", ".join(types)})
      outs({", ".join(["%empty"] * results)} : {every}) {{
  ^bb0({scalars}):
    %s0 = math.exp %x0 : f32
    {sums}
    %y = arith.divf %s0, %s{len(types)} : f32
    linalg.yield {", ".join(["%y"] * results)} : {", ".join(["f32"] * results)}
  }} -> ({every})
  return {", ".join(f"%r#{i}" for i in range(results))} : {every}
}}"""


def reduction(
    sizes: Sequence[int], reduced: Sequence[int], order: Sequence[int], maximum: bool = False, centred: bool = False
) -> str:
    """Sum of squares or maximum over some loops of a tensor stored in `order`; if centred, taken from each element."""
    rank = len(sizes)
    kept = [loop for loop in order if loop not in reduced]
    given, made = tensor([sizes[loop] for loop in order]), tensor([sizes[loop] for loop in kept])
    kinds = ", ".join('"reduction"' if loop in reduced else '"parallel"' for loop in range(rank))
    step = "%y = arith.maximumf %x, %acc : f32" if maximum else "%q = arith.mulf %x, %x : f32\n"
    step += "" if maximum else "    %y = arith.addf %q, %acc : f32"
    rest = f"return %r : {made}"
    if centred:
        rest = f"""%out = tensor.empty() : {given}
  %s = linalg.generic {{indexing_maps = [{_map(rank, order)}, {_map(rank, kept)}, {_map(rank, order)}],
      iterator_types = [{", ".join(['"parallel"'] * rank)}]}} ins(%a, %r : {given}, {made}) outs(%out : {given}) {{
  ^bb0(%x: f32, %m: f32, %o: f32):
    %y = arith.subf %x, %m : f32
    linalg.yield %y : f32
  }} -> {given}
  return %s : {given}"""
    return f"""func.func @main(%a: {given}) -> {given if centred else made} {{
  %first = arith.constant {"0xFF800000" if maximum else "0.0"} : f32
  %empty = tensor.empty() : {made}
  %init = linalg.fill ins(%first : f32) outs(%empty : {made}) -> {made}
  %r = linalg.generic {{indexing_maps = [{_map(rank, order)}, {_map(rank, kept)}], iterator_types = [{kinds}]}}
      ins(%a : {given}) outs(%init : {made}) {{
  ^bb0(%x: f32, %acc: f32):
    {step}
    linalg.yield %y : f32
  }} -> {made}
  {rest}
}}"""


def softmax(shape: Sequence[int], dimension: int) -> str:
    """Softmax over one dimension."""
    kind = tensor(shape)
    return f"""func.func @main(%a: {kind}) -> {kind} {{
  %empty = tensor.empty() : {kind}
  %r = linalg.softmax dimension({dimension}) ins(%a : {kind}) outs(%empty : {kind}) -> {kind}
  return %r : {kind}
}}"""


def attention(heads: Sequence[int], m: int, n: int, k1: int, k2: int, masked: bool = False, values: str = "kn") -> str:
    """Scaled attention; `values` says whether rows or columns of the values come first."""
    rank = len(heads) + 4
    batch = list(range(rank - 4))
    loops = {"m": rank - 4, "n": rank - 3, "c": rank - 2, "k": rank - 1}
    sizes = {"m": m, "n": n, "c": k1, "k": k2}
    words = ["mc", "kc", values, *(["mk"] if masked else []), "mn"]
    types = [tensor([*heads, *(sizes[letter] for letter in word)]) for word in words]
    maps = [_map(rank, [*batch, *(loops[letter] for letter in word)]) for word in words]
    maps.insert(3, _map(rank, []))
    inputs, result = types[:-1], types[-1]
    names = [f"%a{index}" for index in range(len(inputs))]
    operands = [*names[:3], "%scale", *names[3:]]
    kinds = [*inputs[:3], "f32", *inputs[3:]]
    return f"""func.func @main({", ".join(f"{a}: {t}" for a, t in zip(names, inputs, strict=True))}) -> {result} {{
  %scale = arith.constant 0.25 : f32
  %empty = tensor.empty() : {result}
  %r = iree_linalg_ext.attention <indexing_maps = [{", ".join(maps)}]>
      ins({", ".join(operands)} : {", ".join(kinds)}) outs(%empty : {result}) {{
  ^bb0(%score: f32):
    iree_linalg_ext.yield %score : f32
  }} -> {result}
  return %r : {result}
}}"""


def normalisation(rows: int, columns: int) -> str:
    """Each row less its mean, over the root of its mean square: two sums that start from one fill."""
    given, made = tensor([rows, columns]), tensor([rows])
    whole, row = _map(2, (0, 1)), _map(2, (0,))
    reduced = f'{{indexing_maps = [{whole}, {row}], iterator_types = ["parallel", "reduction"]}}'
    each = f'{{indexing_maps = [{whole}, {row}, {whole}], iterator_types = ["parallel", "parallel"]}}'
    return f"""func.func @main(%a: {given}) -> {given} {{
  %zero = arith.constant 0.0 : f32
  %n = arith.constant {columns}.0 : f32
  %e = tensor.empty() : {made}
  %out = tensor.empty() : {given}
  %init = linalg.fill ins(%zero : f32) outs(%e : {made}) -> {made}
  %sum = linalg.generic {reduced} ins(%a : {given}) outs(%init : {made}) {{
  ^bb0(%x: f32, %acc: f32):
    %y = arith.addf %x, %acc : f32
    linalg.yield %y : f32
  }} -> {made}
  %centred = linalg.generic {each} ins(%a, %sum : {given}, {made}) outs(%out : {given}) {{
  ^bb0(%x: f32, %s: f32, %o: f32):
    %m = arith.divf %s, %n : f32
    %y = arith.subf %x, %m : f32
    linalg.yield %y : f32
  }} -> {given}
  %squares = linalg.generic {reduced} ins(%centred : {given}) outs(%init : {made}) {{
  ^bb0(%x: f32, %acc: f32):
    %q = arith.mulf %x, %x : f32
    %y = arith.addf %q, %acc : f32
    linalg.yield %y : f32
  }} -> {made}
  %result = linalg.generic {each} ins(%centred, %squares : {given}, {made}) outs(%out : {given}) {{
  ^bb0(%x: f32, %s: f32, %o: f32):
    %m = arith.divf %s, %n : f32
    %r = math.rsqrt %m : f32
    %y = arith.mulf %x, %r : f32
    linalg.yield %y : f32
  }} -> {given}
  return %result : {given}
}}"""
