"""What a transfer to another platform brought, and which platforms a model has learned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from tcl_iree.report.tables import table


@dataclass(frozen=True)
class PlatformRow:
    """How well one platform's programs are ranked, before and after.

    Attributes:
        part: of the split, that the figures are on.
    """

    platform: str
    part: str
    workloads: int
    top_1_before: float
    top_1_after: float
    top_5_before: float
    top_5_after: float


@dataclass(frozen=True)
class TransferReport:
    """A transfer.

    Attributes:
        origin: the checkpoint gone on from; `output` is the one written.
        labels: programs learned from; `validation` were only stopped by.
        measured: programs measured in this run; `known` are those that the database had, both 0 for recorded labels.
        pool: programs that were read without their times.
        teacher: `column`; `scratch` where earlier knowledge did harm; `base` where the labels did, and taught nothing.
        left: workloads or networks left out, and why.
        lineage: one entry a stage, as checkpoints carry it.
    """

    origin: str
    output: str
    target: str
    platform: str
    sampler: str
    labels: int
    validation: int
    measured: int
    known: int
    pool: int
    teacher: str
    notes: tuple[str, ...]
    left: dict[str, str]
    platforms: tuple[PlatformRow, ...]
    lineage: tuple[dict[str, Any], ...]
    epochs: int
    seconds: float


def transfer_table(report: TransferReport) -> Table:
    """One line a platform."""
    rows = [
        [row.platform, row.part, str(row.workloads), f"{row.top_1_before:.3f}", f"{row.top_1_after:.3f}",
         f"{row.top_5_before:.3f}", f"{row.top_5_after:.3f}"]
        for row in report.platforms
    ]  # fmt: skip
    names = ["platform", "part", "workloads", "top-1 before", "after", "top-5 before", "after"]
    title = f"{report.labels} labels of {report.platform}; teacher: {report.teacher}"
    return table(title, names, rows, numeric=(2, 3, 4, 5, 6))


def lineage_table(name: str, stages: Sequence[Mapping[str, Any]]) -> Table:
    """One line a stage; top-k is what it was right after, on that platform's validation."""
    rows = [
        [str(number), ", ".join(stage["platforms"].values()), ", ".join(stage["platforms"]), str(stage["labels"]),
         str(len(stage["training_keys"])), stage["teacher"], f"{stage['metrics'].get('top_1', 0.0):.3f}",
         f"{stage['metrics'].get('top_5', 0.0):.3f}"]
        for number, stage in enumerate(stages, 1)
    ]  # fmt: skip
    names = ["", "target", "platform", "labels", "workloads", "taught by", "top-1", "top-5"]
    return table(f"what {name} has learned, in order", names, rows, numeric=(0, 3, 4, 6, 7))
