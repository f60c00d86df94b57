"""Starting from what was best for similar workloads."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from conftest import workload_of
from shapes import contraction, convolution
from test_database import trial

from tcl_iree.database import Database, ScheduleRecord, Trial
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.search import make_strategy
from tcl_iree.search.strategy import Strategy
from tcl_iree.target import Target
from tcl_iree.transform_dialect.families import family_of
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.similar import Similar
from tcl_iree.workflows.trials import workload_record
from tcl_iree.workload.model import Workload

# Nothing runs here: a fixed class gives the same spaces on every machine.
TARGET = Target.parse("cpu:avx512,threads=1")


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> list[Workload]:
    sizes = [(64, 128, 256), (64, 128, 192), (512, 512, 512)]
    texts = [contraction({"m": m, "n": n, "k": k}) for m, n, k in sizes]
    return [workload_of(text, tmp_path_factory.mktemp("product"), TARGET) for text in texts]


def measured(workload: Workload, schedule: Schedule, ratio: float) -> tuple[ScheduleRecord, Trial]:
    record = ScheduleRecord(schedule.family, schedule.plain, "a script")
    facts = {"workload": workload.key, "target": TARGET.key, "iree": IREE_VERSION, "schedule": record.sha}
    return record, trial(f"{workload.key} {record.sha}", ratio=ratio, **facts)


def sampled(workload: Workload, count: int) -> list[Schedule]:
    rng, family = Random(3), family_of("contraction")
    return [schedule for _ in range(count) if (schedule := family.sample(workload, TARGET, rng))]


def test_the_nearest_schedule_is_legal_and_itself_where_it_fits(products: list[Workload]) -> None:
    family = family_of("contraction")
    found = 0
    for schedule in sampled(products[0], 30):
        assert family.nearest(schedule, products[0], TARGET) == schedule
        near = family.nearest(schedule, products[2], TARGET)
        if near:
            found += 1
            assert family.why_illegal(near, products[2], TARGET) is None
            assert near["copy"] == schedule["copy"]
    assert found > 3
    assert family.nearest(Schedule.of("contraction", rows=1), products[0], TARGET) is None


def test_the_most_similar_come_first_and_own_workloads_are_left_out(products: list[Workload], tmp_path: Path) -> None:
    best, worse = sampled(products[0], 2)
    far = sampled(products[2], 1)[0]
    rows = [(products[0], best, 3.0), (products[0], worse, 1.5), (products[2], far, 2.0)]
    with Database(tmp_path / "trials.db") as database:
        for workload, schedule, ratio in rows:
            database.add_trial(workload_record(workload), *measured(workload, schedule, ratio))
        records = database.schedules()
        found = Similar(database, records, TARGET, ()).schedules(products[1])
        family = family_of("contraction")
        wanted = [family.nearest(schedule, products[1], TARGET) for schedule in (best, worse, far)]
        assert found == [schedule for schedule in dict.fromkeys(wanted) if schedule]
        assert found
        without = Similar(database, records, TARGET, {products[0].key}).schedules(products[1])
        assert without == [schedule for schedule in wanted[2:] if schedule]
        elsewhere = Target.parse("cpu:avx2,threads=1")
        assert Similar(database, records, elsewhere, ()).schedules(products[1]) == []


def test_other_computations_are_not_similar(products: list[Workload], tmp_path: Path) -> None:
    window = workload_of(convolution(8, 32, 14, 3), tmp_path, TARGET)
    with Database(tmp_path / "trials.db") as database:
        database.add_trial(workload_record(products[0]), *measured(products[0], sampled(products[0], 1)[0], 2.0))
        assert Similar(database, database.schedules(), TARGET, ()).schedules(window) == []


@pytest.mark.parametrize("name", ["guided", "annealing"])
def test_a_search_thinks_of_its_seeds(name: str, products: list[Workload]) -> None:
    from tcl_iree.features.steps import Candidate
    from tcl_iree.learning.floors import RandomModel

    space = Space(products[0], TARGET)
    (seed,) = sampled(products[0], 1)

    class Fond(RandomModel):
        """Knows no better schedule than the seed."""

        def predict(self, workload: Workload, target: Target, candidates: list[Candidate]):
            return super().predict(workload, target, candidates) * 0.0 + [1.0 * (entry == seed) for entry in candidates]

        def embed(self, workload: Workload, target: Target, candidates: list[Candidate]):
            return super().predict(workload, target, candidates)[:, None]

    made: Strategy = make_strategy(name, space, 0, Fond(), [seed])
    assert seed in made.ask(8)
