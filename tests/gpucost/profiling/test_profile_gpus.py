"""`gpucost profile` on GPUs: the unpatched pynvml over a library that replays a trace."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from planner.profile.model import GpuReadings, Profile
from telemetry.readers.hints import Hints
from tests.fake_nvml.machines import a100, h100, machine, mig_h100, t4
from tests.fake_nvml.scenario import Failure, Scenario, rows
from tests.gpucost.profiling.test_profile import GPUCOST, STEPPING
from tests.telemetry.reading import read_source

Nvml = Callable[[Scenario], dict[str, str]]
EVERY = ("--interval", "0.1s")
_LEVEL_S = 0.37  # no multiple of the interval
NOT_FOUND_LIBRARY, LOST, NO_DRIVER, MISMATCH, UNKNOWN = 12, 15, 9, 18, 999
ENERGY = "energy.total_j"
# What the trace states of a device but a profile says in another place, or of another process.
_HELD = {"process.children": 2.0}  # by the job, on every instance
ELSEWHERE = ("memory.", "process.", "throttle.reasons")


def _profile(environment: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [GPUCOST, "profile", *EVERY, *words],
        env=dict(environment),
        capture_output=True,
        text=True,
        check=False,
    )


def _loaded() -> Profile:
    (profile,) = read_source("profile.json", Hints())
    return profile


def _levels(device: str, readings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Two levels, a twentieth apart, in a rhythm of their own: readings fall anywhere in it."""
    lower = {
        slot: round(0.95 * float(value), 2) if slot.startswith("util.") else value
        for slot, value in readings.items()
        if slot.startswith(("util.", "power.board_w"))
    }
    upper = {slot: readings[slot] for slot in lower}
    return rows(device, (_LEVEL_S, upper), (_LEVEL_S, lower))


def _readings_of(profile: Profile, name: str) -> GpuReadings:
    """The readings of a device "0", or of instance 2 of it, "0:2"."""
    index, _, instance = name.partition(":")
    ends = f" {instance}" if instance else "-0123456789ab"
    (found,) = (g for g in profile.gpus if g.index == int(index) and str(g.uuid).endswith(ends))
    return found


@pytest.mark.parametrize(
    "devices",
    [
        pytest.param({"0": t4()}, id="T4"),
        pytest.param({"0": a100()}, id="A100"),
        pytest.param({"0": h100()}, id="H100"),
        pytest.param(machine(8), id="8xH100"),
        pytest.param(
            {name: {**part, **_HELD} if ":" in name else part for name, part in mig_h100().items()},
            id="MIG",
        ),
    ],
)
def test_the_profile_says_what_the_trace_says(
    fake_nvml: Nvml, devices: Mapping[str, Mapping[str, Any]]
) -> None:
    """Every slot's mean is within 1 % of the trace's, for each GPU model and for MIG instances."""
    levels = [row for name, readings in devices.items() for row in _levels(name, readings)]
    scenario = Scenario(devices=devices, rows=levels, period_s=2 * _LEVEL_S)
    ran = _profile(fake_nvml(scenario), "--", "sleep", "6")
    assert ran.returncode == 0, ran.stderr
    profile = _loaded()
    assert len(profile.gpus) == len(devices)
    assert profile.window is not None
    assert profile.window.coverage == pytest.approx(1.0, abs=0.05)
    for name in devices:
        gpu = _readings_of(profile, name)
        truth = scenario.means(name)
        for slot, expected in truth.items():
            told_by_instances = slot == "mem.used_gib" and f"{name}:1" in devices
            if slot.startswith(ELSEWHERE) or expected == 0 or told_by_instances:
                continue
            assert gpu.metrics[slot].mean == pytest.approx(expected, rel=0.01), (name, slot)
        if ENERGY in gpu.metrics:
            joules = truth["power.board_w"] * (profile.window.duration_s or 0.0)
            assert gpu.metrics[ENERGY].mean == pytest.approx(joules, rel=0.06), name


