"""One op of `benchmarks.versus_tvm`: tuned by both, then timed side by side."""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import measured_here
from benchmarks.contender import Contender
from benchmarks.contest import Contest, contest
from benchmarks.curve import Curve
from benchmarks.from_nothing import from_nothing
from benchmarks.kept import kept
from benchmarks.op_list import build, model_of
from benchmarks.tuner_run import TunerRun
from benchmarks.tvm_figures import compared
from benchmarks.tvm_ops import description, weights
from tcl_iree.errors import MeasureError
from tcl_iree.hardware import host_cpu, machine_memory
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.measure.exclusive import exclusive
from tcl_iree.measure.model_job import redrawn
from tcl_iree.processes import run_limited, scratch_directory
from tcl_iree.report.progress import progress
from tcl_iree.target import Target
from tcl_iree.workflows import flag_sets, whole_model
from tcl_iree.workflows.tune import tune

TORCH, PLAIN, OURS = "torch", "IREE", "tcl-iree"
_WEIGHTS, _PLAIN, _TUNED = "weights.npz", "plain.vmfb", "tuned.vmfb"
_READY_SECONDS = 600.0


@dataclass(frozen=True)
class MatchOptions:
    """How to tune and time.

    Attributes:
        trials: of MetaSchedule, ascending; it is tuned once, with the most of them.
        budget: trials of this tuner for each dispatch.
        scope: flag sets that this tuner looks at.
        seconds: timing of each contender.
        limit: seconds that MetaSchedule may take.
    """

    trials: Sequence[int]
    budget: int
    scope: str
    seed: int
    seconds: float
    limit: float

    @property
    def settings(self) -> str:
        """What figures depend on, the time for timing left out."""
        return f"trials={'+'.join(map(str, self.trials))}, ours={self.budget}, scope={self.scope}, seed={self.seed}"


