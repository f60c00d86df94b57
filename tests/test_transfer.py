"""Learning platform after platform: what every learner must do, what holds and what teaches, and the command."""

from __future__ import annotations

import gc
import json
import os
import weakref
from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from conftest import DATA, workload_of
from made_up import PLATFORM, made_up_groups, made_up_seconds
from shapes import contraction

from tcl_iree.cli import main
from tcl_iree.database import Database, ScheduleRecord
from tcl_iree.errors import LearningError, OptionError
from tcl_iree.features.prefix import target_kind
from tcl_iree.features.vocabulary import KINDS
from tcl_iree.learning.checkpoint import Checkpoint, load_checkpoint, load_transfer
from tcl_iree.learning.cost_model import CostModel, FitOptions
from tcl_iree.learning.distillation.column import ColumnNetwork
from tcl_iree.learning.distillation.consolidation import Consolidation, consolidate
from tcl_iree.learning.distillation.continual import ContinualDistillation, OneModel
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.distillation.losses import distillation_loss
from tcl_iree.learning.distillation.names import LEARNERS, make_learner
from tcl_iree.learning.distillation.options import LISTWISE, SQUARES, Distillation
from tcl_iree.learning.distillation.progress import COLUMN, SCRATCH, UNCHANGED, Beside, progress
from tcl_iree.learning.evaluation import rank
from tcl_iree.learning.groups import Group
from tcl_iree.learning.lineage import Stage, refuse_merge
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.metrics import pairwise_accuracy
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe
from tcl_iree.learning.sampling.programs import ProgramList, without_bred
from tcl_iree.measure.results import Artifact, BuildResult
from tcl_iree.target import Target
from tcl_iree.transform_dialect.names import ENTRY
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.guide import BASE_PATH
from tcl_iree.workflows.transfer import refuse_in_place, transfer
from tcl_iree.workflows.transfer_options import TransferOptions
from tcl_iree.workflows.trials import DEFAULT, trial_of, workload_record

SMALL = {"width": 16, "depth": 1}
RECIPE = TrainingRecipe(rate=1e-2, average=0.9, group=8, groups=2)
QUICK = FitOptions(epochs=1, seed=1)
ONE_MODEL = [name for name, made in LEARNERS.items() if issubclass(made, OneModel)]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> list[Group]:
    return made_up_groups(tmp_path_factory.mktemp("one"), PLATFORM)


def on_another(groups: list[Group], spec: str, backwards: bool = False) -> list[Group]:
    """The same programs on another platform, where fast ones are slow if that is asked for."""
    target = Target.parse(spec)
    return [
        replace(
            group,
            target=target,
            platform=spec,
            seconds=np.r_[group.seconds[0], 1e-5 / group.seconds[1:]] if backwards else group.seconds.copy(),
        )
        for group in groups
    ]


@pytest.fixture(scope="module")
def knows_one(one: list[Group]) -> NeuralModel:
    """A small model that has learned the first platform well."""
    model = NeuralModel(MambaNetwork(**SMALL), RECIPE)
    model.fit(one[:3], one[:3], FitOptions(epochs=50, patience=50, seed=0))
    return model


def lesson(groups: list[Group]) -> Lesson:
    return Lesson(groups[0].platform, groups[:3], groups[3:], [group.hidden() for group in groups[:3]])


def in_order(model: CostModel, groups: list[Group]) -> float:
    return float(np.mean([pairwise_accuracy(pool) for pool in rank(model, groups)]))


# Conformance.


