"""Tune one op with TVM's MetaSchedule, in an interpreter that has TVM and need not have anything of this project's.

`python -m benchmarks.tvm_tune JOB` reads what to tune from the JSON file JOB and writes what came of it, and the
compiled modules, beside it. The clock starts when TVM is imported and the op is described, and counts everything after
that: TVM's own processes too. They do not import TVM's tensor intrinsics, as by default each of them does whenever a
batch is built, for half a minute: nothing in f32 uses them.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import tvm
from tvm import relax, topi
from tvm.ir.utils import derived_object
from tvm.relax import transform
from tvm.relax.pipeline import zero_pipeline
from tvm.s_tir import meta_schedule

_RECORDS, _WORKLOADS = "database_tuning_record.json", "database_workload.json"


def main() -> None:
    """Tune, compile and write."""
    path = Path(sys.argv[1])
    job = json.loads(path.read_text())
    target = tvm.target.Target(
        {"kind": "llvm", "mcpu": tvm.target.codegen.llvm_get_system_cpu(), "num-cores": job["threads"]}
    )
    started = time.monotonic()
    module = _lowered(_described(job), target, packed=bool(job["weights"]))
    log = _tuned(module, target, path.parent, job, started)
    tuned = time.monotonic() - started
    modules = {}
    for count in job["trials"]:
        before = time.monotonic()
        file = path.with_name(f"tvm-{count}.so")
        _compiled(module, target, path.parent, count, packed=bool(job["weights"])).export_library(str(file))
        modules[str(count)] = {"file": file.name, "seconds": time.monotonic() - before}
    found = {"version": tvm.__version__, "target": str(target), "seconds": tuned, "log": log, "modules": modules}
    path.with_name("tvm-result.json").write_text(json.dumps(found))


def _described(job: dict[str, Any]) -> tvm.IRModule:
    """The op as a Relax function of its inputs and weights."""
    shapes = [*job["inputs"], *job["weights"]]
    given = [relax.Var(f"x{index}", relax.TensorType(shape, "float32")) for index, shape in enumerate(shapes)]
    first, second, *bias = given
    builder = relax.BlockBuilder()
    kind, *after = job["form"].split(", ")
    with builder.function("main", given, attrs={"num_input": len(job["inputs"])}):
        with builder.dataflow():
            if after == ["rhs transposed"]:
                value = builder.emit_te(topi.nn.batch_matmul, first, second)  # it has the right operand so by default
                after = []
            elif kind == "matmul":
                value = builder.emit(relax.op.matmul(first, second))
            else:
                value = builder.emit(
                    relax.op.nn.conv2d(
                        first, second, strides=job["stride"], padding=job["padding"], groups=job["groups"]
                    )
                )
            for step in after:
                made = {
                    "bias": lambda value: relax.op.add(value, bias[0]),
                    "relu": relax.op.nn.relu,
                    "gelu": relax.op.nn.gelu,
                }[step](value)
                value = builder.emit(made)
            result = builder.emit_output(value)
        builder.emit_func_output(result)
    return builder.get()


def _lowered(module: tvm.IRModule, target: tvm.target.Target, packed: bool) -> tvm.IRModule:
    """One kernel; weights may be laid out as it likes them, as TVM's own pipeline for static shapes allows."""
    passes = [transform.DecomposeOpsForInference(), transform.CanonicalizeBindings(), zero_pipeline()]
    if packed:
        passes.append(transform.AttachAttrLayoutFreeBuffers())
    with target:
        return tvm.transform.Sequential(passes)(module)


def _tuned(
    module: tvm.IRModule, target: tvm.target.Target, place: Path, job: dict[str, Any], started: float
) -> list[list[float | None]]:
    """Tune; returns when each trial ended and its latency, None where it failed."""
    kernels = meta_schedule.relax_integration.extract_tasks(module, target)
    if len(kernels) != 1:
        raise SystemExit(f"TVM makes {len(kernels)} kernels of it, not one")
    log: list[list[float | None]] = []
    builder = meta_schedule.builder.LocalBuilder(max_workers=job["workers"], f_build=_build)
    runner = meta_schedule.runner.LocalRunner()

    def note(latency: float | None) -> None:
        log.append([time.monotonic() - started, latency])

    @derived_object
    class ClockedBuilder(meta_schedule.builder.PyBuilder):
        """TVM's builder; what cannot be built has had its trial."""

        def build(self, inputs: list[Any]) -> list[Any]:
            """Build them and note those that fail."""
            results = builder.build(inputs)
            for result in results:
                if result.error_msg:
                    note(None)
            return results

    @derived_object
    class ClockedRunner(meta_schedule.runner.PyRunner):
        """TVM's runner, one program at a time, with a clock beside it."""

        def run(self, inputs: list[Any]) -> list[Any]:
            """Run them and note when each was done."""
            futures = []
            for one in inputs:
                futures += runner.run([one])
                seconds = futures[-1].result().run_secs
                note(sum(map(float, seconds)) / len(seconds) if seconds else None)
            return futures

    meta_schedule.relax_integration.tune_relax(
        module,
        {},
        target,
        str(place),
        max_trials_global=max(job["trials"]),
        num_trials_per_iter=min(64, *job["trials"]),
        builder=ClockedBuilder(),
        runner=ClockedRunner(),
        seed=job["seed"],
    )
    return log


def _build(module: tvm.IRModule, target: tvm.target.Target, _params: Any) -> tvm.runtime.Module:
    """TVM's own way to build a candidate, without its import of all tensor intrinsics."""
    from tvm.driver import build
    from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

    return build(RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module), target=target)


def _compiled(module: tvm.IRModule, target: tvm.target.Target, place: Path, count: int, packed: bool) -> Any:
    """The op with the best of the first so many trials."""
    early = place / f"first-{count}"
    early.mkdir(exist_ok=True)
    records = (place / _RECORDS).read_text().splitlines(keepends=True)
    (early / _RECORDS).write_text("".join(records[:count]))
    (early / _WORKLOADS).write_text((place / _WORKLOADS).read_text())
    with target:
        passes = [transform.MetaScheduleApplyDatabase(str(early), enable_warning=True)]
        if packed:
            passes += [transform.SplitLayoutRewritePreproc(), transform.LiftTransformParams(), transform.FoldConstant()]
        return tvm.compile(tvm.transform.Sequential(passes)(module), target=target)


if __name__ == "__main__":
    main()
