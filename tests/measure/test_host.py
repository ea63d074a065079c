"""What the host's readings are of: the job, not its neighbours."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from telemetry.measure.host import HostReader, JobEnd
from telemetry.measure.processes import ProcessTree

if TYPE_CHECKING:
    from collections.abc import Iterator

_BUSY = "import time\nwhile True: pass"
_MIB = 200


@contextlib.contextmanager
def _running(script: str, *, ready: bool = False) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-I", "-c", script], stdout=subprocess.PIPE)
    try:
        if ready:
            assert process.stdout is not None
            process.stdout.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def _read(reader: HostReader, seconds: float = 1.2) -> dict[str, float]:
    """Return the readings of one stretch of time."""
    reader.read(time.monotonic())
    time.sleep(seconds)
    return reader.read(time.monotonic())


def test_a_neighbours_work_is_not_the_jobs() -> None:
    """Beside two busy loops of others, a job that sleeps used nothing, and the machine did."""
    with _running(_BUSY), _running(_BUSY), _running("import time; time.sleep(60)") as job:
        found = _read(HostReader(ProcessTree(job.pid)))
    assert found["cpu_util"] < 0.05
    assert found["cpu_busiest_core"] < 0.1
    assert found["machine.cpu_util"] > 0.1


def test_the_jobs_own_work_is_seen() -> None:
    """A job that computes in a child on one core is seen, with a thread that fills the core."""
    script = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_BUSY!r}])"
    with _running(script) as job:
        reader = HostReader(ProcessTree(job.pid))
        # Where others load the machine, looks at threads come later than the first reading.
        stretches = (_read(reader) for _ in range(20))
        found = next(read for read in stretches if "cpu_busiest_core" in read)
        for child in ProcessTree(job.pid).look() - {job.pid}:
            subprocess.run(["kill", "-9", str(child)], check=False)
    # As much as this machine had to spare: others' work is on it while tests run.
    assert found["cpu_util"] * reader.cpu_cores > 0.02
    assert found["cpu_busiest_core"] == pytest.approx(
        found["cpu_util"] * reader.cpu_cores, abs=0.35
    )


def test_memory_is_the_jobs() -> None:
    """The memory of a job is that of its processes; pages that two of them share count once."""
    script = (
        f"import os, time; held = bytearray(os.urandom(1 << 20)) * {_MIB}\n"
        "if os.fork():\n    print(flush=True)\ntime.sleep(60)\n"
    )
    with _running(script, ready=True) as job:
        tree = ProcessTree(job.pid)
        found = HostReader(tree).read(time.monotonic())
        for child in tree.look() - {job.pid}:
            subprocess.run(["kill", "-9", str(child)], check=False)
    assert found["ram_used_gib"] == pytest.approx(_MIB / 1024, rel=0.2)
    assert found["machine.ram_used_gib"] > found["ram_used_gib"]


def test_cores_are_those_that_the_job_may_use() -> None:
    """A job that is bound to one core may use one, whatever the measuring process may use."""
    if sys.platform != "linux":
        pytest.skip("binding to cores is tried on Linux")
    script = "import os, time; os.sched_setaffinity(0, {0}); print(flush=True); time.sleep(60)"
    with _running(script, ready=True) as job:
        reader = HostReader(ProcessTree(job.pid))
    assert reader.cpu_cores == 1.0


def test_a_reading_costs_little_however_often_it_is_asked_for() -> None:
    """Asked at every tick, the host is read about once a second: in between there is nothing."""
    with _running("import time; time.sleep(60)") as job:
        reader = HostReader(ProcessTree(job.pid))
        said = [bool(reader.read(tick / 10)) for tick in range(31)]
    assert 3 <= sum(said) <= 4


def test_the_first_reading_of_a_job_that_we_started_is_of_all_its_time() -> None:
    """A job that was over before it was first looked at reads what its parent says it used."""
    begun_s = time.monotonic() - 2.0
    with _running("pass") as job:
        job.wait()
        reader = HostReader(ProcessTree(job.pid, begun_s=begun_s))
        assert "cpu_util" not in reader.read(time.monotonic())
        ended = JobEnd(moment_s=begun_s + 1.0, cpu_s=0.8)
        found = reader.read(time.monotonic(), last=True, ended=ended)
    assert found["cpu_util"] * reader.cpu_cores == pytest.approx(0.8)
