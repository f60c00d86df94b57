"""How long does each cost model's search take to be as good as Tenset-MLP's?

Replayed, without building or running anything: the tuner's guided search, with each cost model in turn, chooses among
all programs of test workloads that were measured beforehand. A trial is charged what building and running it were
recorded to take, the search itself the time it takes now. Every model that learns is there twice: `pretrained` on the
training part of the split, and `cold`, where all it knows is what the search measures. For each: trials and seconds
until the best latency is within 2 % of what the pretrained Tenset-MLP has after all trials (a search that never gets
there counts as the full budget), and the latency after 32 trials.

    python -m benchmarks.time_to_quality --data pools/ benchmarks/data/
    python -m benchmarks.time_to_quality --data benchmarks/data/avx2-1-thread-*.parquet --least-programs 150 \\
        --trials 64 --seeds 0 1 --epochs 2 --no-save       # a try-out on the small pools that are at hand
    python -m benchmarks.time_to_quality --data benchmarks/data/ --live    # the tuner itself, on this machine

With --live the tuner itself runs here, with Mamba and with Tenset-MLP, on three operators and one network, each time
from nothing (no earlier trials, no cache); the seconds are those since IREE's defaults were measured.

Checkpoints, replays and runs of the tuner are kept, and a campaign that was cut off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from benchmarks.common import measured_here, recorded, save
from benchmarks.op_list import OPS
from benchmarks.quality_live import LiveOptions, live
from benchmarks.quality_replay import COLD, MODELS, MODES, PRETRAINED, YARDSTICK, ReplayOptions, replayed
from benchmarks.replay_pool import ReplayPool, replay_pools
from benchmarks.training import Trainer
from tcl_iree.errors import TclIreeError
from tcl_iree.frontend.zoo import NETWORKS
from tcl_iree.learning.groups import candidates_in
from tcl_iree.learning.split import TRAIN, VALIDATION, load_split
from tcl_iree.target import Target
from tcl_iree.workflows.data import Programs
from tcl_iree.workflows.layouts import CHANGE, KEEP

# A product, a batch of small ones and a convolution; all are test data, as the network is.
_LIVE_OPS = ("matmul 197x768x768", "batch matmul 12x128x128x64", "conv 3x3 64 at 56 + bn + relu")
_LIVE_NETWORKS = ("mobilenet-v2",)
_LIVE_SEEDS = 2


def main() -> None:
    """Replay or run all searches, print and keep the figures."""
    arguments = _arguments()
    torch.set_num_threads(arguments.torch_threads)
    try:
        with Programs(arguments.data) as programs:
            parts = load_split().divide(programs.groups(arguments.platform))
            pools = [] if arguments.live else _pools(programs, arguments)
        learning = [*parts[TRAIN], *parts[VALIDATION]]
        trainer = Trainer(learning, arguments.seeds, arguments.epochs, arguments.checkpoints)
        if arguments.live:
            found = live(trainer, _live_options(arguments))
        else:
            found = replayed(pools, trainer, _replay_options(arguments))
    except TclIreeError as error:
        raise SystemExit(str(error)) from None
    found |= {"training_programs": candidates_in(parts[TRAIN]), "epochs": arguments.epochs, **measured_here()}
    if not arguments.no_save:
        before = recorded("time_to_quality")
        others = {name: before[name] for name in ("replay", "live") if name in before}
        print(save("time_to_quality", others | {"live" if arguments.live else "replay": found}), file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", nargs="+", type=Path, required=True, help="pools of test workloads, and programs to train on"
    )
    parser.add_argument("--platform", help="only programs of this target's key, or its beginning")
    parser.add_argument(
        "--seeds",
        nargs="+",
        type=int,
        help=f"of training and of the search (default 0 to 4, or {_LIVE_SEEDS} with --live)",
    )
    parser.add_argument(
        "--trials", type=int, default=256, help="of a whole search, for each workload (default %(default)s)"
    )
    parser.add_argument(
        "--early", type=int, default=32, help="trials to look at the latency after (default %(default)s)"
    )
    parser.add_argument(
        "--within", type=float, default=0.02, help="share of latency that counts as equal (default %(default)s)"
    )
    parser.add_argument("--epochs", type=int, default=60, help="of training (default %(default)s)")
    parser.add_argument("--torch-threads", type=int, default=1, help="of training and ranking (default %(default)s)")
    parser.add_argument(
        "--checkpoints", type=Path, default=Path("out/cost_models"), help="shared with benchmarks.cost_models"
    )
    parser.add_argument("--output", type=Path, default=Path("out/time_to_quality"), help="what was replayed or run")
    parser.add_argument("--no-save", action="store_true", help="leave the recorded result as it is")
    replays = parser.add_argument_group("replays")
    replays.add_argument(
        "--models",
        nargs="+",
        default=list(MODELS),
        choices=MODELS,
        help="`random` guesses, and is corrected by what is measured as all are; `random-search` asks nobody",
    )
    replays.add_argument(
        "--modes",
        nargs="+",
        default=[PRETRAINED, COLD],
        choices=MODES,
        help="-updated: weights learn from every batch too, which the tuner leaves to its correction of the model",
    )
    replays.add_argument("--least-programs", type=int, default=1000, help="of a pool (default %(default)s)")
    replays.add_argument("--least-workloads", type=int, default=10, help="with such a pool (default %(default)s)")
    runs = parser.add_argument_group("the tuner itself")
    runs.add_argument("--live", action="store_true", help="run the tuner here instead of replaying")
    runs.add_argument("--ops", nargs="*", default=list(_LIVE_OPS), choices=list(OPS), metavar="OP")
    runs.add_argument("--networks", nargs="*", default=list(_LIVE_NETWORKS), choices=list(NETWORKS), metavar="NAME")
    runs.add_argument("--target", default="cpu,threads=1", help="to tune for (default %(default)s)")
    runs.add_argument(
        "--base", default="O2+im2col", help="flags that dispatches are formed under (default %(default)s)"
    )
    runs.add_argument("--layouts", default=KEEP, choices=(KEEP, CHANGE))
    arguments = parser.parse_args()
    arguments.seeds = arguments.seeds or list(range(_LIVE_SEEDS if arguments.live else 5))
    if not 1 <= arguments.early <= arguments.trials:
        parser.error(f"--early must be from 1 to the {arguments.trials} of --trials, not {arguments.early}")
    if not arguments.live:
        _check_replay(parser, arguments)
    return arguments


def _check_replay(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    if arguments.trials > arguments.least_programs:
        parser.error(f"pools of {arguments.least_programs} programs are too small for {arguments.trials} trials")
    for wanted, given in ((YARDSTICK.model, arguments.models), (YARDSTICK.mode, arguments.modes)):
        if wanted not in given:
            parser.error(f"everything is compared with {YARDSTICK}: {wanted} must be among {', '.join(given)}")


def _pools(programs: Programs, arguments: argparse.Namespace) -> list[ReplayPool]:
    pools = replay_pools(programs.database, load_split(), arguments.least_programs, arguments.platform or "")
    if len(pools) < arguments.least_workloads:
        raise SystemExit(
            f"{len(pools)} test workloads have {arguments.least_programs} measured programs, "
            f"{arguments.least_workloads} are needed: collect more (`tcl-iree collect --per-workload`), or lower "
            "--least-programs and --least-workloads for a try-out"
        )
    return pools


def _replay_options(arguments: argparse.Namespace) -> ReplayOptions:
    return ReplayOptions(
        arguments.models,
        arguments.modes,
        arguments.seeds,
        arguments.trials,
        arguments.early,
        arguments.within,
        arguments.output,
    )


def _live_options(arguments: argparse.Namespace) -> LiveOptions:
    return LiveOptions(
        [*arguments.ops, *arguments.networks],
        arguments.seeds,
        Target.parse(arguments.target),
        arguments.trials,
        arguments.early,
        arguments.within,
        arguments.base,
        arguments.layouts,
        arguments.output,
    )


if __name__ == "__main__":
    main()
