"""Which GPUs are the job's: by what the driver lists, else by what its processes may use."""

from __future__ import annotations

import os
import pwd

import pytest

from telemetry.measure import job_devices
from telemetry.measure.job_devices import JobDevices
from telemetry.measure.nvml_processes import Holder
from telemetry.measure.processes import ProcessTree
from telemetry.recording.recording import GpuIdentity
from tests.measure.process_world import INIT, World

JOB, STRANGER = 100, 50
FOUR = tuple(GpuIdentity(key=str(i), index=i, model="H100") for i in range(4))
SPLIT = (
    FOUR[0],
    GpuIdentity(key="0:1", index=0, partition="3g 1"),
    GpuIdentity(key="0:2", index=0, partition="1g 2"),
)
COMPUTES, DRAWS = Holder(4.0, computes=True), Holder(0.1, computes=False)


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> JobDevices:
    """The devices of a job on a machine with one stranger, outside of any container."""
    monkeypatch.setattr(job_devices, "in_container", lambda: False)
    monkeypatch.setattr(job_devices, "owner", lambda pid: {STRANGER: "ada"}.get(pid, "unknown"))
    return JobDevices(ProcessTree(JOB, table=_world()))


def _world(environment: bytes = b"") -> World:
    world = World()
    world.fork(STRANGER, INIT)
    world.fork(JOB, INIT, environment)
    return world


def test_a_gpu_counts_from_the_moment_the_job_was_seen_on_it(devices: JobDevices) -> None:
    """Seen once is enough, and what it may use does not matter any more."""
    devices.saw("2", {JOB: COMPUTES})
    devices.saw("2", {})
    devices.saw("0", {STRANGER: COMPUTES})
    devices.look(FOUR)
    assert devices.facts(FOUR) == {"job_gpus": ["2"], "gpu_users": {"0": ["ada"]}}
    (note,) = devices.notes(FOUR)
    assert note == (
        "GPU 0, 1, 3 of this machine: not this job's, so not counted (with processes of ada on "
        "them)."
    )


def test_before_it_was_seen_it_is_what_nobody_else_computes_on(devices: JobDevices) -> None:
    """A screen that is drawn on a GPU takes it from nobody; a stranger who computes there does."""
    devices.saw("0", {STRANGER: COMPUTES})
    devices.saw("1", {STRANGER: DRAWS})
    devices.look(FOUR)
    assert devices.keys(FOUR) == ["1", "2", "3"]
    assert "no process of this job" in devices.notes(FOUR)[0]


@pytest.mark.parametrize("told", [b"CUDA_VISIBLE_DEVICES=2", b"CUDA_VISIBLE_DEVICES="])
def test_a_process_without_an_environment_gives_the_job_nothing(
    monkeypatch: pytest.MonkeyPatch, told: bytes
) -> None:
    """One that has just ended shows an empty one: that is unknown, and not every GPU."""
    monkeypatch.setattr(job_devices, "in_container", lambda: False)
    world = _world(told + b"\0")
    devices = JobDevices(ProcessTree(JOB, table=world))
    devices.look(FOUR)
    known = devices.keys(FOUR)
    assert known == (["2"] if told.endswith(b"2") else [])
    world.processes[JOB].environment = b""
    devices.look(FOUR)
    assert devices.keys(FOUR) == known


def test_where_others_compute_on_all_of_them_none_is_the_jobs(devices: JobDevices) -> None:
    """On a full machine a job that was seen on no GPU is measured with none, and is told so."""
    for gpu in FOUR:
        devices.saw(gpu.key, {STRANGER: COMPUTES})
    assert devices.keys(FOUR) == []
    assert "none is counted" in devices.notes(FOUR)[0]


def test_in_a_container_strangers_may_be_the_job_itself(
    devices: JobDevices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the driver knows processes by other numbers, those on the container's GPUs are ours."""
    monkeypatch.setattr(job_devices, "in_container", lambda: True)
    devices.saw("0", {4711: COMPUTES})
    devices.look(FOUR[:1])
    assert devices.keys(FOUR[:1]) == ["0"]
    assert "in a container" in devices.notes(FOUR[:1])[0]


def test_an_instance_counts_with_its_device_and_without_its_neighbour(devices: JobDevices) -> None:
    """Of a GPU that is split, the job has its instance, and the device that it is a part of."""
    devices.saw("0:1", {JOB: COMPUTES})
    devices.saw("0:2", {STRANGER: COMPUTES})
    assert devices.keys(SPLIT) == ["0", "0:1"]


def test_the_users_choice_stands(devices: JobDevices) -> None:
    """Devices that were asked for count, wherever the job is, and nothing is said of it."""
    chosen = JobDevices(ProcessTree(JOB, table=_world()), chosen=True)
    chosen.saw("2", {JOB: COMPUTES})
    assert chosen.keys(FOUR) == ["0", "1", "2", "3"]
    assert chosen.notes(FOUR) == []
    assert devices.keys(FOUR) == chosen.keys(FOUR)


def test_the_owner_of_a_process_is_its_user() -> None:
    """Whose a process is, the system says; of one that cannot be seen here it is unknown."""
    assert job_devices.owner(os.getpid()) == pwd.getpwuid(os.getuid()).pw_name
    assert job_devices.owner(1 << 30) == "unknown"
