"""What the CPU platform finds of a machine, on trees that stand in for `/proc` and `/sys`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from sglang_ext.engine.cpu.machine import Machine, this_machine

GIB = 1 << 30
MEMINFO = {"proc/meminfo": f"MemTotal: {16 << 20} kB\nMemFree: {1 << 20} kB\nMemAvailable: {8 << 20} kB\n"}
V2_MOUNT = "35 24 0:31 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
V1_MOUNTS = """\
22 27 0:21 / /proc rw,relatime - proc proc rw
32 31 0:29 {top} /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
33 31 0:30 {top} /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
"""
V1_GROUPS = "5:memory:{path}\n4:cpuset:/\n3:cpu,cpuacct:{path}\n0::/\n"
NO_LIMIT = "9223372036854771712"


def look(root: Path, files: Mapping[str, str], cpus: range = range(4)) -> Machine:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return this_machine(root, cpus)


def v2(path: str, **files: str) -> dict[str, str]:
    """A tree of version 2; `files` by their names below the mount, `__` for a folder and `_` for a dot."""
    groups = {f"sys/fs/cgroup/{n.replace('__', '/').replace('_', '.')}": text + "\n" for n, text in files.items()}
    return {**MEMINFO, "proc/self/cgroup": f"0::{path}\n", "proc/self/mountinfo": V2_MOUNT, **groups}


def v1(path: str, top: str = "/", **files: str) -> dict[str, str]:
    own = {
        "proc/self/cgroup": V1_GROUPS.format(path=path),
        "proc/self/mountinfo": V1_MOUNTS.format(top=top),
    }
    return {**MEMINFO, **own, **{f"sys/fs/cgroup/{name}": text + "\n" for name, text in files.items()}}


def test_without_control_groups(tmp_path: Path) -> None:
    machine = look(tmp_path, MEMINFO)
    assert (machine.cores, machine.quota, machine.threads) == (4, None, 4)
    assert (machine.free_memory, machine.memory_source) == (8 * GIB, "/proc/meminfo")


def test_nothing_is_known(tmp_path: Path) -> None:
    assert look(tmp_path, {}) == Machine(4, None, None, "")


def test_threads_of_one_core_count_once_and_forbidden_cpus_not_at_all(tmp_path: Path) -> None:
    names = {0: "0,4", 1: "1,5", 4: "0,4", 5: "1,5", 2: "2,6", 6: "2,6"}
    files = {f"sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list": name for cpu, name in names.items()}
    assert look(tmp_path, files, cpus=range(6)).cores == 4  # CPU 3 says nothing of siblings
    assert this_machine(tmp_path, [0, 4]).cores == 1
    assert this_machine(tmp_path, [4, 5, 6]).cores == 3


@pytest.mark.parametrize(
    ("quota", "threads"),
    [("150000 100000", 1), ("200000 100000", 2), ("50000 100000", 1), ("max 100000", 4), ("6400000 100000", 4)],
)
def test_a_quota_of_version_2(quota: str, threads: int, tmp_path: Path) -> None:
    machine = look(tmp_path, v2("/a", a__cpu_max=quota))
    assert machine.threads == threads
    assert machine.quota == (None if quota.startswith("max") else int(quota.split()[0]) / 1e5)


@pytest.mark.parametrize(("quota", "threads"), [("-1", 4), ("150000", 1), ("300000", 3)])
def test_a_quota_of_version_1(quota: str, threads: int, tmp_path: Path) -> None:
    own = {"cpu,cpuacct/a/cpu.cfs_quota_us": quota, "cpu,cpuacct/a/cpu.cfs_period_us": "100000"}
    assert look(tmp_path, v1("/a", **own)).threads == threads


def test_the_narrowest_of_nested_groups_counts(tmp_path: Path) -> None:
    machine = look(
        tmp_path,
        v2(
            "/a/b",
            a__cpu_max="250000 100000",
            a__b__cpu_max="max 100000",
            a__memory_max=str(3 * GIB),
            a__memory_current=str(2 * GIB),
            a__b__memory_max=str(2 * GIB),
            a__b__memory_current=str(GIB // 2),
        ),
    )
    assert machine.threads == 2
    assert (machine.free_memory, machine.memory_source) == (GIB, "/sys/fs/cgroup/a/memory.max")


def test_no_limit_of_memory(tmp_path: Path) -> None:
    files = v2("/a", a__memory_max="max", a__memory_current=str(GIB))
    assert look(tmp_path / "2", files).free_memory == 8 * GIB
    old = {"memory/memory.limit_in_bytes": NO_LIMIT, "memory/memory.usage_in_bytes": str(GIB)}
    assert look(tmp_path / "1", v1("/", **old)).free_memory == 8 * GIB


def test_cached_files_make_room(tmp_path: Path) -> None:
    files = v2("/a", a__memory_max=str(2 * GIB), a__memory_current=str(2 * GIB), a__memory_stat="")
    files["sys/fs/cgroup/a/memory.stat"] = f"anon 5\ninactive_file {GIB}\nactive_file 7\n"
    assert look(tmp_path, files).free_memory == GIB


def test_more_used_than_allowed(tmp_path: Path) -> None:
    files = v2("/a", a__memory_max=str(GIB), a__memory_current=str(2 * GIB))
    assert look(tmp_path, files).free_memory == 0


@pytest.mark.parametrize(("path", "top"), [("/docker/x", "/docker/x"), ("/../../y", "/"), ("/elsewhere", "/docker/x")])
def test_a_container_that_sees_its_own_group_as_the_top(path: str, top: str, tmp_path: Path) -> None:
    files = {
        "memory/memory.limit_in_bytes": str(2 * GIB),
        "memory/memory.usage_in_bytes": str(GIB),
        "memory/memory.stat": f"total_inactive_file {GIB // 2}",
        "cpu,cpuacct/cpu.cfs_quota_us": "100000",
        "cpu,cpuacct/cpu.cfs_period_us": "50000",
    }
    machine = look(tmp_path, v1(path, top, **files))
    assert (machine.free_memory, machine.threads) == (3 * GIB // 2, 2)


def test_this_machine() -> None:
    machine = this_machine()
    assert machine.threads >= 1 and machine.cores >= machine.threads
    assert machine.free_memory is None or machine.free_memory > 0
