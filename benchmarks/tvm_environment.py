"""TVM in a virtual environment of its own: it needs other versions of packages than this project."""

from __future__ import annotations

import subprocess
import sys
import venv
from pathlib import Path

from tcl_iree.errors import MeasureError

# Later builds of the ffi package crash with this version.
PACKAGES = (
    "apache-tvm==0.27.0", "apache-tvm-ffi==0.1.14.post0", "xgboost==3.2.0", "numpy", "psutil", "tornado", "cloudpickle",
)  # fmt: skip
_VERSION = "import importlib.metadata as metadata; print(metadata.version('apache-tvm'))"


def tvm_python(given: Path | None, place: Path) -> Path:
    """An interpreter that has TVM.

    Args:
        given: one that has it already.
        place: else the environment there, which is made on first use.

    Raises:
        MeasureError: there is none.
    """
    if given:
        _version(given)
        return given
    python, mark = place / "bin" / "python", place / ".tvm"
    if not mark.exists() or mark.read_text().split() != list(PACKAGES):
        print(f"installing TVM into {place}", file=sys.stderr, flush=True)
        venv.create(place, clear=True, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *PACKAGES]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise MeasureError(
                f"TVM cannot be installed into {place}: {_last(done.stderr)}; install {' '.join(PACKAGES)} elsewhere "
                "and give that interpreter with --tvm-python"
            )
        _version(python)
        mark.write_text("\n".join(PACKAGES))
    return python


def _version(python: Path) -> str:
    try:
        done = subprocess.run([str(python), "-c", _VERSION], capture_output=True, text=True)
    except OSError as error:
        raise MeasureError(f"{python} cannot be run: {error.strerror}; give another with --tvm-python") from None
    if done.returncode:
        raise MeasureError(f"{python} has no TVM ({_last(done.stderr)}); give another with --tvm-python")
    return done.stdout.strip()


def _last(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1][:300]
