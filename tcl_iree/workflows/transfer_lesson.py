"""What is to be learned of a new platform: recorded programs of it, or programs that are chosen and measured now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.database import Database
from tcl_iree.errors import LearningError, OptionError, TargetError
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.groups import Group
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.sampling import make_sampler
from tcl_iree.learning.sampling.programs import ProgramList, without_bred
from tcl_iree.learning.split import TEST, Split
from tcl_iree.report.progress import Step
from tcl_iree.target import Target
from tcl_iree.workflows.base_flags import Base, choose_base, with_stack
from tcl_iree.workflows.dispatches import form_dispatches
from tcl_iree.workflows.label import draw_pool, measure_programs
from tcl_iree.workflows.layouts import KEEP
from tcl_iree.workflows.train import training_parts
from tcl_iree.workflows.transfer_options import TransferOptions
from tcl_iree.workload.model import Workload

# Of labels that are measured, this share says when to stop; few workloads with enough programs each to be ranked.
_STOP_BY = 5
_TO_RANK = 8


@dataclass(frozen=True)
class Prepared:
    """A lesson, and what it took to get it.

    Attributes:
        measured: programs measured now; `known` are those that the database had.
        left: workloads or networks left out, and why.
    """

    lesson: Lesson
    measured: int = 0
    known: int = 0
    left: dict[str, str] | None = None


def recorded_groups(target: str, groups: Sequence[Group]) -> list[Group]:
    """Groups of the platform that is meant: a target of this machine, or the key of any, or the beginning of it.

    Raises:
        TargetError: it is no target, and no platform of the data either.
        OptionError: several platforms begin like this.
    """
    try:
        key = Target.parse(target).key
    except TargetError as error:
        known = sorted({group.platform for group in groups})
        keys = [platform for platform in known if platform.startswith(target)]
        if not keys:
            raise TargetError(f"{error}; platforms of the data: {', '.join(known) or 'none'}") from None
        if len(keys) > 1:
            raise OptionError(f"{target} is the beginning of several platforms: {', '.join(keys)}") from None
        key = keys[0]
    return [group for group in groups if group.platform == key]


def recorded_lesson(base: NeuralModel, own: Sequence[Group], split: Split | None, options: TransferOptions) -> Prepared:
    """Choose among programs that were measured already; only the times of those chosen are read."""
    training, validation = training_parts(own, split)
    pool = [group for group in map(without_bred, training) if len(group) > 1]
    labelled = _chosen(base, pool, options.labels, options)
    return Prepared(Lesson(own[0].platform, labelled, validation, [group.hidden() for group in pool]))


def measured_lesson(
    base: NeuralModel,
    target: Target,
    networks: Sequence[str],
    groups: Sequence[Group],
    database: Database,
    split: Split | None,
    options: TransferOptions,
    say: Step,
) -> Prepared:
    """Draw random programs, choose among them and measure those.

    Args:
        networks: whose workloads to draw programs of; without any, those of the groups are taken.
    """
    target.require_runnable()
    if options.base_flags == "auto":
        raise OptionError("a transfer measures no flag sets to choose from: give --base one's name, such as plain")
    flags = choose_base(options.base_flags, target, None)
    under = with_stack(flags.flag_set, target).flags
    workloads, left = _workloads(networks, groups, target, flags, under, say)
    usable = [entry for entry in workloads if not split or split.part(entry) != TEST]
    say("drawing programs")
    pool = draw_pool(usable, target, options.per_workload, options.seed)
    if not pool:
        raise LearningError(
            f"none of {len(workloads)} workloads can be learned from: no schedule family serves them, or they are for "
            "testing (--all learns from those too); give other --networks"
        )
    training, validation = training_parts(pool, split)
    stop_by = options.labels // _STOP_BY
    chosen = _to_stop_by(validation, stop_by, options.seed)
    chosen += _chosen(base, training, options.labels - stop_by, options)
    found = measure_programs(chosen, target, under, database, options.longest, say)
    keys = {group.workload.key for group in training}
    labelled = [group for group in found.groups if group.workload.key in keys]
    held = [group for group in found.groups if group.workload.key not in keys]
    return Prepared(Lesson(target.key, labelled, held, training), found.measured, found.known, left | found.left)


def _workloads(
    networks: Sequence[str], groups: Sequence[Group], target: Target, base: Base, flags: Sequence[str], say: Step
) -> tuple[list[Workload], dict[str, str]]:
    if networks:
        dispatches, left = form_dispatches(networks, target, base, KEEP, say)
        return [entry.workload for entry in dispatches], left
    if not groups:
        raise OptionError("there is nothing to choose programs of: give --networks, or --data with measured workloads")
    return list({group.workload.key: group.workload for group in groups}.values()), {}


def _chosen(base: NeuralModel, pool: Sequence[Group], count: int, options: TransferOptions) -> list[Group]:
    """The programs worth measuring, as the base sees them."""
    listed = ProgramList.of(pool)
    none = np.zeros(0, np.int64)
    return listed.chosen(make_sampler(options.sampler).choose(listed.pool(base, none), count, none, options.seed))


def _to_stop_by(pool: Sequence[Group], count: int, seed: int) -> list[Group]:
    """Some programs of a few workloads, by chance."""
    number = min(len(pool), max(1, count // _TO_RANK))
    rng = np.random.default_rng(seed)
    drawn = [pool[index] for index in rng.permutation(len(pool))[:number]]
    return [group.part(1 + rng.permutation(len(group) - 1)[: max(2, count // number)]) for group in drawn]
