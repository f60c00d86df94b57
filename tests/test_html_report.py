"""The HTML report: what it says, that it is escaped, and that a real browser shows it without asking for anything."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from tcl_iree.report.bench import BenchRow
from tcl_iree.report.history import DispatchHistory, TriedSchedule, best_so_far
from tcl_iree.report.html import html_report
from tcl_iree.report.svg import Axis, path
from tcl_iree.report.tune import ModelRow, TuneReport, WorkloadRow

NASTY = "</pre><script>console.error('x')</script><img src=http://127.0.0.1:9/x.png> & \"quoted\""
SCRIPT = "module attributes {transform.with_named_sequence} {\n" + "  // a line of a script " * 12 + "\n}"
TRIED = (
    TriedSchedule(1, 1, "contraction tile=8", "ok", 0.8, 1.4),
    TriedSchedule(2, 1, "contraction tile=16", "compile_error", None, 1.1),
    TriedSchedule(3, 2, "contraction tile=32", "ok", 2.5, 2.2),
    TriedSchedule(4, 2, "packed", "wrong_result", None, None),
    TriedSchedule(5, 2, "contraction tile=64", "ok", 1.9, None),
)


def workload(key: str, label: str, **values: object) -> WorkloadRow:
    row = WorkloadRow(key, label, 2, 1e-3, 0.7, 5, 3, "contraction tile=32", {"tile": 32}, 2.5, 0.012, "tuned")
    return replace(row, **values)  # type: ignore[arg-type]


REPORT = TuneReport(
    model=f"a model {NASTY}",
    target="cpu,threads=1",
    iree="3.13.0",
    effort="default",
    strategy="guided",
    seed=3,
    trials=64,
    base="im2col",
    base_flags=("--im2col",),
    base_reason="the fastest",
    workloads=(
        workload("aa11", "matmul 64x64x64 f32"),
        workload("bb22", f"conv {NASTY}", schedule=None, speedup=None, error=None, status=f"not used: {NASTY}"),
        workload("cc33", "reduction 8x8 f32", schedule=None, speedup=None, error=None, tried=0, status="nothing was tried"),
    ),
    rows=(
        ModelRow("plain", (), 9e-3, 8.5e-3, 9.5e-3, 1.0, 0.0),
        ModelRow("O3", ("--O3",), 6e-3, 5.9e-3, 6.2e-3, 1.5, 1e-7),
        ModelRow("tuned", ("--im2col",), 4e-3, 3.9e-3, 4.4e-3, 2.25, 1e-6),
    ),
    best_flags="O3",
    shipped="tuned",
    speedup=1.5,
    vs_plain=2.25,
    outputs="agree",
    depends_on_input=True,
    command="iree-compile model.mlir -o model.vmfb",
    notes=(f"a note {NASTY}",),
    when="2024-01-02T03:04:05+00:00",
    seconds=125.0,
    flag_sets=(
        BenchRow("plain", (), "ok", 1.0, 9.1e-3, 8e-3, 1e-2, 1.0, 0.0),
        BenchRow("ukernels=all", (), "ok", 1.0, 12e-3, 11e-3, 13e-3, 0.7, 0.0),
        BenchRow("O2", (), "ok", 1.0, 9.1e-3, 8e-3, 1e-2, 1.0, 0.0, same_as="plain"),
        BenchRow("data-tiling", (), f"does not compile: {NASTY}", 1.0),
    ),
    histories=(
        DispatchHistory("aa11", TRIED, f"{SCRIPT}\n{NASTY}", f"linalg.matmul\n  lowering_config = {NASTY}"),
        DispatchHistory("bb22", tuple(replace(entry, predicted=None) for entry in TRIED[:2])),
    ),
    library_command=f"iree-compile '{NASTY}' --iree-codegen-transform-dialect-library=library.mlir -o model.vmfb",
)  # fmt: skip


class Page(HTMLParser):
    """The elements of a page by name, and the text inside each kind of element."""

    VOID = ("meta", "br", "img", "link")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        assert not self._open, f"never closed: {self._open}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            self.texts[tag][-1] += data

    def all(self, tag: str, kind: str | None = None) -> list[dict[str, str | None]]:
        return [held for name, held in self.elements if name == tag and kind in (None, held.get("class"))]


def test_everything_that_was_found_is_told() -> None:
    page = Page(html_report(REPORT))
    said = " ".join(page.texts["body"])
    for words in (
        "cpu,threads=1",
        "3.13.0",
        "guided, 64 trials a dispatch, seed 3",
        "default",
        "2024-01-02 03:04:05 UTC",
    ):
        assert words in said
    assert "1.50 times as fast as with IREE's best flags (O3, 6 ms) and 2.25 times as fast as plain IREE (9 ms)" in said
    assert len(page.all("svg", "bars")) == 1
    assert [len(page.all("rect", kind)) for kind in ("ours", "flags", "plain", "earlier")] == [1, 1, 1, 1]
    assert "O2: the very same module as plain" in said
    assert "data-tiling: does not compile" in said
    rows = [row for row in page.texts["tr"] if "matmul" in row]
    assert rows == ["matmul 64x64x64 f32270.0 %1 ms400 µs2.50x ± 1.2 %3 / 5tuned: contraction tile=32"]
    assert len(page.texts["tbody"][0].splitlines()) == len(REPORT.workloads) + 1
    assert "crosses: 1 compile_error, 1 wrong_result" in said
    assert any(text.startswith(SCRIPT) for text in page.texts["pre"])
    assert REPORT.library_command in page.texts["pre"]
    assert REPORT.command in page.texts["pre"]


def test_each_search_has_its_curve_and_its_predictions_or_says_why_not() -> None:
    page = Page(html_report(REPORT))
    assert [held["id"] for held in page.all("details")] == ["aa11", "bb22"]
    links = {held["href"] for held in page.all("a")}
    assert links == {"#aa11", "#bb22"}, "only what has a section is linked"
    assert len(page.all("svg", "chart")) == 3, "two curves, one scatter"
    assert len(page.all("path", "failed")) == 4, (
        "two crosses of the curve and one of the scatter; one of the other curve"
    )
    assert len(page.all("circle", "first")) == 1
    assert len(page.all("circle", "trial")) == 3 + 1 + 1
    assert "No cost model proposed these schedules" in page.texts["details"][1]
    assert "No cost model" not in page.texts["details"][0]


def test_nothing_but_text_comes_of_what_is_told() -> None:
    page = Page(html_report(REPORT))
    assert not {"script", "img", "link", "iframe", "object"} & {name for name, _ in page.elements}
    assert not [held for _, held in page.elements if "src" in held or "onclick" in held]
    assert page.texts["h1"] == [f"{REPORT.model}, tuned"]


def test_a_report_of_nothing_measured_says_so() -> None:
    bare = replace(
        REPORT, rows=(), flag_sets=(), histories=(DispatchHistory("aa11", (), SCRIPT, ""),), speedup=None, vs_plain=None,
        shipped=None, best_flags=None, library_command="", command="", notes=("nothing was measured: no device",),
    )  # fmt: skip
    page = Page(html_report(bare))
    said = " ".join(page.texts["body"])
    assert "The whole model was not timed" in said
    assert "This run timed no schedule" in said
    assert "IREE was not asked" in said
    assert not page.all("svg")
    assert not page.all("pre", "command")


def test_flags_that_win_are_told_as_such() -> None:
    said = html_report(replace(REPORT, shipped="O3", speedup=1.0, vs_plain=1.5))
    assert "IREE's own flags O3 are the fastest" in said


def test_the_best_so_far_never_falls() -> None:
    assert best_so_far(TRIED) == [0.8, 0.8, 2.5, 2.5, 2.5]
    assert best_so_far(TRIED[1:2]) == [None]


@pytest.mark.parametrize("highest", [0.003, 0.9, 1.0, 3.3, 17.0, 64.0, 1e5])
def test_an_axis_has_a_few_round_ticks_around_what_it_shows(highest: float) -> None:
    ticks = Axis.linear("x", highest).ticks
    assert ticks[0] == 0
    assert ticks[-1] >= highest * (1 - 1e-9)
    assert ticks[-1] <= 1.5 * highest
    assert 3 <= len(ticks) <= 7
    powers = Axis.powers("x", [highest / 3, highest]).ticks
    assert powers[0] <= highest / 3 <= highest <= powers[-1]
    assert 2 <= len(powers) <= 10


def test_a_step_line_holds_each_height_until_the_next_point() -> None:
    axis = Axis("x", (0.0, 1.0))
    points = [(0.0, 0.0), (0.5, 1.0), (1.0, 1.0)]
    numbers = [
        tuple(map(float, pair)) for pair in re.findall(r"([\d.]+) ([\d.]+)", path(axis, axis, points, steps=True))
    ]
    assert len(numbers) == 5
    for (x0, y0), (x1, y1) in pairwise(numbers):
        assert x0 == x1 or y0 == y1


# In a browser.

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OFFLINE = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr",
]  # fmt: skip


@pytest.fixture(scope="module")
def _browser(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One that shows pages: Ubuntu's does not until snap has fetched it, and then none of those in /tmp."""
    folder = tmp_path_factory.mktemp("browser")
    (folder / "page.html").write_text("<p>words</p>")
    shown = ""
    if CHROMIUM:
        command = [CHROMIUM, *OFFLINE, f"--user-data-dir={folder / 'profile'}", "--dump-dom"]
        page = (folder / "page.html").as_uri()
        shown = subprocess.run([*command, page], capture_output=True, text=True, timeout=120).stdout
    if "<p>words</p>" not in shown:
        pytest.skip("there is no chromium to look at the page with; on Debian: apt-get install chromium")


