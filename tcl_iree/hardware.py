"""What the hardware behind a target looks like: instruction set, cores, caches, GPU limits.

The host CPU is read from the machine; CUDA architectures come from a table, because nothing
of theirs can be read where no such GPU is installed.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

# Instruction-set classes of x86-64, widest first: (name, CPU flags it takes, vector bytes, vector registers).
_X86_CLASSES = (
    ("avx512", frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}), 64, 32),
    ("avx2", frozenset({"avx2", "fma", "bmi2"}), 32, 16),
    ("sse4", frozenset({"sse4_2", "popcnt"}), 16, 16),
    ("sse2", frozenset({"sse2"}), 16, 16),
)
# Features that compilers make code for.
_CODE_FLAGS = (
    "avx",
    "sse",
    "ssse",
    "fma",
    "f16c",
    "bmi",
    "popcnt",
    "amx",
    "gfni",
    "vaes",
    "asimd",
    "sve",
    "bf16",
    "i8mm",
)


@dataclass(frozen=True)
class Hardware:
    """Figures a schedule space or a cost model needs; zero where a field does not apply.

    Attributes:
        isa: instruction-set class (`avx512`, `avx2`, `sse4`, `neon`, `sm_80`, `spirv`, ...).
        vector_bytes: width of one vector register; of one warp's 32-bit lanes on a GPU.
        vector_registers: architectural vector registers of one core (32-bit registers of one SM on a GPU).
        cores: worker threads on a CPU, streaming multiprocessors on a GPU.
        l1_bytes, l2_bytes: per core on a CPU. l3_bytes: shared by the socket.
        shared_bytes: shared memory one workgroup may use (GPU).
        max_threads: largest workgroup (GPU).
        thread_registers: most 32-bit registers one thread may hold (GPU).
    """

    isa: str
    vector_bytes: int
    vector_registers: int
    cores: int
    l1_bytes: int = 0
    l2_bytes: int = 0
    l3_bytes: int = 0
    shared_bytes: int = 0
    max_threads: int = 0
    thread_registers: int = 0

    @staticmethod
    def from_json(text: str) -> Hardware:
        """What `to_json` wrote."""
        return Hardware(**json.loads(text))

    def to_json(self) -> str:
        """All fields as one line."""
        return json.dumps(self.as_dict())

    def as_dict(self) -> dict[str, int | str]:
        """The fields by name, for JSON."""
        return asdict(self)


@dataclass(frozen=True)
class HostCpu:
    """The CPU of this machine.

    Attributes:
        model: what it calls itself; virtual machines tell no more than its make.
        revision: its family and model numbers, which tell generations apart; empty if it has none.
    """

    model: str
    revision: str
    flags: frozenset[str]
    cpu_ids: tuple[int, ...]
    machine_cores: int
    l1_bytes: int
    l2_bytes: int
    l3_bytes: int

    @property
    def cores(self) -> int:
        """Cores this process may use."""
        return len(self.cpu_ids)

    @property
    def isa_classes(self) -> tuple[str, ...]:
        """Instruction-set classes this CPU can run, widest first."""
        if platform.machine() not in ("x86_64", "AMD64"):
            return ("neon",) if platform.machine() in ("aarch64", "arm64") else ("generic",)
        return tuple(name for name, needs, _, _ in _X86_CLASSES if needs <= self.flags)

    @property
    def fingerprint(self) -> str:
        """A short name for this kind of machine: same model, vector features, cores and caches, same name.

        Taken from what does not change with a kernel update or an affinity mask.
        """
        features = sorted(flag for flag in self.flags if flag.startswith(_CODE_FLAGS))
        caches = [str(size) for size in (self.l1_bytes, self.l2_bytes, self.l3_bytes)]
        text = "|".join([self.model, ",".join(features), str(self.machine_cores), *caches])
        return hashlib.sha256(text.encode()).hexdigest()[:10]


def cpu_hardware(isa: str, threads: int) -> Hardware:
    """The host's cores and caches, seen through instruction-set class `isa`."""
    host = host_cpu()
    widths = {name: (vector, registers) for name, _, vector, registers in _X86_CLASSES}
    vector_bytes, registers = widths.get(isa, (16, 32))
    return Hardware(isa, vector_bytes, registers, threads, host.l1_bytes, host.l2_bytes, host.l3_bytes)


# Per architecture: SMs of its best known card, registers and usable shared memory per SM,
# shared memory one block may opt in to, L1 and L2 bytes. Code for sm_90 is PTX for sm_80 and keeps that one's limit.
_CUDA = {
    "sm_70": (80, 65536, 96 << 10, 128 << 10, 6 << 20),
    "sm_75": (40, 65536, 64 << 10, 96 << 10, 4 << 20),
    "sm_80": (108, 65536, 163 << 10, 192 << 10, 40 << 20),
    "sm_86": (84, 65536, 99 << 10, 128 << 10, 6 << 20),
    "sm_89": (128, 65536, 99 << 10, 128 << 10, 72 << 20),
    "sm_90": (132, 65536, 163 << 10, 256 << 10, 50 << 20),
}
CUDA_ARCHS = tuple(_CUDA)


def cuda_hardware(arch: str) -> Hardware:
    """The figures of a CUDA architecture, from the table."""
    sms, registers, shared, l1, l2 = _CUDA[arch]
    return Hardware(arch, 32 * 4, registers, sms, l1, l2, 0, shared, 1024, 255)


def vulkan_hardware() -> Hardware:
    """Limits of the Vulkan devices IREE compiles for by default; kernels run on whatever device the loader finds.

    No such device tells how many registers it has; 600 a thread leave room for a tile of 16 x 32.
    """
    host = host_cpu()
    return Hardware("spirv", 16, 256, host.cores, host.l1_bytes, host.l2_bytes, host.l3_bytes, 16 << 10, 128, 600)


@cache
def host_cpu() -> HostCpu:
    """Read this machine's CPU once."""
    model, revision, flags = platform.processor() or platform.machine(), "", frozenset[str]()
    info = Path("/proc/cpuinfo")
    if info.exists():
        first = info.read_text().split("\n\n")[0]
        told = {name.strip(): value.split() for name, _, value in (line.partition(":") for line in first.splitlines())}
        model = " ".join(told.get("model name", [model]))
        flags = frozenset(told.get("flags") or told.get("Features") or ())
        numbers = {name: told[key] for name, key in (("family", "cpu family"), ("model", "model")) if key in told}
        revision = " ".join(f"{name} {value[0]}" for name, value in numbers.items() if value)
    sizes = _cache_sizes()
    return HostCpu(
        model,
        revision,
        flags,
        _usable_cpus(),
        os.cpu_count() or 1,
        sizes.get(1, 32 << 10),
        sizes.get(2, 1 << 20),
        sizes.get(3, 0),
    )


def machine_memory() -> int:
    """Bytes of memory this machine has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _usable_cpus() -> tuple[int, ...]:
    try:
        return tuple(sorted(os.sched_getaffinity(0)))
    except AttributeError:  # not Linux
        return tuple(range(os.cpu_count() or 1))


def _cache_sizes() -> dict[int, int]:
    """Bytes of the data (or unified) cache at each level, as the kernel reports them for core 0."""
    sizes: dict[int, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind = (index / "type").read_text().strip()
            level = int((index / "level").read_text())
            text = (index / "size").read_text().strip()
        except (OSError, ValueError):
            continue
        if kind != "Instruction":
            scale = {"K": 1 << 10, "M": 1 << 20}.get(text[-1:], 1)
            sizes[level] = int(text.rstrip("KM")) * scale
    return sizes
