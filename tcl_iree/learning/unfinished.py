"""Training that can be cut off at any moment and gone on with."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from tcl_iree.errors import LearningError
from tcl_iree.learning.cost_model import Epoch


@dataclass(frozen=True)
class Progress:
    """How far training is.

    Attributes:
        stale: epochs since validation was best.
        keep: whether the last epoch was as good as any. Of equal ones the later is kept: it has learned more.
        best: the weights it was best with.
    """

    epochs: tuple[Epoch, ...] = ()
    best_score: float = -1.0
    stale: int = 0
    keep: bool = True
    best: dict[str, torch.Tensor] | None = None

    def after(self, epoch: Epoch) -> Progress:
        """With one more epoch."""
        return replace(
            self,
            epochs=(*self.epochs, epoch),
            best_score=max(epoch.score, self.best_score),
            stale=0 if epoch.score > self.best_score else self.stale + 1,
            keep=epoch.score >= self.best_score,
        )


class Unfinished:
    """The file that holds an unfinished run: weights, the best weights, the optimizer and the random numbers.

    Networks that change while training, the averaged one among them, are given by name.

    Args:
        path: None keeps nothing.
        run: the run's fingerprint; the file of another is refused.
    """

    def __init__(
        self,
        path: Path | None,
        run: str,
        networks: dict[str, torch.nn.Module],
        optimizer: torch.optim.Optimizer,
        rng: np.random.Generator,
    ) -> None:
        self._path, self._run, self._networks, self._optimizer, self._rng = path, run, networks, optimizer, rng

    def keep(self, progress: Progress, best: dict[str, torch.Tensor]) -> None:
        """Write everything; the file is whole at any moment."""
        if not self._path:
            return
        held = {
            f"{which}/{name}": value
            for which, network in self._networks.items()
            for name, value in network.state_dict().items()
        }
        held |= {f"best/{name}": value for name, value in best.items()}
        for index, state in self._optimizer.state_dict()["state"].items():
            held |= {f"optimizer/{index}/{name}": torch.as_tensor(value) for name, value in state.items()}
        held["random"] = torch.get_rng_state()
        about = {
            "epochs": [asdict(epoch) for epoch in progress.epochs],
            "best_score": progress.best_score,
            "stale": progress.stale,
            "rng": self._rng.bit_generator.state,
            "run": self._run,
        }
        copied = {name: value.detach().clone().contiguous() for name, value in held.items()}
        waiting = self._path.with_name(f"{self._path.name}.new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            save_file(copied, waiting, metadata={"training": json.dumps(about)})
            os.replace(waiting, self._path)
        except (OSError, SafetensorError) as error:
            raise LearningError(f"cannot write {self._path}: {error}") from None

    def restore(self, start: float = Progress.best_score) -> Progress:
        """Take up a run where it was cut off; a fresh one if there is none.

        Args:
            start: the score before a fresh one.

        Raises:
            LearningError: the file is not one of an unfinished run of this network.
        """
        if not self._path or not self._path.exists():
            return Progress(best_score=start)
        try:
            with safe_open(self._path, "pt") as file:
                about: dict[str, Any] = json.loads((file.metadata() or {})["training"])
                held = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            if about["run"] != self._run:
                raise ValueError("it is of other data or settings")
            for which, network in self._networks.items():
                network.load_state_dict(_under(held, f"{which}/"))
            self._restore_optimizer(_under(held, "optimizer/"))
            torch.set_rng_state(held["random"])
        except (SafetensorError, KeyError, RuntimeError, ValueError, OSError) as error:
            reason = (str(error).splitlines() or ["unreadable"])[0]
            raise LearningError(
                f"{self._path} is no unfinished training of this model ({reason}); delete it to start again"
            ) from None
        self._rng.bit_generator.state = about["rng"]
        epochs = tuple(Epoch(**epoch) for epoch in about["epochs"])
        return Progress(epochs, about["best_score"], about["stale"], best=_under(held, "best/"))

    def _restore_optimizer(self, held: dict[str, torch.Tensor]) -> None:
        whole = self._optimizer.state_dict()
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in held.items():
            index, _, key = name.partition("/")
            state.setdefault(int(index), {})[key] = value
        self._optimizer.load_state_dict(whole | {"state": state})


def _under(held: dict[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): value for name, value in held.items() if name.startswith(prefix)}
