"""Matchers hit the dispatches of their key, and known look-alikes: near misses side by side, and a full matrix over real models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from random import Random

import iree.runtime as runtime
import numpy as np
import pytest

from tcl_iree.errors import LibraryError
from tcl_iree.frontend import Extraction, Model, extract, load_model
from tcl_iree.frontend.extract import ELIDE
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.target import Target
from tcl_iree.transform_dialect.configured import configured_forms, default_configurations
from tcl_iree.transform_dialect.library import Library, Tuned
from tcl_iree.transform_dialect.library_text import MATCHED, library_flags
from tcl_iree.transform_dialect.matcher import matcher
from tcl_iree.transform_dialect.names import MARKER
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.apply import LOOK_ALIKES, SHARED, apply_library
from tcl_iree.workload.model import Workload

_MARK = Schedule.of("mark")


def library_of(extractions: Iterable[Extraction], target: Target) -> Library:
    """Every workload, with a schedule that does nothing but leave its mark."""
    script = Script(_MARK)
    script.annotate(script.function, MARKER)
    text = script.text().replace("transform.consumed", "transform.readonly")
    loads = {entry.workload.key: entry.workload for made in extractions for entry in made.dispatches}
    return Library.build(target, [Tuned(load, _MARK, text) for load in loads.values()])


def all_hits(model: Model, library: Library, tmp_path: Path) -> dict[str, set[str]]:
    """Every matcher's answer on every dispatch function: the keys that hit it. (A library itself stops at the first.)"""
    text = re.sub(r"transform\.match\.operation_empty %(taken|found)_.*", "", library.text())
    for entry in library.entries:
        mark = f'%key = transform.param.constant "{entry.key}" -> !transform.any_param'
        before, found, after = text.partition(mark)
        assert found
        text = before + found + after.replace(f'"{MATCHED}"', f'"hit.{entry.key}"', 1)
    path, output = tmp_path / "all.mlir", tmp_path / "configured.mlir"
    path.write_text(text)
    used = [*library_flags(path), "--compile-to=executable-configurations", *ELIDE]
    assert "error:" not in compile_model(model.path, [*library.header.compile_flags, *used], output)
    found = re.findall(r"func\.func @([^\s(]+)\(\)(?: attributes \{([^\n]*)\})? \{\n", output.read_text())
    return {name: set(re.findall(r"\bhit\.(\w+)", attributes)) for name, attributes in found}


def assert_exact(models: Iterable[Model], target: Target, tmp_path: Path) -> list[Extraction]:
    """One library of all workloads of all models, compiled into each model: every matcher against every dispatch."""
    models = list(models)
    extractions = [extract(model, target) for model in models]
    library = library_of(extractions, target)
    path = tmp_path / "library.mlir"
    path.write_text(library.text())
    for model, extraction in zip(models, extractions, strict=True):
        expected = {name: {entry.workload.key} for entry in extraction.dispatches for name in entry.names}
        hits = all_hits(model, library, tmp_path)
        assert expected
        assert {name: keys for name, keys in hits.items() if keys} == expected
        assert {entry.name for entry in extraction.untunable if entry.occurrences} <= set(hits)
        report = apply_library(model, target, path, tmp_path / f"{model.name}.vmfb")
        report.require_applied()
        assert {name: {part.entry.key} for part in report.parts for name in part.applied} == expected
    return extractions


