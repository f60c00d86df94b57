"""Libraries: written, read back, merged, applied by stock iree-compile, and safe where a schedule does not fit."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import iree.runtime as runtime
import numpy as np
import pytest
from iree.compiler import ir
from iree.compiler.tools.binaries import find_tool

from tcl_iree.cli import main
from tcl_iree.errors import LibraryError
from tcl_iree.frontend import load_model
from tcl_iree.hardware import host_cpu
from tcl_iree.target import Target
from tcl_iree.transform_dialect.backend import lower_to_vectors_and_buffers
from tcl_iree.transform_dialect.fragments import sequences
from tcl_iree.transform_dialect.library import Library, Tuned, merge
from tcl_iree.transform_dialect.names import MARKER
from tcl_iree.transform_dialect.schedule import Schedule
from tcl_iree.transform_dialect.script import Script
from tcl_iree.workflows.apply import apply_library
from tcl_iree.workload.model import Workload

SCHEDULE = Schedule.of("tiles", rows=8, sizes=(8, 16), packed=True, order="mn")


def script(emit: Callable[[Script], None], schedule: Schedule = SCHEDULE) -> str:
    made = Script(schedule)
    emit(made)
    made.annotate(made.function, MARKER)
    return made.text()


def tiles(made: Script) -> None:
    made.phase("Workgroups.")
    (consumer,) = made.match(["linalg.generic"], "consumer")
    _, loop = made.tile_forall(consumer, [8, 16], "tile")
    for kind in ("linalg.matmul", "linalg.fill"):
        (producer,) = made.match([kind], "producer")
        _, loop = made.fuse(producer, loop, "fused")
    made.canonicalize()
    lower_to_vectors_and_buffers(made)


@pytest.fixture(scope="module")
def library(matmul: Workload, target: Target) -> Library:
    return Library.build(target, [Tuned(matmul, SCHEDULE, script(tiles), 1.75, True)], stack_limit=65536)


@pytest.fixture
def path(library: Library, tmp_path: Path) -> Path:
    file = tmp_path / "library.mlir"
    file.write_text(library.text())
    return file


def test_reads_back_what_was_written(library: Library, path: Path) -> None:
    again = Library.read(path)
    assert again == Library.read(str(path)) == Library.parse(path.read_text()) == library
    assert again.text() == library.text()
    (entry,) = again.entries
    assert (entry.schedule, entry.speedup, entry.measured) == (SCHEDULE, 1.75, True)
    with ir.Context():
        assert str(ir.Module.parse(entry.script)) == str(ir.Module.parse(script(tiles)))


def test_flags_may_be_of_any_alphabet(library: Library) -> None:
    named = replace(library, header=replace(library.header, flags=("--iree-hal-dump-executable-files-to=/home/josé",)))
    assert Library.parse(named.text()).header.flags == named.header.flags


def test_provenance_is_readable(library: Library) -> None:
    text = library.text()
    head = text.partition("module")[0]
    assert library.header.iree in head
    assert "--iree-llvmcpu-stack-allocation-limit=65536" in head
    assert "--iree-codegen-transform-dialect-library=" in head
    assert "1.75x as fast as IREE's default (measured)" in text
    assert "// Workgroups." in text
    assert "%consumer = " in text


def test_sequences_spell_aliases_out() -> None:
    text = (
        "#map = affine_map<(d0) -> (d0)>\n#map1 = affine_map<(d0) -> (0)>\nmodule {\n"
        "  transform.named_sequence @a(%x: !transform.any_op) {\n    use #map, #map1, #map.other<1>\n  }\n}\n"
    )
    assert "use affine_map<(d0) -> (d0)>, affine_map<(d0) -> (0)>, #map.other<1>" in sequences(text)["a"]


def test_applies_and_computes_the_same(library: Library, path: Path, data: Path, tmp_path: Path) -> None:
    model = load_model(data / "matmul_bias_relu.mlir")
    report = apply_library(model, None, path, tmp_path / "tuned.vmfb")
    report.require_applied()
    (part,) = report.parts
    assert part.status == "applied"
    assert len(part.applied) == 1
    assert "--iree-llvmcpu-stack-allocation-limit=65536" in report.command
    rng = np.random.default_rng(0)
    a, b, bias = (rng.standard_normal(shape, np.float32) for shape in ((64, 96), (96, 128), (128,)))
    module = runtime.load_vm_flatbuffer_file(str(tmp_path / "tuned.vmfb"), driver="local-sync")
    np.testing.assert_allclose(module.main(a, b, bias).to_host(), np.maximum(a @ b + bias, 0), rtol=1e-4, atol=1e-4)


def test_merge_keeps_the_faster_measured(library: Library) -> None:
    (entry,) = library.entries
    other = replace(entry, schedule=Schedule.of("tiles", rows=4), speedup=1.25)
    guess = replace(entry, schedule=Schedule.of("tiles", rows=2), speedup=9.0, measured=False)
    new = replace(entry, key="0" * 16, speedup=None, measured=False)
    more = replace(library, entries=(other, new), header=replace(library.header, stack_limit=131072))
    merged, conflicts = merge([library, more, replace(library, entries=(guess,)), library])
    assert merged.entries == (entry, new)
    assert merged.header.stack_limit == 131072
    assert [conflict.dropped for conflict in conflicts] == [other, guess]
    assert merge([more, library])[0].entries[0] == entry


@pytest.mark.parametrize(
    ("field", "value", "word"),
    [
        ("iree", "3.12.0", "IREE versions"),
        ("flags", ("--iree-opt-level=O2",), "base flags"),
        ("target", Target("cpu", "avx2", 1), "targets"),
        ("target", Target("cpu", "", 64), "threads=64"),
    ],
)
def test_merge_refuses_what_differs(library: Library, field: str, value: object, word: str) -> None:
    with pytest.raises(LibraryError, match=word):
        merge([library, replace(library, header=replace(library.header, **{field: value}))])


def test_apply_refuses_what_differs(library: Library, target: Target, data: Path, tmp_path: Path) -> None:
    model, out = load_model(data / "matmul_bias_relu.mlir"), tmp_path / "out.vmfb"
    old, own = tmp_path / "old.mlir", tmp_path / "own.mlir"
    old.write_text(replace(library, header=replace(library.header, iree="3.12.0")).text())
    own.write_text(library.text())
    with pytest.raises(LibraryError, match=r"made for IREE 3\.12\.0"):
        apply_library(model, None, old, out)
    with pytest.raises(LibraryError, match="made for target"):
        apply_library(model, Target.parse("cpu:sse4"), own, out)
    with pytest.raises(LibraryError, match="made under"):
        apply_library(model, target, own, out, ["--iree-opt-level=O3"])
    assert not out.exists()


def foreign(library: Library, target: Target, path: Path) -> Path:
    """The library as if it had been made on another machine."""
    header = replace(library.header, target=target, target_key=f"cpu-t{target.threads}-elsewhere")
    path.write_text(replace(library, header=header).text())
    return path


def test_a_library_of_a_larger_machine_can_be_read_shown_and_merged(
    library: Library, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for cores in (host_cpu().cores, 4096):
        target = Target("cpu", "avx2", cores)
        file = foreign(library, target, tmp_path / "big.mlir")
        assert Library.read(file).header.target == target
        assert f"threads = {cores} : i64" in file.read_text()
        merged, _ = merge([Library.read(file), Library.read(file)])
        assert merged.text() == file.read_text()
        assert main(["library", "show", str(file)]) == 0
        printed = capsys.readouterr().out
        assert f"cpu:avx2,threads={cores}" in printed
        assert f"--iree-llvmcpu-number-of-threads={cores}" in printed


def test_apply_says_when_a_library_is_of_another_machine(
    library: Library, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, out = str(data / "matmul_bias_relu.mlir"), tmp_path / "out.vmfb"
    native = foreign(library, Target("cpu", "", 64), tmp_path / "native.mlir")
    assert main(["apply", model, str(native), "-o", str(out)]) == 2
    assert "very CPU of another machine (cpu-t64-elsewhere)" in capsys.readouterr().err
    assert not out.exists()
    arch = next((name for name in ("avx2", "sse4") if not Target("cpu", name, 1).why_not_compile()), None)
    if arch is None:
        pytest.skip("no CPU class can be built for here")
    moved = foreign(library, Target("cpu", arch, 64), tmp_path / "moved.mlir")
    assert main(["apply", model, str(moved), "-o", str(out)]) == 0
    assert "was measured on cpu-t64-elsewhere" in capsys.readouterr().err
    assert out.exists()


def test_printed_commands_survive_a_shell(
    library: Library, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = tmp_path / "it's $HOME; a & b"
    odd.mkdir()
    file, out = odd / "library.mlir", odd / "out.vmfb"
    file.write_text(library.text())
    report = apply_library(load_model(data / "matmul_bias_relu.mlir"), None, file, out)
    out.unlink()
    tools = f"{Path(find_tool('iree-compile')).parent}{os.pathsep}{os.environ['PATH']}"
    subprocess.run(report.command, shell=True, check=True, env={**os.environ, "PATH": tools})
    assert out.exists()
    mail = tmp_path / "me@home.mlir"
    mail.write_text(library.text())
    assert main(["library", "show", str(mail)]) == 0
    assert "follows an @" in capsys.readouterr().err


def test_damaged_libraries_are_refused(path: Path, tmp_path: Path) -> None:
    text = path.read_text()
    for broken, reason in (
        (text[: len(text) // 2], "not valid MLIR"),
        (text.replace("tcl.library = ", "tcl.other = "), "not a library of tcl-iree"),
        (text.replace("target_key = ", "key = "), "header is damaged"),
        (text.replace('kind = "cpu"', 'kind = "abacus"'), "abacus"),
    ):
        with pytest.raises(LibraryError, match=reason):
            Library.parse(broken)
    with pytest.raises(LibraryError, match="cannot read"):
        Library.read(tmp_path / "nowhere.mlir")


def _unfit_at_once(made: Script) -> None:
    made.match(["linalg.matmul"], "matmul", 3)


def _unfit_half_way(made: Script) -> None:
    (consumer,) = made.match(["linalg.generic"], "consumer")
    made.tile_forall(consumer, [8, 16], "tile")
    made.match(["linalg.matmul"], "matmul", 3)


def test_a_schedule_that_does_not_fit_leaves_the_default(
    matmul: Workload, target: Target, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "unfit.mlir"
    file.write_text(Library.build(target, [Tuned(matmul, SCHEDULE, script(_unfit_at_once))]).text())
    report = apply_library(load_model(data / "matmul_bias_relu.mlir"), target, file, tmp_path / "out.vmfb")
    assert [part.status for part in report.parts] == ["schedule did not fit"]
    assert (tmp_path / "out.vmfb").exists()
    with pytest.raises(LibraryError, match="did not take effect"):
        report.require_applied()


def test_a_schedule_that_breaks_the_compile_is_named(
    matmul: Workload, target: Target, data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "unfit.mlir"
    file.write_text(Library.build(target, [Tuned(matmul, SCHEDULE, script(_unfit_half_way))]).text())
    with pytest.raises(LibraryError, match=matmul.key):
        apply_library(load_model(data / "matmul_bias_relu.mlir"), target, file, tmp_path / "out.vmfb")
    assert not (tmp_path / "out.vmfb").exists()


def test_scripts_of_another_form_are_refused(matmul: Workload, target: Target) -> None:
    odd = script(tiles).replace("@schedule", "@other")
    with pytest.raises(LibraryError, match="other"):
        Library.build(target, [Tuned(matmul, SCHEDULE, odd)])


def test_command_line(path: Path, data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, out, both = str(data / "matmul_bias_relu.mlir"), str(tmp_path / "out.vmfb"), str(tmp_path / "both.mlir")
    assert main(["library", "show", str(path), "--json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)["entries"]
    assert shown["decisions"] == SCHEDULE.plain
    assert main(["library", "merge", str(path), str(path), "-o", both, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["output"] == both
    assert main(["library", "merge", str(path), str(path), "-o", both]) == 0
    assert "0 conflicts" in capsys.readouterr().out
    assert Path(both).read_text() == path.read_text()
    assert main(["apply", model, both, "-o", out, "--json"]) == 0
    (part,) = json.loads(capsys.readouterr().out)["parts"]
    assert (part["key"], part["outcome"]) == (shown["key"], "applied")
    copy_only = str(data / "copy_only.mlir")
    assert main(["apply", copy_only, both, "-o", out]) == 2
    assert "no dispatch of this model is in the library" in capsys.readouterr().err
