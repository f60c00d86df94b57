"""Families for elementwise ops, row-wise work and attention: legal samples compile and are right; scripts read back."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
import torch
from conftest import QUICK, workload_of
from hypothesis import HealthCheck, assume, given, reject, settings
from hypothesis import strategies as st
from row_shapes import attention, elementwise, normalisation, reduction, softmax

from tcl_iree.errors import TclIreeError
from tcl_iree.frontend import extract, load_model
from tcl_iree.measure.builder import Builder, Candidate
from tcl_iree.measure.runner import Runner
from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import STACK_FLAG
from tcl_iree.transform_dialect.families import family_of
from tcl_iree.workload.model import Workload
from tcl_iree.workload.structure import ATTENTION

CASES = {
    "elementwise_prime": ("elementwise", elementwise([37, 53], [(0, 1), (1,)], (0, 1))),
    "elementwise_transposed": ("elementwise", elementwise([37, 50], [(0, 1), (0,)], (1, 0))),
    "elementwise_two_results": ("elementwise", elementwise([6, 7, 40], [(0, 1, 2), (2, 0)], (1, 0, 2), results=2)),
    "row_sum_prime": ("reduction", reduction([37, 101], [1], [0, 1])),
    "row_maximum_centred": ("reduction", reduction([24, 96], [1], [0, 1], maximum=True, centred=True)),
    "column_sum": ("reduction", reduction([61, 43], [0], [0, 1])),
    "column_sum_centred": ("reduction", reduction([61, 64], [0], [0, 1], centred=True)),
    "sum_over_two_loops": ("reduction", reduction([5, 31, 6, 41], [1, 3], [0, 1, 2, 3], centred=True)),
    "softmax": ("reduction", softmax([29, 50], 1)),
    "softmax_of_columns": ("reduction", softmax([50, 29], 0)),
    "attention": ("attention", attention([3], 32, 16, 16, 48)),
    "attention_masked": ("attention", attention([2, 3], 20, 24, 8, 30, masked=True)),
    "attention_square": ("attention", attention([4], 16, 16, 16, 16, masked=True, values="nk")),
}
SIZES = st.sampled_from([1, 2, 3, 5, 7, 8, 16, 17, 31, 32, 60, 64, 97, 127])


@pytest.fixture(scope="module")
def tools(target: Target):
    with Builder(target, flags=(STACK_FLAG,), cache=None) as builder, Runner(target, QUICK) as runner:
        yield builder, runner


def failures(
    name: str, workload: Workload, target: Target, tools: tuple[Builder, Runner], samples: int, seed: int
) -> list[str]:
    """Random legal schedules of a family that did not compile, did not run or were wrong."""
    builder, runner = tools
    family, rng = family_of(name), Random(seed)
    schedules = list(dict.fromkeys(family.sample(workload, target, rng) for _ in range(samples)))
    assert schedules
    assert None not in schedules
    texts = [family.script(schedule, workload, target) for schedule in schedules if schedule]
    for schedule, text in zip(schedules, texts, strict=True):
        assert family.parse(text, workload, target) == schedule
    reference = builder.build_default(workload).artifact
    assert reference
    found = []
    for schedule, built in zip(schedules, builder.build_many(workload, [Candidate(t) for t in texts]), strict=True):
        failure = built.failure
        if built.artifact:
            failure = runner.measure(workload, built.artifact, reference).failure
        if failure:
            found.append(f"{schedule}: {failure.kind}: {failure.detail[:300]}")
    return found


@pytest.mark.parametrize("case", CASES)
def test_legal_samples_compile_and_are_right(case: str, tmp_path: Path, target: Target, tools) -> None:
    family, text = CASES[case]
    workload = workload_of(text, tmp_path, target)
    assert family_of(family).why_not(workload, target) is None
    assert failures(family, workload, target, tools, samples=3, seed=5) == []


@pytest.mark.parametrize(("rows", "columns"), [(24, 96), (13, 37)])
def test_a_whole_normalisation_in_one_dispatch(rows: int, columns: int, tmp_path: Path, target: Target, tools) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(normalisation(rows, columns))
    (entry,) = extract(load_model(path), target, ("--iree-opt-level=O2",)).dispatches
    assert sum(op.kind == "linalg.fill" for op in entry.workload.ops) == 1
    assert failures("reduction", entry.workload, target, tools, samples=4, seed=2) == []


def test_a_mask_that_every_head_shares_is_repeated_inside(target: Target, tools) -> None:
    class Masked(torch.nn.Module):
        def forward(self, query, key, value, mask):
            made = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
            return made.transpose(1, 2)

    image = torch.zeros(1, 3, 24, 16)
    model = load_model(Masked(), [image, image, image, torch.zeros(1, 1, 24, 24)])
    dispatches = extract(model, target, ("--iree-opt-level=O2",)).dispatches
    (workload,) = [entry.workload for entry in dispatches if entry.workload.root.kind == ATTENTION]
    assert [op.role for op in workload.ops] == ["producer", "root", "consumer"]
    assert failures("attention", workload, target, tools, samples=3, seed=1) == []


@pytest.mark.parametrize(
    ("family", "text", "reason"),
    [
        ("elementwise", reduction([8, 16], [1], [0, 1]), "not a single elementwise op"),
        ("reduction", elementwise([8, 16], [(0, 1)], (0, 1)), "reduces nothing"),
        ("reduction", reduction([40], [0], [0]), "no loop runs over rows"),
        ("reduction", softmax([17], 0), "no loop runs over rows"),
        ("attention", softmax([8, 16], 1), "no attention"),
        ("attention", attention([2], 67, 16, 16, 16), "divides 67"),
    ],
)
def test_what_a_family_does_not_serve(family: str, text: str, reason: str, tmp_path: Path, target: Target) -> None:
    assert reason in str(family_of(family).why_not(workload_of(text, tmp_path, target), target))


def test_attention_keeps_within_the_stack(tmp_path: Path, target: Target) -> None:
    workload = workload_of(attention([2], 64, 64, 64, 512), tmp_path, target)
    family = family_of("attention")
    blocks = {schedule["block"] for schedule in family.enumerate(workload, target)}
    assert blocks
    assert max(blocks) * 4 * (64 + 512 + 64) <= 48 << 10
    assert 64 in family.decisions(workload, target)[0].choices


@st.composite
def models(draw: st.DrawFn) -> tuple[str, str]:
    kind = draw(st.sampled_from(["elementwise", "reduction", "softmax", "attention"]))
    if kind == "attention":
        sizes = [draw(SIZES) for _ in range(4)]
        return kind, attention(
            [draw(SIZES)], *sizes, masked=draw(st.booleans()), values=draw(st.sampled_from(["kn", "nk"]))
        )
    rank = draw(st.integers(1, 4))
    sizes = [draw(SIZES) for _ in range(rank)]
    if kind == "softmax":
        return "reduction", softmax(sizes, draw(st.integers(0, rank - 1)))
    order = draw(st.permutations(range(rank)))
    if kind == "elementwise":
        other = draw(st.permutations(range(rank)))[: draw(st.integers(1, rank))]
        return kind, elementwise(sizes, [tuple(range(rank)), other], order, draw(st.integers(1, 2)))
    reduced = draw(st.permutations(range(rank)))[: draw(st.integers(1, max(1, rank - 1)))]
    return kind, reduction(sizes, reduced, order, draw(st.booleans()), draw(st.booleans()))


@pytest.mark.long
@given(model=models(), seed=st.integers(0, 1000))
@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck), database=None)
def test_random_shapes(model: tuple[str, str], seed: int, tmp_path_factory, target: Target, tools) -> None:
    family, text = model
    try:
        workload = workload_of(text, tmp_path_factory.mktemp("random"), target)
    except (TclIreeError, ValueError):  # it folds to nothing, or to several dispatches
        reject()
    assume(not family_of(family).why_not(workload, target))
    assert failures(family, workload, target, tools, samples=2, seed=seed) == []
