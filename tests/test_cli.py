"""The command line as users meet it: help, tables, JSON, and one clear line for bad input."""

import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DATA

from tcl_iree.cli import main
from tcl_iree.cli.main import COMMANDS
from tcl_iree.database import Database
from tcl_iree.database.schema import SCHEMA_VERSION
from tcl_iree.report.json_text import json_text
from tcl_iree.report.tables import console, table
from tcl_iree.target import Target

MATMUL = str(DATA / "matmul_bias_relu.mlir")
TILE = str(DATA / "tile_matmul.mlir")


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("command", [*COMMANDS, "db info"])
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), "--help"])
    assert ended.value.code == 0
    out = capsys.readouterr().out
    assert f"usage: tcl-iree {command}" in out
    assert command == "db info" or "examples:" in out


def test_help_comes_at_once() -> None:
    """Neither torch nor the compiler, seconds to import, is needed to say what there is."""
    script = "import sys; from tcl_iree.cli import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)
    assert not {"torch", "iree.compiler", "networkx"} & set(done.stdout.split())


def test_targets_lists_what_works(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "targets", "--json")
    assert code == 0
    listed = {entry["target"]: entry for entry in json.loads(out)}
    assert listed["cpu"]["runs"]
    assert listed["cuda:sm_80"]["compiles"]
    assert listed["cuda:sm_80"]["runs"] or "libcuda" in listed["cuda:sm_80"]["why_not"]
    code, out, _ = run(capsys, "targets")
    assert "cuda:sm_80" in out


def test_extract_prints_a_table_and_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, _ = run(capsys, "extract", MATMUL)
    assert code == 0
    assert "matmul 64x128x96 f32 +1" in out
    code, out, _ = run(capsys, "extract", MATMUL, "--json", "--save", str(tmp_path / "payloads"))
    (dispatch,) = json.loads(out)["dispatches"]
    assert dispatch["occurrences"] == 1
    assert (tmp_path / "payloads" / f"{dispatch['key']}.mlir").exists()


