"""Graph schedules: layouts of a whole model, chosen before dispatches form."""

from __future__ import annotations

import random
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import tcl_iree
from tcl_iree.database import Database
from tcl_iree.errors import LibraryError, ScheduleError
from tcl_iree.frontend import Model, extract, load_model
from tcl_iree.frontend.iree_compile import compile_model
from tcl_iree.frontend.model_ops import model_ops
from tcl_iree.target import Target
from tcl_iree.transform_dialect.cpu_limits import cpu_limits
from tcl_iree.transform_dialect.graph_layouts import Layouts
from tcl_iree.transform_dialect.library import Library, merge
from tcl_iree.transform_dialect.library_text import library_flags
from tcl_iree.transform_dialect.space import Space
from tcl_iree.workflows.base_flags import choose_base
from tcl_iree.workflows.layouts import formed, untunable_seconds, with_layouts
from tcl_iree.workflows.model_library import build_library
from tcl_iree.workflows.similar import Similar
from tcl_iree.workload.model_op import ATTENTION, CONV_NCHW, DEPTHWISE_NCHW, MATMUL, MAX_POOL_NCHW

TARGET = "cpu,threads=1"


class Small(nn.Module):
    """A convolution, a depthwise one, pooling, a residual and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(32, 32, 3, padding=1, groups=32)
        self.pointwise = nn.Conv2d(32, 32, 1)
        self.linear = nn.Linear(32, 24)

    def forward(self, image: Tensor) -> Tensor:
        """One image to features."""
        image = nn.functional.max_pool2d(self.first(image).relu(), 2)
        image = image + self.pointwise(self.depthwise(image).relu())
        return self.linear(image.mean((2, 3)))


def imported(module: nn.Module, *shape: int) -> Model:
    torch.manual_seed(0)
    return load_model(module.eval(), [torch.randn(*shape)])


@pytest.fixture(scope="module")
def target() -> Target:
    return Target.parse(TARGET)


@pytest.fixture(scope="module")
def small() -> Model:
    torch.manual_seed(1)
    return imported(Small(), 1, 3, 32, 32)


@pytest.fixture(scope="module")
def layouts(small: Model, target: Target) -> Layouts:
    return Layouts(model_ops(small, target), target)


def test_the_ops_of_a_model_are_found_with_what_is_constant(small: Model, target: Target) -> None:
    found = {(op.kind, op.shape): op for op in model_ops(small, target)}
    assert found[CONV_NCHW, (1, 32, 16, 16)].weights
    assert found[DEPTHWISE_NCHW, (1, 32, 8, 8)].weights
    assert (MAX_POOL_NCHW, (1, 32, 8, 8)) in found


def test_a_product_of_two_inputs_has_no_weights(target: Target) -> None:
    class Product(nn.Module):
        def forward(self, one: Tensor, other: Tensor) -> Tensor:
            return one @ other

    model = load_model(Product(), [torch.randn(16, 32), torch.randn(32, 64)])
    (op,) = model_ops(model, target)
    assert op.kind == MATMUL
    assert not op.weights
    assert not Layouts((op,), target).serves


def test_a_repeated_constant_is_no_weights(target: Target) -> None:
    """A linear layer over an image: torch repeats its matrix for every row of pixels, and IREE would pack the copies."""
    model = imported(nn.Linear(24, 48), 1, 6, 6, 24)
    assert not any(op.weights for op in model_ops(model, target))


def test_a_result_that_must_be_unpacked_is_transposed(target: Target) -> None:
    model = imported(nn.Conv2d(16, 32, 1), 1, 16, 10, 10)
    changed = with_layouts(model, target, choose_base("plain", target, None))
    assert changed
    assert not changed[1].untunable


def test_filters_are_whole_or_cut_into_panels(target: Target) -> None:
    """Channels that panels of two vectors do not divide stay whole."""
    base, width = choose_base("plain", target, None), 2 * cpu_limits(target, "f32").lanes
    odd = width + width // 2
    model = imported(nn.Sequential(nn.Conv2d(16, 4 * width, 3), nn.Conv2d(4 * width, odd, 3)), 1, 16, 10, 10)
    whole, cut = with_layouts(model, target, base), with_layouts(model, target, base, cut=True)
    assert whole
    assert cut
    sizes = [
        sorted(max(operand.shape for operand in entry.workload.root.operands if operand.is_output) for entry in made)
        for made in (whole[1].dispatches, cut[1].dispatches)
    ]
    assert sizes == [[(6, 6, odd), (8, 8, 4 * width)], [(6, 6, odd), (8, 8, 4, width)]]
    assert with_layouts(imported(nn.Linear(24, 48), 4, 24), target, base, cut=True) is None


def test_filters_of_1x1_convolutions_lie_along_lanes(target: Target) -> None:
    """IREE would fuse their transpose into the product, which would then read them across in every inference."""
    module = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 1), nn.ReLU(), nn.Conv2d(64, 32, 1))
    changed = with_layouts(imported(module, 1, 3, 18, 18), target, choose_base("O2+im2col", target, None))
    assert changed
    products = [entry.workload for entry in changed[1].dispatches if len(entry.workload.root.loops) < 5]
    assert len(products) == 2
    for workload in products:
        assert "contraction" in [family.name for family in Space(workload, target).families], workload.label


def test_panels_are_stored_straight_into_padded_images(target: Target) -> None:
    """Nothing is copied in between, and products that read panels have schedules."""
    width = 2 * cpu_limits(target, "f32").lanes
    layers = [
        layer
        for size, before, after in ((3, 8, 2 * width), (1, 2 * width, width), (3, width, width))
        for layer in (nn.Conv2d(before, after, size, padding=size // 2), nn.ReLU())
    ]
    changed = with_layouts(
        imported(nn.Sequential(*layers), 1, 8, 14, 14), target, choose_base("O2", target, None), cut=True
    )
    assert changed
    assert not changed[1].untunable
    products = [entry.workload for entry in changed[1].dispatches if entry.workload.flops > 10_000]
    assert len(products) == 3
    for workload in products:
        assert {"contraction", "filter_panels"} & {family.name for family in Space(workload, target).families}


@pytest.mark.parametrize("cut", [False, True])
def test_a_bias_is_read_as_it_is(target: Target, cut: bool) -> None:
    """Not in as many copies as the image has pixels."""
    model = imported(nn.Sequential(nn.Conv2d(8, 64, 3, padding=1), nn.ReLU()), 1, 8, 14, 14)
    changed = with_layouts(model, target, choose_base("O2", target, None), cut=cut)
    assert changed
    (entry,) = [entry for entry in changed[1].dispatches if entry.workload.flops > 100_000]
    sizes = [prod(entry.workload.bindings[index].shape) for index in entry.constants]
    assert max(sizes) == 64 * 8 * 9  # the filters; of the image there are 64 * 14 * 14


def test_dispatches_that_are_left_to_iree_count_too(small: Model, target: Target, tmp_path: Path) -> None:
    base = choose_base("plain", target, None)
    held = formed(small, target, base)
    assert held.untunable, "a padded convolution copies its image"
    assert untunable_seconds(small, target, base, held, tmp_path) > 0
    assert untunable_seconds(small, target, base, replace(held, untunable=()), tmp_path) == 0


def test_scripts_are_read_back(layouts: Layouts) -> None:
    every = list(layouts.enumerate())
    assert len(every) > 10
    for schedule in every:
        assert layouts.parse(layouts.script(schedule)) == schedule
    assert layouts.usual() in every
    assert layouts.usual(cut=True) in every
    assert layouts.usual(cut=True) != layouts.usual()


def test_panels_of_matrices_are_offered_once_each(target: Target) -> None:
    """Two widths for a matrix that both divide, one where both come to the same."""
    choices = []
    for width in (128, 96, 24, 20):
        made = Layouts(model_ops(imported(nn.Linear(24, width), 4, 24), target), target)
        choices.append(next(decision.choices for decision in made.decisions() if decision.name == "matmul_panel"))
    narrow, wide = choices[0][1:]
    assert wide == 2 * narrow
    assert choices == [(0, narrow, wide), (0, narrow, wide) if 96 % wide == 0 else (0, narrow), (0, narrow), (0,)]


def test_an_edited_script_and_a_foreign_schedule_are_refused(layouts: Layouts, target: Target) -> None:
    text = layouts.script(layouts.usual())
    with pytest.raises(ScheduleError, match="edited"):
        layouts.parse(text.replace("packed_sizes = [0, 0, 0, ", "packed_sizes = [0, 0, 1, ", 1))
    with pytest.raises(ScheduleError, match="does not fit this model"):
        Layouts((), target).script(layouts.usual())


def test_nothing_is_packed_when_the_model_runs(small: Model, layouts: Layouts, target: Target) -> None:
    before = extract(small, target)
    after = extract(small, target, graph=layouts.script(layouts.usual()))
    assert {entry.workload.key for entry in before.dispatches} != {entry.workload.key for entry in after.dispatches}
    assert not [op.kind for entry in after.dispatches for op in entry.workload.ops if "pack" in op.kind]


class Attending(nn.Module):
    """Attention over a number of rows that no block divides."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(32, 96)

    def forward(self, rows: Tensor) -> Tensor:
        """Two heads of 16 columns."""
        query, key, value = self.linear(rows).view(1, -1, 3, 2, 16).permute(2, 0, 3, 1, 4)
        return nn.functional.scaled_dot_product_attention(query, key, value).transpose(1, 2)


