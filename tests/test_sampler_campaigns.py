"""The benchmark of samplers: campaigns on made-up programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import PLATFORM, made_up_groups

from benchmarks.line_chart import write_line_chart
from benchmarks.sampler_campaigns import ENSEMBLE, Campaigns, Plan
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.sampling import make_sampler
from tcl_iree.learning.sampling.greedy import RduSampler
from tcl_iree.learning.sampling.programs import DROPOUT, ProgramList


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> ProgramList:
    groups = made_up_groups(tmp_path_factory.mktemp("campaigns"), PLATFORM)
    return ProgramList.of([replace(group, spent=(10.0, *[1.0] * (len(group) - 1))) for group in groups])


def campaigns(programs: ProgramList, place: Path) -> Campaigns:
    return Campaigns(programs, programs.groups[:1], programs.groups[1:], None, place, epochs=1)


@pytest.mark.parametrize(
    "plan", [Plan("rdu", RduSampler()), Plan("dropout", RduSampler(), DROPOUT), Plan("several", RduSampler(), ENSEMBLE)]
)
def test_a_campaign_takes_what_it_should(plan: Plan, programs: ProgramList, tmp_path: Path) -> None:
    small, large = campaigns(programs, tmp_path).run(plan, [0.1, 0.25], seed=0)
    assert (small.programs, large.programs) == (10, 24)
    assert small.label == f"{plan.name} 10%"
    assert small.hours * 3600 == pytest.approx(40.0 + 10.0), "all defaults, and what was chosen"
    assert len(small.pools) == 3
    (file,) = tmp_path.iterdir()
    first, second = json.loads(file.read_text())
    assert set(first["taken"]) < set(second["taken"]), "what is chosen stays chosen"


def test_everything(programs: ProgramList, tmp_path: Path) -> None:
    (step,) = campaigns(programs, tmp_path).run(Plan("everything", None), [0.1], seed=0)
    assert step.programs == len(programs)
    assert step.label == "everything"


def test_a_campaign_is_not_run_twice(programs: ProgramList, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan("random", make_sampler("random"))
    (before,) = campaigns(programs, tmp_path).run(plan, [0.1], seed=3)
    monkeypatch.setattr(NeuralModel, "fit", lambda *_: pytest.fail("trained again"))
    (again,) = campaigns(programs, tmp_path).run(plan, [0.1], seed=3)
    for one, other in zip(before.pools, again.pools, strict=True):
        assert np.array_equal(one.scores, other.scores)


def test_a_line_chart(tmp_path: Path) -> None:
    lines = {"rdu": [(2.0, 0.7), (10.0, 0.8)], "a < b": [(2.0, 0.6), (10.0, 0.8)]}
    write_line_chart(tmp_path / "chart.svg", "share", "top-1", lines)
    text = (tmp_path / "chart.svg").read_text()
    assert text.startswith("<svg")
    assert text.rstrip().endswith("</svg>")
    assert "a &lt; b" in text
    assert text.count("<circle") == 4
