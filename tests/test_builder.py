"""Building with the real compiler: what works, and every way it can fail."""

import os
import signal
import threading
from pathlib import Path

import pytest
from conftest import DATA, workload_of
from processes import children, wait_for

from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.measure.cache import ArtifactCache
from tcl_iree.measure.results import BuildResult, FailureKind
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

EMPTY = """module attributes { transform.with_named_sequence } {
  transform.named_sequence @__kernel_config(%op: !transform.any_op {transform.readonly}) { transform.yield }
}"""


def library(name: str) -> Candidate:
    return Candidate((DATA / f"{name}.mlir").read_text())


def test_default_builds_and_is_reproducible(matmul: Workload, target: Target, builder: Builder) -> None:
    first = builder.build_default(matmul)
    with Builder(target, cache=None, workers=1) as other:
        second = other.build_default(matmul)
    assert first.artifact
    assert second.artifact
    assert first.artifact.sha == second.artifact.sha


def test_schedule_is_applied_and_changes_the_code(matmul: Workload, builder: Builder) -> None:
    built = builder.build(matmul, library("tile_matmul"))
    default = builder.build_default(matmul)
    assert built.artifact, built.failure
    assert default.artifact
    assert built.artifact.sha != default.artifact.sha


def test_a_script_without_the_marker_is_proven_by_its_effect(matmul: Workload, builder: Builder) -> None:
    text = library("tile_matmul").text.replace('transform.annotate %op "tcl.applied" : !transform.any_op', "")
    assert builder.build(matmul, Candidate(text)).artifact


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("this is not MLIR", FailureKind.VERIFY_ERROR, "library.mlir:1"),
        (EMPTY.replace("transform.yield", 'transform.nonsense "x"'), FailureKind.VERIFY_ERROR, "nonsense"),
        (EMPTY, FailureKind.NO_MATCH, "default"),
        (
            library("tile_matmul").text.replace('"linalg.matmul"', '"linalg.conv_2d"'),
            FailureKind.NO_MATCH,
            "default",
        ),
        (EMPTY.replace("__kernel_config", "other_name"), FailureKind.COMPILE_ERROR, "__kernel_config"),
        (library("tile_matmul").text.replace("[8, 32, 0]", "[8, 32, 8]"), FailureKind.COMPILE_ERROR, ""),
        (library("crash_compiler").text, FailureKind.CRASH, "SIGSEGV"),
    ],
    ids=["not-mlir", "unknown-op", "empty", "matches-nothing", "no-entry", "bad-config", "compiler-crash"],
)
def test_failures_are_told_apart(text: str, kind: FailureKind, words: str, matmul: Workload, builder: Builder) -> None:
    built = builder.build(matmul, Candidate(text))
    assert built.artifact is None
    assert built.failure
    assert built.failure.kind == kind, built.failure
    assert words in built.failure.detail
    assert builder.build(matmul, library("tile_matmul")).artifact, "the builder goes on after a failure"


@pytest.fixture(scope="module")
def large(target: Target, tmp_path_factory: pytest.TempPathFactory) -> Workload:
    """Too large to be one vector: `compile_forever` does not end on it."""
    text = (
        (DATA / "matmul_bias_relu.mlir").read_text().replace("96", "768").replace("128", "768").replace("64x", "768x")
    )
    return workload_of(text, tmp_path_factory.mktemp("large"), target)


def test_a_compile_that_never_ends_is_stopped(large: Workload, target: Target) -> None:
    with Builder(target, cache=None, workers=1, timeout=4.0) as builder:
        built = builder.build(large, library("compile_forever"))
        assert built.failure
        assert built.failure.kind == FailureKind.COMPILE_TIMEOUT, built.failure
        assert builder.build(large, library("tile_matmul")).artifact


@pytest.mark.parametrize("victim", ["child", "worker"])
def test_sigkill_while_building_costs_one_trial(victim: str, matmul: Workload, target: Target) -> None:
    with Builder(target, cache=None, workers=1) as builder:
        builder.build_default(matmul)
        worker = builder._all_workers[0].pid
        assert worker
        results: list[BuildResult] = []
        thread = threading.Thread(target=lambda: results.append(builder.build(matmul, library("compile_forever"))))
        thread.start()
        assert wait_for(lambda: children(worker))
        child = children(worker)[0]
        os.kill(child if victim == "child" else worker, signal.SIGKILL)
        thread.join()
        assert results[0].failure
        assert results[0].failure.kind == FailureKind.CRASH
        assert wait_for(lambda: not Path(f"/proc/{child}").exists()), "the child outlived its worker"
        assert builder.build(matmul, library("tile_matmul")).artifact


def test_many_builds_keep_their_order(matmul: Workload, builder: Builder) -> None:
    libraries = [library("tile_matmul"), Candidate(EMPTY), library("crash_compiler"), library("tile_matmul")]
    kinds = [built.failure.kind if built.failure else "ok" for built in builder.build_many(matmul, libraries)]
    assert kinds == ["ok", FailureKind.NO_MATCH, FailureKind.CRASH, "ok"]


@pytest.mark.parametrize("threads", ["one", "all"])
def test_builds_ahead_keep_their_order_and_can_be_left(threads: str, matmul: Workload) -> None:
    where = Target.parse("cpu,threads=1" if threads == "one" else "cpu")
    libraries = [library("tile_matmul"), Candidate(EMPTY), library("crash_compiler"), library("tile_matmul")]
    with Builder(where, cache=None) as builder:
        kinds = [built.failure.kind if built.failure else "ok" for built in builder.build_ahead(matmul, libraries)]
        assert kinds == ["ok", FailureKind.NO_MATCH, FailureKind.CRASH, "ok"]
        left = builder.build_ahead(matmul, libraries)
        assert next(left).artifact
        left.close()  # as when a search is cut off between two trials
        assert builder.build(matmul, library("tile_matmul")).artifact


def test_cache_returns_the_same_artifact(matmul: Workload, target: Target, tmp_path: Path) -> None:
    for expect_cached in (False, True):
        with Builder(target, cache=ArtifactCache(tmp_path), workers=1) as builder:
            built = builder.build(matmul, library("tile_matmul"))
            assert built.artifact
            assert built.cached is expect_cached
    entry = next((tmp_path / "builds").iterdir())
    os.utime(entry, (0, 0))
    assert ArtifactCache(tmp_path).get(entry.name)
    assert entry.stat().st_mtime > 0, "what is used is not the oldest"
    damaged = next((tmp_path / "objects").iterdir())
    for path in (tmp_path / "objects").iterdir():
        path.write_bytes(b"damaged")
    assert damaged.exists()
    with Builder(target, cache=ArtifactCache(tmp_path), workers=1) as builder:
        again = builder.build(matmul, library("tile_matmul"))
        assert again.artifact
        assert not again.cached
        assert again.artifact.sha == built.artifact.sha


def test_other_platforms_give_other_code(matmul: Workload) -> None:
    shas = set()
    for text in ("cpu:avx512,threads=1", "cpu:avx2,threads=1", "cpu:sse4,threads=1"):
        with Builder(Target.parse(text), cache=None, workers=1) as builder:
            built = builder.build_default(matmul)
            assert built.artifact, built.failure
            shas.add(built.artifact.sha)
    assert len(shas) == 3


def test_cuda_and_vulkan_compile_without_a_device(matmul: Workload) -> None:
    for text in ("cuda:sm_80", "vulkan"):
        with Builder(Target.parse(text), cache=None, workers=1) as builder:
            built = builder.build_default(matmul)
            assert built.artifact, (text, built.failure)