def test_attention_without_a_schedule_is_taken_apart(target: Target) -> None:
    torch.manual_seed(2)
    module, rows = Attending().eval(), torch.randn(1, 67, 32)
    model = load_model(module, [rows])
    base = choose_base("plain", target, None)
    kinds = [entry.workload.root.kind for entry in extract(model, target).dispatches]
    changed, extraction = with_layouts(model, target, base) or (None, None)
    assert ATTENTION in kinds
    assert changed
    assert changed.layouts
    assert changed.layouts["attention"]
    assert extraction
    assert ATTENTION not in [entry.workload.root.kind for entry in extraction.dispatches]
    found = tcl_iree.tune(model, target=TARGET, effort="none", layouts="change")
    np.testing.assert_allclose(np.asarray(found(rows)), module(rows).detach().numpy(), rtol=2e-3, atol=2e-3)


def test_attention_with_a_schedule_stays_whole(target: Target) -> None:
    model = load_model(Attending().eval(), [torch.randn(1, 64, 32)])
    changed, extraction = with_layouts(model, target, choose_base("plain", target, None)) or (None, None)
    assert changed
    assert changed.layouts
    assert not changed.layouts["attention"]
    assert extraction
    assert ATTENTION in [entry.workload.root.kind for entry in extraction.dispatches]