@pytest.mark.parametrize("name", LEARNERS)
def test_learns_three_platforms_in_turn(name: str, one: list[Group], knows_one: NeuralModel) -> None:
    learner = make_learner(name, Distillation(fisher_lists=4), knows_one)
    before = knows_one.digest
    with pytest.raises(LearningError, match="nothing was learned yet"):
        learner.model("anything")
    platforms = [one, on_another(one, "cpu:sse4,threads=1", backwards=True), on_another(one, "cpu:avx512,threads=1")]
    sizes = []
    for number, groups in enumerate(platforms):
        learned = learner.learn(lesson(groups), QUICK)
        assert (learned.platform, learned.labels) == (groups[0].platform, 3 * (len(groups[0]) - 1))
        taught = (COLUMN, SCRATCH, UNCHANGED) if name.endswith("-distillation") and number else ("labels",)
        assert learned.teacher in taught
        for seen in platforms[: number + 1]:
            group = seen[3]
            scores = learner.predict(group.platform, group.workload, group.target, group.candidates)
            assert scores.shape == (len(group),)
            assert np.isfinite(scores).all()
            assert np.allclose(scores, learner.model(group.platform).score(group), atol=1e-4)
        sizes.append(learner.size)
    assert np.isfinite(learner.model("never seen").score(one[3])).all()
    assert knows_one.digest == before, "what it started from is left as it is"
    if name in ONE_MODEL:
        assert len({(size.parameters, size.bytes) for size in sizes}) == 1, "it does not grow"
        assert sizes[-1].parameters == knows_one.parameters
        assert (sizes[-1].programs == 0) == (name != "replay")
    else:
        assert sizes[2].parameters + sizes[2].programs > sizes[1].parameters + sizes[1].programs


@pytest.mark.parametrize("name", ["continual-distillation", "ewc", "fine-tuning", "replay"])
def test_the_same_seed_learns_the_same(name: str, one: list[Group], knows_one: NeuralModel) -> None:
    two = on_another(one, "cpu:sse4,threads=1", backwards=True)
    found = []
    for _ in range(2):
        learner = make_learner(name, Distillation(fisher_lists=4), knows_one)
        learner.learn(lesson(one), QUICK)
        learner.learn(lesson(two), QUICK)
        found.append(learner.model(two[0].platform).score(two[3]))
    assert np.allclose(found[0], found[1], atol=1e-5)
    assert not np.allclose(found[0], knows_one.score(two[3]), atol=1e-5), "it did learn"


@pytest.mark.parametrize("name", [name for name in ONE_MODEL if name != "replay"])
def test_earlier_programs_are_gone_before_the_next_platform(
    name: str, one: list[Group], knows_one: NeuralModel
) -> None:
    learner = make_learner(name, Distillation(fisher_lists=4), knows_one)
    first = [replace(group) for group in one]
    gone = [weakref.ref(group) for group in first]
    learner.learn(lesson(first), QUICK)
    first.clear()
    gc.collect()
    assert all(reference() is None for reference in gone), "something still holds the first platform's programs"
    learner.learn(lesson(on_another(one, "cpu:sse4,threads=1")), QUICK)


def test_a_base_is_not_replaced_unasked(tmp_path: Path) -> None:
    for origin, output in (("two.safetensors", "two"), ("two", "two.json"), ("two", "two")):
        with pytest.raises(OptionError, match="give --replace"):
            refuse_in_place([tmp_path / origin], tmp_path / output, replace=False)
        refuse_in_place([tmp_path / origin], tmp_path / output, replace=True)
    refuse_in_place([tmp_path / "two.v1"], tmp_path / "two.v2", replace=False)


def test_unknown_names_and_settings_are_refused(one: list[Group]) -> None:
    with pytest.raises(OptionError, match="no way 'magic'"):
        make_learner("magic")
    with pytest.raises(OptionError, match="no setting 'lambda'"):
        Distillation.of({"lambda": 3})
    for wrong in (
        {"loss": "cosine"},
        {"ewc": -1.0},
        {"keep": 1.5},
        {"temperature": 0.0},
        {"bottleneck": 2.5},
        {"ewc": float("nan")},
    ):
        with pytest.raises(OptionError):
            Distillation.of(wrong)
    with pytest.raises(LearningError, match="0 to stop by"):
        Lesson("here", one, [])
    with pytest.raises(LearningError, match="only a mamba model"):
        ContinualDistillation.resumed(LEARNERS["mtl-tlp"]()._untrained(one), None, Distillation())


# Progress.


