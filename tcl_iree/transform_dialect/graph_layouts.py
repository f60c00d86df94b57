"""The family of graph schedules: which ops of a model get another layout, and how wide their panels are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from tcl_iree.errors import ScheduleError
from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import cpu_limits
from tcl_iree.transform_dialect.family import Decision
from tcl_iree.transform_dialect.graph_script import GraphScript, Packed
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import read_schedule
from tcl_iree.workload.model_op import (
    ATTENTION,
    BATCH_MATMUL,
    CONV_NCHW,
    CONV_NHWC,
    DEPTHWISE_NCHW,
    MATMUL,
    MAX_POOL_NCHW,
    ModelOp,
)

# Panels narrower than this are not worth their loop.
_LEAST = 8
# All channels in one panel, which is channels last and nothing more.
_WHOLE = -1


@dataclass(frozen=True)
class Layouts:
    """Channels last, with panels of output channels, for the ops of one model.

    Decisions:
        conv_panel, matmul_panel, pool_panel: the widest panels; an op gets the widest that divides its channels. 0
            leaves these ops as they are. -1 makes one panel of all channels, and so has a convolution whose channels
            no panel of two vectors divides.
        depthwise: whether depthwise convolutions have channels last as well.
        attention: whether attention is taken apart into two products and a softmax, each with schedules of its own.
    """

    ops: tuple[ModelOp, ...]
    target: Target

    name = "channels_last"

    @property
    def serves(self) -> bool:
        """Whether there is anything to choose."""
        return self.target.kind == "cpu" and any(len(decision.choices) > 1 for decision in self.decisions())

    def decisions(self) -> tuple[Decision, ...]:
        """What is to be decided for this model; only 0 where it has no such ops."""
        wide, there = self._wide, self._open()
        # Widths that come to the same panels are offered once.
        products = {tuple(_panel(op.shape[-1], width) for op in there["matmul"]): width for width in reversed(wide)}
        return (
            Decision("attention", (False, True) if there["attention"] else (False,)),
            Decision("conv_panel", (0, *wide, _WHOLE) if there["conv"] else (0,)),
            Decision("depthwise", (False, True) if there["depthwise"] else (False,)),
            Decision("matmul_panel", (0, *sorted(width for panels, width in products.items() if any(panels)))),
            Decision("pool_panel", (0, wide[0]) if there["pool"] else (0,)),
        )

    def enumerate(self) -> Iterator[Schedule]:
        """Every schedule but the one that changes nothing."""
        decisions = self.decisions()
        for values in product(*(decision.choices for decision in decisions)):
            if any(values):
                yield Schedule(
                    self.name, tuple((made.name, value) for made, value in zip(decisions, values, strict=True))
                )

    def usual(self, attention: bool = False, cut: bool = False) -> Schedule:
        """The widest panels everywhere.

        Args:
            attention: take it apart if there is any.
            cut: filters and matrices in panels as wide as register tiles are, which a schedule reads one after the
                other as they lie in memory; not filters whole, and matrices in panels twice as wide.
        """
        choices = {decision.name: decision.choices for decision in self.decisions()}
        made = {name: values[-1] for name, values in choices.items()}
        made["attention"] = attention and made["attention"]
        if cut:
            made |= {name: self._wide[0] for name in ("conv_panel", "matmul_panel") if self._wide[0] in choices[name]}
        return Schedule(self.name, tuple(made.items()))

    def script(self, schedule: Schedule) -> str:
        """The script of a schedule.

        Raises:
            ScheduleError: it does not fit this model.
        """
        known = {decision.name: decision.choices for decision in self.decisions()}
        given = dict(schedule.decisions)
        if schedule.family != self.name or set(given) != set(known):
            raise ScheduleError(f"{schedule} is no graph schedule of {self.name}")
        wrong = [name for name, value in given.items() if value not in known[name]]
        if wrong:
            raise ScheduleError(f"{schedule} does not fit this model: {wrong[0]} must be one of {known[wrong[0]]}")
        made = GraphScript(schedule)
        if schedule["attention"]:
            made.phase("Attention as two products with a softmax between them.")
            made.run_pass("iree-linalg-ext-convert-attention-to-online-attention")
            made.run_pass("iree-linalg-ext-decompose-attention")
        made.phase("What is added to a result becomes an op of its own: else it would be packed when the model runs.")
        made.run_pass("linalg-inline-scalar-operands")
        made.run_pass("iree-global-opt-detach-elementwise-from-named-ops")
        if schedule["depthwise"]:
            self._depthwise(made)
        if schedule["conv_panel"] or schedule["depthwise"]:
            made.phase("Convolutions with channels last.")
            made.run_pass("iree-preprocessing-convert-conv-to-channels-last")
        self._convolutions(made, schedule)
        for packed in self._others(schedule):
            made.pack(packed)
        made.phase("What is packed and unpacked along the innermost dimension becomes a reshape.")
        made.apply_patterns("tensor.fold_into_pack_and_unpack", "linalg.fold_pack_unpack_into_empty")
        made.run_pass("iree-global-opt-simplify-pack-unpack")
        made.phase("Results that must be unpacked are transposed: that fuses, and has schedules.")
        made.lower_unpacks()
        if schedule["conv_panel"] or schedule["depthwise"]:
            made.phase("Filters stay as they were laid out: IREE keeps them as constants of their own.")
            made.hoist_constants()
        if schedule["conv_panel"] > 0:
            made.phase("Panels reach through padding, so that a convolution is stored straight into the padded image.")
            made.run_pass("iree-dispatch-creation-fold-unit-extent-dims-for-func")
            made.apply_patterns("iree.bubble_expand")
        return made.text()

    def parse(self, text: str) -> Schedule:
        """The schedule a script was built from.

        Raises:
            ScheduleError: the text is no script of this family for this model, or was changed since.
        """
        schedule = read_schedule(text)
        if self.script(schedule).strip() != text.strip():
            raise ScheduleError("the graph script is not what its own decisions give; it was edited or is older")
        return schedule

    @property
    def _wide(self) -> tuple[int, ...]:
        """Widths of panels: two and four vectors."""
        lanes = max(_LEAST // 2, cpu_limits(self.target, "f32").lanes)
        return 2 * lanes, 4 * lanes

    def _open(self) -> dict[str, list[ModelOp]]:
        """The ops of each sort that can be packed at all."""
        return {
            "conv": [op for op in self.ops if op.kind in (CONV_NCHW, CONV_NHWC) and op.weights],
            "depthwise": [op for op in self.ops if op.kind == DEPTHWISE_NCHW and op.weights],
            "matmul": [op for op in self.ops if op.kind in (MATMUL, BATCH_MATMUL) and op.weights and op.shape[-2] > 1],
            "pool": [op for op in self.ops if op.kind == MAX_POOL_NCHW],
            "attention": [op for op in self.ops if op.kind == ATTENTION],
        }

    def _depthwise(self, made: GraphScript) -> None:
        made.phase("Depthwise convolutions: all channels in one panel, which is channels last.")
        for op in self._open()["depthwise"]:
            made.pack(Packed(op.kind, _type(op), (0, 0, 0, op.shape[1], 0, 0)))
        made.apply_patterns("linalg.data_layout_propagation")
        made.apply_patterns()
        made.run_pass("iree-global-opt-simplify-pack-unpack")
        made.run_pass("iree-codegen-decompose-pack-unpack-ops", use_only_reshapes=True)
        made.apply_patterns()

    def _convolutions(self, made: GraphScript, schedule: Schedule) -> None:
        whole = False
        for op in self._open()["conv"] if schedule["conv_panel"] else ():
            batch, *rest = op.shape
            height, width, channels = (*rest[1:], rest[0]) if op.kind == CONV_NCHW else rest
            panel = _panel(channels, schedule["conv_panel"], self._wide[0]) or channels
            whole |= panel == channels
            shape = (batch, height, width, channels)
            made.pack(Packed(CONV_NHWC, _type(op, shape), (0, 0, 0, panel, 0, 0, 0), weights=(3, 0, 1, 2)))
        if whole:
            made.phase("Panels of all channels are transposes, which compile in a fraction of the time.")
            made.apply_patterns("tensor.fold_into_pack_and_unpack", "linalg.fold_pack_unpack_into_empty")
            made.run_pass("iree-global-opt-simplify-pack-unpack")
            made.run_pass("iree-codegen-decompose-pack-unpack-ops", use_only_reshapes=True)
            made.apply_patterns()

    def _others(self, schedule: Schedule) -> Iterator[Packed]:
        there = self._open()
        for op in there["pool"] if schedule["pool_panel"] else ():
            if panel := _panel(op.shape[1], schedule["pool_panel"]):
                yield Packed(op.kind, _type(op), (0, panel, 0, 0, 0, 0), image=(0, 2, 3, 1))
        for op in there["matmul"] if schedule["matmul_panel"] else ():
            if panel := _panel(op.shape[-1], schedule["matmul_panel"]):
                batch_loops = len(op.shape) - 2
                outer = (1, 0) if op.kind == MATMUL else (0, 2, 1)
                yield Packed(op.kind, _type(op), (*[0] * batch_loops, 0, panel, 0), weights=outer)


def _panel(channels: int, widest: int, least: int = _LEAST) -> int:
    """The widest panel that divides the channels, 0 if there is none worth it."""
    return next((width for width in (widest, widest // 2, widest // 4) if width >= least and channels % width == 0), 0)


def _type(op: ModelOp, shape: Sequence[int] | None = None) -> str:
    return f"tensor<{'x'.join(map(str, shape or op.shape))}x{op.dtype}>"
