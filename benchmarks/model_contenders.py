"""Who takes part in the comparison of a whole network: IREE plain and at its best, what tuning made, and the peers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contender import Contender
from benchmarks.onnx_export import export
from tcl_iree.errors import ModelError
from tcl_iree.frontend import Model
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.report.progress import Step
from tcl_iree.target import Target
from tcl_iree.workflows.bench import bench, bench_steps
from tcl_iree.workflows.flag_sets import PLAIN
from tcl_iree.workflows.tuned import TuneResult
from tcl_iree.workflows.whole_model import TUNED

PEERS = ("torch.compile", "onnxruntime", "openvino")


@dataclass(frozen=True)
class Tuning:
    """A network tuned with some effort.

    Attributes:
        after: efforts that filled the database before.
    """

    effort: str
    result: TuneResult
    after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The contender's."""
        return f"{TUNED}, {self.effort}"


def flags_name(flag_set: str) -> str:
    """The contender that is IREE with a set of its own flags."""
    return f"IREE {flag_set}"


def own_modules(
    tunings: Sequence[Tuning], model: Model, target: Target, scope: str, seconds: float, directory: Path, say: Step
) -> dict[str, Path]:
    """Plain IREE and its best flags, as tuning found them; measured here where tuning timed nothing."""
    found: dict[str, Path] = {}
    for tuning in tunings:
        report, compiled = tuning.result.report, tuning.result.compiled
        if report.rows and report.best_flags:
            found |= {name: compiled[name] for name in (PLAIN.name, report.best_flags)}
    if not found:
        say("measuring IREE's own flag sets", total=bench_steps(target, scope))
        best = bench(model, target, scope, seconds, say, directory).best
        found = {name: directory / f"{name}.vmfb" for name in (PLAIN.name, best)}
    return found


def contenders(
    network: str,
    model: Model,
    target: Target,
    own: dict[str, Path],
    tunings: Sequence[Tuning],
    peers: Sequence[str],
    directory: Path,
    limit: float,
) -> tuple[list[Contender], dict[str, str]]:
    """All who take part, torch eager first; and who cannot, with the reason.

    Args:
        own: modules that IREE's own flags made, by name.
        limit: seconds for the export to ONNX.
    """
    threads = target.threads
    layouts = {"torch": False} | ({"torch, channels last": True} if _takes_image(model) else {})
    made = [
        Contender(name, "torch", {"name": network, "threads": threads, "channels_last": last})
        for name, last in layouts.items()
    ]
    made += [_module(flags_name(name), path, target, name) for name, path in own.items()]
    failed = {}
    for tuning in tunings:
        if tuning.result.module:
            made.append(_module(tuning.name, tuning.result.module, target, str(tuning.result.report.shipped)))
        else:
            failed[tuning.name] = "; ".join(tuning.result.report.notes)
    if "torch.compile" in peers:
        made.append(_torch_compile(network, threads, directory))
    readers = [peer for peer in peers if peer != "torch.compile"]
    if readers:
        try:
            path = export(network, directory / "network.onnx", limit)
            made += [Contender(peer, peer, {"path": str(path), "threads": threads}) for peer in readers]
        except ModelError as error:
            failed |= dict.fromkeys(readers, str(error))
    return made, failed


def _takes_image(model: Model) -> bool:
    return any(array.ndim == 4 and array.shape[1] == 3 for array in model.inputs or ())


def _module(name: str, path: Path, target: Target, flags: str) -> Contender:
    options = {"path": str(path), "device": target.device, "flags": target.runtime_flags}
    return Contender(name, "iree", options | {"about": f"IREE {IREE_VERSION}, {flags}"})


def _torch_compile(network: str, threads: int, directory: Path) -> Contender:
    """With its own search for the best kernels, or without where that does not end in time."""
    options = {"name": network, "threads": threads, "directory": str(directory / "inductor")}
    usual = Contender("mode default", "torch.compile", options | {"mode": "default"})
    return Contender("torch.compile", "torch.compile", options | {"mode": "max-autotune"}, measures=True, instead=usual)