def test_the_column_starts_as_good_as_the_base_and_leaves_it_alone(one: list[Group], knows_one: NeuralModel) -> None:
    two = on_another(one, "cpu:sse4,threads=1", backwards=True)
    network = knows_one.network
    assert isinstance(network, MambaNetwork)
    column = NeuralModel(ColumnNetwork(network, Distillation()), RECIPE)
    assert np.allclose(column.score(two[0]), knows_one.score(two[0]), atol=1e-4)
    before = knows_one.digest
    column.fit(two[:3], two[3:], FitOptions(epochs=2, patience=2, seed=0))
    assert knows_one.digest == before
    held = column.network
    assert isinstance(held, ColumnNetwork)
    for name, value in held.base.state_dict().items():
        assert torch.equal(value, network.state_dict()[name]), name
    assert all(lateral.widen.weight.abs().max() > 0 for lateral in held.laterals), "lateral connections learn"
    with torch.no_grad():
        scores = column.score(two[0])
        for lateral in held.laterals:
            lateral.widen.weight.zero_()
        assert not np.allclose(column.score(two[0]), scores, atol=1e-6), "what comes through them counts"


def test_a_base_that_does_harm_is_noticed(one: list[Group], knows_one: NeuralModel) -> None:
    """A base that is very sure of the opposite: the column cannot come round in time, a fresh model need not."""
    two = on_another(one, "cpu:avx2,threads=1", backwards=True)
    sure = NeuralModel(MambaNetwork(**SMALL), RECIPE)
    sure.load_state(knows_one.state())
    network = sure.network
    assert isinstance(network, MambaNetwork)
    with torch.no_grad():
        network.head[-1].weight.mul_(100.0)
    given = Lesson("two", two[:3], two[:3])
    fit = FitOptions(epochs=12, patience=12, seed=0)
    found = progress(sure, given, Distillation(), fit)
    assert found.scores[SCRATCH] > found.scores[COLUMN]
    assert found.kind == SCRATCH
    assert "does harm here" in found.notes[0]
    assert not isinstance(found.model.network, ColumnNetwork)
    assert progress(sure, given, Distillation(gate=False), FitOptions(epochs=1)).kind == COLUMN


def test_labels_that_do_harm_are_noticed(one: list[Group], knows_one: NeuralModel) -> None:
    """Labels say the opposite of what validation says, and that is what the base says already."""
    wrong = on_another(one, "cpu:avx2,threads=1", backwards=True)
    right = [replace(group, seconds=np.r_[group.seconds[0], np.exp(-knows_one.score(group)[1:])]) for group in wrong]
    given = Lesson("two", wrong[:3], right[:3])
    fit = FitOptions(epochs=4, patience=4, seed=0)
    found = progress(knows_one, given, Distillation(), fit)
    assert found.kind == UNCHANGED
    assert "the base stays as it is" in found.notes[0]
    for name in ("continual-distillation", "fine-tuning"):
        learner = make_learner(name, Distillation(fisher_lists=4), knows_one)
        learner.learn(Lesson("one", one[:3], one[:3]), fit)
        learner.learn(given, fit)
        assert isinstance(learner, OneModel)
        assert learner.base
        assert learner.base.digest == knows_one.digest, name


def test_what_columns_agree_on_is_taught_and_a_share_of_it(one: list[Group], knows_one: NeuralModel) -> None:
    two = on_another(one, "cpu:avx2,threads=1", backwards=True)
    fit = FitOptions(epochs=3, patience=3, seed=0)
    found = progress(knows_one, Lesson("two", two[:3], two[3:]), Distillation(columns=2, gate=False), fit).model
    assert isinstance(found, Beside)
    first, second = (column.score(two[0]) for column in found.columns)
    assert not np.allclose(first, second, atol=1e-4), "each learns from a start of its own"
    assert np.allclose(found.score(two[0]), (first + second) / 2, atol=1e-5)
    own = knows_one.score(two[0])
    assert np.allclose(replace(found, share=0.5).score(two[0]), own + 0.5 * (found.score(two[0]) - own), atol=1e-5)


