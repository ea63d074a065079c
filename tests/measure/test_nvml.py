"""Reading GPUs through the real pynvml and a library that replays a trace."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from telemetry.recording.recording import COUNTERS
from tests.fake_nvml.machines import a100, h100, machine, mig_h100, t4
from tests.fake_nvml.scenario import Scenario, rows

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[..., dict[str, Any]]

EVERYWHERE = {
    "util.kernel_time",
    "util.mem_controller",
    "util.encoder",
    "util.decoder",
    "mem.used_gib",
    "mem.process_gib",
    "power.board_w",
    "power.limit_w",
    "temp.core_c",
    "throttle.fraction",
    "clock.sm_mhz",
    "counter.energy_j",
}
PCIE = {"counter.pcie_rx_mib", "counter.pcie_tx_mib"}
NVLINK = {"counter.nvlink_rx_mib", "counter.nvlink_tx_mib"}
ACTIVE = {
    "util.sm_active",
    "util.sm_occupancy",
    "util.tensor_active",
    "util.fp32_active",
    "util.dram_active",
}
RATES = {"io.pcie_rx_mib_s", "io.pcie_tx_mib_s", "io.nvlink_rx_mib_s", "io.nvlink_tx_mib_s"}
OF_GPM = {name for name in COUNTERS if name.startswith("counter.gpm_")}
OF_PARTS = ACTIVE | {name for name in OF_GPM if name.endswith("_s")}
SPLIT = {"util.kernel_time", "util.mem_controller", "mem.used_gib", "mem.process_gib"}


def columns(answer: dict[str, Any]) -> dict[str, set[str]]:
    """Return the columns that each device filled at any step."""
    found: dict[str, set[str]] = defaultdict(set)
    for step in answer["rows"]:
        for row in step:
            found[row["gpu"]] |= set(row) - {"gpu"}
    return dict(found)


def series(answer: dict[str, Any], gpu: str, column: str) -> list[float | None]:
    """Return a column of a device, a value a step; None where it is not known."""
    return [
        next((row.get(column) for row in step if row["gpu"] == gpu), None)
        for step in answer["rows"]
    ]


@pytest.mark.parametrize(
    ("devices", "expected"),
    [
        pytest.param({"0": t4()}, {"0": EVERYWHERE}, id="T4"),
        pytest.param({"0": a100()}, {"0": EVERYWHERE | PCIE | NVLINK}, id="A100"),
        pytest.param(
            {"0": h100()}, {"0": EVERYWHERE | PCIE | NVLINK | ACTIVE | OF_GPM | RATES}, id="H100"
        ),
        pytest.param(
            mig_h100(),
            {
                "0": EVERYWHERE - SPLIT | PCIE | NVLINK,
                "0:1": {"mem.used_gib", "mem.process_gib"} | OF_PARTS,
                "0:2": {"mem.used_gib", "mem.process_gib"} | OF_PARTS,
            },
            id="MIG",
        ),
    ],
)
def test_every_slot_that_a_device_offers_is_read(
    read_nvml: Read, devices: dict[str, Any], expected: dict[str, set[str]]
) -> None:
    """A device's rows hold the slots that it offers, and no other."""
    answer = read_nvml(Scenario(devices=devices), 0.0, 0.5, 1.0, pids=[4242], child=True)
    assert columns(answer) == expected


def _mean(answer: dict[str, Any], gpu: str, column: str, times_s: list[float]) -> float:
    """The time-weighted mean of a column, or a counter's rate, as a profile takes it."""
    known = [
        (t_s, value)
        for t_s, value in zip(times_s, series(answer, gpu, column), strict=True)
        if value is not None
    ]
    if column.startswith("counter."):
        return (known[-1][1] - known[0][1]) / (known[-1][0] - known[0][0])
    return sum(value for _, value in known) / len(known)


@pytest.mark.parametrize("kind", [t4, a100, h100])
def test_means_are_the_traces(read_nvml: Read, kind: Callable[[int], dict[str, Any]]) -> None:
    """Read at 10 Hz, every mean and every rate is within 1 % of the trace's own."""
    device = kind(0)
    limit = float(device["power.limit_w"])
    trace = rows(
        "0",
        (4.0, {"util.kernel_time": 0.05, "power.board_w": 0.2 * limit, "clock.sm_mhz": 345}),
        (9.5, {"util.kernel_time": 0.97, "power.board_w": limit, "throttle.reasons": 0x24}),
        (6.5, {"util.kernel_time": 0.41, "mem.used_gib": 14.75, "temp.core_c": 77}),
    )
    for row, rate in zip(trace, (10, 2900, 700), strict=True):
        row |= {slot: rate for slot in RATES if slot in device}
        row |= {slot: rate / 3000 for slot in ACTIVE if slot in device}
    times_s = [i / 10 for i in range(201)]
    scenario = Scenario(devices={"0": device}, rows=trace, period_s=20.0)
    answer = read_nvml(scenario, *times_s, slow_s=0.1, pids=[4242])
    truth = scenario.means("0")
    truth |= {"energy.total_j": truth["power.board_w"], "mem.process_gib": truth["process.4242"]}
    truth |= {name: truth[slot] for name, slot in COUNTERS.items() if slot in truth}
    wrong = {
        column: (found, truth[column])
        for column in columns(answer)["0"]
        if column not in RATES | ACTIVE or kind is h100
        if not (column in PCIE | NVLINK and kind is h100)  # left to GPM after the first tick
        if (found := _mean(answer, "0", column, times_s))
        != pytest.approx(truth[column], rel=0.01, abs=1e-9)
    }
    assert wrong == {}


