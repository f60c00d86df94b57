"""The dispatches a model has under some flags and layouts, and which of them are worth a search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tcl_iree.frontend import Extraction
from tcl_iree.workflows.base_flags import Base
from tcl_iree.workflows.promise import Rates, Stand
from tcl_iree.workflows.tune_options import TuneOptions
from tcl_iree.workflows.workload_search import WorkloadSearch


@dataclass
class Form:
    """One way a model's dispatches form, and how their search stands.

    Attributes:
        searches: of every dispatch that can be measured, heaviest first; `chosen` of those worth it.
        left: why others are left to IREE, by key.
        unmeasured: dispatches whose default could not be measured: what they take is not known.
        untunable: seconds of one inference in dispatches that cannot be searched, where it was asked.
    """

    base: Base
    extraction: Extraction
    searches: list[WorkloadSearch] = field(default_factory=list)
    chosen: list[WorkloadSearch] = field(default_factory=list)
    left: dict[str, str] = field(default_factory=dict)
    unmeasured: int = 0
    untunable: float = 0.0

    @property
    def stands(self) -> list[Stand]:
        """How the dispatches stand with the best of this run; what one form has from earlier is no merit of it."""
        return [
            _stand(search, max(1.0, search.found_ratio()), search in self.chosen and not search.asked)
            for search in self.searches
        ]

    def choose(self, options: TuneOptions, rates: Rates) -> None:
        """Choose what is worth a search, and note why the rest is not.

        Shares are of what the model may take once it is tuned. Some layouts have defaults up to 45 times too slow:
        beside these, what takes a fifth of the tuned model would look like nothing.

        Args:
            rates: that dispatches reach by default, in all the layouts there are.
        """
        stands = [_stand(search, 1.0, not search.exhausted) for search in self.searches]
        least = options.min_share * rates.promise(stands)
        self.chosen = []
        for search in self.searches:
            key = search.dispatch.workload.key
            if search.exhausted:
                self.left[key] = "no schedule family serves it"
            elif search.weight < least:
                self.left[key] = f"less than {100 * options.min_share:g} % of what tuning may leave"
            elif options.top is not None and len(self.chosen) >= options.top:
                self.left[key] = f"not among the {options.top} heaviest"
            else:
                self.chosen.append(search)


def choose_all(forms: Sequence[Form], options: TuneOptions) -> None:
    """Choose what is worth a search in each of a model's forms, by their defaults alone."""
    rates = Rates.of([_stand(search, 1.0, False) for form in forms for search in form.searches])
    for form in forms:
        form.choose(options, rates)


def _stand(search: WorkloadSearch, speedup: float, is_open: bool) -> Stand:
    workload, times = search.dispatch.workload, search.dispatch.occurrences
    return Stand(times, search.default_seconds / speedup, workload.flops, workload.bytes, is_open)
