"""Carry a cost model to another platform: choose programs, get their labels, learn them, forget nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tcl_iree.database import Database
from tcl_iree.errors import LearningError, OptionError
from tcl_iree.learning.calibration import calibrate
from tcl_iree.learning.checkpoint import Checkpoint, load_checkpoint, load_transfer
from tcl_iree.learning.checkpoint_files import checkpoint_file
from tcl_iree.learning.cost_model import Epoch, FitOptions
from tcl_iree.learning.distillation.consolidation import Consolidation, consolidate
from tcl_iree.learning.distillation.continual import ContinualDistillation
from tcl_iree.learning.distillation.learner import Learned
from tcl_iree.learning.distillation.lesson import Lesson
from tcl_iree.learning.groups import Group, candidates_in
from tcl_iree.learning.lineage import LABELS, Stage, refuse_merge, stage_of
from tcl_iree.learning.neural import NeuralModel
from tcl_iree.learning.split import load_split
from tcl_iree.report.json_text import json_text
from tcl_iree.report.progress import Step, silent
from tcl_iree.report.transfer import TransferReport
from tcl_iree.target import Target
from tcl_iree.workflows.data import Programs
from tcl_iree.workflows.train import validated
from tcl_iree.workflows.transfer_judging import judge_platforms, to_judge
from tcl_iree.workflows.transfer_lesson import Prepared, measured_lesson, recorded_groups, recorded_lesson
from tcl_iree.workflows.transfer_options import TransferOptions

REPORT = ".report.json"


def transfer(
    origins: Sequence[Path],
    target: str,
    output: Path,
    options: TransferOptions,
    data: Sequence[Path] = (),
    networks: Sequence[str] = (),
    database: Path | None = None,
    say: Step = silent,
) -> TransferReport:
    """Learn one more platform and write the new base.

    The checkpoint gone on from is only read. Cut off, nothing is written but measurements and unfinished training,
    which the same call takes up again.

    Args:
        origins: the checkpoint to go on from; of more than one, the error says why they cannot be merged.
        target: the new platform: a target, or a platform's key (or its beginning) that the data has.
        data: measured programs. Those of the new platform are its labels, and nothing is measured; those of all
            platforms show what was gained and lost.
        networks: measure programs of these, whatever the data has.
        database: where measured programs are kept; needed where there are no recorded ones.

    Raises:
        LearningError: there is nothing to go on from, or to learn from.
    """
    started = time.monotonic()
    say("reading programs")
    origin, held = _origin(origins)
    base = origin.model
    if not isinstance(base, NeuralModel):
        raise LearningError(f"only a mamba model can be carried to another platform, not {base.name}")
    earlier = [known for stage in origin.lineage for known in stage.targets]
    learner = ContinualDistillation.resumed(base, held, options.distillation, earlier)
    groups = _groups(data)
    prepared = _prepared(base, target, groups, networks, database, options, say)
    lesson = prepared.lesson
    notes = _hold_what_was_known(learner, origin, groups, lesson, options)
    judged = to_judge(groups, lesson, origin.training_keys)
    unfinished = output.with_name(f"{output.name}.unfinished")
    learned = _learn(learner, lesson, options, unfinished, say)
    made = _checkpoint(learner, origin, lesson, learned)
    made.save(output)
    report = TransferReport(
        origin=str(origins[0]),
        output=str(output),
        target=", ".join(made.lineage[-1].platforms.values()),
        platform=lesson.platform,
        sampler=options.sampler,
        labels=lesson.labels,
        validation=candidates_in(lesson.validation),
        measured=prepared.measured,
        known=prepared.known,
        pool=candidates_in(lesson.programs),
        teacher=learned.teacher,
        notes=(*notes, *learned.notes),
        left=prepared.left or {},
        platforms=judge_platforms(judged, base, made.model),
        lineage=tuple(stage.plain() for stage in made.lineage),
        epochs=len(learned.epochs),
        seconds=time.monotonic() - started,
    )
    _write(output.with_name(output.name + REPORT), report)
    for file in output.parent.glob(f"{unfinished.name}.*"):
        file.unlink()
    return report


def refuse_in_place(origins: Sequence[Path], output: Path, replace: bool) -> None:
    """Raise if the new base would take the place of the old one and nobody asked for that.

    Raises:
        OptionError: it would.
    """
    if not replace and checkpoint_file(output).resolve() in {checkpoint_file(path).resolve() for path in origins}:
        raise OptionError(f"{output} is the checkpoint to go on from; name another with -o, or give --replace")


def _origin(paths: Sequence[Path]) -> tuple[Checkpoint, Consolidation | None]:
    found = {str(path): load_checkpoint(path) for path in paths}
    lineages = {name: _lineage(checkpoint) for name, checkpoint in found.items()}
    refuse_merge(lineages)
    (checkpoint,) = found.values()
    state = load_transfer(paths[0])
    return checkpoint, Consolidation.from_state(state) if state else None


def _lineage(checkpoint: Checkpoint) -> tuple[Stage, ...]:
    """A checkpoint's lineage; one that notes none has learned its platforms at once."""
    if checkpoint.lineage:
        return checkpoint.lineage
    platforms, labels = {key: key for key in checkpoint.platforms}, int(checkpoint.metrics.get("programs", 0))
    digest = checkpoint.model.digest
    return (Stage(platforms, labels, checkpoint.training_keys, checkpoint.metrics, LABELS, digest),)


