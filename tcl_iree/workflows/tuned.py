"""What tuning hands back: a module that runs, the library it was compiled with, and the report."""

from __future__ import annotations

import shlex
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import cache, cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from tcl_iree.errors import MeasureError, ModelError
from tcl_iree.frontend import Model
from tcl_iree.report.html import html_report
from tcl_iree.report.json_text import json_text
from tcl_iree.report.tune import TuneReport
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Library
from tcl_iree.transform_dialect.library_text import compile_command
from tcl_iree.workflows.jobs import Job, pack_jobs
from tcl_iree.workflows.whole_model import Compiled

if TYPE_CHECKING:
    from tcl_iree.measure.device import SharedDevice

LIBRARY, MODULE, REPORT, PAGE, JOBS = "library.mlir", "model.vmfb", "report.json", "report.html", "candidates.jobs"


class TuneResult:
    """A tuned model: call it like the model it was made from.

    Attributes:
        report: everything that was measured.
        library: the schedules, for stock `iree-compile`.
        module: the compiled module that is shipped, as `save` writes it; None if there is none.
        compiled: the modules of the report's rows, by name; all these files last as long as this result.
    """

    def __init__(
        self,
        report: TuneReport,
        library: Library,
        module: Path | None,
        target: Target,
        model: Model,
        compiled: dict[str, Path],
        scratch: Any,
        flags: Sequence[str] = (),
        jobs: Sequence[Job] = (),
    ) -> None:
        self.report, self.library, self.compiled = report, library, compiled
        self.module, self._target, self._model = module, target, model
        self._flags, self._jobs = flags, jobs  # candidates to be measured elsewhere
        self._scratch = scratch  # keeps the compiled module alive

    @property
    def speedup(self) -> float | None:
        """Time under IREE's best flags over the tuned model's; None if the model was not timed."""
        return self.report.speedup

    def __call__(self, *inputs: Any) -> Any:
        """Run the tuned model: torch tensors in, torch tensors out; anything else gives numpy arrays.

        Raises:
            MeasureError: there is no compiled module: tuning was interrupted, or nothing can run here.
        """
        in_torch = any(hasattr(value, "detach") for value in inputs)
        outputs = self.loaded([np.asarray(value.detach() if in_torch else value) for value in inputs])
        if in_torch:
            import torch

            outputs = [torch.from_numpy(output) for output in outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    @cached_property
    def loaded(self) -> Callable[[list[np.ndarray]], list[np.ndarray]]:
        """The compiled module in this process, which outlives its files; the device is one for all of a target's.

        The runtime's flags are those of the first device opened in it.

        Raises:
            MeasureError: there is no compiled module.
        """
        import iree.runtime as runtime

        from tcl_iree.measure.device import read_array
        from tcl_iree.measure.model_job import CompiledModel

        if self.module is None:
            raise MeasureError(f"there is no compiled module: {'; '.join(self.report.notes)}; tune again where it runs")
        shared = _opened(self._target.device, self._target.runtime_flags)
        device = shared.device
        compiled = shared.run(CompiledModel, device, str(self.module))
        turn = Lock()  # a module's state is for one thread at a time

        def call(arrays: list[np.ndarray]) -> list[np.ndarray]:
            with turn:
                outputs = shared.run(compiled, [runtime.asdevicearray(device, array) for array in arrays])
            return [read_array(device, output) for output in outputs]

        return call

    def save(self, directory: str | Path) -> Path:
        """Write the library, the compiled module (or the candidates that wait to be measured) and the report twice.

        An imported model is written too, for the command that compiles it again. Files of these names that an earlier
        run left are replaced or removed.

        Raises:
            ModelError: the directory cannot be written.
        """
        place = writable_directory(directory)
        try:
            (place / LIBRARY).write_text(self.library.text(), encoding="utf-8")
            (place / REPORT).write_text(json_text(asdict(self.report)) + "\n")
            (place / PAGE).write_text(html_report(self.report), encoding="utf-8")
            for stale in (JOBS, MODULE):  # of an earlier run, which the new report would not fit
                (place / stale).unlink(missing_ok=True)
            if self._jobs:
                pack_jobs(place / JOBS, self._target, self._flags, self._jobs)
            if self.module:
                shutil.copyfile(self.module, place / MODULE)
            if self._model.scratch and (self.module or self.library.entries):
                shutil.copyfile(self._model.path, place / self._model.path.name)
        except OSError as error:
            raise ModelError(f"cannot write to {place}: {error.strerror}") from None
        return place


@cache
def _opened(name: str, flags: tuple[str, ...]) -> SharedDevice:
    """One device for all modules in this process: each has threads of its own."""
    from tcl_iree.measure.device import SharedDevice

    return SharedDevice(name, flags)


def writable_directory(directory: str | Path) -> Path:
    """Make a directory and see that files can be written there, before hours are spent on what goes into it.

    Raises:
        ModelError: it cannot be written.
    """
    place = Path(directory)
    try:
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=place):
            return place
    except OSError as error:
        raise ModelError(f"cannot write to {place}: {error.strerror}") from None


def reproduce_command(model: Model, target: Target, shipped: Compiled) -> str:
    """The `iree-compile` command that makes the shipped module again, in the directory of the result."""
    if shipped.library:
        return library_command(model, shipped.library)
    return shlex.join(["iree-compile", _source(model), *target.compile_flags, *shipped.flags, "-o", MODULE])


def library_command(model: Model, library: Library) -> str:
    """The `iree-compile` command that compiles the model with a library; empty if that holds nothing."""
    return compile_command(library, _source(model), LIBRARY, MODULE) if library.entries else ""


def now() -> str:
    """When a report was made."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _source(model: Model) -> str:
    return model.path.name if model.scratch else str(model.path)
