"""How fast are the schedules found by random search, or picked untimed, beside IREE's own flags, torch and numpy?

Each op is a tiny model: its dispatches are tuned, then whole calls are timed, interleaved in one process: IREE plain,
IREE's best flag set, the best schedules, torch eager (oneDNN) and numpy (BLAS). Trials are kept in a database, so a run
that was cut off goes on where it stopped. With --by-model the cost model picks every schedule and nothing is timed
before that; those figures are recorded apart.

    python -m benchmarks.ops                                          # all ops, one and two threads, 200 trials
    python -m benchmarks.ops --workloads 'matmul 5' --trials 16 --threads 1 --no-save
    python -m benchmarks.ops --by-model --threads 1                   # schedules as `tcl-iree tune --effort none` picks
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.common import measured_here, recorded, save
from benchmarks.op_list import OPS, build, model_of
from tcl_iree.errors import TclIreeError
from tcl_iree.frontend import Model
from tcl_iree.measure.timing import fast_half
from tcl_iree.report.progress import Step, progress
from tcl_iree.report.tables import console, seconds, table
from tcl_iree.target import Target
from tcl_iree.workflows.bench import bench
from tcl_iree.workflows.tune import tune

_AIMS = {"plain": 3.0, "best flags": 2.0, "torch": 1.0}


def main() -> None:
    """Tune, time, print and keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", default="", metavar="TEXT", help="only ops whose name contains this")
    parser.add_argument("--trials", type=int, default=200, help="random samples for each dispatch")
    parser.add_argument("--by-model", action="store_true", help="no trials: the cost model picks, as effort none does")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--seconds", type=float, default=6.0, help="interleaved timing of each op")
    parser.add_argument("--scope", default="standard", choices=("quick", "standard", "all"))
    parser.add_argument("--db", type=Path, default=Path("out/ops.db"), help="trials that it has already count too")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    names = [name for name in OPS if arguments.workloads in name]
    if not names:
        raise SystemExit(f"no op has {arguments.workloads!r} in its name; there are: {', '.join(OPS)}")
    title = "ops_by_model" if arguments.by_model else "ops"
    kept = [] if arguments.no_save else recorded(title).get("ops", [])
    results = {(entry["op"], _platform(entry)): entry for entry in kept}
    for threads in arguments.threads:
        target = Target.parse(f"cpu,threads={threads}")
        for name in names:
            entry = _measured(name, target, arguments)
            results[name, _platform(entry)] = entry
            print(f"{name}, {threads} threads: {_line(entry)}", file=sys.stderr, flush=True)
            if not arguments.no_save:  # a run that is cut off keeps what it has
                save(title, {"geomeans": _means(list(results.values())), "ops": list(results.values())})
    _print(list(results.values()), _means(list(results.values())))


def _measured(name: str, target: Target, arguments: argparse.Namespace) -> dict[str, Any]:
    about = {"op": name, "threads": target.threads} | measured_here()
    op = build(name)
    try:
        with tempfile.TemporaryDirectory() as scratch, progress(1, name) as step:
            tuned = _picked if arguments.by_model else _searched
            found, modules = tuned(model_of(op, scratch), target, arguments, step, Path(scratch))
            taken = _time(name, target, {key: str(path) for key, path in modules.items()}, arguments.seconds)
    except TclIreeError as error:
        return about | {"group": op.group, "error": str(error)}
    return about | found | {
        "group": op.group,
        "seconds": {contender: statistics.median(times) for contender, times in taken.items()},
        "ratios": {contender: _ratio(times, taken["tuned"]) for contender, times in taken.items()},
    }  # fmt: skip


def _searched(
    model: Model, target: Target, arguments: argparse.Namespace, step: Step, scratch: Path
) -> tuple[dict[str, Any], dict[str, Path]]:
    """By random search; the report, and the compiled contenders."""
    result = tune(
        model,
        target=target,
        database=arguments.db,
        say=step,
        trials=arguments.trials,
        strategy="random",
        scope=arguments.scope,
        min_share=0.0,
        seconds=min(5.0, arguments.seconds),
        again=True,  # all contenders are needed
    )
    report = result.report
    ranked = sorted(report.rows, key=lambda row: -row.vs_plain)
    tuned = next((row.name for row in ranked if row.name.startswith("tuned")), None)
    best = next(row.name for row in ranked if not row.name.startswith("tuned"))
    found = {
        "trials": arguments.trials,
        "best_flags": best,
        "base": report.base,
        "shipped": report.shipped,
        "schedules": {row.label: row.schedule or row.status for row in report.workloads},
        "right_of_tried": [sum(row.right for row in report.workloads), sum(row.tried for row in report.workloads)],
    }
    names = {"plain": "plain", "best flags": best, "tuned": tuned or best}
    return found, {contender: _kept(result.compiled[name], contender, scratch) for contender, name in names.items()}


