"""All cost models by name."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

from tcl_iree.errors import LearningError
from tcl_iree.learning.boosted import BoostedModel
from tcl_iree.learning.cost_model import CostModel
from tcl_iree.learning.council import CouncilModel
from tcl_iree.learning.floors import RandomModel, RooflineModel
from tcl_iree.learning.mamba import MambaNetwork
from tcl_iree.learning.network import Network
from tcl_iree.learning.neural import NeuralModel, TrainingRecipe
from tcl_iree.learning.tenset_mlp import TensetNetwork
from tcl_iree.learning.tlp import MtlTlpNetwork, TlpNetwork

_LOG = logging.getLogger(__name__)
# Who sits in Mamba's council: each kind reads something else and learns in its own way, at the rate that
# `benchmarks.cost_models` chose for it on validation.
_SEATS: tuple[tuple[str, dict[str, float]], ...] = (
    ("mamba", {"teachers": 1}),
    ("tenset-mlp", {"rate": 7e-4}),
    ("xgboost", {"eta": 0.1}),
    ("mamba", {"teachers": 1}),
    ("tenset-mlp", {"rate": 7e-4}),
)


def _neural(network: type[Network]) -> Callable[..., CostModel]:
    def make(rate: float = TrainingRecipe.rate, **config: Any) -> CostModel:
        return NeuralModel(network(**config), TrainingRecipe(rate=rate))

    return make


def _mamba(rate: float = TrainingRecipe.rate, teachers: int = len(_SEATS), **config: Any) -> CostModel:
    """With one teacher there is no council: the network learns from labels itself."""
    seats = [_seat(*_SEATS[number % len(_SEATS)], rate, config) for number in range(int(teachers))]
    council = [seat for seat in seats if seat] if teachers > 1 else []
    return CouncilModel(MambaNetwork(**config), TrainingRecipe(rate=rate), council)


def _seat(name: str, settings: dict[str, float], rate: float, config: dict[str, Any]) -> Callable[[], CostModel] | None:
    if name == "xgboost" and find_spec("xgboost") is None:
        _LOG.info("nobody in the council knows boosted trees: pip install 'tcl-iree[xgboost]'")
        return None
    given = settings | {"rate": rate} | config if name == "mamba" else settings
    return lambda: make_model(name, given)


MODELS: dict[str, tuple[Callable[..., CostModel], str]] = {
    "mamba": (_mamba, "scripts as sequences, a selective state space"),
    "tlp": (_neural(TlpNetwork), "primitives as a language, self-attention"),
    "mtl-tlp": (_neural(MtlTlpNetwork), "TLP with one head a platform"),
    "tenset-mlp": (_neural(TensetNetwork), "statement features, a small network"),
    "xgboost": (BoostedModel, "statement features, boosted trees that rank pairs (AutoTVM)"),
    "roofline": (RooflineModel, "an estimate from arithmetic and traffic; learns nothing"),
    "random": (RandomModel, "guesses; learns nothing"),
}


def make_model(name: str, config: Mapping[str, Any] | None = None) -> CostModel:
    """An untrained model.

    Raises:
        LearningError: there is none of this name, or it does not take these settings.
    """
    if name not in MODELS:
        raise LearningError(f"there is no cost model {name!r}; known: {', '.join(MODELS)}")
    config = config or {}
    if any(not value > 0 for value in config.values()):
        raise LearningError(f"settings of a model must be more than 0, unlike {dict(config)}")
    try:
        return MODELS[name][0](**config)
    except (TypeError, RuntimeError) as error:
        raise LearningError(f"the model {name} cannot be made with {dict(config)}: {error}") from None