def test_a_target_never_met_is_first_taken_for_the_last(one: list[Group], knows_one: NeuralModel) -> None:
    """Else its name would be a random vector to the base."""
    learner = ContinualDistillation(Distillation(fisher_lists=4), knows_one)
    learner.learn(lesson(one), QUICK)
    for spec, known in (("cpu:sse4,threads=1", False), ("cpu:avx2,threads=1", True)):
        target = Target.parse(spec)
        met = learner._acquainted(knows_one, target).network.state_dict()["kind.weight"]
        name, last = KINDS.index(target_kind(target)), KINDS.index(target_kind(one[0].target))
        assert torch.equal(met[name], met[last])
        assert (name == last) == known


# Compress.


@pytest.mark.parametrize("loss", [LISTWISE, SQUARES])
def test_distillation_wants_the_teachers_order(loss: str) -> None:
    measure = distillation_loss(Distillation(loss=loss))
    teacher = torch.tensor([[3.0, 1.0, -2.0, 9.0], [0.5, 0.0, 1.0, -1.0]])
    valid = torch.tensor([[True, True, True, False], [True, True, True, True]])
    assert measure(teacher, teacher, valid) == pytest.approx(0.0, abs=1e-6)
    assert measure(teacher + 5.0, teacher, valid) == pytest.approx(0.0, abs=1e-5), "a group's scores have no zero"
    padded = teacher.clone()
    padded[0, 3] = -100.0
    assert measure(padded, teacher, valid) == pytest.approx(0.0, abs=1e-5), "padding does not count"
    assert measure(-teacher, teacher, valid) > 1.0
    assert distillation_loss(Distillation(loss=loss, distillation=3.0))(-teacher, teacher, valid) == pytest.approx(
        3.0 * measure(-teacher, teacher, valid)
    )


def test_what_is_held_is_scaled_alike_and_fades(one: list[Group], knows_one: NeuralModel) -> None:
    options = Distillation(fisher_lists=6, keep=0.5)
    first = consolidate(None, knows_one, [group.hidden() for group in one[:3]], options)
    values = np.concatenate([value.ravel() for value in first.fisher.values()])
    assert (values >= 0).all()
    assert np.linalg.norm(values) == pytest.approx(1.0, rel=1e-4)
    second = consolidate(first, knows_one, [group.hidden() for group in one[:3]], options)
    for name, value in second.fisher.items():
        assert np.allclose(value, 1.5 * first.fisher[name], rtol=1e-4), "the same once more, on half of what was"
    penalty = first.penalty(25.0, 0.99)
    network = knows_one.network
    assert penalty(network).item() == pytest.approx(0.0)
    moved = NeuralModel(MambaNetwork(**SMALL))
    moved.load_state({name: value + 0.1 for name, value in knows_one.state().items()})
    assert penalty(moved.network).item() == pytest.approx(0.5 * 25.0 * 0.99 * 0.01 * values.sum(), rel=1e-3)
    again = Consolidation.from_state(first.state())
    assert all(np.array_equal(again.fisher[name], value) for name, value in first.fisher.items())
    assert all(np.array_equal(again.anchor[name], value) for name, value in first.anchor.items())


def test_what_is_held_or_recalled_is_forgotten_less(one: list[Group], knows_one: NeuralModel) -> None:
    """Two platforms that contradict each other: what was known of the first is lost unless something keeps it."""
    two = on_another(one, "cpu:sse4,threads=1", backwards=True)
    fit = FitOptions(epochs=25, patience=25, seed=0)
    assert in_order(knows_one, one[:3]) > 0.7
    usual = Distillation(ewc=0.0, recall=0.0, rate=1e-2, slow_rate=1e-2, columns=1, gate=False, fisher_lists=24)
    ways = {
        "fine-tuning": ("fine-tuning", usual),
        "held": ("ewc", replace(usual, ewc=1e5)),
        "distilled": ("continual-distillation", usual),
        "distilled and held": ("continual-distillation", replace(usual, ewc=1e5)),
        "distilled and recalled": ("continual-distillation", replace(usual, recall=1.0)),
    }
    kept, gained = {}, {}
    for way, (name, options) in ways.items():
        learner = make_learner(name, options, knows_one)
        learner.learn(Lesson("one", one[:3], one[:3]), fit)
        learner.learn(Lesson("two", two[:3], two[:3]), fit)
        kept[way] = in_order(learner.model("one"), one[:3])
        gained[way] = in_order(learner.model("two"), two[:3])
    assert kept["held"] > kept["fine-tuning"] + 0.05, (kept, gained)
    assert kept["distilled and held"] > kept["distilled"] + 0.05, (kept, gained)
    assert kept["distilled and recalled"] > kept["distilled"] + 0.05, (kept, gained)


