"""Which gets faster code sooner, this tuner or TVM's MetaSchedule?

The same operators in f32 on the same machine and number of threads. Each is tuned by MetaSchedule, and by this tuner
from nothing; both note the best latency against wall-clock time. Then torch, IREE without flags, the tuned
module and MetaSchedule's best after 64 and after 256 trials are timed in one interleaved run, and outputs are compared
with torch's on two draws of inputs. From that: latency at equal wall-clock time, and time to equal latency.

TVM gets an environment of its own, made on first use below --output (it needs pip and a C++ compiler), or give an
interpreter that has it with --tvm-python. What was tuned is kept, and a campaign that was cut off goes on where it
stopped; an op that is recorded for this CPU and these settings is not measured again unless --again is given.

    python -m benchmarks.versus_tvm                                           # all ops, one thread
    python -m benchmarks.versus_tvm --ops 'matmul 127' --trials 8 --tuner-trials 8 --seconds 1 --no-save
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from benchmarks.common import measured_here, recorded, save
from benchmarks.kept import file_name
from benchmarks.tvm_environment import tvm_python
from benchmarks.tvm_figures import RATIOS, losses, means
from benchmarks.tvm_match import Match, MatchOptions
from benchmarks.tvm_ops import expressible
from tcl_iree.errors import TclIreeError
from tcl_iree.hardware import host_cpu
from tcl_iree.report.tables import console, seconds, table
from tcl_iree.target import Target
from tcl_iree.workflows.tune_options import EFFORTS, SCOPES


def main() -> None:
    """Tune, time, print and keep the figures."""
    arguments = _arguments()
    names = [name for name in expressible() if arguments.ops in name]
    if not names:
        raise SystemExit(f"no op has {arguments.ops!r} in its name; there are: {', '.join(expressible())}")
    try:
        python = tvm_python(arguments.tvm_python, arguments.output / "tvm-venv")
    except TclIreeError as error:
        raise SystemExit(str(error)) from None
    target = Target.parse(f"cpu,threads={arguments.threads}")
    budget = EFFORTS[arguments.effort] if arguments.tuner_trials is None else arguments.tuner_trials
    options = MatchOptions(
        tuple(sorted(set(arguments.trials))),
        budget,
        arguments.scope,
        arguments.seed,
        arguments.seconds,
        arguments.limit,
    )
    found = {} if arguments.no_save else _known(target, options)
    for name in names:
        if name in found and "error" not in found[name] and not arguments.again:
            continue
        place = arguments.output / file_name(f"{target.key} {options.settings}") / file_name(name)
        try:
            found[name] = Match(name, target, options, python, place, arguments.again).figures()
        except TclIreeError as error:  # the other ops may do better
            found[name] = measured_here() | {"error": str(error)}
        print(f"{name}: {_line(found[name])}", file=sys.stderr, flush=True)
        if not arguments.no_save:
            _keep(target, options, found)
    _print(found, options)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ops", default="", metavar="TEXT", help="only ops whose name contains this")
    parser.add_argument(
        "--threads", type=int, default=1, choices=range(1, host_cpu().cores + 1), metavar="N", help="of both"
    )
    parser.add_argument(
        "--trials",
        type=int,
        nargs="+",
        default=[64, 256],
        help="of MetaSchedule: it is tuned with the most of them, and its best after each is taken (default 64 256)",
    )
    parser.add_argument(
        "--effort",
        default="max",
        choices=[name for name, trials in EFFORTS.items() if trials],
        help="of this tuner (default %(default)s)",
    )
    parser.add_argument("--tuner-trials", type=int, help="of this tuner for each dispatch, in place of its effort")
    parser.add_argument(
        "--scope",
        default="quick",
        choices=SCOPES,
        help="IREE's flag sets that it looks at (default %(default)s); this time counts too",
    )
    parser.add_argument("--seed", type=int, default=0, help="of both")
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="timing of each contender in the comparison (default %(default)s)"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=7200.0,
        help="seconds that MetaSchedule may take for one op (default %(default)s)",
    )
    parser.add_argument("--tvm-python", type=Path, metavar="FILE", help="an interpreter that has TVM")
    parser.add_argument(
        "--output", type=Path, default=Path("out/versus_tvm"), help="what was tuned (default %(default)s)"
    )
    parser.add_argument("--again", action="store_true", help="tune and time anew what is known")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    arguments = parser.parse_args()
    if min(arguments.trials) < 1 or (arguments.tuner_trials is not None and arguments.tuner_trials < 1):
        parser.error("trials must be at least 1")
    return arguments


def _known(target: Target, options: MatchOptions) -> dict[str, Any]:
    """What is recorded for this CPU with the same settings, by op."""
    runs = recorded("versus_tvm").get("runs", {})
    return dict(runs.get(measured_here()["cpu"], {}).get(_setting(target, options), {}).get("ops", {}))


def _keep(target: Target, options: MatchOptions, found: dict[str, Any]) -> None:
    """Record all ops so far at once, so that a run that is cut off keeps what it has."""
    runs = recorded("versus_tvm").get("runs", {})
    here = runs.setdefault(measured_here()["cpu"], {})
    here[_setting(target, options)] = {"geomeans": _means(found, options), "ops": found}
    save("versus_tvm", {"runs": runs})


def _setting(target: Target, options: MatchOptions) -> str:
    return f"threads={target.threads}, {options.settings}"


def _after(found: dict[str, Any], trials: int) -> dict[str, Any]:
    """The ops' figures after so many of MetaSchedule's trials."""
    return {name: entry["after"][str(trials)] for name, entry in found.items() if str(trials) in entry.get("after", {})}


def _means(found: dict[str, Any], options: MatchOptions) -> dict[str, Any]:
    return {str(trials): means(held.values()) for trials in options.trials if (held := _after(found, trials))}


def _line(entry: dict[str, Any]) -> str:
    if "error" in entry:
        return str(entry["error"])
    return "; ".join(
        f"after {trials} trials " + ", ".join(f"{name.replace('_', ' ')} {held[name]:.2f}x" for name in RATIOS)
        for trials, held in entry["after"].items()
    )


def _print(found: dict[str, Any], options: MatchOptions) -> None:
    out = console()
    for trials in options.trials:
        held = _after(found, trials)
        if not held:
            continue
        rows = [
            [
                name,
                seconds(entry["our_latency"]),
                seconds(entry["their_latency"]),
                f"{entry['latency_at_end']:.2f}",
                seconds(entry["their_seconds"]),
                f"{entry['latency_at_equal_time']:.2f}",
                f"{entry['time_to_equal_latency']:.2f}{'' if entry['reached'] else ' (never)'}",
            ]
            for name, entry in held.items()
        ]
        names = ["op", "ours", "TVM's", "at the end", "TVM took", "at equal time", "time to equal latency"]
        title = f"TVM MetaSchedule after {trials} trials: its figure over ours, more than 1 where we are ahead"
        out.print(table(title, names, rows, numeric=range(1, 7)))
        mean = means(held.values())
        listed = ", ".join(f"{name.replace('_', ' ')} {mean[name]:.2f}x" for name in RATIOS)
        out.print(f"geometric means over {mean['ops']} ops: {listed}; as good as TVM in {mean['reached']} of them")
        lost = [[name, what.replace("_", " "), f"{ratio:.2f}"] for name, what, ratio in losses(held)]
        out.print(table(f"losses after {trials} trials", ["op", "what", "ratio"], lost, numeric=(2,)))
    failed = [
        [name, why]
        for name, entry in found.items()
        for why in (entry.get("error"), *entry.get("failed", {}).values())
        if why
    ]
    if failed:
        out.print(table("not compared", ["op", "why"], failed))


if __name__ == "__main__":
    main()