def test_steps_and_devices_are_one_profile(fake_nvml: Nvml) -> None:
    """A starved A100 with a stepping job: model, steps and load in one file, and the finding."""
    readings = {**a100(), "util.kernel_time": 0.22, "power.board_w": 95.0}
    ran = _profile(
        fake_nvml(Scenario(devices={"0": readings})),
        "--",
        sys.executable,
        STEPPING,
        "60",
        "0.05",
    )
    assert ran.returncode == 0, ran.stderr
    profile = _loaded()
    assert profile.hardware.gpu == "NVIDIA A100-SXM4-80GB"
    assert profile.hardware.interconnect == "single"
    assert profile.step is not None
    assert profile.step.count == 60
    assert profile.mean("util.kernel_time") == pytest.approx(0.22)
    planned = subprocess.run(
        [GPUCOST, "plan", "-f", "json", "--as-of", "2026-11-21"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert planned.returncode == 0, planned.stderr
    assert '"data-loading"' in planned.stdout


def test_memory_of_the_job_is_told_from_that_of_others(fake_nvml: Nvml) -> None:
    """A process of somebody else holds memory on the device; it is not the job's."""
    ran = _profile(fake_nvml(Scenario(devices={"0": h100()})), "--", "sleep", "4")
    assert ran.returncode == 0, ran.stderr
    profile = _loaded()
    assert profile.mean("mem.process_gib") == pytest.approx(20.25, rel=0.01)
    assert profile.mean("mem.used_gib") == pytest.approx(21.5, rel=0.01)


def test_some_gpus_can_be_chosen(fake_nvml: Nvml) -> None:
    """--gpus says which devices are the job's."""
    environment = fake_nvml(Scenario(devices=machine(4)))
    assert _profile(environment, "--gpus", "1,3", "--", "sleep", "1").returncode == 0
    assert [gpu.index for gpu in _loaded().gpus] == [1, 3]


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        pytest.param(NOT_FOUND_LIBRARY, "no NVIDIA driver library", id="library not found"),
        pytest.param(MISMATCH, "different versions", id="driver/library mismatch"),
        pytest.param(NO_DRIVER, "not loaded", id="driver not loaded"),
    ],
)
def test_a_driver_that_does_not_answer_stops_before_the_command(
    fake_nvml: Nvml, empty_folder: Path, code: int, sentence: str
) -> None:
    """The reason is named with what to do, the command is not started, nothing is left behind."""
    failing = [Failure(function="nvmlInitWithFlags", code=code)]
    ran = _profile(fake_nvml(Scenario(devices=machine(1), failures=failing)), "--", "touch", "ran")
    assert ran.returncode == 125
    assert sentence in ran.stderr
    assert list(empty_folder.iterdir()) == []


def test_a_lost_gpu_ends_alone(fake_nvml: Nvml) -> None:
    """One of eight falls off the bus: the others are measured on, and the profile says so."""
    lost = [Failure(function="*", code=LOST, device="5", from_s=2.0)]
    scenario = Scenario(devices=machine(8), failures=lost)
    ran = _profile(fake_nvml(scenario), "--", "sleep", "4")
    assert ran.returncode == 0, ran.stderr
    profile = _loaded()
    assert len(profile.gpus) == 8
    assert "GPU 5" in ran.stderr
    assert "fell off the bus" in ran.stderr
    assert profile.gpus[4].metrics["power.board_w"].mean == pytest.approx(340.25, rel=0.01)


def test_split_gpus_report_no_load_and_say_so(fake_nvml: Nvml) -> None:
    """MIG without utilisation is unknown, not idle."""
    devices = mig_h100()
    for name in devices:
        for slot in [s for s in devices[name] if s.startswith("util.")]:
            del devices[name][slot]
        devices[name].pop("offers.gpm", None)
    ran = _profile(fake_nvml(Scenario(devices=devices)), "--", "sleep", "3")
    assert ran.returncode == 0, ran.stderr
    assert _loaded().mean("util.kernel_time") is None
    assert "unknown, not idle" in ran.stderr