# Checkpoints.


def stage(platform: str, weights: str) -> Stage:
    return Stage({platform: platform}, 3, ("a", "b"), {"top_1": 0.5}, "column", weights)


def test_a_lineage_travels_with_the_model(one: list[Group], tmp_path: Path) -> None:
    model = NeuralModel(MambaNetwork())
    held = consolidate(None, model, one[:1], Distillation(fisher_lists=1))
    lineage = (stage("first", "x"), stage("second", "y"))
    Checkpoint(model, ("first", "second"), ("a", "b"), {}, lineage=lineage, transfer=held.state()).save(
        tmp_path / "base"
    )
    read = load_checkpoint(tmp_path / "base")
    assert read.lineage == lineage
    assert np.allclose(read.model.score(one[0]), model.score(one[0]), atol=1e-6)
    state = load_transfer(tmp_path / "base")
    assert state
    assert all(np.array_equal(value, held.state()[name]) for name, value in state.items())
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"base.safetensors", "base.json", "base.transfer.safetensors"}
    assert sizes["base.safetensors"] + sizes["base.json"] <= 400_000
    assert sum(sizes.values()) <= 1_200_000
    Checkpoint(NeuralModel(MambaNetwork(**SMALL)), (), (), {}, transfer=held.state()).save(tmp_path / "other")
    os.replace(tmp_path / "other.transfer.safetensors", tmp_path / "base.transfer.safetensors")
    with pytest.raises(LearningError, match="not of the weights beside it"):
        load_transfer(tmp_path / "base")
    Checkpoint(model, (), (), {}).save(tmp_path / "base")
    assert load_transfer(tmp_path / "base") is None, "a checkpoint without it leaves none of another"


def test_two_lineages_cannot_be_merged() -> None:
    shared = stage("first", "x")
    refuse_merge({"a": (shared,)})
    with pytest.raises(LearningError, match=r"a and b cannot be merged.*after 1 platforms in common \(second; third\)"):
        refuse_merge({"a": (shared, stage("second", "y")), "b": (shared, stage("third", "z"))})
    with pytest.raises(LearningError, match="b has learned all that the other has"):
        refuse_merge({"a": (shared,), "b": (shared, stage("third", "z"))})


