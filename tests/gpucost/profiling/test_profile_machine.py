"""`gpucost profile` on a machine where others work too: what is the job's, and what is theirs."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from planner.diagnosis.diagnose import diagnose
from telemetry.readers.hints import Hints
from tests.conftest import ROOT
from tests.fake_nvml.machines import a100, h100, machine, mig_h100
from tests.fake_nvml.scenario import Scenario
from tests.telemetry.reading import read_source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from planner.profile.model import Profile

GPUCOST = str(Path(sys.executable).parent / "gpucost")
JOB = str(ROOT / "tests" / "fake_nvml" / "job.py")
FAST = ("--interval", "0.2s")
BUSY, IDLE = 0.8, 0.0
# The fake states no process of its own: programs that take part say themselves where they are.
NOBODY = {"process.children": -1.0, "process.4242": -1.0}


@dataclass(frozen=True, slots=True)
class Shared:
    """A machine of the fake on which programs work.

    Attributes:
        environment: of each process on it.
    """

    environment: Mapping[str, str]

    def start(self, *words: str, user: str | None = None, **more: str) -> subprocess.Popen[str]:
        """Start a program, maybe as another user, with variables added."""
        as_user = ("setpriv", "--reuid", user, "--clear-groups") if user else ()
        return subprocess.Popen(
            [*as_user, *words],
            env={**self.environment, **more},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def job(self, *words: str, **more: str) -> subprocess.Popen[str]:
        """Start a job of the fake."""
        return self.start(sys.executable, JOB, *words, **more)

    def put(self, device: str, pid: int, gib: float) -> None:
        """Say for a program that it is on a device."""
        folder = Path(self.environment["FAKE_NVML_PROCESSES"])
        (folder / f"{device},{pid},compute").write_text(f"{gib} 50\n")

    def profile(
        self, name: str, *words: str, options: tuple[str, ...] = (), **more: str
    ) -> subprocess.Popen[str]:
        """Start a measurement of a job of the fake."""
        measured = (GPUCOST, "profile", *FAST, "-o", f"{name}.json", "--name", name, *options)
        return self.start(*measured, "--", sys.executable, JOB, *words, **more)


@pytest.fixture
def shared(fake_nvml: Callable[..., dict[str, str]], tmp_path: Path) -> Callable[..., Shared]:
    """Return a machine with these devices."""
    folder = tmp_path / "processes"
    folder.mkdir()

    def made(devices: Mapping[str, Mapping[str, object]]) -> Shared:
        stated = {name: {**device, **NOBODY} for name, device in devices.items()}
        environment = fake_nvml(Scenario(devices=stated))  # type: ignore[arg-type]
        return Shared({**environment, "FAKE_NVML_PROCESSES": str(folder)})

    return made


def _loads(gpus: int, *busy: int) -> dict[str, dict[str, object]]:
    return {
        name: {
            **device,
            "util.kernel_time": BUSY if int(name) in busy else IDLE,
            "power.board_w": 340 if int(name) in busy else 60,
            "mem.used_gib": 21.5 if int(name) in busy else 0.5,
        }
        for name, device in machine(gpus, a100).items()
    }


def _ended(process: subprocess.Popen[str]) -> str:
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    return out + errors


def _loaded(name: str) -> Profile:
    (profile,) = read_source(f"{name}.json", Hints())
    return profile


def _indices(profile: Profile) -> list[int | None]:
    return [gpu.index for gpu in profile.gpus]


def test_a_sleep_is_not_blamed_on_its_neighbours() -> None:
    """Beside two busy loops of others, `sleep` is not a job whose data loading fills the cores."""
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        subprocess.run([GPUCOST, "profile", "--no-gpu", *FAST, "--", "sleep", "1"], check=True)
    finally:
        for loop in busy:
            loop.kill()
            loop.wait()
    profile = _loaded("profile")
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    assert profile.machine is not None
    assert profile.machine.cpu_util is not None
    assert profile.host.cpu_util.mean == pytest.approx(0.0, abs=0.05)
    assert (profile.machine.cpu_util.mean or 0.0) > (profile.host.cpu_util.mean or 0.0)
    assert diagnose(profile)[0].code == "unmeasured"


def test_an_idle_gpu_is_idle_whatever_the_neighbours_do(shared: Callable[..., Shared]) -> None:
    """`sleep` on a machine with one idle GPU, beside a busy loop: the verdict is idle."""
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        _ended(shared(_loads(1)).start(GPUCOST, "profile", *FAST, "--", "sleep", "3"))
    finally:
        loop.kill()
        loop.wait()
    assert diagnose(_loaded("profile"))[0].code in {"idle", "idle-held"}


def test_a_job_on_one_gpu_of_eight_is_measured_with_one(shared: Callable[..., Shared]) -> None:
    """A job on GPU 2 while others fill the rest is neither imbalanced nor priced with 8 GPUs."""
    here = shared(_loads(8, 0, 2))
    other = here.job("0", "600")
    try:
        said = _ended(here.profile("mine", "2", "4"))
    finally:
        other.kill()
        other.communicate()
    profile = _loaded("mine")
    assert _indices(profile) == [2]
    assert profile.hardware.gpu_count == 1
    assert profile.hardware.interconnect == "single"
    assert profile.mean("util.kernel_time") == pytest.approx(BUSY)
    assert profile.machine is not None
    assert profile.machine.gpu_count == 8
    others = {gpu.index: gpu for gpu in profile.machine.others}
    assert sorted(others) == [0, 1, 3, 4, 5, 6, 7]
    assert others[0].kernel_time == pytest.approx(BUSY)
    assert others[0].users
    assert others[1].users == ()
    assert "not this job's, so not counted" in said
    planned = subprocess.run(
        [GPUCOST, "plan", "mine.json", "-f", "json", "--as-of", "2026-11-21"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(planned.stdout)["jobs"][0]["baseline"]["offer"]["gpu_count"] == 1
    assert "imbalanced-gpus" not in {finding.code for finding in diagnose(profile)}


SOMEBODY = "65534"  # nobody's number on every system


def test_three_jobs_of_two_users_are_told_apart(shared: Callable[..., Shared]) -> None:
    """Measured at once on 8 GPUs, each has its own GPUs and CPU; with what is idle, that is all."""
    two_users = os.getuid() == 0 and shutil.which("setpriv") is not None
    here = shared(_loads(8, 0, 1, 2, 5))
    running = [
        here.profile("one", "0,1", "8", "--busy", "--gib", "30"),
        here.profile("two", "2", "8", "--children", "1", "--gib", "5"),
    ]
    third = here.start("sleep", "600", user=SOMEBODY if two_users else None)
    here.put("5", third.pid, 7.0)
    watching = here.start(
        GPUCOST,
        "profile",
        *FAST,
        "-o",
        "three.json",
        "--pid",
        str(third.pid),
        "--duration",
        "8s",
    )
    try:
        for process in (*running, watching):
            _ended(process)
    finally:
        third.kill()
        third.communicate()
    profiles = {name: _loaded(name) for name in ("one", "two", "three")}
    held = {name: _indices(profile) for name, profile in profiles.items()}
    assert held == {"one": [0, 1], "two": [2], "three": [5]}
    memory = {name: profile.peak("mem.process_gib") for name, profile in profiles.items()}
    assert memory == {"one": 30.0, "two": 5.0, "three": 7.0}
    cpu = {
        name: profile.host.cpu_util.mean or 0.0
        for name, profile in profiles.items()
        if profile.host and profile.host.cpu_util
    }
    assert cpu["one"] > 3 * max(cpu["two"], cpu["three"])
    for name, profile in profiles.items():
        assert profile.machine is not None
        assert profile.machine.gpu_count == 8
        others = {gpu.index: gpu.users for gpu in profile.machine.others}
        # What is the job's and what is others' is the machine.
        assert sorted([*held[name], *others]) == list(range(8))
        idle = [index for index, users in others.items() if not users]
        assert idle == [3, 4, 6, 7]
        theirs = {
            index for others_name in held if others_name != name for index in held[others_name]
        }
        assert theirs == {index for index, users in others.items() if users}
        if two_users and name != "three":
            assert others[5] in {("nobody",), (SOMEBODY,)}


def test_gpus_that_were_asked_for_are_the_jobs(shared: Callable[..., Shared]) -> None:
    """--gpus says which devices count, wherever the job's processes are."""
    here = shared(_loads(4, 1))
    _ended(here.profile("mine", "1", "2", options=("--gpus", "1,3")))
    assert _indices(_loaded("mine")) == [1, 3]


