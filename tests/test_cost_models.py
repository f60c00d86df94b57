"""What every cost model must do, held over all of them; and what is special to some."""

from __future__ import annotations

import json
import re
from itertools import islice
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from conftest import DATA
from made_up import PLATFORM, made_up_groups

from tcl_iree.database import Database, ScheduleRecord, Trial, WorkloadRecord
from tcl_iree.errors import LearningError
from tcl_iree.features.tokens import Tokenizer
from tcl_iree.features.vocabulary import KINDS
from tcl_iree.learning.calibration import calibrate, estimate
from tcl_iree.learning.checkpoint import Checkpoint, load_checkpoint
from tcl_iree.learning.checkpoint_files import WEIGHTS, checkpoint_file
from tcl_iree.learning.cost_model import CostModel, Epoch, FitOptions
from tcl_iree.learning.council import agreement
from tcl_iree.learning.encoding import tensors
from tcl_iree.learning.evaluation import PAIRS, ahead, evaluate, interval, mean_figure, rank
from tcl_iree.learning.groups import Group, group_of, load_groups, trusted
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.metrics import Ranked, pairwise_accuracy, rank_correlation, top_k
from tcl_iree.learning.models import MODELS, make_model
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.sampling.uncertainty import dropout_scores
from tcl_iree.learning.split import TEST, TRAIN, VALIDATION, load_split, make_split, signature
from tcl_iree.measure.builder import IREE_VERSION, Builder, Candidate
from tcl_iree.target import Target
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.train import train
from tcl_iree.workload.model import Workload

LEARNED = [name for name in MODELS if name not in ("random", "roofline")]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> list[Group]:
    return made_up_groups(tmp_path_factory.mktemp("groups"), PLATFORM)


@pytest.fixture(scope="module")
def fitted(groups: list[Group]) -> dict[str, CostModel]:
    made = {name: make_model(name) for name in MODELS}
    for model in made.values():
        model.fit(groups[:3], groups[3:], FitOptions(epochs=30, patience=30, seed=1))
    return made


def scores_of(model: CostModel, group: Group) -> np.ndarray:
    return model.predict(group.workload, group.target, group.candidates)


# Conformance.


@pytest.mark.parametrize("name", MODELS)
def test_scores_are_one_finite_number_a_candidate(name: str, fitted: dict[str, CostModel], groups: list[Group]) -> None:
    scores = scores_of(fitted[name], groups[3])
    assert scores.shape == (len(groups[3]),)
    assert np.isfinite(scores).all()
    assert len(np.unique(scores)) > len(scores) / 2, "candidates must be told apart"
    assert fitted[name].predict(groups[3].workload, groups[3].target, []).shape == (0,)


@pytest.mark.parametrize("name", MODELS)
def test_a_score_does_not_depend_on_the_others(name: str, fitted: dict[str, CostModel], groups: list[Group]) -> None:
    group, model = groups[3], fitted[name]
    scores = scores_of(model, group)
    backwards = model.predict(group.workload, group.target, group.candidates[::-1])
    alone = np.concatenate([model.predict(group.workload, group.target, [entry]) for entry in group.candidates[:5]])
    assert np.allclose(backwards[::-1], scores, atol=1e-4)
    assert np.allclose(alone, scores[:5], atol=1e-4)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "random"])
def test_a_script_gets_the_score_of_its_schedule(name: str, fitted: dict[str, CostModel], groups: list[Group]) -> None:
    group, model = groups[3], fitted[name]
    space = Space(group.workload, group.target)
    schedules = [entry for entry in group.candidates[1:6] if isinstance(entry, Schedule)]
    texts = [space.script(schedule) for schedule in schedules]
    assert np.allclose(
        model.predict(group.workload, group.target, texts),
        model.predict(group.workload, group.target, schedules),
        atol=1e-4,
    )


@pytest.mark.parametrize("name", ["mamba", "xgboost"])
def test_part_of_a_group_scores_as_in_the_whole(name: str, fitted: dict[str, CostModel], groups: list[Group]) -> None:
    part = groups[3].part(np.array([9, 4, 9]))
    assert part.candidates == tuple(groups[3].candidates[place] for place in (0, 4, 9))
    assert part.seconds.tolist() == groups[3].seconds[[0, 4, 9]].tolist()
    assert part.labels.max() == 1.0, "the best of the part, not of the whole"
    wanted = fitted[name].predict(part.workload, part.target, part.candidates)
    assert np.allclose(fitted[name].score(part), wanted, atol=1e-4)


