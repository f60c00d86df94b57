"""Samplers: one conformance suite for all, and what each is for."""

from __future__ import annotations

import numpy as np
import pytest

from tcl_iree.errors import OptionError
from tcl_iree.learning.sampling import SAMPLERS, Pool, make_sampler
from tcl_iree.learning.sampling.greedy import RduSampler, density
from tcl_iree.learning.sampling.sampler import allot, by_turns, parts, shares
from tcl_iree.learning.sampling.uncertainty import posterior, spread

NAMES = list(SAMPLERS)


def pool_of(count: int = 600, workloads: int = 5, columns: int = 8, seed: int = 0) -> Pool:
    """Workloads of several sizes, each a few clusters."""
    rng = np.random.default_rng(seed)
    of = np.sort(rng.choice(workloads, count, p=rng.dirichlet(np.full(workloads, 5.0))))
    centres = rng.normal(size=(workloads, 4, columns)) * 3.0
    embeddings = centres[of, rng.integers(4, size=count)] + rng.normal(size=(count, columns))
    return Pool(embeddings.astype(np.float32), of, rng.normal(size=count), rng.random(count))


def reach(pool: Pool, chosen: np.ndarray) -> float:
    """How far programs are from the nearest chosen one, on average."""
    apart = np.linalg.norm(pool.embeddings[:, None] - pool.embeddings[None, chosen], axis=-1)
    return float(apart.min(1).mean())


# Conformance.


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", [1, 7, 60, 599])
def test_chooses_so_many_different_programs(name: str, count: int) -> None:
    chosen = make_sampler(name).choose(pool_of(), count)
    assert chosen.shape == (count,)
    assert len(np.unique(chosen)) == count
    assert chosen.min() >= 0
    assert chosen.max() < 600


@pytest.mark.parametrize("name", NAMES)
def test_never_chooses_what_is_taken(name: str) -> None:
    pool, taken = pool_of(), np.arange(0, 600, 3)
    chosen = make_sampler(name).choose(pool, 100, taken)
    assert not np.intersect1d(chosen, taken).size
    everything = make_sampler(name).choose(pool, 10_000, taken)
    assert sorted(np.concatenate([everything, taken]).tolist()) == list(range(600))


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_chooses_the_same(name: str) -> None:
    pool, sampler = pool_of(), make_sampler(name)
    assert np.array_equal(sampler.choose(pool, 50, seed=4), sampler.choose(pool, 50, seed=4))
    if name in ("random", "badge"):
        assert not np.array_equal(sampler.choose(pool, 50, seed=4), sampler.choose(pool, 50, seed=5))


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_choose(name: str) -> None:
    pool, sampler = pool_of(), make_sampler(name)
    assert sampler.choose(pool, 0).shape == (0,)
    assert sampler.choose(pool, 5, np.arange(600)).shape == (0,)


@pytest.mark.parametrize("name", NAMES)
def test_programs_that_are_all_alike(name: str) -> None:
    pool = Pool(np.ones((40, 3), np.float32), np.zeros(40, np.int64), np.zeros(40), np.zeros(40))
    assert len(np.unique(make_sampler(name).choose(pool, 20))) == 20


@pytest.mark.parametrize("name", NAMES)
def test_bad_input_is_one_clear_error(name: str) -> None:
    sampler = make_sampler(name)
    with pytest.raises(OptionError, match="cannot choose -1"):
        sampler.choose(pool_of(), -1)
    with pytest.raises(OptionError, match="of a pool of 600"):
        sampler.choose(pool_of(), 1, np.array([600]))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "uncertainty"])
def test_every_workload_gets_its_share(name: str) -> None:
    pool = pool_of()
    chosen = make_sampler(name).choose(pool, 120)
    held, given = np.bincount(pool.workloads), np.bincount(pool.workloads[chosen], minlength=5)
    assert (np.abs(given / held - 0.2) < 0.08).all()


def test_a_pool_that_does_not_fit_together() -> None:
    with pytest.raises(OptionError, match="as many scores"):
        Pool(np.zeros((3, 2), np.float32), np.zeros(3, np.int64), np.zeros(2), np.zeros(3))
    with pytest.raises(OptionError, match="finite"):
        Pool(np.full((1, 2), np.nan, np.float32), np.zeros(1, np.int64), np.zeros(1), np.zeros(1))
    with pytest.raises(OptionError, match="no sampler 'best'"):
        make_sampler("best")


# What each is for.


def test_uncertainty_takes_the_most_uncertain() -> None:
    pool = pool_of()
    chosen = make_sampler("uncertainty").choose(pool, 30)
    assert pool.uncertainty[chosen].min() >= np.sort(pool.uncertainty)[-30]


@pytest.mark.parametrize("name", ["rdu", "k-center", "biased"])
def test_diverse_samplers_reach_more_of_the_pool_than_chance(name: str) -> None:
    pool = pool_of()
    found = np.mean([reach(pool, make_sampler(name).choose(pool, 40, seed=seed)) for seed in range(3)])
    by_chance = np.mean([reach(pool, make_sampler("random").choose(pool, 40, seed=seed)) for seed in range(9)])
    assert found < by_chance


def test_what_is_taken_is_not_covered_again() -> None:
    """Two far clusters; one is taken already, so the first choice is of the other."""
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(100, 4)).astype(np.float32)
    embeddings[50:] += 50.0
    pool = Pool(embeddings, np.zeros(100, np.int64), np.zeros(100), np.zeros(100))
    assert make_sampler("rdu").choose(pool, 1, np.arange(10))[0] >= 50
    assert make_sampler("rdu").choose(pool, 1, np.arange(50, 60))[0] < 50


