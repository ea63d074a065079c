"""`make vm-test`: the user data of launches boots a real machine, which sets itself up and ends.

`python -m tests.vm` leaves such a machine up and prints how to log in.
"""

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from templates.bootstrap_files import MOST_PLAIN, MachineBootstrap, render_bootstrap
from tests.bootstrap.machines import NOTICES, a_machine
from tests.vm.image import Image, build_image, missing_tools
from tests.vm.machine import VirtualMachine
from tests.vm.metadata import ADDRESS

# Most seconds until a machine without hardware acceleration is ready, on cores that are not busy.
BOOT_S = float(os.environ.get("GPUCOST_VM_BOOT_S", "900"))
IDLE_S = 60
_READY = 'grep -q "^ready" /var/lib/gpucost/status'
_TRAIN = """import os, signal, sys, time
def save(*_):
    open("/scratch/checkpoint", "w").write("saved")
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
open("result.txt", "w").write(os.environ["TMPDIR"] + " " + os.environ["OMP_NUM_THREADS"])
time.sleep(float(sys.argv[1]))
"""
_HOOK = '#!/bin/bash\necho "$1, $2 s" >/scratch/hook\n'


@pytest.fixture(scope="module")
def image() -> Image:
    """The disk, from the cache or built."""
    if not os.environ.get("GPUCOST_VM"):
        pytest.skip("boots virtual machines for minutes: make vm-test")
    missing = missing_tools()
    if missing:
        pytest.skip(f"{', '.join(missing)} missing: apt-get install qemu-system-x86 mmdebstrap")
    return build_image()


@pytest.fixture
def started() -> Iterator[list[VirtualMachine]]:
    """Machines that go off with their test; a test appends them."""
    machines: list[VirtualMachine] = []
    yield machines
    for one in machines:
        one.stop()


def machine_until(life_s: int, **changes: Any) -> MachineBootstrap:
    """A machine that has so many seconds to live from now."""
    deadline = datetime.now(UTC) + timedelta(seconds=life_s)
    return a_machine(deadline=deadline.replace(microsecond=0), ttl_s=life_s, **changes)


def gpus_that(command: str) -> str:
    """Vendor data that run a command before the bootstrap, such as one that breaks a driver."""
    return f"#cloud-config\nbootcmd:\n  - mkdir -p /var/lib/gpu-shim\n  - {command}\n"


STEPS = (
    "ends itself at",
    "driver 580.105.08, 1 GPUs",
    "persistence mode is on",
    "power cap: 500 W",
    "MIG layout: 2g.20gb 3g.40gb",
    "process 0 runs on cores 0-1",
    "scratch: /dev/vdb on /scratch",
    "asks every 5 s whether the provider takes this machine back",
)


def test_a_machine_sets_itself_up_runs_a_job_and_ends_when_idle(
    image: Image, tmp_path: Path, started: list[VirtualMachine]
) -> None:
    """Each step is seen, a second run and a reboot leave it so, a notice saves, idle ends it."""
    settings = machine_until(
        7200,
        end="poweroff",
        notices=NOTICES,
        idle_s=IDLE_S,
        mig=("3g.40gb", "2g.20gb"),
        power_cap_w=500,
        environment={"OMP_NUM_THREADS": "2"},
    )
    busy = gpus_that("echo 50 >/var/lib/gpu-shim/work")
    packed = render_bootstrap(settings, most_bytes=MOST_PLAIN)
    assert "application/gzip" in packed
    vm = VirtualMachine(image, tmp_path, packed, vendor_data=busy)
    started.append(vm)
    vm.wait_for("test -s /etc/gpucost/deadline && systemctl is-active gpucost-deadline", BOOT_S)
    vm.wait_for("test -s /var/lib/gpucost/status", BOOT_S)
    log = vm.must("cat /var/lib/gpucost/bootstrap.log; cat /var/lib/gpucost/status")
    tell(f"ready {time.time() - vm.started_s:.0f} s after the start\n{log}")
    assert [step for step in STEPS if step not in log] == []
    assert log.endswith("ready")
    vm.must("/opt/gpucost/armed && mountpoint -q /scratch && systemctl is-active gpucost-notices")
    _runs_twice(vm)
    _runs_a_job(vm)
    _is_taken_back(vm)
    _reboots(vm)
    _is_idle(vm)


def tell(text: str) -> None:
    """Print what was seen, and when."""
    print(f"\n{datetime.now(UTC):%H:%M:%S} {text}", flush=True)  # noqa: T201 - the log of the day


def _runs_twice(vm: VirtualMachine) -> None:
    """A second run of the bootstrap changes nothing."""
    seen = "nvidia-smi -L; blkid /dev/vdb; findmnt /scratch; systemctl is-active gpucost-notices"
    before = vm.must(seen)
    vm.must("echo >/var/lib/gpu-shim/calls; /opt/gpucost/bootstrap.sh")
    assert vm.must(seen) == before
    changes = "grep -E -- '-pm|-pl|-mig|-cgi|-c ' /var/lib/gpu-shim/calls || true"
    assert vm.must(changes) == ""
    tell("a second run changed nothing")