def test_dropout_gives_opinions_around_the_score(fitted: dict[str, CostModel], groups: list[Group]) -> None:
    model, group = fitted["mamba"], groups[3]
    assert isinstance(model, NeuralModel)
    embeddings = model.embed_group(group)
    whole = dropout_scores(model, embeddings, opinions=2, share=0.0)
    assert np.allclose(whole, scores_of(model, group), atol=1e-4)
    opinions = dropout_scores(model, embeddings, opinions=6, share=0.3)
    assert opinions.shape == (6, len(group))
    assert opinions.std(0).min() > 0.0


@pytest.mark.parametrize("name", LEARNED)
def test_learning_beats_guessing(name: str, fitted: dict[str, CostModel], groups: list[Group]) -> None:
    known = np.mean([pairwise_accuracy(pool) for pool in rank(fitted[name], groups[:3])])
    assert known > 0.6
    assert pairwise_accuracy(rank(fitted[name], groups[3:])[0]) > 0.5


@pytest.mark.parametrize("name", LEARNED)
def test_the_same_seed_learns_the_same(name: str, groups: list[Group]) -> None:
    found = []
    for _ in range(2):
        model = make_model(name)
        history = model.fit(groups[:2], groups[3:], FitOptions(epochs=1, seed=5))
        found.append((scores_of(model, groups[3]), [epoch.loss for epoch in history]))
    assert np.allclose(found[0][0], found[1][0], atol=1e-5)
    assert np.allclose(found[0][1], found[1][1], atol=1e-5)


@pytest.mark.parametrize("name", LEARNED)
def test_an_update_learns_new_measurements(name: str, groups: list[Group]) -> None:
    model = make_model(name)
    model.fit(groups[:2], groups[2:3], FitOptions(epochs=1, seed=0))
    before = pairwise_accuracy(rank(model, groups[3:])[0])
    model.update(groups[3:])
    after = pairwise_accuracy(rank(model, groups[3:])[0])
    assert after > before
    model.update([])  # nothing was measured since
    assert pairwise_accuracy(rank(model, groups[3:])[0]) == pytest.approx(before)


@pytest.mark.parametrize("name", MODELS)
def test_embeddings_are_one_row_a_candidate(name: str, fitted: dict[str, CostModel], groups: list[Group]) -> None:
    group = groups[3]
    rows = fitted[name].embed(group.workload, group.target, [group.candidates[1], *group.candidates])
    assert rows.shape[0] == len(group) + 1
    assert rows.shape[1] > 1
    assert np.isfinite(rows).all()
    assert np.allclose(rows[0], rows[2], atol=1e-4), "equal candidates, equal rows"


@pytest.mark.parametrize("name", MODELS)
def test_a_checkpoint_is_the_model(
    name: str, fitted: dict[str, CostModel], groups: list[Group], tmp_path: Path
) -> None:
    model = fitted[name]
    Checkpoint(model, ("here",), ("abc",), {"top_1": 0.5}, calibration=calibrate(model, groups[3:])).save(
        tmp_path / "made"
    )
    read = load_checkpoint(tmp_path / "made.safetensors")
    assert np.allclose(scores_of(read.model, groups[3]), scores_of(model, groups[3]), atol=1e-6)
    assert (read.model.name, read.training_keys, read.platforms) == (name, ("abc",), ("here",))
    assert read.calibration == calibrate(model, groups[3:])
    assert (read.model.parameters > 100) == (name in LEARNED)


# The Mamba model.


def test_mamba_is_small(fitted: dict[str, CostModel], groups: list[Group], tmp_path: Path) -> None:
    Checkpoint(fitted["mamba"], (), (), {}).save(tmp_path / "mamba")
    assert (tmp_path / "mamba.safetensors").stat().st_size <= 400_000
    assert fitted["mamba"].parameters <= 100_000