@pytest.fixture(scope="module")
def picked(small: Model) -> tcl_iree.TuneResult:
    return tcl_iree.tune(small, target=TARGET, effort="none", layouts="change")


def test_the_tuned_model_is_right_and_its_file_holds_both(picked: tcl_iree.TuneResult, tmp_path: Path) -> None:
    assert "channels_last" in picked.report.base
    assert picked.report.outputs == "agree"
    assert picked.report.depends_on_input
    assert "--iree-preprocessing-transform-spec-filename=library.mlir" in picked.report.command
    assert picked.library.entries
    read = Library.parse(picked.library.text())
    assert read == picked.library
    assert read.without([entry.key for entry in read.entries]).graph == read.graph
    picked.save(tmp_path)
    assert "@__transform_main" in (tmp_path / "library.mlir").read_text()


@pytest.mark.parametrize("layouts", [True, False])
def test_all_threads_compile_what_one_does(
    picked: tcl_iree.TuneResult, small: Model, layouts: bool, tmp_path: Path
) -> None:
    """Every thread asks for the library; it is read before, on the whole model."""
    library = picked.library if layouts else Library(picked.library.header, picked.library.entries)
    path = tmp_path / "library.mlir"
    path.write_text(library.text())
    flags = [*library.header.compile_flags, *library_flags(path)]
    printed = [
        compile_model(small.path, [*flags, *more], tmp_path / name, timeout=300.0)
        for name, more in (("all.vmfb", ()), ("again.vmfb", ()), ("one.vmfb", ("--mlir-disable-threading",)))
    ]
    assert printed == ["", "", ""]
    found = {name: (tmp_path / name).read_bytes() for name in ("all.vmfb", "again.vmfb", "one.vmfb")}
    assert found["all.vmfb"] == found["again.vmfb"] == found["one.vmfb"]


def test_a_library_that_is_not_read_before_dispatches_is_refused(picked: tcl_iree.TuneResult) -> None:
    lines = picked.library.text().splitlines(keepends=True)
    older = "".join(line for line in lines if "%read = " not in line).replace("(%read)", "(%module)")
    with pytest.raises(LibraryError, match="older version"):
        Library.parse(older)
    with pytest.raises(LibraryError, match="not valid MLIR"):
        Library.parse(picked.library.text().replace("@layouts(", "@lost("))