def _dispatch(
    name: str, body: str = "addf(x, y)", dims: tuple[int, int, int] = (32, 48, 64), rhs: str = "(m, n, k) -> (k, n)",
    dtype: str = "f32", y: str = "(m, n) -> (n)", constant: float = 1.5, in_dtype: str = "",
) -> str:  # fmt: skip
    """A contraction with an elementwise consumer, as one function."""
    m, n, k = dims
    given = in_dtype or dtype
    transposed = rhs.endswith("(n, k)")
    b = f"tensor<{n}x{k}x{given}>" if transposed else f"tensor<{k}x{n}x{given}>"
    other = {"(m, n) -> (n)": f"tensor<{n}x{dtype}>", "(m, n) -> (m)": f"tensor<{m}x{dtype}>"}[y]
    out = f"tensor<{m}x{n}x{dtype}>"
    extend = [f"%{v}e = arith.extf %{v} : {given} to {dtype}" for v in "pq"] if given != dtype else []
    p, q = ("pe", "qe") if extend else ("p", "q")
    maps = "affine_map<(m, n, k) -> (m, k)>, affine_map<" + rhs + ">, affine_map<(m, n, k) -> (m, n)>"
    ops = {
        "addf(x, y)": ["%r = arith.addf %x, %y : T"],
        "subf(x, y)": ["%r = arith.subf %x, %y : T"],
        "addf(x, const)": ["%s = arith.addf %x, %y : T", "%r = arith.addf %s, %c : T"],
        "mulf(x, const)": ["%s = arith.addf %x, %y : T", "%r = arith.mulf %s, %c : T"],
        "subf(const, x)": ["%s = arith.addf %x, %y : T", "%r = arith.subf %c, %s : T"],
        "(x - y) + const": ["%s = arith.subf %x, %y : T", "%r = arith.addf %s, %c : T"],
        "(y - x) + const": ["%s = arith.subf %y, %x : T", "%r = arith.addf %s, %c : T"],
        "relu": ["%s = arith.addf %x, %y : T", "%r = arith.maximumf %s, %c : T"],
        "twice": ["%s = arith.addf %x, %y : T", "%t = arith.addf %s, %c : T", "%r = arith.mulf %t, %c : T"],
    }[body]
    lines = "\n      ".join(op.replace("T", dtype) for op in ops)
    return f"""
func.func @{name}(%a: tensor<{m}x{k}x{given}>, %b: {b}, %bias: {other}) -> {out} {{
  %c = arith.constant {constant} : {dtype}
  %zero = arith.constant 0.0 : {dtype}
  %empty = tensor.empty() : {out}
  %init = linalg.fill ins(%zero : {dtype}) outs(%empty : {out}) -> {out}
  %product = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel", "reduction"]}}
      ins(%a, %b : tensor<{m}x{k}x{given}>, {b}) outs(%init : {out}) {{
    ^bb0(%p: {given}, %q: {given}, %acc: {dtype}):
      {" ".join(extend)}
      %mul = arith.mulf %{p}, %{q} : {dtype}
      %add = arith.addf %acc, %mul : {dtype}
      linalg.yield %add : {dtype}
  }} -> {out}
  %result = linalg.generic {{
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<{y}>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}}
      ins(%product, %bias : {out}, {other}) outs(%empty : {out}) {{
    ^bb0(%x: {dtype}, %y: {dtype}, %o: {dtype}):
      {lines}
      linalg.yield %r : {dtype}
  }} -> {out}
  return %result : {out}
}}"""


_NEAR_MISSES = [
    _dispatch("bias"),
    _dispatch("difference", "subf(x, y)"),
    _dispatch("constant", "addf(x, const)"),
    _dispatch("same_key", "addf(x, const)", constant=2.5),
    _dispatch("product", "mulf(x, const)"),
    _dispatch("reversed", "subf(const, x)"),
    _dispatch("relu", "relu"),
    _dispatch("twice", "twice"),
    _dispatch("other_rows", dims=(64, 48, 64)),
    _dispatch("other_depth", dims=(32, 48, 32)),
    _dispatch("swapped_sizes", dims=(48, 32, 64)),
    _dispatch("transposed", rhs="(m, n, k) -> (n, k)"),
    _dispatch("by_row", y="(m, n) -> (m)"),
    _dispatch("square", dims=(32, 32, 32)),
    _dispatch("square_by_row", dims=(32, 32, 32), y="(m, n) -> (m)"),
    _dispatch("square_transposed", rhs="(m, n, k) -> (n, k)", dims=(32, 32, 32)),
    _dispatch("half", dtype="f16"),
    _dispatch("half_in", in_dtype="f16"),
    # What the compiler rewrites before a library sees it, several results, and values captured from outside.
    """
func.func @softmax(%a: tensor<24x40xf32>) -> tensor<24x40xf32> {
  %empty = tensor.empty() : tensor<24x40xf32>
  %r = linalg.softmax dimension(1) ins(%a : tensor<24x40xf32>) outs(%empty : tensor<24x40xf32>) -> tensor<24x40xf32>
  return %r : tensor<24x40xf32>
}""",
    """
func.func @gather(%table: tensor<100x40xf32>, %rows: tensor<24xi32>) -> tensor<24x40xf32> {
  %empty = tensor.empty() : tensor<24x40xf32>
  %r = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      ins(%rows : tensor<24xi32>) outs(%empty : tensor<24x40xf32>) {
    ^bb0(%row: i32, %o: f32):
      %i = arith.index_cast %row : i32 to index
      %j = linalg.index 1 : index
      %x = tensor.extract %table[%i, %j] : tensor<100x40xf32>
      linalg.yield %x : f32
  } -> tensor<24x40xf32>
  return %r : tensor<24x40xf32>
}""",
    """
func.func @both(%a: tensor<24x40xf32>, %b: tensor<24x40xf32>) -> (tensor<24x40xf32>, tensor<24x40xf32>) {
  %empty = tensor.empty() : tensor<24x40xf32>
  %r:2 = linalg.generic {
      indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>,
                       affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : tensor<24x40xf32>, tensor<24x40xf32>) outs(%empty, %empty : tensor<24x40xf32>, tensor<24x40xf32>) {
    ^bb0(%x: f32, %y: f32, %o: f32, %p: f32):
      %s = arith.addf %x, %y : f32
      %d = arith.subf %x, %y : f32
      linalg.yield %s, %d : f32, f32
  } -> (tensor<24x40xf32>, tensor<24x40xf32>)
  return %r#0, %r#1 : tensor<24x40xf32>, tensor<24x40xf32>
}""",
]