@pytest.mark.parametrize("config", [{}, {"width": 24, "depth": 1}, {"width": 32, "depth": 3, "states": 5}])
@pytest.mark.parametrize("compiled", [True, False])
def test_scoring_quickly_changes_no_score(
    config: dict[str, int], compiled: bool, groups: list[Group], monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(3)
    network = MambaNetwork(**config).eval()
    batch = tensors(network.encoder(groups[3].workload, groups[3].target)(groups[3].candidates))
    with torch.enable_grad():
        plain = network(batch).detach()
    if not compiled:
        monkeypatch.setattr("tcl_iree.learning.mamba.native_code", lambda: None)
    with torch.no_grad():
        quick = network(batch)
    assert plain.std() > 1e-3
    assert torch.allclose(plain, quick, atol=1e-5)


def test_scripts_written_by_hand_get_scores(
    fitted: dict[str, CostModel], matmul: Workload, target: Target, builder: Builder
) -> None:
    texts = {path.stem: path.read_text() for path in sorted((DATA / "scripts").glob("*.mlir"))}
    assert len(texts) == 10
    sequences = Tokenizer(matmul, target).sequences(list(texts.values()))
    assert KINDS.index("<unknown>") not in sequences.kinds
    built = builder.build_many(matmul, [Candidate(text) for text in texts.values()])
    assert all(result.artifact for result in built), "they are scripts that work"
    for name in LEARNED:
        scores = fitted[name].predict(matmul, target, list(texts.values()))
        assert np.isfinite(scores).all()
    model = fitted["mamba"]
    for name, text in texts.items():
        changed = re.sub(
            r"(distribution = \[|tile_sizes \[)(\d+)", lambda found: f"{found[1]}{int(found[2]) * 2}", text, count=1
        )
        assert changed != text, name
        first, second = model.predict(matmul, target, [text, changed])
        assert first != second, name


@pytest.mark.parametrize(("passes", "part"), [(2, "teacher-0"), (6, "teacher-1"), (22, "student")])
def test_training_goes_on_where_it_was_cut_off(groups: list[Group], tmp_path: Path, passes: int, part: str) -> None:
    whole = make_model("mamba")
    history = whole.fit(groups[:2], groups[3:], FitOptions(epochs=4, seed=2))
    said: list[Epoch] = []

    class CutOff(Exception):
        pass

    def cut(epoch: Epoch) -> None:
        said.append(epoch)
        if len(said) == passes:
            raise CutOff

    kept = tmp_path / "mamba.unfinished"
    again = make_model("mamba")
    with pytest.raises(CutOff):
        again.fit(groups[:2], groups[3:], FitOptions(epochs=4, seed=2, resume=kept, say=cut))
    assert kept.with_name(f"{kept.name}.{part}").exists()
    resumed = make_model("mamba")
    rest = resumed.fit(groups[:2], groups[3:], FitOptions(epochs=4, seed=2, resume=kept))
    assert [epoch.loss for epoch in rest] == pytest.approx([epoch.loss for epoch in history], rel=1e-4)
    assert np.allclose(scores_of(resumed, groups[3]), scores_of(whole, groups[3]), atol=1e-4)
    with pytest.raises(LearningError, match="other data or settings"):
        make_model("mamba").fit(groups[:2], groups[3:], FitOptions(epochs=4, seed=3, resume=kept))


def test_what_is_kept_learned_what_several_agree_on(groups: list[Group]) -> None:
    """Of programs that nobody measured and none of them saw, it thinks what all think together."""
    seats = [("mamba", {"teachers": 1}), ("tenset-mlp", {"rate": 7e-4}), ("xgboost", {"eta": 0.1})]
    teachers = [make_model(name, config) for name, config in seats]
    for seed, teacher in enumerate(teachers):
        teacher.fit(groups[:3], groups[3:], FitOptions(epochs=40, patience=40, seed=seed))
    kept = make_model("mamba", {"teachers": 3})
    assert (kept.trainings, make_model("mamba", {"teachers": 1}).trainings) == (4, 1)
    kept.fit(groups[:3], groups[3:], FitOptions(epochs=40, patience=40, seed=0))
    found = []
    for group in groups[:3]:
        unseen = list(islice(Space(group.workload, group.target).samples(Random(99)), 40))
        others = Group.unmeasured(group.workload, group.target, unseen)
        found.append(rank_correlation(kept.score(others), agreement(teachers, others)))
    assert min(found) > 0.5
    assert np.mean(found) > 0.75


# Figures.


def test_estimates_are_times_and_chances(fitted: dict[str, CostModel], groups: list[Group]) -> None:
    model = fitted["xgboost"]
    found = estimate(
        model, calibrate(model, groups[:3]), groups[3].workload, groups[3].target, groups[3].candidates[1:]
    )
    works = groups[3].works[1:]
    assert ((found.works > 0) & (found.works < 1)).all()
    assert (found.seconds > 0).all()
    missed = np.abs(np.log2(found.seconds[works] / groups[3].seconds[1:][works]))
    assert np.median(missed) < 2.0


def test_one_model_is_ahead_if_its_interval_says_so() -> None:
    rng = np.random.default_rng(0)
    right, wrong = [], []
    for number in range(8):
        seconds = 1.0 + rng.random(30)
        right.append(Ranked(str(number), "a", 1.0, 4.0, seconds, -seconds))
        wrong.append(Ranked(str(number), "a", 1.0, 4.0, seconds, rng.random(30)))
    assert ahead([right], [wrong], 1)[0] > 0
    low, high = ahead([wrong], [wrong], 1)
    assert low <= 0 <= high
    assert evaluate(right).top_1 == 1.0
    assert ahead([right], [wrong], PAIRS)[0] > 0 > ahead([wrong], [right], PAIRS)[1]
    assert ahead([wrong], [wrong], PAIRS) == (0.0, 0.0)


def test_pairs_of_a_workload_that_networks_share_count_once_and_of_every_platform() -> None:
    seconds = np.array([1.0, 2.0])
    shared = [Ranked("w", network, 1.0, 3.0, seconds, -seconds) for network in ("a", "b")]
    elsewhere = Ranked("w", "a", 1.0, 4.0, seconds, seconds)
    assert evaluate([*shared, elsewhere]).accuracy == mean_figure([[*shared, elsewhere]], PAIRS) == 0.5


def test_an_interval_is_of_the_very_top_k_that_is_told() -> None:
    """With one workload and one seed there is nothing to draw: both ends are the figure itself."""
    rng = np.random.default_rng(0)
    pools = [
        Ranked("w", network, weight, 1.3, np.append(1.0 + rng.random(20), np.nan), rng.random(21))
        for network, weight in (("a", 2.0), ("b", 1.0), ("a", 3.0))
    ]
    for count in (1, 5):
        assert interval([pools], count) == pytest.approx((top_k(pools, count)["mean"],) * 2)
        assert mean_figure([pools], count) == pytest.approx(top_k(pools, count)["mean"])
    assert top_k(pools, 1)["mean"] < 1.0


def test_nothing_of_test_is_in_training_or_validation(groups: list[Group]) -> None:
    first, second, third, fourth = (group.workload for group in groups)
    split = make_split({TEST: {"a": [(first, 2)]}, VALIDATION: {"b": [(second, 1), (first, 1)]},
                        TRAIN: {"c": [(first, 1), (second, 3), (third, 1)], "d": [(fourth, 1)]}})  # fmt: skip
    assert split.members == {
        TEST: {"a": {first.key: 2}},
        VALIDATION: {"b": {second.key: 1}},
        TRAIN: {"c": {third.key: 1}, "d": {fourth.key: 1}},
    }
    parts = split.divide(groups)
    assert [len(parts[part]) for part in (TRAIN, VALIDATION, TEST)] == [2, 1, 1]
    with pytest.raises(LearningError, match="learned from 1 test workloads"):
        split.refuse_overlap([first.key, third.key])
    with pytest.raises(LearningError, match="learned from 1 test workloads"):
        split.refuse_overlap([third.key], groups[2:3])
    split.refuse_overlap([third.key], groups[3:])
    assert signature(first) == "contraction 48x64x80"
    grown = split.with_validation("e", [(first, 1), (third, 5)])
    assert grown.members == {
        TEST: {"a": {first.key: 2}},
        VALIDATION: {"b": {second.key: 1}, "e": {third.key: 5}},
        TRAIN: {"c": {}, "d": {fourth.key: 1}},
    }
    assert [grown.part(group.workload) for group in groups] == [TEST, VALIDATION, VALIDATION, TRAIN]
    assert grown.signatures[TEST] == split.signatures[TEST]


# Bad input.


def saved(tmp_path: Path) -> Path:
    Checkpoint(make_model("mamba", {"width": 16, "depth": 1}), (), (), {}).save(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"vocabulary": "0123"}, "another vocabulary"),
        ({"iree": "1.0"}, "trained for IREE 1.0"),
        ({"format": 9}, "no checkpoint"),
    ],
)
def test_a_checkpoint_for_something_else_is_refused(change: dict[str, object], message: str, tmp_path: Path) -> None:
    path = saved(tmp_path)
    about = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps(about | change))
    with pytest.raises(LearningError, match=message):
        load_checkpoint(path)


