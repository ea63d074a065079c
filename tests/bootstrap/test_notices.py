"""Spot notices and the deadline let jobs save: the hook runs, and each job's group gets SIGTERM."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from templates.bootstrap_deadline import NOTICES as NOTICES_ELSEWHERE
from tests.bootstrap.box import BOOT_S, NOW_S, Box
from tests.bootstrap.machines import NOTICES, a_machine
from tests.waiting import CEILING_S, until

_METADATA = """case "$*" in
*PUT*api/token*) echo token-1 ;;
*token-1*spot/instance-action) cat "$GPUCOST_ROOT/taken" 2>/dev/null || exit 22 ;;
*token-1*recommendations/rebalance) cat "$GPUCOST_ROOT/at-risk" 2>/dev/null || exit 22 ;;
*) exit 22 ;;
esac"""
_HOOK = '#!/bin/bash\necho "hook: $1, ${2:-no time}" >>"$GPUCOST_ROOT/calls"\n'


@pytest.fixture
def box(tmp_path: Path) -> Box:
    """A spot machine whose metadata service has no notice yet."""
    box = Box(tmp_path, a_machine(end="poweroff", notices=NOTICES), curl=_METADATA)
    box.write("etc/gpucost/on-preempt", _HOOK).chmod(0o755)
    (tmp_path / "run/gpucost/jobs").mkdir(parents=True)
    box.set_clock(NOW_S + BOOT_S + 100, up_s=100)
    return box


@pytest.fixture
def job(box: Box) -> Iterator[subprocess.Popen[str]]:
    """A command that `run` started, with a child of its own; it dies of SIGTERM."""
    command = [f"{box.root}/opt/gpucost/run", "bash", "-c", "sleep 600 & wait"]
    environment = {"PATH": os.environ["PATH"], "GPUCOST_ROOT": str(box.root)}
    process = subprocess.Popen(command, env=environment, text=True, start_new_session=True)
    noted = box.root / f"run/gpucost/jobs/{process.pid}"
    until(lambda: noted.exists() and noted.read_text(encoding="ascii").strip(), "the job")
    yield process
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_a_notice_reaches_the_job(box: Box, job: subprocess.Popen[str]) -> None:
    """Taken back in two minutes: the hook is told when, then the whole group of the job ends."""
    box.write("taken", '{"action": "terminate", "time": "2026-11-21T12:17:20Z"}')
    assert box.run("notices.sh", UNTIL_S="130").returncode == 0
    assert job.wait(CEILING_S) == -signal.SIGTERM
    told = box.read("var/lib/gpucost/end.log")
    assert "the provider takes this machine back at 2026-11-21T12:17:20Z" in told
    assert f"SIGTERM to job {job.pid}" in told
    assert "hook: the provider takes this machine back" in box.calls


_EVENTS = '{"DocumentIncarnation":1,"Events":[{"EventType":"%s","ResourceType":"VirtualMachine"}]}'


@pytest.mark.parametrize(
    ("provider", "before", "taken"),
    [("gcp", "FALSE", "TRUE"), ("azure", _EVENTS % "Freeze", _EVENTS % "Preempt")],
)
def test_a_notice_of_another_provider_reaches_the_hook(
    tmp_path: Path, provider: str, before: str, taken: str
) -> None:
    """Their metadata always answer: only the word that means it starts the save."""
    asked = NOTICES_ELSEWHERE[provider]
    machine = a_machine(end="poweroff", notices=asked)
    there = f"""case "$*" in *"{asked["header"]} {asked["taken_url"]}") cat "$GPUCOST_ROOT/told" ;;
    *) exit 22 ;; esac"""
    box = Box(tmp_path, machine, curl=there)
    box.write("etc/gpucost/on-preempt", _HOOK).chmod(0o755)
    box.write("told", before)
    box.set_clock(NOW_S + BOOT_S + 100, up_s=100)
    box.run("notices.sh", UNTIL_S="130")
    assert "hook" not in box.calls
    box.write("told", taken)
    assert box.run("notices.sh", UNTIL_S="160").returncode == 0
    assert "hook: the provider takes this machine back at once, 25" in box.calls


def test_a_risk_stops_nothing(box: Box) -> None:
    """A rebalance recommendation runs the hook once and is told; no job is stopped."""
    box.write("at-risk", '{"noticeTime": "2026-11-21T12:17:20Z"}')
    box.run("notices.sh", UNTIL_S="130")
    until(lambda: "hook: " in box.calls, "the hook")  # it runs beside
    assert box.calls.count("hook: the provider may soon take this machine back, no time") == 1
    assert "SIGTERM" not in box.read("var/lib/gpucost/end.log")
    assert "terminate" not in box.calls


def test_maintenance_at_google_is_a_risk(tmp_path: Path) -> None:
    """A machine that will be ended for maintenance: the hook runs once, no job is stopped."""
    asked = NOTICES_ELSEWHERE["gcp"]
    there = f"""case "$*" in *"{asked["taken_url"]}") echo FALSE ;;
    *"{asked["header"]} {asked["at_risk_url"]}") cat "$GPUCOST_ROOT/told" ;; *) exit 22 ;; esac"""
    box = Box(tmp_path, a_machine(end="poweroff", notices=asked), curl=there)
    box.write("etc/gpucost/on-preempt", _HOOK).chmod(0o755)
    box.set_clock(NOW_S + BOOT_S + 100, up_s=100)
    for told, runs in (("NONE", 0), ("TERMINATE_ON_HOST_MAINTENANCE", 1)):
        box.write("told", told)
        box.run("notices.sh", UNTIL_S="130" if not runs else "160")
        if runs:
            until(lambda: "hook: " in box.calls, "the hook")  # it runs beside
        assert box.calls.count("hook: the provider may soon take this machine back") == runs
    assert "SIGTERM" not in box.read("var/lib/gpucost/end.log")


def test_without_a_notice_nothing_happens(box: Box) -> None:
    """A metadata service that answers 404, or not at all, is no notice."""
    box.run("notices.sh", UNTIL_S="130")
    box.tool("curl", "exit 7")
    box.run("notices.sh", UNTIL_S="160")
    assert "hook" not in box.calls
    assert box.read("var/lib/gpucost/end.log") == ""


def test_a_hook_that_hangs_or_fails_holds_up_nothing(box: Box) -> None:
    """The hook has half of the time; what it left undone does not keep SIGTERM from the jobs."""
    box.write("etc/gpucost/on-preempt", "#!/bin/bash\nexit 3\n").chmod(0o755)
    box.run("checkpoint", "a test", "10")
    assert "on-preempt ended with 3" in box.read("var/lib/gpucost/end.log")
    box.write("etc/gpucost/on-preempt", "#!/bin/bash\nexec /bin/sleep 60\n").chmod(0o755)
    box.run("checkpoint", "a test", "2")
    assert "on-preempt ended with 124" in box.read("var/lib/gpucost/end.log")


@pytest.mark.parametrize("text", ["", "0\n", "1\n", "-1\n", "$(reboot)\n"])
def test_only_a_job_is_told(box: Box, text: str) -> None:
    """A file that names no group of a job, or a process that has gone, is dropped."""
    mark = box.write(f"run/gpucost/jobs/{os.getpid()}", text)
    gone = box.write("run/gpucost/jobs/999999999", f"{os.getpgrp()}\n")
    assert box.run("checkpoint", "a test", "10").returncode == 0
    assert not mark.exists()
    assert not gone.exists()


def test_two_minutes_before_the_deadline_jobs_may_save(box: Box) -> None:
    """The end comes in two stages: jobs are told first, and the machine ends at the deadline."""
    box.write("var/lib/gpucost/status", "ready\n")
    box.set_clock(NOW_S + 28_800 - 140, up_s=28_800 - BOOT_S - 140)
    box.watch(until_s=28_800 - BOOT_S - 90)
    until(lambda: "hook: " in box.calls, "the hook")  # it runs beside
    assert box.calls.count("hook: the deadline comes, 1") == 1