@pytest.mark.parametrize(
    ("variable", "indices"),
    [("3", [3]), ("1,2", [1, 2]), ("GPU-00000002", [2]), ("", []), ("-1", [])],
)
def test_a_job_that_was_seen_on_no_gpu_counts_what_it_may_use(
    shared: Callable[..., Shared], variable: str, indices: list[int]
) -> None:
    """Where the driver lists no process of the job, CUDA_VISIBLE_DEVICES of its processes tells."""
    said = _ended(shared(_loads(4)).profile("mine", "", "2", CUDA_VISIBLE_DEVICES=variable))
    assert _indices(_loaded("mine")) == indices
    assert "no process of this job" in said


def test_a_variable_set_inside_the_job_counts_by_what_the_driver_sees(
    shared: Callable[..., Shared],
) -> None:
    """A job that may use two GPUs and works on one of them is measured with that one."""
    _ended(shared(_loads(4)).profile("mine", "1", "3", CUDA_VISIBLE_DEVICES="0,1"))
    assert _indices(_loaded("mine")) == [1]


def test_on_a_shared_gpu_the_jobs_own_share_counts(shared: Callable[..., Shared]) -> None:
    """Of a GPU that somebody else fills, a job's profile says what the job itself used.

    SM, tensor and memory activity are left out: neighbours are in them, too.
    """
    here = shared({"0": {**h100(), "util.sm_active": 0.7, "util.kernel_time": BUSY}})
    other = here.job("0", "600", "--gib", "50", "--sm", "70")
    try:
        said = _ended(here.profile("mine", "0", "5", "--gib", "4", "--sm", "10"))
    finally:
        other.kill()
        other.communicate()
    profile = _loaded("mine")
    assert profile.mean("util.kernel_time") == pytest.approx(0.1)
    assert profile.peak("mem.process_gib") == pytest.approx(4.0)
    assert "GPU 0 is shared" in said
    assert profile.mean("util.sm_active") is None
    assert profile.mean("power.board_w") is not None


