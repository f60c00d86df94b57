"""A target: what to compile for and where to run it.

Written `cpu`, `cpu:avx2`, `cuda:sm_80` or `vulkan`, options after commas: `cpu:avx512,threads=1`.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache

from tcl_iree.errors import TargetError
from tcl_iree.hardware import (
    CUDA_ARCHS,
    Hardware,
    cpu_hardware,
    cuda_hardware,
    host_cpu,
    vulkan_hardware,
)

# LLVM's name for the smallest CPU of each class: real, distinct platforms that one host can run.
_LLVM_CPU = {"avx512": "x86-64-v4", "avx2": "haswell", "sse4": "nehalem"}
# IREE 3.13 knows no GPU of these architectures. PTX of an older one is assembled for them by ptxas or the driver.
_PTX_OF = {"sm_90": "sm_80"}
_WORKS = f"cpu, cpu:{{{','.join(_LLVM_CPU)}}}, cuda:{{{','.join(CUDA_ARCHS)}}}, vulkan; cpu takes threads=N"


@dataclass(frozen=True)
class Target:
    """One compilation and execution target.

    Attributes:
        kind: `cpu`, `cuda` or `vulkan`.
        arch: instruction-set class or GPU architecture; empty for the host's own CPU, and for Vulkan.
        threads: worker threads of a CPU target; 0 elsewhere.
        described: the hardware behind the target where it is another machine's; None for this one's.
    """

    kind: str
    arch: str = ""
    threads: int = 0
    described: Hardware | None = None

    @staticmethod
    def parse(text: str) -> Target:
        """Read a target as users write it.

        Raises:
            TargetError: the text names no target this project knows.
        """
        head, *options = [part.strip() for part in text.strip().split(",")]
        kind, _, arch = head.partition(":")
        if kind == "cpu":
            if arch and arch not in _LLVM_CPU:
                raise TargetError(f"unknown CPU class {arch!r} in target {text!r}; known: {_WORKS}")
            return Target("cpu", arch, _threads(options, text))
        if options:
            raise TargetError(f"target {kind!r} takes no options, got {options[0]!r}; known: {_WORKS}")
        if kind == "cuda":
            if arch not in CUDA_ARCHS:
                raise TargetError(f"unknown CUDA architecture {arch!r} in target {text!r}; known: {_WORKS}")
            return Target("cuda", arch)
        if kind == "vulkan" and not arch:
            return Target("vulkan")
        raise TargetError(f"unknown target {text!r}; known: {_WORKS}")

    @staticmethod
    def elsewhere(text: str, hardware: Hardware) -> Target:
        """A target as it was written on another machine, whose hardware is told."""
        head, *options = text.split(",")
        kind, _, arch = head.partition(":")
        # All cores are not written out.
        threads = next((int(option.partition("=")[2]) for option in options), hardware.cores)
        return Target(kind, arch, threads if kind == "cpu" else 0, hardware)

    def __str__(self) -> str:
        head = f"{self.kind}:{self.arch}" if self.arch else self.kind
        return f"{head},threads={self.threads}" if self.kind == "cpu" and self.threads != host_cpu().cores else head

    @property
    def compile_flags(self) -> tuple[str, ...]:
        """Flags for `iree-compile`, the true thread count included."""
        if self.kind == "cpu":
            return (
                "--iree-hal-target-device=local",
                "--iree-hal-local-target-device-backends=llvm-cpu",
                f"--iree-llvmcpu-target-cpu={_LLVM_CPU.get(self.arch, 'host')}",
                f"--iree-llvmcpu-number-of-threads={self.threads}",
            )
        if self.kind == "cuda":
            return ("--iree-hal-target-device=cuda", f"--iree-cuda-target={_PTX_OF.get(self.arch, self.arch)}")
        return ("--iree-hal-target-device=vulkan",)

    @property
    def device(self) -> str:
        """The runtime device: one thread runs inline, which is steadier than a pool of one."""
        if self.kind == "cpu":
            return "local-sync" if self.threads == 1 else "local-task"
        return self.kind

    @property
    def runtime_flags(self) -> tuple[str, ...]:
        """Flags of the IREE runtime, for tools and for `iree.runtime.flags.parse_flags`."""
        if self.device != "local-task":
            return ()
        # Pinned workers: where the scheduler puts them would otherwise be part of the measurement.
        return (f"--task_topology_cpu_ids={','.join(map(str, self.cpus))}",)

    @property
    def cpus(self) -> tuple[int, ...]:
        """The host's cores that a CPU target runs on; none in particular for others."""
        return tuple(host_cpu().cpu_ids[: self.threads]) if self.kind == "cpu" else ()

    @property
    def free_cpus(self) -> tuple[int, ...]:
        """The host's cores that are idle while this target is measured; a Vulkan driver may well use them all."""
        used = {"cpu": self.threads, "cuda": 1}.get(self.kind, host_cpu().cores)
        return tuple(host_cpu().cpu_ids[used:])

    @property
    def hardware(self) -> Hardware:
        """Figures of the hardware behind this target."""
        if self.described:
            return self.described
        if self.kind == "cpu":
            return cpu_hardware(self.isa, self.threads)
        return cuda_hardware(self.arch) if self.kind == "cuda" else vulkan_hardware()

    @property
    def isa(self) -> str:
        """The resolved instruction set."""
        if self.described:
            return self.described.isa
        if self.kind == "cpu":
            return self.arch or host_cpu().isa_classes[0]
        return self.arch or "spirv"

    @property
    def key(self) -> str:
        """Names the group a measurement belongs to: ISA, threads and the machine it was taken on."""
        if self.kind == "cpu":
            # The host's own CPU has more features than the smallest CPU of its class, so other code.
            isa = self.arch or f"native.{self.isa}"
            return f"cpu-{isa}-t{self.threads}-{host_cpu().fingerprint}"
        names, _ = _devices(self.kind)
        device = hashlib.sha256(names[0].encode()).hexdigest()[:10] if names else "no-device"
        return f"{self.kind}-{self.isa}-{device}-{host_cpu().fingerprint}"

    def why_not_compile(self) -> str | None:
        """Why code cannot be built for this target here, or None if it can."""
        if self.kind == "cpu" and self.arch and host_cpu().isa_classes[0] in ("neon", "generic"):
            return f"{self.arch} is an x86-64 class and this machine is not x86-64"
        return None

    def why_not_run(self) -> str | None:
        """Why code for this target cannot run here, or None if it can."""
        if self.kind == "cpu":
            if self.arch and self.arch not in host_cpu().isa_classes:
                return f"this CPU has no {self.arch} (it has {', '.join(host_cpu().isa_classes)})"
            return None
        names, problem = _devices(self.kind)
        return None if names else problem

    def require_runnable(self) -> None:
        """Raise a `TargetError` that says what is missing if nothing can run for this target here."""
        reason = self.why_not_compile() or self.why_not_run()
        if reason:
            usable = ", ".join(str(target) for target in known_targets() if not target.why_not_run())
            raise TargetError(f"target {self} cannot run here: {reason}; usable here: {usable}")


