"""A trained model on disk: weights in safetensors, and beside them what they were trained on and how good they are.

A model that can go on to other platforms has a third file with what that takes; scoring does without.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save

from tcl_iree.errors import LearningError
from tcl_iree.features.statements import VERSION, feature_names
from tcl_iree.features.vocabulary import vocabulary_hash
from tcl_iree.learning.calibration import Calibration
from tcl_iree.learning.checkpoint_files import ABOUT, TRANSFER, WEIGHTS, checkpoint_file
from tcl_iree.learning.cost_model import CostModel, Epoch, State
from tcl_iree.learning.lineage import Stage
from tcl_iree.learning.models import make_model
from tcl_iree.measure.builder import IREE_VERSION

FORMAT = 1
# Names, in a transfer file, the weights it is of.
_OF = "weights"


@dataclass(frozen=True)
class Checkpoint:
    """A trained model and what is known of it.

    Attributes:
        platforms: keys of the targets it learned from.
        training_keys: keys of the workloads it learned from, those that training was stopped by included.
        metrics: as measured on the validation groups.
        lineage: the platforms it learned, one after the other; empty where that was not noted.
        transfer: arrays that learning another platform needs; `load_checkpoint` leaves them where they are.
    """

    model: CostModel
    platforms: tuple[str, ...]
    training_keys: tuple[str, ...]
    metrics: dict[str, float]
    history: tuple[Epoch, ...] = ()
    calibration: Calibration | None = None
    lineage: tuple[Stage, ...] = ()
    transfer: State | None = None

    def save(self, path: Path) -> None:
        """Write `path` with its suffixes; an older checkpoint of that name is replaced whole."""
        weights = save(self.model.state())
        sha = hashlib.sha256(weights).hexdigest()
        about = {
            "format": FORMAT,
            "model": self.model.name,
            "config": self.model.config,
            "parameters": self.model.parameters,
            "bytes": len(weights),
            "vocabulary": inputs_hash(),
            "iree": IREE_VERSION,
            "platforms": list(self.platforms),
            "training_keys": sorted(self.training_keys),
            "metrics": self.metrics,
            "history": [asdict(epoch) for epoch in self.history],
            "calibration": asdict(self.calibration) if self.calibration else None,
            "lineage": [stage.plain() for stage in self.lineage],
            "sha256": sha,
        }
        files = {WEIGHTS: weights}
        if self.transfer:
            files[TRANSFER] = save(self.transfer, metadata={_OF: sha})
        stem = checkpoint_file(path)
        try:
            stem.parent.mkdir(parents=True, exist_ok=True)
            _write_all(stem, files | {ABOUT: (json.dumps(about, indent=1) + "\n").encode()})
            if not self.transfer:
                checkpoint_file(path, TRANSFER).unlink(missing_ok=True)  # an older checkpoint's
        except OSError as error:
            raise LearningError(f"cannot write the checkpoint {stem}: {error.strerror or error}") from None


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint.

    Raises:
        LearningError: it is missing or damaged, or was made for another vocabulary or version of IREE.
    """
    stem = checkpoint_file(path)
    about = read_about(path)
    if about["vocabulary"] != inputs_hash():
        raise LearningError(
            f"{stem} was trained with another vocabulary ({about['vocabulary']}, not {inputs_hash()}); train it "
            "again with this version of tcl-iree"
        )
    if about["iree"] != IREE_VERSION:
        raise LearningError(
            f"{stem} was trained for IREE {about['iree']}, here is {IREE_VERSION}; train it again on programs measured "
            "with this version"
        )
    file = checkpoint_file(path, WEIGHTS)
    try:
        weights = file.read_bytes()
        state = load(weights)
    except (OSError, SafetensorError) as error:
        raise LearningError(f"{file} is missing or damaged ({error}); restore it or train again") from None
    if hashlib.sha256(weights).hexdigest() != about["sha256"]:
        raise LearningError(f"{file} is not the file that {ABOUT} beside it describes; restore both or train again")
    model = make_model(about["model"], about["config"])
    model.load_state(state)
    held = about["calibration"]
    return Checkpoint(
        model,
        tuple(about["platforms"]),
        tuple(about["training_keys"]),
        about["metrics"],
        tuple(Epoch(**epoch) for epoch in about["history"]),
        Calibration(tuple(held["latency"]), held["spread"], tuple(held["works"])) if held else None,
        tuple(Stage.from_plain(stage) for stage in about.get("lineage", ())),
    )


def load_transfer(path: Path) -> State | None:
    """What a checkpoint needs to learn another platform; None if it has none.

    Raises:
        LearningError: the file is damaged, or of other weights.
    """
    file = checkpoint_file(path, TRANSFER)
    if not file.exists():
        return None
    try:
        with safe_open(file, "np") as held:
            of = (held.metadata() or {}).get(_OF)
            state = {name: held.get_tensor(name) for name in held.keys()}  # noqa: SIM118
    except (OSError, SafetensorError) as error:
        raise LearningError(f"{file} is damaged ({error}); restore it, or delete it to go on without") from None
    if of != read_about(path)["sha256"]:
        raise LearningError(f"{file} is not of the weights beside it; restore both, or delete it to go on without")
    return state


def read_about(path: Path) -> dict[str, Any]:
    """What a checkpoint says of itself.

    Raises:
        LearningError: there is none, or it is no checkpoint.
    """
    file = checkpoint_file(path, ABOUT)
    try:
        about = json.loads(file.read_text())
    except OSError:
        raise LearningError(
            f"no checkpoint at {checkpoint_file(path)}: {file.name} is missing; train one with `tcl-iree train`"
        ) from None
    except ValueError:
        raise LearningError(f"{file} is damaged; restore it or train again") from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise LearningError(f"{file} is no checkpoint of this version of tcl-iree; train one with `tcl-iree train`")
    return about


def inputs_hash() -> str:
    """Changes when what models are given changes: kinds, roles and features."""
    text = "\n".join((vocabulary_hash(), str(VERSION), *feature_names()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _write_all(stem: Path, files: dict[str, bytes]) -> None:
    """All files are on disk before any takes the place of an older one."""
    held = {suffix: stem.with_name(f".{stem.name}{suffix}.new") for suffix in files}
    for suffix, waiting in held.items():
        waiting.write_bytes(files[suffix])
    for suffix, waiting in held.items():
        os.replace(waiting, stem.with_name(stem.name + suffix))