def browse(page: Path, folder: Path) -> tuple[str, list[str], list[str]]:
    """A page as a browser has it, what it wrote to the console, and what it asked of the network."""
    log = folder / "net.json"
    command = [str(CHROMIUM), *OFFLINE, f"--user-data-dir={folder / 'profile'}", f"--log-net-log={log}", "--dump-dom"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, check=True, timeout=120)
    console = [line for line in done.stderr.splitlines() if ":CONSOLE:" in line]
    told = json.loads(log.read_text())
    start = told["constants"]["logEventTypes"]["URL_REQUEST_START_JOB"]
    begun = [event.get("params", {}) for event in told["events"] if event["type"] == start]
    # What the browser wants for itself has no origin.
    asked = [held["url"] for held in begun if held.get("initiator", "not an origin") != "not an origin"]
    return done.stdout, console, [url for url in asked if not url.startswith("file:")]


@pytest.mark.usefixtures("_browser")
def test_a_browser_shows_it_and_asks_for_nothing(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(html_report(REPORT), encoding="utf-8")
    shown, console, asked = browse(page, tmp_path)
    assert console == []
    assert asked == []
    seen = Page(shown)
    assert len(seen.all("table")) == 1
    assert len(seen.all("svg")) == 4
    assert len(seen.all("details")) == 2
    assert any(text.startswith(SCRIPT) for text in seen.texts["pre"])
    assert not seen.all("script")
    assert not seen.all("img")


@pytest.mark.usefixtures("_browser")
def test_the_browser_would_tell_of_errors_and_requests(tmp_path: Path) -> None:
    page = tmp_path / "bad.html"
    page.write_text('<img src="http://127.0.0.1:9/x.png"><script>console.error("wrong")</script>')
    _, console, asked = browse(page, tmp_path)
    assert len([line for line in console if "wrong" in line]) == 1
    assert asked == ["http://127.0.0.1:9/x.png"]