def known_targets() -> tuple[Target, ...]:
    """Every target by its plain name, in the order `tcl-iree targets` lists them."""
    cores = host_cpu().cores
    cpus = [Target("cpu", arch, cores) for arch in ("", *_LLVM_CPU)]
    return (*cpus, *(Target("cuda", arch) for arch in CUDA_ARCHS), Target("vulkan"))


def _threads(options: list[str], text: str) -> int:
    threads = host_cpu().cores
    for option in options:
        name, _, value = option.partition("=")
        if name != "threads" or not value.isdigit():
            raise TargetError(f"unknown option {option!r} in target {text!r}; known: {_WORKS}")
        threads = int(value)
    if not 1 <= threads <= host_cpu().cores:
        raise TargetError(f"target {text!r} asks for {threads} threads; this machine has {host_cpu().cores}")
    return threads


@cache
def _devices(driver: str) -> tuple[list[str], str]:
    """Names of the devices an IREE driver sees, or the reason it sees none."""
    import iree.runtime as runtime

    try:
        found = [str(device["name"]) for device in runtime.get_driver(driver).query_available_devices()]
    except (RuntimeError, ValueError) as error:
        missing = {"cuda": "libcuda.so (an NVIDIA driver)", "vulkan": "a Vulkan loader and driver"}[driver]
        detail = str(error).split(";")[-2].strip() if str(error).count(";") >= 2 else str(error).splitlines()[0]
        return [], f"{missing} is missing: {detail}"
    hint = {"cuda": "an NVIDIA GPU", "vulkan": "a driver such as Debian's mesa-vulkan-drivers (llvmpipe)"}[driver]
    return found, f"the {driver} driver finds no device; install {hint}"