def test_a_neighbour_that_does_nothing_takes_no_reading_away(shared: Callable[..., Shared]) -> None:
    """Beside a process that only holds memory on a shared H100, all activity is the job's."""
    here = shared({"0": {**h100(), "util.sm_active": 0.07, "util.kernel_time": 0.1}})
    other = here.job("0", "600", "--gib", "50", "--sm", "0")
    try:
        _ended(here.profile("mine", "0", "5", "--gib", "4", "--sm", "10"))
    finally:
        other.kill()
        other.communicate()
    assert _loaded("mine").mean("util.sm_active") == pytest.approx(0.07, rel=0.01)


def test_under_mps_the_kernel_time_is_of_all(shared: Callable[..., Shared]) -> None:
    """MPS counts every client as its server: the device's use is told, with a note, and not 0."""
    here = shared(_loads(1, 0))
    other = here.job("0", "600", "--gib", "50", "--sm", "70", "--kind", "mps")
    try:
        said = _ended(here.profile("mine", "0", "5", "--gib", "4", "--sm", "10", "--kind", "mps"))
    finally:
        other.kill()
        other.communicate()
    profile = _loaded("mine")
    assert profile.mean("util.kernel_time") == pytest.approx(BUSY)
    assert profile.peak("mem.process_gib") == pytest.approx(4.0)
    assert "under MPS the driver counts all work as the server's" in said


def test_an_instance_of_a_split_gpu_is_the_jobs_alone(shared: Callable[..., Shared]) -> None:
    """Of an H100 that is split in two, a job on one instance has that one, and its device."""
    _ended(shared(mig_h100()).profile("mine", "0:1", "3"))
    uuids = [str(gpu.uuid) for gpu in _loaded("mine").gpus]
    assert [uuid.endswith(" 1") for uuid in uuids] == [False, True]