def test_memory_in_use_is_without_what_the_driver_reserves(read_nvml: Read) -> None:
    """Memory in use is as nvidia-smi shows it; an old driver's counts the reserve too."""
    scenario = Scenario(devices={"0": {**a100(), "mem.used_gib": 10.0}})
    old = Scenario(devices=scenario.devices, without=("nvmlDeviceGetMemoryInfo_v2",))
    assert series(read_nvml(scenario, 0.0), "0", "mem.used_gib") == [10.0]
    assert series(read_nvml(old, 0.0), "0", "mem.used_gib") == [10.59375]


@pytest.mark.parametrize("bit", [0x4, 0x8, 0x20, 0x40, 0x80])
def test_clocks_held_down_by_heat_or_power_are_throttling(read_nvml: Read, bit: int) -> None:
    """Each reason of heat or power is 1; idle, application clocks and sync boost are none."""
    trace = rows("0", (1.0, {"throttle.reasons": 0x13}), (1.0, {"throttle.reasons": bit | 0x1}))
    answer = read_nvml(Scenario(devices={"0": a100()}, rows=trace), 0.5, 1.5)
    assert series(answer, "0", "throttle.fraction") == [0.0, 1.0]


def test_what_moves_slowly_is_read_once_a_second(read_nvml: Read) -> None:
    """At 10 Hz the temperature is in one row a second, the power in every one."""
    answer = read_nvml(Scenario(devices={"0": t4()}), *[i / 10 for i in range(31)])
    known = [i for i, value in enumerate(series(answer, "0", "temp.core_c")) if value is not None]
    assert known == [0, 10, 20, 30]
    assert None not in series(answer, "0", "power.board_w")


def test_gpm_leaves_more_than_100_ms_between_samples(read_nvml: Read) -> None:
    """GPM is not asked again within the time in which its counters are refreshed."""
    answer = read_nvml(Scenario(devices={"0": h100()}), 0.0, 0.1, 0.15, 0.2, 0.3)
    asked = [value is not None for value in series(answer, "0", "util.sm_active")]
    assert asked == [False, False, True, False, True]


def test_pcie_without_counters_is_sampled_beside_the_ticks(read_nvml: Read) -> None:
    """A T4's traffic comes from the blocking call, MiB a second, without holding up a tick."""
    times_s = [i / 10 for i in range(8)]
    answer = read_nvml(Scenario(devices={"0": t4()}), *times_s, wait_s=0.06)
    received = [v for v in series(answer, "0", "io.pcie_rx_mib_s") if v is not None]
    sent = [v for v in series(answer, "0", "io.pcie_tx_mib_s") if v is not None]
    assert (received[0], sent[0]) == (1200.0, 150.0)


def test_counters_that_overflow_within_a_second_are_not_used(read_nvml: Read) -> None:
    """PCIe counters of 32 bits are left for the sampled traffic."""
    scenario = Scenario(devices={"0": {**a100(), "offers.pcie_counters": 32}})
    answer = read_nvml(scenario, 0.0, 1.0, 2.0, wait_s=0.15)
    assert not columns(answer)["0"] & PCIE
    assert 2100.0 in series(answer, "0", "io.pcie_rx_mib_s")


@pytest.mark.parametrize(
    ("devices", "gpus", "expected"),
    [
        pytest.param(machine(1), None, "single", id="one"),
        pytest.param(machine(8), None, "nvlink", id="eight joined"),
        pytest.param(machine(8), [3], "single", id="one of eight"),
        pytest.param({"0": t4(0), "1": t4(1)}, None, "pcie", id="two T4"),
        pytest.param(
            {str(i): a100(i, str(i ^ 1)) for i in range(4)}, None, "nvlink-bridge", id="pairs"
        ),
        pytest.param(
            {str(i): {**a100(i, str(i ^ 1)), "name": "NVIDIA A100-PCIE-80GB"} for i in range(2)},
            None,
            "nvlink-bridge",
            id="two cards with a bridge",
        ),
    ],
)
def test_what_joins_the_gpus(
    read_nvml: Read, devices: dict[str, Any], gpus: list[int] | None, expected: str
) -> None:
    """NVLink between all, bridges between some, or PCIe; a GPU alone is single."""
    assert read_nvml(Scenario(devices=devices), 0.0, gpus=gpus)["interconnect"] == expected


