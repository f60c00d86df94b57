"""A cost model's opinion of one workload, corrected by what was measured of it.

A model that learned from other workloads knows which candidates are worth a look; a handful of measurements tells where
it errs on this one. Both go into a Gaussian process over the logarithm of speed: its mean is the model's score, and
candidates whose embeddings lie close err alike. It takes milliseconds, so it follows every round of a search, and it
says how unsure it is. The model itself is left as it is, whatever other workloads taught meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tcl_iree.features.steps import Candidate
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.distances import squared_distances
from tcl_iree.target import Target
from tcl_iree.workload.model import Workload

# In units of the spread of measured speeds, how far scores may be off: in common, in proportion to themselves, for
# likes, and each by itself.
_OFFSET, _SLOPE, _LIKES, _ALONE = 1.0, 1.0, 0.7, 0.15
# Until there are a few measurements, scores are thought to spread speeds by this factor.
_SPREAD = np.log(2.0)
_ENOUGH = 6
# A failure counts as so many times slower than the slowest that worked.
_FAILED = np.log(2.0)
# More measurements than this are not needed to correct, and would make it slow.
_MOST = 512


@dataclass(frozen=True)
class Opinion:
    """What is thought of candidates.

    Attributes:
        mean: of the logarithm of speed beside IREE's default.
        error: standard deviation of that.
        embeddings: candidate x column, all columns on one scale.
        measured: the same of what was measured.
    """

    mean: np.ndarray
    error: np.ndarray
    embeddings: np.ndarray
    measured: np.ndarray


class CorrectedModel:
    """Opinions about candidates of one workload on one target."""

    def __init__(self, model: CostModel, workload: Workload, target: Target) -> None:
        self._model, self._workload, self._target = model, workload, target
        self._measured: list[Candidate] = []
        self._ratios: list[float] = []
        self._known = _Read(np.zeros(0), np.zeros((0, 0)))
        self._frame: _Frame | None = None

    def tell(self, candidate: Candidate, ratio: float | None) -> None:
        """Take note of a measurement: the default's time over the candidate's, None if it failed."""
        self._measured.append(candidate)
        self._ratios.append(ratio or np.nan)

    def opinion(self, candidates: Sequence[Candidate]) -> Opinion:
        """What is thought of candidates, given all that was told; comparable between calls."""
        read, seen = self._read(candidates), self._seen()
        if self._frame is None:
            self._frame = _Frame.around(read)
        prior, places = self._frame.scaled(read)
        if not len(seen.scores):
            return Opinion(_SPREAD * prior, np.full(len(prior), _SPREAD), places, places[:0])
        before, near = self._frame.scaled(seen)
        speeds = _speeds(np.array(self._ratios[-_MOST:]))
        spread = max(float(speeds.std()), 0.05) if len(speeds) >= _ENOUGH else _SPREAD
        level = float(np.median(speeds))
        reach = _typical(near)

        def alike(scores: np.ndarray, others: np.ndarray) -> np.ndarray:
            return (
                _OFFSET**2
                + _SLOPE**2 * np.outer(before, scores)
                + _LIKES**2 * np.exp(-squared_distances(near, others) / reach)
            )

        factor = np.linalg.cholesky(alike(before, near) + _ALONE**2 * np.eye(len(near)))
        across = np.linalg.solve(factor, alike(prior, places))
        mean = prior + across.T @ np.linalg.solve(factor, (speeds - level) / spread - before)
        known = (across * across).sum(0)
        left = np.maximum(_OFFSET**2 + (_SLOPE * prior) ** 2 + _LIKES**2 - known, 0.0) + _ALONE**2
        return Opinion(level + spread * mean, spread * np.sqrt(left), places, near)

    def _read(self, candidates: Sequence[Candidate]) -> _Read:
        scores, embeddings = self._model.read(self._workload, self._target, candidates)
        return _Read(scores.astype(np.float64), embeddings.astype(np.float64))

    def _seen(self) -> _Read:
        """The latest measurements as the model reads them; what was read before is not read again."""
        fresh = self._measured[len(self._known.scores) :]
        if fresh:
            read = self._read(fresh)
            self._known = self._known.followed_by(read) if len(self._known.scores) else read
        return _Read(self._known.scores[-_MOST:], self._known.embeddings[-_MOST:])


@dataclass(frozen=True)
class _Read:
    scores: np.ndarray
    embeddings: np.ndarray

    def followed_by(self, other: _Read) -> _Read:
        return _Read(np.concatenate([self.scores, other.scores]), np.concatenate([self.embeddings, other.embeddings]))


@dataclass(frozen=True)
class _Frame:
    """Scales that scores and embeddings are seen on: those of the first candidates asked about."""

    score: tuple[float, float]
    place: tuple[np.ndarray, np.ndarray]

    @staticmethod
    def around(read: _Read) -> _Frame:
        return _Frame(
            (float(np.median(read.scores)), max(float(read.scores.std()), 1e-9)),
            (read.embeddings.mean(0), np.maximum(read.embeddings.std(0), 1e-6)),
        )

    def scaled(self, read: _Read) -> tuple[np.ndarray, np.ndarray]:
        return (read.scores - self.score[0]) / self.score[1], (read.embeddings - self.place[0]) / self.place[1]


def _typical(points: np.ndarray) -> float:
    """The squared distance that half of the pairs exceed."""
    apart = squared_distances(points, points)[np.triu_indices(len(points), 1)]
    return max(float(np.median(apart)), 1.0) if len(apart) else 1.0


def _speeds(ratios: np.ndarray) -> np.ndarray:
    """Logarithms of speed; failures stand below everything that worked."""
    worked = np.isfinite(ratios)
    slowest = float(np.log(ratios[worked]).min()) if worked.any() else 0.0
    return np.where(worked, np.log(np.where(worked, ratios, 1.0)), slowest - _FAILED)
