"""Sequences of scripts: every op read, numbers beside their loops, and the fast path equal to the walk."""

from __future__ import annotations

import logging
from pathlib import Path
from random import Random

import numpy as np
import pytest
from test_golden_scripts import CASES, GOLDEN, workload_and_target

from tcl_iree.errors import FeatureError
from tcl_iree.features.script_ops import read_script
from tcl_iree.features.steps import Candidate, StepReader
from tcl_iree.features.tokens import Tokenizer
from tcl_iree.features.vocabulary import KIND_INDEX, KINDS, ROLE_INDEX, ROLES, vocabulary_hash
from tcl_iree.features.walk import Row, walk
from tcl_iree.transform_dialect.families import family_of
from tcl_iree.transform_dialect.names import ENTRY

SAMPLES = 40


@pytest.mark.parametrize("name", list(CASES))
def test_every_row_of_a_familys_script_is_known(name: str, tmp_path: Path) -> None:
    workload, _ = workload_and_target(name, tmp_path)
    rows = walk(read_script((GOLDEN / f"{name}.mlir").read_text(), ENTRY), workload).rows
    assert {row.kind for row in rows} <= KIND_INDEX.keys()
    assert {row.role for row in rows} <= ROLE_INDEX.keys()
    assert any(row.value for row in rows), "decisions must show"


@pytest.mark.parametrize("name", list(CASES))
def test_templates_give_what_walking_the_script_gives(name: str, tmp_path: Path) -> None:
    workload, target = workload_and_target(name, tmp_path)
    family, rng = family_of(name), Random(0)
    drawn = [family.sample(workload, target, rng) for _ in range(SAMPLES)]
    schedules = [schedule for schedule in drawn if schedule]
    tokenizer = Tokenizer(workload, target)
    fast = tokenizer.sequences(schedules)
    again = tokenizer.sequences(schedules)
    scripts = [family.script(schedule, workload, target) for schedule in schedules]
    slow = tokenizer.sequences(scripts)
    for field in ("kinds", "roles", "numbers", "lengths"):
        assert np.array_equal(getattr(fast, field), getattr(slow, field)), field
        assert np.array_equal(getattr(fast, field), getattr(again, field)), field
    reader = StepReader(workload, target)
    assert nests_of(reader, schedules) == nests_of(reader, scripts)


def nests_of(reader: StepReader, candidates: list[Candidate]) -> list[list[int]]:
    found: dict[int, list[int]] = {}
    for steps in reader.read(candidates):
        found |= dict(zip(steps.positions.tolist(), steps.nest_numbers().tolist(), strict=True))
    return [found[position] for position in range(len(candidates))]


def test_fused_ops_are_inside_the_loops_around_the_op_they_are_fused_to(tmp_path: Path) -> None:
    workload, _ = workload_and_target("contraction", tmp_path)  # 60 x 100 x 96, with a bias
    nests = walk(read_script((GOLDEN / "contraction.mlir").read_text(), ENTRY), workload).nests
    root = next(nest for nest in nests if nest.role == "root")
    consumer = next(nest for nest in nests if nest.role == "consumer")
    shared = [loop for loop in consumer.around if loop.level == "workgroup"]
    assert shared
    assert [(loop.trips, loop.size) for loop in root.around[: len(shared)]] == [
        (loop.trips, loop.size) for loop in shared
    ]
    assert any(loop.kind == "reduction" for loop in root.around)
    assert not any(loop.kind == "reduction" for loop in consumer.around)
    for nest in (root, consumer):
        for origin, extent in nest.inside:
            sizes = [loop.size for loop in nest.around if loop.origin == origin]
            assert extent <= min([*sizes, workload.ops[nest.op].loops[origin].size])


def test_tile_sizes_are_seen_beside_the_loops_they_touch(tmp_path: Path) -> None:
    workload, _ = workload_and_target("contraction", tmp_path)  # 60 x 100 x 96, with a bias
    rows = walk(read_script((GOLDEN / "contraction.mlir").read_text(), ENTRY), workload).rows
    tiled = [row for row in rows if row.kind == "structured.tile_using_forall:block"]
    assert [(row.role, row.extent) for row in tiled][:1] == [("consumer", 60)]
    reductions = [row for row in rows if row.reduction]
    assert reductions
    assert all(row.role == "root" for row in reductions)
    assert reductions[0].extent == 96


def test_one_tile_size_changes_the_sequence(tmp_path: Path) -> None:
    workload, target = workload_and_target("config", tmp_path)
    text = (GOLDEN / "config.mlir").read_text()
    changed = text.replace("distribution = [15, 50, 0]", "distribution = [15, 25, 0]")
    assert changed != text
    made = Tokenizer(workload, target).sequences([text, changed])
    assert np.array_equal(made.kinds[0], made.kinds[1])
    assert not np.array_equal(made.numbers[0], made.numbers[1])


def test_an_unknown_op_is_a_warning_and_an_unknown_row(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    workload, target = workload_and_target("config", tmp_path)
    script = """module attributes {transform.with_named_sequence} {
      transform.named_sequence @__kernel_config(%module: !transform.any_op {transform.consumed}) {
        %function = transform.structured.match ops{["func.func"]} in %module : (!transform.any_op) -> !transform.any_op
        %changed = transform.apply_registered_pass "symbol-dce" to %function : (!transform.any_op) -> !transform.any_op
        transform.yield
      }
    }"""
    with caplog.at_level(logging.WARNING):
        made = Tokenizer(workload, target).sequences([script])
    assert KINDS.index("<unknown>") in made.kinds[0]
    assert "symbol-dce" in caplog.text


def test_bad_scripts_are_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(FeatureError, match="not valid MLIR"):
        read_script("module {", ENTRY)
    with pytest.raises(FeatureError, match="no sequence @__kernel_config"):
        read_script("module {}", ENTRY)


def test_the_vocabulary_has_no_entry_twice() -> None:
    assert len(set(KINDS)) == len(KINDS)
    assert len(set(ROLES)) == len(ROLES)
    assert len(vocabulary_hash()) == 16


def test_a_row_says_what_it_is() -> None:
    assert Row("loop.peel", "root", 8, 20).numbers == (8, 20, 0, 0, 0)