def test_gpus_are_chosen_by_index(read_nvml: Read) -> None:
    """Of eight GPUs only those asked for are read, each with the index that the driver gives it."""
    answer = read_nvml(Scenario(devices=machine(8)), 0.0, gpus=[5, 1])
    assert [who["index"] for who in answer["identities"]] == [1, 5]
    assert set(columns(answer)) == {"1", "5"}
    assert answer["driver"] == "570.86.15"


def test_mig_instances_are_devices_of_their_own(read_nvml: Read) -> None:
    """An instance is named by its parent's uuid, its profile and its number, and has its memory."""
    answer = read_nvml(Scenario(devices=mig_h100()), 0.0)
    parent, first, second = answer["identities"]
    assert parent["partition"] is None
    assert {who["uuid"] for who in answer["identities"]} == {parent["uuid"]}
    assert (first["partition"], first["memory_gib"]) == ("3g.40gb 1", 39.5)
    assert (second["partition"], second["memory_gib"]) == ("1g.10gb 2", 9.75)
    assert any("MIG" in note and "utilisation" in note for note in answer["notes"])


def test_at_the_end_everything_is_read(read_nvml: Read) -> None:
    """Asked for everything, a tick holds what moves slowly too: counters reach to the end."""
    device = {"devices": {"0": a100()}}
    often = read_nvml(Scenario(**device), 0.0, 0.3)["rows"][1][0]
    last = read_nvml(Scenario(**device), 0.0, 0.3, everything=True)["rows"][1][0]
    assert set(last) - set(often) == {
        *PCIE,
        *NVLINK,
        "util.encoder",
        "util.decoder",
        "power.limit_w",
        "temp.core_c",
    }


@pytest.mark.skipif(
    not Path("/proc/thread-self/children").exists(), reason="this kernel lists no children"
)
def test_the_memory_of_a_child_is_found_by_its_number(read_nvml: Read) -> None:
    """The stand-in can hold memory for every child of the measuring process."""
    answer = read_nvml(Scenario(devices={"0": a100()}), 0.0, child=True)
    assert series(answer, "0", "mem.process_gib") == [20.25]


def test_it_can_be_opened_again(read_nvml: Read) -> None:
    """A reader that was closed leaves nothing behind that the next one trips over."""
    answer = read_nvml(Scenario(devices=machine(2)), 0.0, 0.2, opened=3)
    assert columns(answer)["1"] >= ACTIVE


def test_the_stand_in_runs_by_the_clock_too(
    fake_nvml: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    """Without a file of times the trace runs `speed` times as fast as the clock, and rates stay."""
    trace = rows("0", (50.0, {"clock.sm_mhz": 300}), (1.0, {"clock.sm_mhz": 1500}))
    scenario = Scenario(devices={"0": a100()}, rows=trace, speed=1000.0)
    script = (
        "import time; from telemetry.measure.nvml_reader import NvmlReader\n"
        "from contextlib import closing\n"
        "with closing(NvmlReader()) as r:\n"
        "    (a,) = r.read(); time.sleep(0.2); (b,) = r.read(full=True)\n"
        "    a, b = a.values, b.values\n"
        "    joules, mib = (b[c] - a[c] for c in ('counter.energy_j', 'counter.pcie_rx_mib'))\n"
        "    print(b['clock.sm_mhz'], joules * 2100 / mib)"
    )
    said = subprocess.run(
        [sys.executable, "-c", script],
        env=fake_nvml(scenario),
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert said[0] == "1500.0"
    assert float(said[1]) == pytest.approx(340.25, rel=0.1)


def test_devices_without_the_job_are_read_seldom(read_nvml: Read) -> None:
    """Once the job was seen on a device, others give use and memory about once a second."""
    devices = machine(3, a100)
    for name in ("0", "2"):
        devices[name]["process.4242"] = -1.0
    answer = read_nvml(Scenario(devices=devices), *(i / 10 for i in range(41)), pids=[4242])
    told = [
        sum("power.board_w" in row for step in answer["rows"] for row in step if row["gpu"] == g)
        for g in "012"
    ]
    used = [len([v for v in series(answer, g, "util.kernel_time") if v is not None]) for g in "012"]
    assert told[1] == 41
    assert max(told[0], told[2]) <= 2
    assert used[1] == 41
    assert 4 <= used[0] <= 7