def _picked(
    model: Model, target: Target, arguments: argparse.Namespace, step: Step, scratch: Path
) -> tuple[dict[str, Any], dict[str, Path]]:
    """By the cost model alone; IREE's flag sets are timed only to know the best of them."""
    result = tune(model, target=target, database=arguments.db, say=step, effort="none")
    measured = bench(model, target, arguments.scope, min(5.0, arguments.seconds), step, scratch)
    assert result.module
    found = {
        "best_flags": measured.best,
        "base": result.report.base,
        "schedules": {row.label: row.schedule or row.status for row in result.report.workloads},
        "tuning_seconds": result.report.seconds,
    }
    own = {
        contender: scratch / f"{name}.vmfb" for contender, name in (("plain", "plain"), ("best flags", measured.best))
    }
    return found, own | {"tuned": _kept(result.module, "tuned", scratch)}


def _kept(module: Path, name: str, scratch: Path) -> Path:
    """A copy that outlives the result it is of."""
    return Path(shutil.copy(module, scratch / f"kept {name}.vmfb"))


def _platform(entry: dict[str, Any]) -> str:
    """Where an op was measured: figures of other machines stay beside this one's."""
    return f"{entry['threads']} threads, {entry['cpu']}"


def _time(name: str, target: Target, modules: dict[str, str], seconds: float) -> dict[str, list[float]]:
    job = {
        "op": name,
        "threads": target.threads,
        "device": target.device,
        "flags": list(target.runtime_flags),
        "modules": modules,
        "seconds": seconds,
    }
    count = str(target.threads)
    environment = {**os.environ, "OMP_NUM_THREADS": count, "OPENBLAS_NUM_THREADS": count, "MKL_NUM_THREADS": count}
    command = [sys.executable, "-m", "benchmarks.op_timing"]
    limit = 120.0 + 10 * seconds
    try:
        done = subprocess.run(
            command, input=json.dumps(job), capture_output=True, text=True, env=environment, timeout=limit
        )
    except subprocess.TimeoutExpired:
        raise TclIreeError(f"timing did not end within {limit:.0f} s") from None
    if done.returncode:
        raise TclIreeError(f"timing failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
    return json.loads(done.stdout)


def _ratio(other: list[float], ours: list[float]) -> dict[str, float]:
    """Time of another over ours: over the faster half of the slices, and its spread from round to round."""
    rounds = sorted(a / b for a, b in zip(other, ours, strict=True))
    low, *_, high = statistics.quantiles(rounds, n=10)
    return {"ratio": math.exp(fast_half(other) - fast_half(ours)), "p10": low, "p90": high}


def _means(results: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Geometric means of the ratios over f32 ops; over torch also for contractions and convolutions alone."""
    means: dict[str, dict[str, float]] = {}
    for platform in dict.fromkeys(map(_platform, results)):
        mine = [entry for entry in results if _platform(entry) == platform and "ratios" in entry]
        wide = [entry for entry in mine if entry["group"] != "narrow"]
        heavy = [entry for entry in wide if entry["group"] in ("contraction", "convolution")]
        sets = {"plain": wide, "best flags": wide, "torch": heavy, "torch, all ops": wide, "numpy": wide}
        found = {}
        for name, chosen in sets.items():
            key = name.partition(",")[0]
            ratios = [entry["ratios"][key]["ratio"] for entry in chosen if key in entry["ratios"]]
            if ratios:
                found[name] = statistics.geometric_mean(ratios)
        means[platform] = found
    return means


def _line(entry: dict[str, Any]) -> str:
    if "error" in entry:
        return entry["error"]
    return ", ".join(f"{name} {value['ratio']:.2f}x" for name, value in entry["ratios"].items() if name != "tuned")


def _print(results: list[dict[str, Any]], means: dict[str, dict[str, float]]) -> None:
    columns = ["plain", "best flags", "torch", "numpy"]
    for platform in dict.fromkeys(map(_platform, results)):
        rows, losses = [], []
        for entry in (entry for entry in results if _platform(entry) == platform):
            if "error" in entry:
                losses.append([entry["op"], "-", entry["error"]])
                continue
            ratios = entry["ratios"]
            cells = [
                f"{ratios[name]['ratio']:.2f} ({ratios[name]['p10']:.2f}-{ratios[name]['p90']:.2f})"
                if name in ratios
                else "-"
                for name in columns
            ]
            rows.append([entry["op"], seconds(entry["seconds"]["tuned"]), *cells, entry["best_flags"]])
            for name, limit in (("best flags", 0.97), ("torch", 1.0)):
                if ratios[name]["ratio"] < limit:
                    losses.append([entry["op"], f"{ratios[name]['ratio']:.2f}", f"slower than {name}"])
        title = f"{platform}: time of the other / time with schedules, and p10-p90 over rounds"
        names = ["op", "tuned", *columns, "best flags are"]
        console().print(table(title, names, rows, numeric=(1, 2, 3, 4, 5)))
        listed = ", ".join(f"{name} {value:.2f}x" for name, value in means[platform].items())
        aims = ", ".join(f"{name} {value:g}x" for name, value in _AIMS.items())
        console().print(f"geometric means: {listed} (aims: {aims})")
        console().print(table(f"losses, {platform}", ["op", "ratio", "what"], losses, numeric=(1,)))


if __name__ == "__main__":
    main()