@pytest.mark.parametrize("fails", ["write_bytes", "replace"])
def test_a_write_that_is_cut_off_leaves_the_old_files(
    fails: str, one: list[Group], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = NeuralModel(MambaNetwork(**SMALL))
    Checkpoint(old, (), (), {}, transfer={"fisher/x": np.ones(2)}).save(tmp_path / "base")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def cut(*given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(*((Path, fails) if fails == "write_bytes" else (os, fails)), cut)
        with pytest.raises(KeyboardInterrupt):
            Checkpoint(NeuralModel(MambaNetwork()), (), (), {}, transfer={"fisher/x": np.zeros(2)}).save(
                tmp_path / "base"
            )
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    assert np.allclose(load_checkpoint(tmp_path / "base").model.score(one[0]), old.score(one[0]), atol=1e-6)


# Targets that nothing runs on.


def test_the_base_that_comes_along_scores_cuda_schedules(tmp_path: Path) -> None:
    target = Target.parse("cuda:sm_80")
    workload = workload_of((DATA / "matmul_bias_relu.mlir").read_text(), tmp_path, target)
    space = Space(workload, target)
    schedules = list(islice(space.samples(Random(0)), 8))
    model = load_checkpoint(BASE_PATH).model
    scores = model.predict(workload, target, [None, *schedules])
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) > 4
    texts = [space.script(schedule) for schedule in schedules]
    assert np.allclose(model.predict(workload, target, texts), scores[1:], atol=1e-3)


# The command.


def record(database: Database, group: Group, key: str) -> None:
    """Put a group into a database as if it had been measured."""

    class Source:
        target, flags = group.target, ()

    default = BuildResult(Artifact(b"", "default", ""), None, 0.0)
    for position, (candidate, seconds) in enumerate(zip(group.candidates, group.seconds, strict=True)):
        schedule = DEFAULT
        if isinstance(candidate, Schedule):
            script = Space(group.workload, group.target).script(candidate)
            schedule = ScheduleRecord(candidate.family, candidate.plain, script, ENTRY)
        trial = trial_of(group.workload, Source, schedule, default, default.artifact, None, "random")  # type: ignore[arg-type]
        failed = bool(np.isnan(seconds))
        database.add_trial(
            workload_record(group.workload),
            schedule,
            replace(
                trial,
                uid=f"{key} {group.workload.key} {position}",
                target=key,
                status="wrong_result" if failed else "ok",
                p50=None if failed else float(seconds),
                ratio=None if failed else float(group.seconds[0] / seconds),
                origin="" if candidate is None else "random",
            ),
        )


@pytest.fixture(scope="module")
def recorded(one: list[Group], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two platforms in a database, one of them a GPU, and a model that has learned the first."""
    folder = tmp_path_factory.mktemp("recorded")
    gpu = made_up_groups(folder, Target.parse("cuda:sm_80"), made_up_seconds)
    with Database(folder / "all.db") as database:
        for groups, key in ((one, "cpu-avx2-t1-there"), (gpu, "cuda-sm_80-there")):
            for group in groups:
                record(database, group, key)
    command = ["train", "--data", str(folder / "all.db"), "--platform", "cpu", "--epochs", "2"]
    assert main([*command, "--config", "width=16", "depth=1", "-o", str(folder / "base")]) == 0
    return folder


def transfer_command(folder: Path, output: Path, *more: str) -> list[str]:
    command = ["transfer", "--from", str(folder / "base"), "--target", "cuda-sm_80", "--data", str(folder / "all.db")]
    return [*command, "--labels", "30", "--epochs", "2", "-o", str(output), *more]


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("base*")}


def test_transfer_from_recorded_programs(
    recorded: Path, one: list[Group], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(recorded)
    assert "base.transfer.safetensors" in before, "what `train` writes can be gone on from"
    capsys.readouterr()
    assert main(transfer_command(recorded, tmp_path / "two", "--json", "--config", "ewc=50")) == 0
    report = json.loads(capsys.readouterr().out)
    assert files(recorded) == before
    assert (report["labels"], report["measured"], report["platform"]) == (30, 0, "cuda-sm_80-there")
    assert report["pool"] == 3 * 24
    assert {row["platform"] for row in report["platforms"]} <= {"cpu-avx2-t1-there", "cuda-sm_80-there"}
    assert "cuda-sm_80-there" in {row["platform"] for row in report["platforms"]}
    assert all(0 < row["top_1_after"] <= row["top_5_after"] <= 1 for row in report["platforms"])
    assert json.loads((tmp_path / "two.report.json").read_text())["labels"] == 30
    assert {path.name for path in tmp_path.iterdir()} == {
        "two.safetensors", "two.json", "two.transfer.safetensors", "two.report.json",
    }  # fmt: skip
    made = load_checkpoint(tmp_path / "two")
    assert made.platforms == ("cpu-avx2-t1-there", "cuda-sm_80-there")
    assert [entry.platforms for entry in made.lineage] == [
        {"cpu-avx2-t1-there": str(PLATFORM)},
        {"cuda-sm_80-there": "cuda:sm_80"},
    ]
    assert made.lineage[0].teacher == "labels"
    assert np.isfinite(made.model.score(one[0])).all()
    assert main(["models", str(tmp_path / "two")]) == 0
    shown = capsys.readouterr().out
    assert "what" in shown
    assert shown.count("cuda-sm_80-there") == 2
    assert "cuda:sm_80" in shown


def test_a_transfer_that_is_cut_off_goes_on(recorded: Path, tmp_path: Path) -> None:
    before = files(recorded)
    options = TransferOptions(labels=30, epochs=2, distillation=Distillation(fisher_lists=4, columns=2, gate=False))
    given = ([recorded / "base"], "cuda-sm_80")

    class CutOff(Exception):
        pass

    def cut(text: str, advance: int = 0, total: int | None = None) -> None:
        if text.startswith("distilling into the base:"):
            raise CutOff

    with pytest.raises(CutOff):
        transfer(*given, tmp_path / "cut", options, [recorded / "all.db"], say=cut)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"cut.unfinished.{part}" for part in ("column-0", "column-1", "base")
    }
    assert files(recorded) == before
    heard: list[str] = []

    def hear(text: str, advance: int = 0, total: int | None = None) -> None:
        heard.append(text)

    transfer(*given, tmp_path / "cut", options, [recorded / "all.db"], say=hear)
    transfer(*given, tmp_path / "whole", options, [recorded / "all.db"])
    assert not [text for text in heard if text.startswith("training column") and ":" in text], "it was trained"
    assert not list(tmp_path.glob("*unfinished*"))
    one, other = (load_checkpoint(tmp_path / name).model.state() for name in ("cut", "whole"))
    assert all(np.allclose(one[name], other[name], atol=1e-5) for name in one)


@pytest.mark.usefixtures("all_are_trusted")
def test_programs_are_chosen_and_measured(
    recorded: Path, target: Target, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the real compiler and runtime; a second run finds everything in the database."""
    models = []
    for name, sizes in (("one", {"m": 24, "n": 40, "k": 56}), ("two", {"m": 40, "n": 72, "k": 24})):
        models.append(tmp_path / f"{name}.mlir")
        models[-1].write_text(contraction(sizes))
    command = ["transfer", "--from", str(recorded / "base"), "--target", "cpu,threads=1", "--labels", "10"]
    command += ["--networks", *map(str, models), "--per-workload", "12", "--epochs", "1", "--json"]
    command += ["--db", str(tmp_path / "new.db"), "-o", str(tmp_path / "made")]
    capsys.readouterr()
    assert main(command) == 0
    first = json.loads(capsys.readouterr().out)
    assert (first["labels"], first["validation"], first["measured"], first["known"]) == (8, 2, 10, 0)
    assert first["pool"] == 12
    assert first["platform"] == target.key
    assert main(command) == 0
    again = json.loads(capsys.readouterr().out)
    assert (again["measured"], again["known"]) == (0, 10)
    assert again["lineage"][1]["labels"] == 8


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["--from", "{base}", "-o", "{base}"], "is the checkpoint to go on from"),
        (["--from", "{base}", "base", "-o", "{here}/x"], "cannot be merged"),
        (["--from", "{here}/nothing", "-o", "{here}/x"], "no checkpoint at"),
        (["--from", "{base}", "--target", "tpu", "-o", "{here}/x"], "unknown target"),
        (["--from", "{base}", "--labels", "3", "-o", "{here}/x"], "at least 10 labels"),
        (["--from", "{base}", "--config", "strength=3", "-o", "{here}/x"], "no setting 'strength'"),
        (["--from", "{base}", "--target", "cuda:sm_75", "-o", "{here}/x"], "cannot run here"),
    ],
)
def test_bad_input_is_one_clear_error(
    command: list[str], message: str, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = files(recorded)
    filled = [word.format(here=tmp_path, base=recorded / "base") for word in command]
    if "--target" not in filled:
        filled += ["--target", "cuda-sm_80"]
    filled += ["--data", str(recorded / "all.db"), "--db", str(tmp_path / "new.db")]
    capsys.readouterr()
    assert main(["transfer", *filled]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert files(recorded) == before
    assert not list(tmp_path.glob("x*"))


def test_programs_that_were_bred_are_not_chosen_from(one: list[Group]) -> None:
    origins = tuple("evolved" if place % 2 else "random" for place in range(len(one[0])))
    left = without_bred(replace(one[0], origins=origins))
    assert len(left) == 1 + 12
    assert set(left.origins[1:]) == {"random"}
    listed = ProgramList.of(one)
    assert len(listed) == sum(len(group) - 1 for group in one)
    some = listed.by_chance(10, seed=3)
    assert sum(len(group) - 1 for group in some) == 10
