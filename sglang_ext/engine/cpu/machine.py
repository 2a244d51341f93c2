"""The machine as this process may use it: cores, the limits of its control groups, memory that is really free.

Everything is read from files below a root, so that another tree can stand in for this machine's.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

ROOT = Path("/")


@dataclass(frozen=True, slots=True)
class Machine:
    """Args:
    cores: physical cores among the CPUs that this process may run on.
    quota: CPUs' worth of time per second that its control groups leave it; None: no limit.
    free_memory: bytes that it may still take without anything being swapped or killed; None: unknown.
    memory_source: the file that sets this bound.
    """

    cores: int
    quota: float | None
    free_memory: int | None
    memory_source: str

    @property
    def threads(self) -> int:
        """Threads that can all run all the time.

        A quota of 1.5 gives one: of two, each would be stopped for a quarter of the time, and a parallel
        operation waits for its last thread.
        """
        return self.cores if self.quota is None else max(1, min(self.cores, int(self.quota)))


def this_machine(root: Path = ROOT, cpus: Collection[int] | None = None) -> Machine:
    """Look at the machine.

    Args:
        root: where `proc` and `sys` are.
        cpus: numbers of the CPUs that this process may run on; None: ask the system.
    """
    if cpus is None:
        cpus = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    bounds = list(_memory_bounds(root))
    free, source = min(bounds, default=(None, ""))
    return Machine(_cores(root, cpus), min(_quotas(root), default=None), free, source)


def processor(root: Path = ROOT) -> str:
    """The CPU's name."""
    for line in (_read(root / "proc/cpuinfo") or "").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores(root: Path, cpus: Collection[int]) -> int:
    """Threads of one core name the same siblings; a CPU that names none counts as a core."""
    siblings = {_read(root / f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list") or cpu for cpu in cpus}
    return max(1, len(siblings))


def _quotas(root: Path) -> Iterator[float]:
    for folder in _groups(root, "cpu"):
        quota, _, period = (_read(folder / "cpu.max") or "").partition(" ")
        if not period:
            quota, period = _read(folder / "cpu.cfs_quota_us") or "", _read(folder / "cpu.cfs_period_us") or ""
        if quota.isdigit() and period.isdigit() and int(period):
            yield int(quota) / int(period)


def _memory_bounds(root: Path) -> Iterator[tuple[int, str]]:
    """Free bytes by each file that bounds them."""
    available = _fields(root / "proc/meminfo").get("MemAvailable:")
    if available is not None:
        yield 1024 * available, "/proc/meminfo"
    for folder in _groups(root, "memory"):
        for limit, usage, cache in (
            ("memory.max", "memory.current", "inactive_file"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ):
            most, used = _read(folder / limit) or "", _read(folder / usage) or ""
            if most.isdigit() and used.isdigit():
                # Files that were read count as used, but make room for whoever needs it.
                taken = int(used) - _fields(folder / "memory.stat").get(cache, 0)
                yield max(0, int(most) - max(0, taken)), f"/{(folder / limit).relative_to(root).as_posix()}"


def _groups(root: Path, controller: str) -> Iterator[Path]:
    """The folders of this process's control group and of all around it, in both versions' trees."""
    paths = {}
    for line in (_read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers or controller in controllers.split(","):
            paths["cgroup" if controllers else "cgroup2"] = PurePosixPath(path)
    for line in (_read(root / "proc/self/mountinfo") or "").splitlines():
        mount, _, system = line.partition(" - ")
        kind, _, options = system.split(" ", 2)
        _, _, _, top, point, *_ = mount.split(" ")
        if kind not in paths or (kind == "cgroup" and controller not in options.replace(" ", ",").split(",")):
            continue
        folder = root / point.lstrip("/")
        own = paths[kind]
        # The mount may begin further down: a container sees its own group as the top.
        inner = own.relative_to(top).parts if own.is_relative_to(top) and ".." not in own.parts else ()
        yield folder
        for part in inner:
            folder /= part
            yield folder


def _fields(file: Path) -> dict[str, int]:
    """The first number behind each name."""
    rows = (line.split() for line in (_read(file) or "").splitlines())
    return {row[0]: int(row[1]) for row in rows if len(row) > 1 and row[1].isdigit()}


def _read(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:
        return None