def test_libraries_of_other_layouts_are_not_merged(picked: tcl_iree.TuneResult) -> None:
    library = picked.library
    plain = Library(library.header, library.entries)
    assert "@layouts" in library.text()
    assert "@layouts" not in plain.text()
    assert merge([library, library])[0].graph == library.graph
    with pytest.raises(LibraryError, match="different layouts"):
        merge([library, plain])


def test_layouts_without_schedules_are_never_shipped(
    small: Model, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tcl_iree.workflows.tune_by_model._PICKS", 0)
    found = tcl_iree.tune(small, target=TARGET, effort="none", layouts="change")
    assert found.report.shipped == "plain"
    assert not found.library.entries


def test_a_library_is_built_under_the_layouts_of_its_base(small: Model, target: Target) -> None:
    base = with_layouts(small, target, choose_base("plain", target, None))
    assert base
    assert base[0].layouts
    library, problems = build_library(target, base[0], [])
    assert not problems
    assert f"@{'__transform_main'}(" in library.graph


def test_a_guided_run_that_is_repeated_asks_for_the_same_schedules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = imported(nn.Sequential(nn.Conv2d(8, 64, 3), nn.ReLU(), nn.Conv2d(64, 24, 3)), 1, 8, 12, 12)
    left_out: list[set[str]] = []

    class Watched(Similar):
        def __init__(self, database, records, target, own) -> None:
            left_out.append(set(own))
            super().__init__(database, records, target, own)

    monkeypatch.setattr("tcl_iree.workflows.tune.Similar", Watched)
    # Which layouts promise most is a matter of time, and so not the same in every run.
    monkeypatch.setattr("tcl_iree.workflows.tune.untunable_seconds", lambda *_: 0.0)
    monkeypatch.setattr("tcl_iree.workflows.tune.Rates.promise", lambda *_: 1.0)
    options = {
        "target": TARGET,
        "trials": 2,
        "scope": "quick",
        "seconds": 0.2,
        "base": "plain",
        "top": 2,
        "min_share": 0.0,
        "again": True,
    }
    tried = []
    with Database(tmp_path / "trials.db") as database:
        for _ in range(2):
            found = tcl_iree.tune(model, database=database, **options)
            (looked,) = [note for note in found.report.notes if "layouts:" in note]
            assert looked.count(" ms ") == 3, "the model's own, filters whole, filters in panels"
            tried.append(set(database.schedules()))
            measured = {workload.key for workload in database.workloads()}
            assert all(measured <= own for own in left_out), "the model's workloads under all layouts"
    assert len(tried[0]) > 5
    assert tried[0] == tried[1]


def network(seed: int) -> tuple[nn.Module, tuple[int, ...]]:
    """A small network of random layers; channels are odd as often as not."""
    rng = random.Random(seed)
    torch.manual_seed(seed)
    channels, size = rng.choice([3, 8, 16]), rng.choice([14, 17, 20])
    shape = (1, channels, size, size)
    layers: list[nn.Module] = []
    for _ in range(4):
        kind = rng.choice(["conv", "pointwise", "depthwise", "strided", "grouped", "pool"])
        wider = rng.choice([8, 12, 24, 32, 33])
        if kind == "pool":
            layers.append(nn.MaxPool2d(3, stride=2, padding=1))
        elif kind == "depthwise":
            layers.append(nn.Conv2d(channels, channels, 3, padding=1, groups=channels, stride=rng.choice([1, 2])))
        elif kind == "grouped" and channels % 4 == 0:
            layers.append(nn.Conv2d(channels, channels, 3, padding=1, groups=4))
        else:
            window = 1 if kind == "pointwise" else 3
            stride = 2 if kind == "strided" else 1
            layers.append(nn.Conv2d(channels, wider, window, padding=window // 2, stride=stride))
            channels = wider
        layers.append(nn.ReLU())
    return nn.Sequential(*layers, nn.Flatten(2), nn.Linear(_columns(layers, shape), 16)), shape


def _columns(layers: list[nn.Module], shape: tuple[int, ...]) -> int:
    return int(np.prod(nn.Sequential(*layers)(torch.zeros(shape)).shape[2:]))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 16))])
def test_any_network_is_right_with_other_layouts(seed: int) -> None:
    module, shape = network(seed)
    inputs = torch.randn(shape)
    found = tcl_iree.tune(module.eval(), [inputs], target=TARGET, effort="none", layouts="change")
    wanted = module(inputs).detach().numpy()
    np.testing.assert_allclose(np.asarray(found(inputs)), wanted, rtol=2e-3, atol=2e-3)
