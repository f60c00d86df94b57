"""AutoTVM's cost model: boosted trees that rank pairs, with transfer from history through the base margin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tcl_iree.errors import LearningError
from tcl_iree.features.statements import FEATURES, StatementEncoder
from tcl_iree.features.steps import Candidate
from tcl_iree.learning.cost_model import CostModel, Epoch, FitOptions, State
from tcl_iree.learning.groups import Group
from tcl_iree.learning.metrics import ranked, validation_figures
from tcl_iree.learning.recent import Recent
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

_SETTINGS = {
    "objective": "rank:pairwise", "max_depth": 3, "gamma": 0.0001, "min_child_weight": 1, "subsample": 1.0,
    "lambda": 1.0, "alpha": 0.0, "tree_method": "hist", "lambdarank_pair_method": "mean",
    "lambdarank_num_pair_per_sample": 8,
}  # fmt: skip
_ROUNDS_AN_EPOCH = 10
# History counts half as much with each so many measurements of the new task.
_HALVED_BY = 64.0


class BoostedModel(CostModel):
    """Trees over the root statement's features and the sum of the others'.

    Args:
        eta: how much each tree counts; AutoTVM's by default.
    """

    name = "xgboost"

    def __init__(self, eta: float = 0.3) -> None:
        self._eta = eta
        self._encoders = Recent(StatementEncoder)
        self._history: Any = None
        self._recent: Any = None
        self._discount = 1.0

    @property
    def config(self) -> dict[str, Any]:
        """How much each tree counts."""
        return {"eta": self._eta}

    def fit(self, training: Sequence[Group], validation: Sequence[Group], options: FitOptions) -> list[Epoch]:
        """Ten trees an epoch; the trees up to the best epoch are kept. The loss told is the regret of top-1."""
        xgboost = _xgboost()
        data = self._matrix(training)
        held = [(group, self._of_group(group)) for group in validation]
        booster, epochs = None, []
        best, stale, best_rounds = -1.0, 0, 0
        for number in range(options.epochs):
            settings = _SETTINGS | {"seed": options.seed, "nthread": 1, "eta": self._eta}
            booster = xgboost.train(settings, data, _ROUNDS_AN_EPOCH, xgb_model=booster)
            pools = [
                ranked(group, booster.predict(xgboost.DMatrix(rows, nthread=1), output_margin=True))
                for group, rows in held
            ]
            figures = validation_figures(pools)
            epoch = Epoch(number, 1.0 - figures[0], *figures)
            epochs.append(epoch)
            options.say(epoch)
            stale = 0 if epoch.score > best else stale + 1
            if stale == 0:
                best, best_rounds = epoch.score, booster.num_boosted_rounds()
            if stale >= options.patience:
                break
        self._history = booster[:best_rounds] if booster and best_rounds else booster
        self._recent, self._discount = None, 1.0
        return epochs

    def update(self, groups: Sequence[Group]) -> None:
        """Trees of the new measurements, on top of what history says, discounted by how many they are."""
        xgboost = _xgboost()
        groups = [group for group in groups if len(group) > 1]
        self._recent, self._discount = None, 1.0
        if not groups:
            return
        self._discount = 2.0 ** -(sum(len(group) - 1 for group in groups) / _HALVED_BY)
        margins = [self._discount * self._old(self._of_group(group)) for group in groups]
        data = self._matrix(groups)
        data.set_base_margin(np.concatenate(margins))
        self._recent = xgboost.train(_SETTINGS | {"nthread": 1, "eta": self._eta}, data, 5 * _ROUNDS_AN_EPOCH)

    def predict(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """See `CostModel`."""
        if not candidates:
            return np.zeros(0)
        return self._scores(self._features(workload, target, candidates))

    def score(self, group: Group) -> np.ndarray:
        """See `CostModel`."""
        return self._scores(self._of_group(group))

    def _scores(self, rows: np.ndarray) -> np.ndarray:
        scores = self._old(rows) * self._discount
        if self._recent is not None:
            scores = scores + self._recent.predict(_xgboost().DMatrix(rows, nthread=1), output_margin=True)
        return scores

    def embed(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        """The features: trees have no other space of their own."""
        return self._features(workload, target, candidates)

    def state(self) -> State:
        """Trees as bytes."""
        held = {"history": self._history, "recent": self._recent}
        made = {
            name: np.frombuffer(bytes(booster.save_raw("ubj")), np.uint8) for name, booster in held.items() if booster
        }
        return made | {"discount": np.array([self._discount])}

    def load_state(self, state: State) -> None:
        """See `CostModel`."""
        xgboost = _xgboost()

        def booster(name: str) -> Any:
            if name not in state:
                return None
            made = xgboost.Booster()
            made.load_model(bytearray(state[name].tobytes()))
            made.set_param({"nthread": 1})
            return made

        self._history, self._recent = booster("history"), booster("recent")
        self._discount = float(state["discount"][0])

    @property
    def parameters(self) -> int:
        """Nodes of all trees."""
        held = (booster for booster in (self._history, self._recent) if booster is not None)
        return sum(tree.count("\n") for booster in held for tree in booster.get_dump())

    def _old(self, rows: np.ndarray) -> np.ndarray:
        if self._history is None:
            return np.zeros(len(rows))
        return self._history.predict(_xgboost().DMatrix(rows, nthread=1), output_margin=True)

    def _matrix(self, groups: Sequence[Group]) -> Any:
        rows = np.concatenate([self._of_group(group) for group in groups])
        labels = np.concatenate([group.labels for group in groups])
        numbers = np.concatenate([np.full(len(group), number) for number, group in enumerate(groups)])
        return _xgboost().DMatrix(rows, labels, qid=numbers, nthread=1)

    def _of_group(self, group: Group) -> np.ndarray:
        if group.source:
            whole, positions = group.source
            return self._of_group(whole)[positions]
        return group.once(type(self), lambda: self._features(group.workload, group.target, group.candidates))

    def _features(self, workload: Workload, target: Target, candidates: Sequence[Candidate]) -> np.ndarray:
        features, _ = self._encoders.of(workload, target).statements(candidates)
        return np.concatenate([features[:, 0], features[:, 1:].sum(1)], axis=1).reshape(-1, 2 * FEATURES)


def _xgboost() -> Any:
    try:
        import xgboost
    except ImportError:
        raise LearningError("the xgboost model needs the package: pip install 'tcl-iree[xgboost]'") from None
    return xgboost
