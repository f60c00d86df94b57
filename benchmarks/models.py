"""How fast are whole networks after tuning, beside plain IREE, IREE's best flags, torch, onnxruntime and openvino?

Each network is tuned with every effort in turn, then all contenders are timed in one interleaved run, with the same
weights, inputs and thread count, and their outputs compared with torch's. The peers need `pip install
'tcl-iree[models,peers]'`, torch.compile a C++ compiler; who is missing is listed and costs the others nothing.

    python -m benchmarks.models
    python -m benchmarks.models --networks mobilenet-v2 --efforts none --threads 1 --seconds 2 --results /tmp/results
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch

from benchmarks.common import RESULTS, measured_here, recorded, save
from benchmarks.contest import Contest, contest
from benchmarks.model_contenders import PEERS, Tuning, contenders, own_modules
from benchmarks.model_results import entry, show
from tcl_iree.errors import TclIreeError
from tcl_iree.frontend import Model, load_model
from tcl_iree.frontend.zoo import NETWORKS
from tcl_iree.hardware import host_cpu
from tcl_iree.measure.model_job import redrawn
from tcl_iree.processes import scratch_directory
from tcl_iree.report.progress import Step, progress
from tcl_iree.report.tables import console
from tcl_iree.target import Target
from tcl_iree.workflows.guide import BASE
from tcl_iree.workflows.layouts import AUTO, LAYOUTS
from tcl_iree.workflows.tune import tune
from tcl_iree.workflows.tune_options import EFFORTS, SCOPES

_NETWORKS = ("resnet-50", "mobilenet-v2", "bert-base", "gpt2-small", "vit-base")


def main() -> None:
    """Tune, compare, print and keep the figures."""
    arguments = _arguments()
    target = Target.parse(f"cpu,threads={arguments.threads}")
    for network in arguments.networks:
        try:
            figures = _measured(network, target, arguments)
        except TclIreeError as error:  # the other networks may do better
            console().print(f"{network}: {error}")
            figures = dict.fromkeys(arguments.efforts, measured_here() | {"error": str(error)})
        _keep(network, target, figures, arguments.results)


def _measured(network: str, target: Target, arguments: argparse.Namespace) -> dict[str, Any]:
    """Tune and compare one network, and print what came of it; returns the figures to keep, by effort."""
    torch.manual_seed(0)  # the same weights as in the contenders' processes
    with progress(1, network) as step:
        model = load_model(f"zoo:{network}")
        tunings, failed = _tuned(model, target, arguments, step)
        result = _compared(network, model, target, tunings, arguments, step) if tunings else None
    for effort, reason in failed.items():
        console().print(f"{network}, effort {effort}: {reason}")
    figures = {effort: measured_here() | {"error": reason} for effort, reason in failed.items()}
    if result:
        show(network, target, tunings, result)
        figures |= {tuning.effort: entry(tuning, result, arguments.layouts) for tuning in tunings}
    return figures


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=list(_NETWORKS), choices=list(NETWORKS), metavar="NAME")
    parser.add_argument("--efforts", nargs="+", default=["quick", "default"], choices=list(EFFORTS))
    parser.add_argument(
        "--threads", type=int, default=host_cpu().cores, choices=range(1, host_cpu().cores + 1), metavar="N"
    )
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS, help="besides torch eager")
    parser.add_argument("--layouts", default=AUTO, choices=LAYOUTS)
    parser.add_argument("--scope", default="standard", choices=SCOPES)
    parser.add_argument("--model", default=BASE, help="the cost model that guides the search")
    parser.add_argument("--time-limit", type=float, help="seconds for the search of each network and effort")
    parser.add_argument("--tune-seconds", type=float, default=20.0, help="timing of whole models while tuning")
    parser.add_argument("--seconds", type=float, default=20.0, help="timing of each contender in the comparison")
    parser.add_argument("--start-limit", type=float, default=900.0, help="seconds a contender has to get ready")
    parser.add_argument("--db", type=Path, default=Path("out/models.db"), help="kept: a later effort goes on from it")
    parser.add_argument("--output", type=Path, help="write each library, module and report below this directory")
    parser.add_argument("--results", type=Path, default=RESULTS, help="the directory of models.json")
    return parser.parse_args()


def _tuned(
    model: Model, target: Target, arguments: argparse.Namespace, step: Step
) -> tuple[list[Tuning], dict[str, str]]:
    """The network tuned with each effort, and the efforts that failed with the reason."""
    tunings: list[Tuning] = []
    failed = {}
    for effort in arguments.efforts:
        try:
            result = tune(
                model,
                target=target,
                database=arguments.db,
                say=step,
                effort=effort,
                layouts=arguments.layouts,
                scope=arguments.scope,
                model=arguments.model,
                time_limit=arguments.time_limit,
                seconds=arguments.tune_seconds,
                again=True,  # IREE's flag sets take part too
            )
        except TclIreeError as error:
            failed[effort] = str(error)
            continue
        before = tuple(tuning.effort for tuning in tunings if tuning.result.report.trials)
        tunings.append(Tuning(effort, result, before))
        if arguments.output:
            result.save(arguments.output / model.name / effort)
    return tunings, failed


def _compared(
    network: str, model: Model, target: Target, tunings: list[Tuning], arguments: argparse.Namespace, step: Step
) -> Contest:
    examples = list(model.inputs or ())
    with scratch_directory("contest") as scratch:
        directory = Path(scratch)
        own = own_modules(tunings, model, target, arguments.scope, arguments.tune_seconds, directory, step)
        step("exporting to ONNX")
        field, missing = contenders(
            network, model, target, own, tunings, arguments.peers, directory, arguments.start_limit
        )
        draws = [examples, redrawn(examples, 1)]
        result = contest(field, target, draws, arguments.seconds, arguments.start_limit, directory, step)
    result.failed.update(missing)
    return result


def _keep(network: str, target: Target, figures: dict[str, Any], place: Path) -> None:
    """Record a network at once, so that a run that is cut off keeps what it has.

    By CPU, threads, network and effort; what earlier versions recorded of the network, in `models`, is dropped.
    """
    before = recorded("models", place)
    runs, old = before.get("runs", {}), before.get("models", {})
    old.pop(network, None)
    here = runs.setdefault(measured_here()["cpu"], {}).setdefault(f"threads={target.threads}", {})
    here.setdefault(network, {}).update(figures)
    console().print(str(save("models", {"runs": runs} | ({"models": old} if old else {}), place)))


if __name__ == "__main__":
    main()