def test_near_misses_are_told_apart(target: Target, tmp_path: Path, data: Path) -> None:
    path = tmp_path / "near.mlir"
    path.write_text("\n".join(_NEAR_MISSES))
    near, _ = assert_exact([load_model(path), load_model(data / "matmul_bias_relu.mlir")], target, tmp_path)
    # Only the value of a constant differs between two of them.
    assert len(near.dispatches) == len(_NEAR_MISSES) - 1


def test_look_alikes_are_reported_as_such(target: Target, tmp_path: Path) -> None:
    path, file, out = tmp_path / "alike.mlir", tmp_path / "library.mlir", tmp_path / "out.vmfb"
    bodies = {"one": "(x - y) + const", "other": "(y - x) + const"}
    path.write_text("\n".join(_dispatch(name, body) for name, body in bodies.items()))
    model = load_model(path)
    extraction = extract(model, target)
    load = extraction.dispatches[0].workload
    space = Space(load, target)
    schedule = next(entry for entry in space.samples(Random(0)) if entry.family != "config")
    file.write_text(Library.build(target, [Tuned(load, schedule, space.script(schedule))]).text())
    report = apply_library(model, target, file, out)
    report.require_applied()
    (part,) = report.parts
    assert (part.status, len(part.dispatches), len(part.applied), report.left) == (LOOK_ALIKES, 1, 2, ())
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((32, 64), (64, 48), (48,)))
    module = runtime.load_vm_flatbuffer_file(str(out), driver="local-sync")
    np.testing.assert_allclose(module.one(a, b, bias).to_host(), (a @ b - bias) + 1.5, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(module.other(a, b, bias).to_host(), (bias - a @ b) + 1.5, rtol=1e-4, atol=1e-4)
    both = library_of([extraction], target)
    file.write_text(both.text())
    report = apply_library(model, target, file, out)
    report.require_applied()
    assert [(part.status, part.took_effect) for part in report.parts] == [(LOOK_ALIKES, True), (SHARED, False)]


@pytest.mark.parametrize("name", ["cuda:sm_80", "vulkan"])
def test_near_misses_are_told_apart_on_gpus(name: str, tmp_path: Path) -> None:
    target = Target.parse(name)
    path = tmp_path / "near.mlir"
    path.write_text("\n".join(_NEAR_MISSES[:12]))
    model = load_model(path)
    extraction = extract(model, target)
    hits = all_hits(model, library_of([extraction], target), tmp_path)
    assert hits == {name: {entry.workload.key} for entry in extraction.dispatches for name in entry.names}


@pytest.mark.long
def test_full_matrix_over_real_models(target: Target, tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    names = ("mobilenet-v2", "resnet-50", "bert-base", "gpt2-small")
    assert_exact([load_model(f"zoo:{name}") for name in names], target, tmp_path)


def test_a_dispatch_without_stores_cannot_be_matched() -> None:
    with pytest.raises(LibraryError, match="stores no tensor"):
        matcher("module { func.func @dispatch() { return } }", "match")


@pytest.mark.parametrize("ask", [configured_forms, default_configurations])
def test_bad_flags_are_named(ask: Callable[..., list[str]], matmul: object, target: Target) -> None:
    with pytest.raises(LibraryError, match="cannot configure"):
        ask([matmul], target, ["--no-such-flag"])


@pytest.mark.parametrize("name", ["cpu,threads=1", "cuda:sm_80"])
def test_iree_tells_how_it_configures_each_dispatch_by_itself(name: str, matmul: Workload) -> None:
    one, other = default_configurations([matmul, matmul], Target.parse(name))
    assert one == other
    assert one.startswith("func.func\n  translation_info = #iree_codegen.translation_info<pipeline = ")
    assert "\n  lowering_config = " in one
    assert default_configurations([], Target.parse(name)) == []
