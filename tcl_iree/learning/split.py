"""Which workloads to learn from, to stop by and to test on: one split for everything.

A workload whose root op and loop sizes occur in the test networks is test data, whatever is fused to it and wherever
else it occurs; the same holds for validation against training.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tcl_iree.errors import LearningError
from tcl_iree.learning.groups import Group
from tcl_iree.workload.model import Workload

BUNDLED = Path(__file__).with_name("split.json")
TRAIN, VALIDATION, TEST = "train", "validation", "test"
# Network -> workload key -> how often one inference runs it.
Members = dict[str, dict[str, int]]


def signature(workload: Workload) -> str:
    """The root op and its loop sizes, in no order and without loops of one iteration."""
    root = workload.root
    kind = root.computes if root.kind.startswith("linalg.") else root.kind
    sizes = sorted(loop.size for loop in root.loops if loop.size > 1)
    return f"{kind} {'x'.join(map(str, sizes))}"


@dataclass(frozen=True)
class Split:
    """The parts.

    Attributes:
        members: part -> network -> workload key -> occurrences. A workload of several networks is listed in each.
        signatures: part -> root ops and loop sizes, for test and validation.
    """

    members: Mapping[str, Members]
    signatures: Mapping[str, frozenset[str]]

    def part(self, workload: Workload) -> str:
        """Where a workload belongs; one that was never seen before is for training."""
        own = signature(workload)
        return next((part for part in (TEST, VALIDATION) if own in self.signatures[part]), TRAIN)

    def divide(self, groups: Iterable[Group]) -> dict[str, list[Group]]:
        """Groups by part."""
        made: dict[str, list[Group]] = {TRAIN: [], VALIDATION: [], TEST: []}
        for group in groups:
            made[self.part(group.workload)].append(group)
        return made

    def occurrences(self, key: str) -> list[tuple[str, int]]:
        """The networks a workload occurs in, and how often."""
        return [(network, keys[key]) for part in self.members.values() for network, keys in part.items() if key in keys]

    @staticmethod
    def places(split: Split | None, key: str) -> list[tuple[str, int]]:
        """The networks a workload occurs in, and how often; without a split it stands for itself."""
        return split.occurrences(key) if split else [(key, 1)]

    def refuse_overlap(self, keys: Iterable[str], tested: Iterable[Group] = ()) -> None:
        """Raise if a model learned from test data.

        Args:
            keys: of the workloads it learned from.
            tested: groups it is to be tested on.

        Raises:
            LearningError: which workload it is.
        """
        held = {key for network in self.members[TEST].values() for key in network}
        held |= {group.workload.key for group in tested}
        seen = sorted(held & set(keys))
        if seen:
            raise LearningError(
                f"the model has learned from {len(seen)} test workloads ({seen[0]}, ...): its score on them means "
                "nothing; train it on the training part alone"
            )

    def with_validation(self, name: str, workloads: Sequence[tuple[Workload, int]]) -> Split:
        """The same with one more network for validation; what is test data stays that.

        Args:
            workloads: those of the network, and how often one inference runs each.
        """
        own = {workload: count for workload, count in workloads if self.part(workload) != TEST}
        keys = {workload.key: count for workload, count in own.items()}
        trained = {
            network: {key: count for key, count in held.items() if key not in keys}
            for network, held in self.members[TRAIN].items()
        }
        validation = {**self.members[VALIDATION], name: dict(sorted(keys.items()))}
        signatures = self.signatures[VALIDATION] | {signature(workload) for workload in own}
        return Split(
            {**self.members, TRAIN: trained, VALIDATION: validation}, {**self.signatures, VALIDATION: signatures}
        )

    def to_json(self) -> str:
        """One workload a line."""
        plain = {"members": self.members, "signatures": {part: sorted(own) for part, own in self.signatures.items()}}
        return json.dumps(plain, indent=0, sort_keys=True) + "\n"


def make_split(networks: Mapping[str, Mapping[str, Sequence[tuple[Workload, int]]]]) -> Split:
    """Divide the workloads of networks.

    Args:
        networks: part -> network -> its workloads and how often one inference runs each.
    """
    signatures: dict[str, frozenset[str]] = {}
    for part in (TEST, VALIDATION):
        entries = networks.get(part, {}).values()
        signatures[part] = frozenset(signature(workload) for held in entries for workload, _ in held)
    empty = Split({}, signatures)
    members: dict[str, Members] = {TRAIN: {}, VALIDATION: {}, TEST: {}}
    for part, held in networks.items():
        for network, workloads in held.items():
            kept = {workload.key: count for workload, count in workloads if empty.part(workload) == part}
            members[part][network] = dict(sorted(kept.items()))
    return Split(members, signatures)


def load_split(path: Path = BUNDLED) -> Split:
    """Read a split.

    Raises:
        LearningError: the file is missing or no split.
    """
    try:
        plain = json.loads(path.read_text())
        signatures = {part: frozenset(plain["signatures"][part]) for part in (TEST, VALIDATION)}
        return Split({part: plain["members"][part] for part in (TRAIN, VALIDATION, TEST)}, signatures)
    except (OSError, ValueError, KeyError, TypeError):
        raise LearningError(f"{path} is missing or is no split of workloads; give one made by this project") from None