def _groups(data: Sequence[Path]) -> list[Group]:
    if not data:
        return []
    with Programs(data) as programs:
        return programs.groups()


def _prepared(
    base: NeuralModel,
    target: str,
    groups: Sequence[Group],
    networks: Sequence[str],
    database: Path | None,
    options: TransferOptions,
    say: Step,
) -> Prepared:
    split = None if options.everything else load_split()
    own = recorded_groups(target, groups) if not networks else []
    if own:
        return recorded_lesson(base, own, split, options)
    if database is None:
        raise OptionError(f"the data has no programs measured on {target}, and no database is given to measure into")
    with Database(database) as store:
        return measured_lesson(base, Target.parse(target), networks, groups, store, split, options, say)


def _hold_what_was_known(
    learner: ContinualDistillation,
    origin: Checkpoint,
    groups: Sequence[Group],
    lesson: Lesson,
    options: TransferOptions,
) -> tuple[str, ...]:
    """See to it that the base knows which weights it needs; checkpoints of earlier versions do not say."""
    if learner.held or not options.distillation.ewc:
        return ()
    assert learner.base
    earlier = [group for group in groups if group.platform in origin.platforms and group.platform != lesson.platform]
    learner.held = consolidate(None, learner.base, earlier or lesson.programs, options.distillation, options.seed)
    where = "those of its platforms in the data" if earlier else "the new platform's programs, which is a guess"
    return (f"the checkpoint does not say which weights its platforms need; that was estimated from {where}",)


def _learn(
    learner: ContinualDistillation, lesson: Lesson, options: TransferOptions, unfinished: Path, say: Step
) -> Learned:
    current = ""

    def phase(text: str) -> None:
        nonlocal current
        current = text
        say(text, total=options.epochs)

    def epoch(found: Epoch) -> None:
        figures = f"top-1 {found.top_1:.3f}, top-5 {found.top_5:.3f}, pairs {found.pairs:.3f}"
        say(f"{current}: loss {found.loss:.4f}, validation {figures}", 1)

    return learner.learn(lesson, FitOptions(options.epochs, seed=options.seed, resume=unfinished, say=epoch), phase)


def _checkpoint(learner: ContinualDistillation, origin: Checkpoint, lesson: Lesson, learned: Learned) -> Checkpoint:
    model = learner.model(lesson.platform)
    metrics = validated(model, lesson.labelled, lesson.validation)
    stage = stage_of(lesson.labelled, lesson.validation, metrics, learned.teacher, model.digest)
    return Checkpoint(
        model,
        tuple(dict.fromkeys([*origin.platforms, *stage.platforms])),
        tuple(sorted({*origin.training_keys, *stage.training_keys})),
        metrics,
        learned.epochs,
        calibrate(model, lesson.validation),
        (*_lineage(origin), stage),
        learner.held.state() if learner.held else None,
    )


def _write(path: Path, report: TransferReport) -> None:
    waiting = path.with_name(f".{path.name}.new")
    try:
        waiting.write_text(json_text(asdict(report)) + "\n")
        os.replace(waiting, path)
    except OSError as error:
        raise LearningError(f"cannot write {path}: {error.strerror or error}") from None
