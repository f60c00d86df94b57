from dataclasses import replace

import pytest

from tcl_iree.errors import TargetError
from tcl_iree.hardware import host_cpu
from tcl_iree.target import Target, known_targets


@pytest.mark.parametrize("text", ["cpu", "cpu:avx512", "cpu:avx2", "cpu:sse4", "cpu,threads=1", "cuda:sm_80", "vulkan"])
def test_written_form_round_trips(text: str) -> None:
    assert str(Target.parse(text)) in (text, text.replace(f",threads={host_cpu().cores}", ""))
    assert Target.parse(str(Target.parse(text))) == Target.parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "gpu",
        "cpu:avx1024",
        "cuda",
        "cuda:sm_12",
        "vulkan:x",
        "cpu,threads=0",
        "cpu,threads=9999",
        "cpu,fast",
    ],
)
def test_unknown_targets_say_what_is_known(text: str) -> None:
    with pytest.raises(TargetError) as caught:
        Target.parse(text)
    message = str(caught.value)
    assert "\n" not in message
    assert "known" in message or "threads" in message


def test_thread_count_reaches_compiler_and_runtime() -> None:
    one = Target.parse("cpu,threads=1")
    assert "--iree-llvmcpu-number-of-threads=1" in one.compile_flags
    assert one.device == "local-sync"
    if host_cpu().cores > 1:
        two = Target.parse("cpu,threads=2")
        assert two.device == "local-task"
        assert two.runtime_flags == (f"--task_topology_cpu_ids={host_cpu().cpu_ids[0]},{host_cpu().cpu_ids[1]}",)


def test_cores_are_either_measured_on_or_free() -> None:
    for text in ("cpu,threads=1", "cpu"):
        target = Target.parse(text)
        assert len(target.cpus) == target.threads
        assert sorted((*target.cpus, *target.free_cpus)) == sorted(host_cpu().cpu_ids)
    assert Target.parse("vulkan").free_cpus == ()


def test_keys_tell_isa_threads_and_machine_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [
        "cpu,threads=1",
        "cpu:avx2,threads=1",
        "cpu:sse4,threads=1",
        "cuda:sm_80",
        "cuda:sm_90",
        "vulkan",
    ]
    keys = [Target.parse(text).key for text in texts]
    assert len(set(keys)) == len(keys)
    assert host_cpu().fingerprint in keys[0]
    before = Target.parse("cpu,threads=1").key
    other = replace(host_cpu(), model="another CPU")
    monkeypatch.setattr("tcl_iree.target.host_cpu", lambda: other)
    assert Target.parse("cpu,threads=1").key != before


def test_hardware_is_described() -> None:
    for target in known_targets():
        hardware = target.hardware
        assert hardware.vector_bytes > 0
        assert hardware.cores > 0
    assert Target.parse("cpu:avx2").hardware.vector_bytes == 32
    assert Target.parse("cuda:sm_80").hardware.shared_bytes == 163 << 10


def test_unusable_target_lists_usable_ones() -> None:
    target = Target.parse("cuda:sm_80")
    if target.why_not_run() is None:
        pytest.skip("this machine has a CUDA device")
    with pytest.raises(TargetError, match=r"cannot run here: .*libcuda.*usable here: cpu"):
        target.require_runnable()