def _runs_a_job(vm: VirtualMachine) -> None:
    """A small project arrives, runs under the settings, and its result comes back."""
    vm.must("mkdir -p 'my code' && cat >'my code/train.py'", given=_TRAIN)
    vm.must("cd 'my code' && /opt/gpucost/run python3 train.py 0")
    assert vm.must("cat 'my code/result.txt'") == "/scratch 2"
    tell("a job ran with the settings of the machine")


def _is_taken_back(vm: VirtualMachine) -> None:
    """At the provider's notice the hook is told, and the job saves."""
    vm.must("cat >/etc/gpucost/on-preempt && chmod 755 /etc/gpucost/on-preempt", given=_HOOK)
    start = "(setsid /opt/gpucost/run python3 train.py 900 >/dev/null 2>&1 </dev/null &)"
    vm.must(f"cd 'my code'; {start}")
    time.sleep(5)
    at = datetime.now(UTC) + timedelta(seconds=120)
    vm.metadata.taken = f'{{"action": "terminate", "time": "{at:%Y-%m-%dT%H:%M:%SZ}"}}'
    assert vm.wait_for("cat /scratch/checkpoint", 90) == "saved"
    assert vm.must("cat /scratch/hook").startswith("the provider takes this machine back at")
    tell(vm.must("cat /var/lib/gpucost/end.log"))


def _reboots(vm: VirtualMachine) -> None:
    """A reboot keeps the deadline and makes again what a driver forgets."""
    deadline = vm.must("cat /etc/gpucost/deadline")
    boot = vm.must("cat /proc/sys/kernel/random/boot_id")
    vm.metadata.taken = ""
    vm.must("rm -f /var/lib/gpu-shim/persistence")
    vm.ssh("systemctl reboot")
    vm.wait_for(f"! grep -q {boot} /proc/sys/kernel/random/boot_id", BOOT_S)
    vm.wait_for("grep -q Enabled /var/lib/gpu-shim/persistence", BOOT_S)
    vm.wait_for("mountpoint -q /scratch && /opt/gpucost/armed", BOOT_S)
    assert vm.must("cat /etc/gpucost/deadline") == deadline
    tell("a reboot kept the deadline and made the settings again")


def _is_idle(vm: VirtualMachine) -> None:
    """A loop at 100 % CPU and 0 % GPU is idle: the machine powers off, which ends its bill.

    When it decided is its own log's; how long an emulated machine then takes to go off is told.
    """
    log = vm.follow("/var/lib/gpucost/end.log")
    vm.must("(setsid sh -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &)")
    stalled = datetime.fromisoformat(vm.must("echo 0 >/var/lib/gpu-shim/work; date -u +%FT%TZ"))
    vm.wait_off(BOOT_S)
    told = log.read_text()
    tell(f"{told}off {(datetime.now(UTC) - stalled).total_seconds():.0f} s after the job stalled")
    assert "this machine ends in" in told
    (decided,) = [one for one in told.splitlines() if one.endswith(f"worked for {IDLE_S} s")]
    took_s = (datetime.fromisoformat(decided.split()[0]) - stalled).total_seconds()
    tell(f"decided {took_s:.0f} s after the job stalled; --idle is {IDLE_S} s")
    assert IDLE_S - 20 <= took_s <= IDLE_S + 60


def test_a_failing_step_is_told_and_the_deadline_ends_the_machine(
    image: Image, tmp_path: Path, started: list[VirtualMachine]
) -> None:
    """A driver that refuses fails the bootstrap in words; the deadline still calls for the end."""
    settings = machine_until(7200, end="api", end_url=f"http://{ADDRESS}/v2/droplets/", idle_s=3600)
    stuck = gpus_that("touch /var/lib/gpu-shim/stuck-persistence")
    vm = VirtualMachine(image, tmp_path, render_bootstrap(settings), vendor_data=stuck)
    started.append(vm)
    handed = "umask 077; cat >/etc/gpucost/end.header"
    vm.wait_for("test -s /etc/gpucost/deadline", BOOT_S)
    vm.must(handed, given="Authorization: Bearer dop_v1_test\n")
    status = vm.wait_for("cat /var/lib/gpucost/status", BOOT_S)
    assert status == "failed: persistence mode stays off"
    assert "machine=4711" in vm.must("/opt/gpucost/armed")
    # The deadline is moved close, as `gpucost extend` moves one: the watch reads it at each look.
    deadline_s = int(time.time()) + 45
    vm.must("cat >/etc/gpucost/deadline", given=f"{settings.run} {deadline_s} 7200\n")
    while not vm.metadata.ends and time.time() < deadline_s + 300:
        time.sleep(1)
    late_s = time.time() - deadline_s
    tell(f"{status}; the end was asked for {late_s:.0f} s after the deadline")
    assert vm.metadata.ends >= 1
    assert 0 <= late_s <= 120  # a deadline that is long past waits a minute for a clock to be set
    assert "it is past its deadline" in vm.must("cat /var/lib/gpucost/end.log")
