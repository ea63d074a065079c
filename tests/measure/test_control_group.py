"""What control groups grant: both versions, nested, mixed, and as a container sees them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from telemetry.measure.host import ControlGroup

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
V2 = "30 20 0:25 {root} {at}/unified rw - cgroup2 cgroup2 rw"
_LOWEST = 1 << 63  # what version 1 writes without a limit, less a page


def _v1(name: str, root: str = "/") -> str:
    return f"31 20 0:26 {root} {{at}}/{name} rw - cgroup cgroup rw,{name}"


CASES = {
    "version 2, the outer group holds": (
        "0::/slurm/job_7/step_0\n",
        [V2.format(root="/", at="{at}")],
        {
            "unified/slurm/cpu.max": "200000 100000",
            "unified/slurm/job_7/cpu.max": "max 100000",
            "unified/slurm/job_7/memory.max": str(8 * GIB),
            "unified/slurm/job_7/step_0/cpu.max": "400000 100000",
            "unified/slurm/job_7/step_0/memory.max": "max",
            "unified/slurm/job_7/step_0/cpuset.cpus.effective": "0-2,8",
            "unified/slurm/job_7/step_0/memory.current": str(3 * GIB),
            "unified/slurm/job_7/step_0/memory.stat": f"anon 1\ninactive_file {GIB}",
            "unified/slurm/job_7/step_0/cpu.stat": "usage_usec 2500000\nuser_usec 1",
            "unified/slurm/job_7/step_0/memory.events": "oom 2\noom_kill 1",
        },
        (2.0, 8.0, {0, 1, 2, 8}, 2.0, 2.5, 1),
    ),
    "version 2, a container with its own namespace": (
        "0::/\n",
        [V2.format(root="/", at="{at}")],
        {"unified/cpu.max": "150000 100000", "unified/memory.max": str(4 * GIB)},
        (1.5, 4.0, None, None, None, None),
    ),
    "version 1, a container whose mount shows its own part": (
        "4:memory:/docker/abc\n3:cpu:/docker/abc\n2:cpuacct:/docker/abc\n1:cpuset:/docker/abc\n",
        [_v1(name, "/docker/abc") for name in ("cpu", "cpuacct", "memory", "cpuset")],
        {
            "cpu/cpu.cfs_quota_us": "50000",
            "cpu/cpu.cfs_period_us": "100000",
            "cpuacct/cpuacct.usage": "1500000000",
            "memory/memory.limit_in_bytes": str(2 * GIB),
            "memory/memory.usage_in_bytes": str(GIB),
            "memory/memory.stat": f"total_inactive_file {GIB // 2}",
            "memory/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 3",
            "cpuset/cpuset.cpus": "5",
        },
        (0.5, 2.0, {5}, 0.5, 1.5, 3),
    ),
    "both versions: what version 1 has is taken there": (
        "4:memory:/a\n0::/user.slice\n",
        [V2.format(root="/", at="{at}"), _v1("memory")],
        {
            "memory/a/memory.limit_in_bytes": str(6 * GIB),
            "unified/user.slice/cpu.max": "100000 100000",
            "unified/user.slice/memory.max": str(GIB),
        },
        (1.0, 6.0, None, None, None, None),
    ),
    "version 1 without limits": (
        "4:memory:/\n3:cpu,cpuacct:/\n",
        [_v1("cpu,cpuacct"), _v1("memory")],
        {
            "cpu,cpuacct/cpu.cfs_quota_us": "-1",
            "cpu,cpuacct/cpu.cfs_period_us": "100000",
            "memory/memory.limit_in_bytes": str(_LOWEST - 4096),
        },
        (None, None, None, None, None, None),
    ),
    "a group outside the namespace": (
        "0::/../other\n",
        [V2.format(root="/", at="{at}")],
        {"unified/cpu.max": "300000 100000"},
        (3.0, None, None, None, None, None),
    ),
    "no control groups": ("", [], {}, (None, None, None, None, None, None)),
}


@pytest.mark.parametrize("case", CASES)
def test_what_a_group_grants(tmp_path: Path, case: str) -> None:
    """Cores, memory, sets and use are found where this layout keeps them."""
    groups, mounts, files, expected = CASES[case]
    proc, at = tmp_path / "proc", tmp_path / "groups"
    (proc / "7").mkdir(parents=True)
    (proc / "self").mkdir()
    (proc / "7" / "cgroup").write_text(groups)
    (proc / "self" / "mountinfo").write_text("\n".join(m.format(at=at) for m in mounts))
    for name, text in files.items():
        path = at / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    group = ControlGroup(7, proc)
    found = (
        group.quota_cores,
        group.limit_gib,
        group.cpus,
        group.used_gib(),
        group.cpu_s(),
        group.oom_kills(),
    )
    assert found == expected


def test_the_group_of_this_process_is_read() -> None:
    """Where this system has control groups, our own counts the time that we use."""
    group = ControlGroup()
    before = group.cpu_s()
    if before is None:
        pytest.skip("no control group of this system counts time")
    sum(i * i for i in range(2_000_000))
    assert (group.cpu_s() or 0.0) > before
