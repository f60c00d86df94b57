"""The runs of `benchmarks.time_to_quality --live`: the tuner itself with one cost model after the other."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import torch

from benchmarks.from_nothing import from_nothing
from benchmarks.kept import file_name, kept
from benchmarks.op_list import OPS, build, model_of
from benchmarks.quality_figures import Task, figures
from benchmarks.quality_report import show
from benchmarks.training import Trainer
from benchmarks.tuner_run import TunerRun
from tcl_iree.errors import TclIreeError
from tcl_iree.frontend import Model, load_model
from tcl_iree.learning.groups import fingerprint
from tcl_iree.processes import scratch_directory
from tcl_iree.report.progress import progress
from tcl_iree.target import Target
from tcl_iree.workflows.tune import tune

OURS, YARDSTICK = "mamba", "tenset-mlp"


@dataclass(frozen=True)
class LiveOptions:
    """What to run.

    Attributes:
        sources: operators of `benchmarks.op_list`, and networks of the zoo.
        trials: for each dispatch; `early` and `within` are as in a replay.
        base, layouts: fixed, so that all runs search the same dispatches.
        output: runs are kept below this directory.
    """

    sources: Sequence[str]
    seeds: Sequence[int]
    target: Target
    trials: int
    early: int
    within: float
    base: str
    layouts: str
    output: Path


def live(trainer: Trainer, options: LiveOptions) -> dict[str, Any]:
    """Do every run that was not done yet, print the figures and return them.

    Raises:
        TclIreeError: nothing can be compared.
    """
    settings = (trainer.run, options.target.key, options.trials, options.base, options.layouts)
    place = options.output / "live" / fingerprint(settings, [])
    runs: dict[str, dict[str, list[TunerRun]]] = {name: {} for name in (OURS, YARDSTICK)}
    failed = {}
    for source in options.sources:
        try:
            done = {name: _runs(source, name, trainer, options, place) for name in runs}
        except TclIreeError as error:  # the others may do better
            failed[source] = str(error)
            print(f"{source}: {error}", file=sys.stderr, flush=True)
            continue
        for name, held in done.items():
            runs[name][source] = held
    if not runs[OURS]:
        raise TclIreeError(f"no run of the tuner can be compared: {'; '.join(failed.values())}")
    tasks, weights = {}, {}
    for source in runs[OURS]:
        held = [run for entry in runs.values() for run in entry[source]]
        most = max(run.dispatches for run in held)
        tasks[source] = Task(source, options.trials * most, options.early * most)
        weights[source] = common_weights(held)
    curves = {
        name: {source: [run.curve(weights[source]) for run in held] for source, held in entry.items()}
        for name, entry in runs.items()
    }
    rows = figures(curves, tasks, YARDSTICK, options.within)
    show("the tuner on this machine", rows, tasks, YARDSTICK, OURS, options.early)
    return {
        "target": str(options.target),
        "trials": options.trials,
        "early": options.early,
        "within": options.within,
        "base": options.base,
        "layouts": options.layouts,
        "seeds": list(options.seeds),
        "failed": failed,
        "searches": rows,
        "curves": {
            name: {source: [curve.improvements() for curve in held] for source, held in entry.items()}
            for name, entry in curves.items()
        },
    }


def common_weights(runs: Sequence[TunerRun]) -> dict[str, float]:
    """What each dispatch takes by default, the same for all runs: ratios to it are steady, its own time drifts."""
    keys = dict.fromkeys(key for run in runs for key in run.weights)
    return {key: median(run.weights[key] for run in runs if key in run.weights) for key in keys}


def _runs(source: str, name: str, trainer: Trainer, options: LiveOptions, place: Path) -> list[TunerRun]:
    """One for each seed."""
    done = []
    for seed in options.seeds:
        path = place / f"{file_name(f'{source} {name} {seed}')}.json"
        plain: Mapping[str, Any] = kept(path, partial(_run, source, name, seed, trainer, options))
        done.append(TunerRun.from_plain(plain))
        final = done[-1].curve()
        print(
            f"{source}, {name}, seed {seed}: {final.start / final.final:.2f}x of the default after "
            f"{len(final.seconds)} trials, {final.seconds[-1]:.0f} s", file=sys.stderr, flush=True,
        )  # fmt: skip
    return done


def _run(source: str, name: str, seed: int, trainer: Trainer, options: LiveOptions) -> dict[str, Any]:
    """Tune once, from nothing."""
    checkpoint = trainer.path(name, seed)
    with (
        scratch_directory("live") as scratch,
        from_nothing() as database,
        progress(1, f"{source}, {name}, seed {seed}") as step,
    ):
        result = tune(
            _model(source, scratch),
            target=options.target,
            database=database,
            say=step,
            trials=options.trials,
            model=str(checkpoint),
            seed=seed,
            base=options.base,
            layouts=options.layouts,
            scope="quick",
            seconds=0.0,
            min_share=0.0 if source in OPS else 0.005,
        )
        done = TunerRun.of(database, result.report)
    if not done.trials:
        raise TclIreeError(f"nothing was tried: {'; '.join(row.status for row in result.report.workloads)}")
    return done.plain() | {"finished": time.time()}


def _model(source: str, scratch: str) -> Model:
    if source in OPS:
        return model_of(build(source), scratch)
    torch.manual_seed(0)
    return load_model(f"zoo:{source}")