def test_a_damaged_checkpoint_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path)
    weights = path.with_suffix(".safetensors")
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(LearningError, match="missing or damaged"):
        load_checkpoint(path)
    weights.unlink()
    with pytest.raises(LearningError, match="missing or damaged"):
        load_checkpoint(path)
    path.with_suffix(".json").write_text("{")
    with pytest.raises(LearningError, match="is damaged"):
        load_checkpoint(path)
    with pytest.raises(LearningError, match="no checkpoint at"):
        load_checkpoint(tmp_path / "nothing")


def test_nothing_to_learn_from(tmp_path: Path, groups: list[Group]) -> None:
    with Database(tmp_path / "empty.db") as database, pytest.raises(LearningError, match="no measured programs"):
        load_groups(database)
    with pytest.raises(LearningError, match="at least two are needed"):
        train("mamba", groups[:1], None)
    with pytest.raises(LearningError, match="no cost model 'oracle'"):
        make_model("oracle")
    with pytest.raises(LearningError, match="more than 0"):
        make_model("mamba", {"depth": 0})
    with pytest.raises(LearningError, match="is missing or is no split"):
        load_split(tmp_path / "nothing.json")


def timed(workload: str, schedule: str, **changes: object) -> Trial:
    blank = dict.fromkeys(("artifact", "reference", "p10", "p50", "p90", "reference_p50", "ratio_error", "error"))
    values = {
        **blank, "uid": "a", "workload": workload, "target": "t", "spec": str(PLATFORM), "iree": IREE_VERSION, "flags": "",
        "schedule": schedule, "status": "ok", "detail": "", "calm": True, "stopped_early": False, "build_seconds": 0.0,
        "run_seconds": 0.0, "measured": True, "created": 0.0, "ratio": 1.0,
    }  # fmt: skip
    return Trial(**{**values, **changes})  # type: ignore[arg-type]


