"""What runs of the tuner ended with, kept beside the database: the same request again is answered from there."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
import tempfile
from dataclasses import asdict, replace
from pathlib import Path

from tcl_iree.errors import LibraryError
from tcl_iree.frontend import Model
from tcl_iree.learning.checkpoint_files import WEIGHTS, checkpoint_file
from tcl_iree.measure.builder import IREE_VERSION
from tcl_iree.processes import scratch_directory
from tcl_iree.report.restored import restored
from tcl_iree.report.tune import TuneReport
from tcl_iree.target import Target
from tcl_iree.transform_dialect.library import Library
from tcl_iree.workflows.guide import checkpoint_path
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workflows.tuned import LIBRARY, MODULE, REPORT, TuneResult

# Counted up when the same request is worth tuning anew: 4 searches what matters once all is tuned, and more layouts.
_WAY = 4
# The oldest go when all together are larger.
_LIMIT_BYTES = 4 << 30
_ENDING = ".finished"

_log = logging.getLogger(__name__)


class Finished:
    """The product of one request: the same model, target, IREE, options and cost model.

    Args:
        database: the file with its trials.
    """

    def __init__(self, database: Path, model: Model, target: Target, options: TuneOptions) -> None:
        self._model, self._target = model, target
        self._place = database.with_suffix(_ENDING) / _digest(model, target, options)

    def load(self) -> TuneResult | None:
        """The product; None if there is none, or it was damaged."""
        scratch = scratch_directory("tune")
        module = Path(scratch.name) / MODULE
        try:
            report = restored(TuneReport, json.loads((self._place / REPORT).read_text()))
            library = Library.parse((self._place / LIBRARY).read_text(encoding="utf-8"))
            shutil.copyfile(self._place / MODULE, module)
            os.utime(self._place)
        except (OSError, ValueError, LibraryError) as error:
            if self._place.exists():
                _log.warning("%s is damaged and not used: %s", self._place, error)
            return None
        note = f"tuned before, until {report.when}: that result is given again; ask for --again to tune anew"
        report = replace(report, notes=(*report.notes, note))
        return TuneResult(report, library, module, self._target, self._model, {report.shipped: module}, scratch)

    def keep(self, result: TuneResult) -> None:
        """Keep a product whole or not at all; trouble (a full disk) is told, and the product is done without."""
        assert result.module
        try:
            self._place.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=self._place.parent, prefix=".new-") as scratch:
                made = Path(scratch) / "made"
                made.mkdir()
                shutil.copyfile(result.module, made / MODULE)
                (made / LIBRARY).write_text(result.library.text(), encoding="utf-8")
                (made / REPORT).write_text(json.dumps(asdict(result.report)) + "\n")
                shutil.rmtree(self._place, ignore_errors=True)
                made.rename(self._place)
            _trim(self._place.parent)
        except OSError as error:
            _log.warning("the result is not kept for another time: %s: %s", self._place.parent, error.strerror)


def _digest(model: Model, target: Target, options: TuneOptions) -> str:
    given = asdict(options)
    del given["again"]
    where = "" if model.scratch else str(model.path)  # the report's commands name it
    asked = (_WAY, model.name, where, target.key, IREE_VERSION, sorted(given.items()))
    digest = hashlib.sha256(repr(asked).encode())
    for path in (model.path, checkpoint_file(checkpoint_path(options.model), WEIGHTS)):
        if path.exists():  # a checkpoint that is not there is told of by whoever needs it
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:32]


def _trim(place: Path) -> None:
    """Remove the products that were used longest ago until the rest is small enough."""
    sizes = {held: sum(file.stat().st_size for file in held.iterdir()) for held in place.iterdir() if held.is_dir()}
    total = sum(sizes.values())
    for held in sorted(sizes, key=lambda held: held.stat().st_mtime):
        if total <= _LIMIT_BYTES:
            break
        total -= sizes[held]
        shutil.rmtree(held, ignore_errors=True)