class Match:
    """One op.

    Args:
        python: an interpreter that has TVM.
        place: directory that what was tuned is kept in.
        again: forget what is kept there.
    """

    def __init__(
        self, name: str, target: Target, options: MatchOptions, python: Path, place: Path, again: bool = False
    ) -> None:
        self._name, self._target, self._options = name, target, options
        self._python, self._place = python, place
        self._op = build(name)
        if again:
            shutil.rmtree(place, ignore_errors=True)

    def figures(self) -> dict[str, Any]:
        """Tune what was not tuned yet, time, and compare.

        Raises:
            TclIreeError: one of them cannot tune it, or its result is wrong.
        """
        theirs = kept(self._place / "tvm.json", self._tune_tvm)
        ours = kept(self._place / "ours.json", self._tune)
        timed = self._timed(theirs)
        for name in (PLAIN, OURS):
            if name not in timed.standings:
                raise MeasureError(f"{name} was not timed: {timed.failed[name]}")
        log = Curve.of(theirs["log"])
        counts = [
            trials
            for trials in self._options.trials
            if _tvm(trials) in timed.standings and math.isfinite(log.first(trials).final)
        ]
        if not counts:
            raise MeasureError(f"TVM's code was not timed: {timed.failed.get(_tvm(self._options.trials[-1]), '')}")
        mine = _our_curve(ours).scaled_to(timed.standings[OURS].median)
        mine = replace(mine, start=timed.standings[PLAIN].median)  # what there is before anything is tuned
        others = {trials: log.first(trials).scaled_to(timed.standings[_tvm(trials)].median) for trials in counts}
        return measured_here() | {
            "tvm": f"{theirs['version']}, {theirs['target']}",
            "shipped": ours["shipped"],
            "base": ours["base"],
            "our_total_seconds": ours["seconds"],
            "their_total_seconds": theirs["seconds"],
            "their_failed_trials": sum(latency is None for _, latency in theirs["log"]),
            "rounds": len(timed.standings[OURS].slices),
            "depends_on_input": timed.depends_on_input,
            "failed": timed.failed,
            "contenders": {
                name: {
                    "about": standing.about,
                    "median": standing.median,
                    "minimum": standing.minimum,
                    "difference": standing.difference,
                    "over_ours": dict(zip(("ratio", "error"), timed.ratio(name, OURS), strict=True)),
                }
                for name, standing in timed.standings.items()
            },
            "after": {str(trials): compared(mine, other) for trials, other in others.items()},
            "our_curve": mine.improvements(),
            "their_curve": others[counts[-1]].improvements(),
        }

    def _tune_tvm(self) -> dict[str, Any]:
        """MetaSchedule's trials and modules; the modules are files beside."""
        place = self._place / "tvm"
        shutil.rmtree(place, ignore_errors=True)  # of a run that was cut off
        place.mkdir(parents=True)
        held = weights(self._op)
        if held:
            np.savez(place / _WEIGHTS, allow_pickle=False, **held)
        job = description(self._op) | {
            "weights": [list(array.shape) for array in held.values()],
            "threads": self._target.threads,
            "workers": host_cpu().cores,
            "trials": list(self._options.trials),
            "seed": self._options.seed,
        }
        (place / "job.json").write_text(json.dumps(job))
        # By itself TVM would bind its threads to the machine's first cores, whichever it may use.
        environment = ["/usr/bin/env", f"TVM_NUM_THREADS={self._target.threads}", "TVM_BIND_THREADS=0"]
        command = [*environment, str(self._python), "-m", "benchmarks.tvm_tune"]
        with exclusive(), progress(1, f"{self._name}: MetaSchedule"):
            try:
                done = run_limited([*command, str(place / "job.json")], self._options.limit, machine_memory())
            except subprocess.TimeoutExpired:
                raise MeasureError(
                    f"MetaSchedule did not end within {self._options.limit:g} s; give it more with --limit"
                ) from None
        (place / "log").write_text(done.stdout + done.stderr)
        if done.returncode:
            said = done.stderr.strip().splitlines() or ["no message"]
            raise MeasureError(f"MetaSchedule failed: {said[-1][:300]} ({place / 'log'} has more)")
        found = json.loads((place / "tvm-result.json").read_text())
        if all(latency is None for _, latency in found["log"]):
            raise MeasureError(f"none of MetaSchedule's {len(found['log'])} trials worked ({place / 'log'} has more)")
        return found

    def _tune(self) -> dict[str, Any]:
        """This tuner's trials; the module is a file beside."""
        options = self._options
        with (
            scratch_directory("versus") as scratch,
            from_nothing() as database,
            progress(1, self._name) as step,
        ):
            began = time.time()
            result = tune(
                model_of(self._op, scratch),
                target=self._target,
                database=database,
                say=step,
                trials=options.budget,
                scope=options.scope,
                seed=options.seed,
                min_share=0.0,
                seconds=min(5.0, options.seconds),
            )
            report, plain = result.report, result.compiled.get(flag_sets.PLAIN.name)
            if result.module is None or plain is None:
                raise MeasureError(f"tuning gave no module: {'; '.join(report.notes)}")
            self._place.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(result.module, self._place / _TUNED)
            shutil.copyfile(plain, self._place / _PLAIN)
            return TunerRun.of(database, report, began).plain() | {
                "shipped": report.shipped,
                "base": report.base,
                "seconds": report.seconds,
            }

    def _timed(self, theirs: dict[str, Any]) -> Contest:
        threads, place = self._target.threads, self._place / "tvm"
        held = str(place / _WEIGHTS) if (place / _WEIGHTS).exists() else ""
        field = [
            Contender(TORCH, "torch op", {"name": self._name, "threads": threads}),
            self._module(PLAIN, self._place / _PLAIN, "without flags"),
            self._module(OURS, self._place / _TUNED, "tuned"),
        ]
        for trials in self._options.trials:
            path = str(place / theirs["modules"][str(trials)]["file"])
            about = f"TVM {theirs['version']}, MetaSchedule, {trials} trials"
            options = {"path": path, "weights": held, "about": about}
            field.append(Contender(_tvm(trials), "tvm", options, python=str(self._python)))
        inputs = [tensor.numpy() for tensor in self._op.inputs]
        with progress(1, f"{self._name}: timing") as step:
            return contest(
                field,
                self._target,
                [inputs, redrawn(inputs, 1)],
                self._options.seconds,
                _READY_SECONDS,
                self._place,
                step,
            )

    def _module(self, name: str, path: Path, how: str) -> Contender:
        where = {"path": str(path), "device": self._target.device, "flags": self._target.runtime_flags}
        return Contender(name, "iree", where | {"about": f"IREE {IREE_VERSION}, {how}"})


def _tvm(trials: int) -> str:
    return f"TVM {trials}"


def _our_curve(ours: dict[str, Any]) -> Curve:
    """How the best latency fell; where one of IREE's flag sets is shipped, it was known before the search began."""
    curve = TunerRun.from_plain(ours).curve()
    if str(ours["shipped"]).startswith(whole_model.TUNED):
        return curve
    return Curve((min(curve.seconds, default=ours["seconds"]),), (1.0,))