def test_a_saved_dispatch_can_be_measured_and_benched(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    run(capsys, "extract", MATMUL, "--save", str(tmp_path))
    (payload,) = tmp_path.glob("*.mlir")
    code, out, _ = run(capsys, "bench", str(payload), "--scope", "quick", "--target", "cpu,threads=1", "--json")
    assert code == 0
    rows = {row["name"]: row for row in json.loads(out)["rows"]}
    assert rows["plain"]["status"] == "ok"
    assert all(row["median"] for row in rows.values() if row["status"] == "ok")
    database = ["--db", str(tmp_path / "a.db")]
    code, out, _ = run(capsys, "measure", str(payload), TILE, "--target", "cpu,threads=1", "--json", *database)
    assert [trial["status"] for trial in json.loads(out)["trials"]] == ["ok", "ok"]
    payload.write_text(payload.read_text().replace("linalg.matmul", "linalg.matmull"))
    code, _, err = run(capsys, "bench", str(payload))
    assert (code, len(err.strip().splitlines())) == (2, 1)
    assert "not a usable payload" in err


def test_measure_records_every_outcome(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    database = str(tmp_path / "a.db")
    arguments = [
        "measure",
        MATMUL,
        TILE,
        str(DATA / "crash_compiler.mlir"),
        "--target",
        "cpu,threads=1",
        "--db",
        database,
    ]
    code, out, _ = run(capsys, *arguments, "--json")
    assert code == 0
    result = json.loads(out)
    assert result["reference"]["status"] == "confirmed"
    assert [trial["status"] for trial in result["trials"]] == ["ok", "ok", "crash"]
    assert all(trial["measured"] for trial in result["trials"][:2])
    code, out, _ = run(capsys, *arguments, "--json")
    again = json.loads(out)["trials"]
    noisy = [bool(trial["measured"] and not trial["calm"]) for trial in result["trials"]]
    assert [trial["measured"] for trial in again] == noisy, "only what was disturbed is measured twice"
    code, out, _ = run(capsys, "db", "info", "--db", database, "--json")
    assert json.loads(out)["trials"] == 6
    parquet = str(tmp_path / "a.parquet")
    assert run(capsys, "db", "export", parquet, "--db", database)[0] == 0
    assert run(capsys, "db", "import", parquet, "--db", str(tmp_path / "b.db"))[1].startswith("6 new trials")
    assert run(capsys, "db", "merge", database, "--db", str(tmp_path / "b.db"))[1].startswith("0 new trials")
    code, out, _ = run(capsys, *arguments)
    assert "vs default" in out


def test_bench_compares_flag_sets(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "bench", MATMUL, "--scope", "quick", "--seconds", "0.5", "--json")
    assert code == 0
    report = json.loads(out)
    assert report["depends_on_input"]
    rows = {row["name"]: row for row in report["rows"]}
    assert {"plain", "O2", "O3", "data-tiling", "im2col", "ukernels=all"} <= set(rows)
    assert rows["plain"]["ratio"] == 1.0
    assert all(row["median"] for row in rows.values() if row["status"] == "ok")
    assert report["best"] in rows
    assert abs(sum(entry["share"] for entry in report["profiles"]["plain"]) - 1) < 1e-6
    code, out, _ = run(capsys, "bench", MATMUL, "--scope", "quick", "--seconds", "0.5", "--target", "cpu,threads=1")
    assert "IREE's best flags of scope quick" in out
    assert "where the time goes" in out


def test_bench_says_when_an_output_check_proves_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "constant.mlir"
    path.write_text(
        "func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {\n"
        "  %zero = arith.constant dense<0.0> : tensor<64x64xf32>\n"
        "  %low = arith.minimumf %a, %zero : tensor<64x64xf32>\n"
        "  %flat = arith.maximumf %low, %zero : tensor<64x64xf32>\n"
        "  return %flat : tensor<64x64xf32>\n}\n"
    )
    _, out, _ = run(capsys, "bench", str(path), "--scope", "quick", "--seconds", "0.2", "--json")
    assert json.loads(out)["depends_on_input"] is False


def newer_database(path: Path) -> str:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 7}")
    connection.commit()
    connection.close()
    return str(path)


def test_what_is_printed_stands_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = "pip install 'tcl-iree[models]' [/x] :smile: runs/[new]"
    console().print(table(text, ["what"], [[text]]))
    console().print(text)
    assert capsys.readouterr().out.count(text) == 3


def test_json_has_no_infinity() -> None:
    assert json.loads(json_text({"error": float("inf"), "all": (1.5, float("nan"))})) == {
        "error": None,
        "all": [1.5, None],
    }


def test_a_database_is_not_exported_into_itself(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with Database(path):
        pass
    before = path.read_bytes()
    assert main(["db", "export", str(path), "--db", str(path)]) == 2
    assert "is the database itself" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_what_a_user_s_file_prints_is_not_in_the_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text(
        "import torch\nprint('imported')\n"
        "def build():\n    print('building')\n    return torch.nn.Linear(32, 16).eval(), (torch.randn(8, 32),)\n"
    )
    assert main(["extract", f"{tmp_path / 'loud.py'}:build", "--target", "cpu,threads=1", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)
    assert "imported\nbuilding" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["extract", "missing.mlir"], "no file at missing.mlir"),
        (["extract", "no_such_thing"], "no model at"),
        (["extract", "no.such.module:f"], "cannot import"),
        (["extract", "./no/such/module:f"], "cannot import"),
        (["extract", "zoo:nothing"], "it has bert-base"),
        (["extract", "{text}"], "is not MLIR"),
        (["extract", "{broken}"], "cannot compile broken.mlir"),
        (["extract", str(DATA / "copy_only.mlir")], "no tunable dispatch"),
        (["bench", MATMUL, "--target", "tpu"], "unknown target 'tpu'"),
        (["measure", MATMUL, "--target", "cuda:sm_80"], "cannot run here"),
        (["bench", MATMUL, "--target", "cuda:sm_80"], "cannot run here"),
        (["bench", MATMUL, "--top", "0"], "top must be at least 1"),
        (["explain", "1f3c", "--iree-flag=--iree-opt-level=O2"], "--flags says which trials to explain"),
        (["jobs", "pack", MATMUL, "{below}"], "cannot write to"),
        (["collect", "--networks", MATMUL, "-o", "{below}"], "cannot write to"),
        (["measure", MATMUL, "missing_script.mlir"], "no script at"),
        (["measure", MATMUL, "--dispatch", "zz"], "no dispatch has a key"),
        (["db", "info", "--db", "{newer}"], "upgrade tcl-iree"),
        (["measure", MATMUL, "--db", "{newer}"], "upgrade tcl-iree"),
        (["db", "info", "--db", "{missing}"], "no database at"),
        (["db", "import", "{text}", "--db", "{fresh}"], "not a readable Parquet"),
    ],
)
def test_bad_input_is_one_clear_line(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if "cuda:sm_80" in arguments and Target.parse("cuda:sm_80").why_not_run() is None:
        pytest.skip("this machine has a CUDA device")
    (tmp_path / "text.mlir").write_text("Dear reader, this is a letter.")
    (tmp_path / "broken.mlir").write_text("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> { return %b }")
    places = {
        "{text}": str(tmp_path / "text.mlir"), "{broken}": str(tmp_path / "broken.mlir"),
        "{missing}": str(tmp_path / "none.db"), "{fresh}": str(tmp_path / "fresh.db"),
        "{newer}": newer_database(tmp_path / "newer.db"), "{below}": str(tmp_path / "text.mlir" / "file"),
    }  # fmt: skip
    code, _, err = run(capsys, *[places.get(argument, argument) for argument in arguments])
    assert code == 2
    assert words in err
    assert err.startswith("tcl-iree: error: ")
    assert len(err.strip().splitlines()) == 1


def test_progress_is_silent_without_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "extract", MATMUL)
    assert err == ""