def test_disturbed_measurements_beside_an_unusual_default_are_not_trusted() -> None:
    calm = [timed("w", "s", uid=f"calm {number}", reference_p50=1e-3 + 1e-6 * number) for number in range(3)]
    near = timed("w", "s", uid="near", calm=False, reference_p50=1.04e-3)
    slow = timed("w", "s", uid="slow", calm=False, reference_p50=1.3e-3, ratio=2.0)
    fast = timed("w", "s", uid="fast", calm=False, reference_p50=0.7e-3)
    failed = timed("w", "s", uid="failed", status="wrong_result", calm=None, ratio=None)
    assert trusted([*calm, near, slow, fast, failed]) == [*calm, near, failed]
    assert trusted([near, slow]) == [], "neither is near what both together make usual"
    assert trusted([slow]) == [slow], "there is nothing to hold it against"
    assert trusted([]) == []


def test_a_disturbed_default_is_not_a_group_s(tmp_path: Path, groups: list[Group]) -> None:
    workload, here = groups[0].workload, {"target": PLATFORM.key, "p50": 1e-3}
    default, schedule = ScheduleRecord("default"), ScheduleRecord("mine", script="// a script", entry="main")
    about = WorkloadRecord(workload.key, "", workload.payload, 1, 1)
    with Database(tmp_path / "a.db") as database:
        disturbed = timed(workload.key, default.sha, reference_p50=9e-3, calm=False, **here | {"p50": 9e-3})
        database.add_trial(about, default, disturbed)
        for number in range(3):
            trial = timed(workload.key, schedule.sha, uid=f"{number}", reference_p50=2e-3, ratio=2.0, **here)
            database.add_trial(about, schedule, trial)
        group = group_of(about, database.trials(), database.schedules())
    assert group
    assert group.seconds[0] == 2e-3


def test_running_means_of_a_network_are_kept(groups: list[Group]) -> None:
    class Normed(MambaNetwork):
        def __init__(self, **config: int) -> None:
            super().__init__(**config)
            self.norm = torch.nn.BatchNorm1d(2 * self.number.out_features)

        def embedding(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
            return self.norm(super().embedding(batch))

    model = NeuralModel(Normed())
    model.fit(groups[:2], groups[2:], FitOptions(2))
    assert int(model.network.norm.num_batches_tracked) > 0
    assert model.network.norm.running_mean.any()


def test_a_checkpoint_s_name_may_have_dots() -> None:
    for given in ("a/mamba.v2", "a/mamba.v2.safetensors", "a/mamba.v2.json"):
        assert checkpoint_file(Path(given), WEIGHTS) == Path("a/mamba.v2.safetensors")
        assert checkpoint_file(Path(given)) == Path("a/mamba.v2")


def test_times_that_are_no_numbers_are_refused(tmp_path: Path, groups: list[Group]) -> None:
    workload = groups[0].workload
    record = ScheduleRecord("default")
    trial = timed(workload.key, record.sha, ratio=float("nan"))
    with Database(tmp_path / "bad.db") as database:
        database.add_trial(WorkloadRecord(workload.key, "", workload.payload, 1, 1), record, trial)
        with pytest.raises(LearningError, match="no usable time"):
            load_groups(database)