def test_what_is_taken_of_other_workloads_counts() -> None:
    """The second workload is like the first in one half; the other half is new."""
    rng = np.random.default_rng(0)
    embeddings = rng.normal(size=(60, 4)).astype(np.float32)
    embeddings[40:] += 30.0
    pool = Pool(embeddings, np.repeat([0, 1, 1], 20), np.zeros(60), np.zeros(60))
    assert make_sampler("k-center").choose(pool, 1, np.arange(20))[0] >= 40


def test_rdu_weighs_its_three_parts() -> None:
    pool = pool_of()
    unsure = RduSampler(0.0, 0.0, 1.0).choose(pool, 60)
    plain = RduSampler(0.0, 1.0, 0.0).choose(pool, 60)
    dense = RduSampler(1.0, 0.0, 0.0).choose(pool, 60)
    assert pool.uncertainty[unsure].mean() > pool.uncertainty[plain].mean()
    assert reach(pool, plain) < reach(pool, dense)
    members = np.flatnonzero(pool.workloads == 0)
    crowded = density(pool.embeddings[members], np.random.default_rng(0))
    assert crowded[np.isin(members, dense)].mean() > crowded.mean()


@pytest.mark.parametrize("name", ["rdu", "random", "badge"])
def test_what_is_taken_counts_towards_a_workloads_share(name: str) -> None:
    pool = pool_of(count=1200, workloads=60)
    taken = np.flatnonzero(pool.workloads < 20)[::4]
    chosen = make_sampler(name).choose(pool, 300 - len(taken), taken)
    sizes = np.bincount(pool.workloads)
    both = np.bincount(pool.workloads[np.concatenate([taken, chosen])], minlength=60)[sizes >= 10] / sizes[sizes >= 10]
    assert both.min() > 0.1
    assert both.max() < 0.45
    given = np.bincount(pool.workloads[chosen], minlength=60)
    assert given[:20].mean() < 0.6 * given[20:].mean(), "those that have some get fewer"


def test_rdu_may_choose_among_workloads_first() -> None:
    pool = pool_of(count=1200, workloads=60)
    four = make_sampler("rdu")
    few = four.choose(pool, 40)
    held = np.bincount(pool.workloads[few], minlength=60)
    assert np.count_nonzero(held) <= 11, "a tenth of the workloads rather than one program of each"
    assert np.median(held[held > 0]) >= 3
    more = four.choose(pool, 40, few)
    both = np.bincount(pool.workloads[np.concatenate([few, more])], minlength=60)
    assert np.count_nonzero(held) < np.count_nonzero(both) <= 22, "then others"
    assert np.count_nonzero(np.bincount(pool.workloads[RduSampler(together=1).choose(pool, 40)])) > 25
    assert np.count_nonzero(np.bincount(pool.workloads[four.choose(pool, 400)])) > 55


def test_the_biased_sampler_prefers_what_is_thought_fast() -> None:
    pool = pool_of()
    thought = pool.goodness
    assert thought[make_sampler("biased").choose(pool, 60)].mean() > thought.mean() + 0.1


def test_goodness_is_a_place_within_the_workload() -> None:
    pool = Pool(
        np.zeros((5, 1), np.float32), np.array([1, 0, 1, 0, 1]), np.array([5.0, 9.0, 7.0, -1.0, 6.0]), np.zeros(5)
    )
    assert pool.goodness.tolist() == pytest.approx([1 / 3, 1.0, 1.0, 0.5, 2 / 3])


def test_shares_add_up() -> None:
    rng = np.random.default_rng(0)
    assert allot(np.array([10, 20, 30]), 6, rng).tolist() == [1, 2, 3]
    assert allot(np.array([1, 1, 1]), 2, rng).sum() == 2
    often = np.mean([allot(np.array([1.0, 1.0, 2.0, 0.0]), 1, rng) for _ in range(2000)], axis=0)
    assert often == pytest.approx([0.25, 0.25, 0.5, 0.0], abs=0.05), "a small claim is as good as its size"


def test_no_part_gives_more_than_it_has() -> None:
    pool = Pool(np.zeros((12, 1), np.float32), np.repeat([0, 1, 2], [1, 3, 8]), np.zeros(12), np.zeros(12))
    members = parts(pool, np.arange(12), np.random.default_rng(0))
    weights = np.array([5.0, 5.0, 0.1])
    given = shares(members, pool, np.zeros(0, np.int64), 10, np.random.default_rng(0), weights)
    assert given.tolist() == [1, 3, 6]


def test_turns_leave_none_out() -> None:
    assert by_turns([np.array([1, 2, 3]), np.array([7])]).tolist()[:2] == [1, 7]


# Uncertainty.


def test_the_posterior_is_sure_of_what_was_measured() -> None:
    rng = np.random.default_rng(0)
    known, new = rng.normal(size=(200, 6)), rng.normal(size=(50, 6))
    new[:, 0] += 8.0
    unsure = posterior(np.concatenate([known[:50], new]), known)
    assert unsure[:50].max() < unsure[50:].min()
    before = posterior(np.concatenate([known[:50], new]), known[:0])
    assert (before > unsure).all(), "measuring makes surer"


def test_opinions_that_only_differ_in_scale_agree() -> None:
    rng = np.random.default_rng(0)
    scores, workloads = rng.normal(size=40), np.repeat([0, 1], 20)
    scaled = np.stack([scores, 3.0 * scores + 5.0])
    assert spread(scaled, workloads) == pytest.approx(np.zeros(40), abs=1e-9)
    other = scaled.copy()
    other[1, :20] = rng.normal(size=20)
    assert spread(other, workloads)[:20].mean() > 0.1
    assert spread(other, workloads)[20:] == pytest.approx(np.zeros(20), abs=1e-9)
