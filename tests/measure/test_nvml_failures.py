"""What becomes of failed calls, through the real pynvml and a library that fails as drivers do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from telemetry.measure.capture_file import Pace
from telemetry.measure.driver import CodeVerdict, verdict
from tests.fake_nvml.fixture import SOURCE
from tests.fake_nvml.machines import a100, h100, machine, mig_h100, t4
from tests.fake_nvml.scenario import Failure, Scenario, rows
from tests.measure.test_nvml import ACTIVE, EVERYWHERE, columns, series

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Read = Callable[..., dict[str, Any]]

NOT_SUPPORTED, NO_PERMISSION, NOT_FOUND, NOT_LOADED, TIMEOUT = 3, 4, 6, 9, 10
LOST, RESET_REQUIRED, MISMATCH, IN_USE, UNKNOWN = 15, 16, 18, 19, 999
INIT, HANDLE = "nvmlInitWithFlags", "nvmlDeviceGetHandleByIndex_v2"
TENTHS = [i / 10 for i in range(31)]


def failing(function: str, code: int, device: str = "*", **when: float) -> tuple[Failure, ...]:
    """Return the failure of one function."""
    return (Failure(function=function, code=code, device=device, **when),)


@pytest.mark.parametrize(
    ("scenario", "gpus", "words"),
    [
        pytest.param(
            Scenario(devices=machine(1), failures=failing(INIT, MISMATCH)),
            None,
            ("different versions", "Restart the machine", "--no-gpu"),
            id="library and driver of different versions",
        ),
        pytest.param(
            Scenario(devices=machine(1), failures=failing(INIT, NOT_LOADED)),
            None,
            ("not loaded", "modprobe nvidia"),
            id="driver not loaded",
        ),
        pytest.param(
            Scenario(devices=machine(1), failures=failing(INIT, NO_PERMISSION)),
            None,
            ("may not talk", "ls -l /dev/nvidia*"),
            id="no permission",
        ),
        pytest.param(
            Scenario(devices=machine(1), failures=failing(INIT, UNKNOWN)),
            None,
            ("refused (Unknown Error)", "nvidia-smi"),
            id="another refusal",
        ),
        pytest.param(
            Scenario(devices=machine(1), without=(INIT,)),
            None,
            ("too old", "Update the driver"),
            id="function not found",
        ),
        pytest.param(Scenario(devices={}), None, ("no GPU", "--no-gpu"), id="no device"),
        pytest.param(
            Scenario(devices=machine(2)),
            [0, 2, 7],
            ("--gpus 2, 7", "GPUs 0 to 1", "nvidia-smi -L"),
            id="indices that are not there",
        ),
        pytest.param(
            Scenario(devices=machine(1)), [1], ("--gpus 1", "only GPU 0"), id="only one GPU"
        ),
        pytest.param(
            Scenario(devices=machine(2), failures=failing(HANDLE, LOST, "1")),
            [1],
            ("GPU 1", "fell off the bus"),
            id="the one asked for is lost",
        ),
        pytest.param(
            Scenario(devices=machine(1), failures=failing(HANDLE, NO_PERMISSION, "0")),
            None,
            ("GPU 0", "may not talk to it"),
            id="the only one is not for this user",
        ),
    ],
)
def test_a_refusal_says_why_and_what_to_type(
    read_nvml: Read, scenario: Scenario, gpus: list[int] | None, words: tuple[str, ...]
) -> None:
    """Where no GPU can be read, the error names the cause and the next command."""
    said = " ".join(read_nvml(scenario, 0.0, gpus=gpus)["problems"])
    assert [word for word in words if word not in said] == []


def test_without_a_driver_library_it_says_so(read_nvml: Read, tmp_path: Path) -> None:
    """Without libnvidia-ml.so.1 the error says how to get one, and how to go on without."""
    (tmp_path / "libnvidia-ml.so.1").touch()  # before a real one, should this machine have it
    answer = read_nvml(Scenario(devices={}), 0.0, env={"LD_LIBRARY_PATH": str(tmp_path)})
    (problem,) = answer["problems"]
    assert "libnvidia-ml.so.1" in problem
    assert "--gpus all" in problem
    assert "gpucost profile --no-gpu -- COMMAND" in problem


def test_a_gpu_that_cannot_be_opened_leaves_the_others(read_nvml: Read) -> None:
    """When all GPUs are wanted, one that cannot be opened is named and the others are read."""
    scenario = Scenario(devices=machine(3), failures=failing(HANDLE, LOST, "1"))
    answer = read_nvml(scenario, 0.0)
    assert set(columns(answer)) == {"0", "2"}
    assert answer["notes"] == ["GPU 1 cannot be read: it fell off the bus."]


@pytest.mark.parametrize(
    ("code", "words"), [(LOST, "fell off the bus"), (RESET_REQUIRED, "needs a reset")]
)
def test_a_gpu_lost_midway_ends_alone(read_nvml: Read, code: int, words: str) -> None:
    """Of eight GPUs one is lost after 1.05 s: its rows end, the others' do not."""
    scenario = Scenario(devices=machine(8), failures=failing("*", code, "2", from_s=1.05))
    answer = read_nvml(scenario, *TENTHS)
    ends = [len(steps) for gpu in "01234567" if (steps := _present(answer, gpu))]
    assert ends == [31, 31, 11, 31, 31, 31, 31, 31]
    assert answer["lost"] == ["2"]
    assert [note for note in answer["notes"] if words in note] == [
        f"GPU 2 {words} 1 s after the start; its readings end there. Look for its Xid in `dmesg`."
    ]


def _present(answer: dict[str, Any], gpu: str) -> list[int]:
    return [i for i, step in enumerate(answer["rows"]) if any(r["gpu"] == gpu for r in step)]


def test_instances_end_with_their_device(read_nvml: Read) -> None:
    """When a split device is lost, its instances give no rows either, and it is said once."""
    scenario = Scenario(devices=mig_h100(), failures=failing("*", LOST, "0", from_s=0.5))
    answer = read_nvml(scenario, 0.0, 1.0)
    assert answer["rows"][1] == []
    assert answer["lost"] == ["0", "0:1", "0:2"]
    assert len([note for note in answer["notes"] if "fell off" in note]) == 1


@pytest.mark.parametrize(
    ("code", "why"),
    [(NOT_SUPPORTED, "the device does not offer it"), (NO_PERMISSION, "this user may not read it")],
)
def test_what_is_not_offered_is_asked_once_and_said_once(
    read_nvml: Read, code: int, why: str
) -> None:
    """A call that a device does not offer is never made again; one note names all such devices."""
    failures = [
        Failure(function="nvmlDeviceGetTemperature", code=code, device=gpu, until_s=0.5)
        for gpu in "01"
    ]
    answer = read_nvml(Scenario(devices=machine(3), failures=failures), *TENTHS)
    assert [len(set(series(answer, gpu, "temp.core_c"))) for gpu in "012"] == [1, 1, 2]
    assert answer["notes"] == [f"GPU 0, GPU 1: no temperature: {why}."]


def test_what_failed_for_now_is_tried_again(read_nvml: Read) -> None:
    """A reading that times out is missing at that tick only, without a note."""
    broken = failing("nvmlDeviceGetUtilizationRates", TIMEOUT, "0", from_s=0.15, until_s=0.45)
    answer = read_nvml(Scenario(devices={"0": t4()}, failures=broken), *TENTHS[:8])
    known = [value is not None for value in series(answer, "0", "util.kernel_time")]
    assert known == [True, True, False, False, False, True, True, True]
    assert not [note for note in answer["notes"] if "utilisation" in note]


def test_what_keeps_failing_is_said_and_still_tried(read_nvml: Read) -> None:
    """Ten failures in a row make a note; when the call works again the reading is back."""
    broken = failing("nvmlDeviceGetClockInfo", UNKNOWN, "0", until_s=2.05)
    answer = read_nvml(Scenario(devices={"0": t4()}, failures=broken), *TENTHS)
    assert (
        "GPU 0: SM clock failed 10 times in a row (Unknown Error); it is still tried."
        in (answer["notes"])
    )
    assert series(answer, "0", "clock.sm_mhz")[-1] == 1755.0


def test_success_as_an_error_is_worth_another_try() -> None:
    """Where a list was empty pynvml raises NVMLError(SUCCESS): nothing is dropped for it."""
    assert verdict(0) is CodeVerdict.LATER


CODES = [
    1,
    2,
    3,
    4,
    6,
    7,
    10,
    11,
    14,
    15,
    16,
    17,
    18,
    19,
    20,
    21,
    23,
    25,
    26,
    27,
    28,
    29,
    999,
    1234,
]


def test_whatever_a_device_answers_nothing_is_raised(read_nvml: Read) -> None:
    """Devices that answer every call with some code for a while raise nothing, and end alone."""
    broken = [
        failure
        for index, code in enumerate(CODES)
        for failure in failing("*", code, str(index), from_s=0.5, until_s=1.5)
    ]
    everyone = machine(len(CODES) + 1)
    answer = read_nvml(Scenario(devices=everyone, failures=broken), *TENTHS, pids=[4242])
    assert set(answer["lost"]) == {str(CODES.index(code)) for code in (LOST, RESET_REQUIRED, 28)}
    assert len(_present(answer, str(len(CODES)))) == len(TENTHS)


FUNCTIONS = sorted(
    set(re.findall(r"^int (nvml(?:Device|Gpm)\w+)\(Device \*d", SOURCE.read_text(), re.MULTILINE))
)


ONLY_WAY = {
    "nvmlDeviceGetClockInfo": {"clock.sm_mhz"},
    "nvmlDeviceGetDecoderUtilization": {"util.decoder"},
    "nvmlDeviceGetEncoderUtilization": {"util.encoder"},
    "nvmlDeviceGetEnforcedPowerLimit": {"power.limit_w"},
    "nvmlDeviceGetTemperature": {"temp.core_c"},
    "nvmlDeviceGetTotalEnergyConsumption": {"counter.energy_j"},
    "nvmlDeviceGetUtilizationRates": {"util.kernel_time", "util.mem_controller"},
    "nvmlGpmQueryDeviceSupport": ACTIVE,
    "nvmlGpmSampleGet": ACTIVE,
}
# Tried for some ticks before the next way is taken, and every list of processes is needed.
UNTIL_GIVEN_UP = {
    "nvmlDeviceGetComputeRunningProcesses_v3": {"mem.process_gib"},
    "nvmlDeviceGetGraphicsRunningProcesses_v3": {"mem.process_gib"},
    "nvmlDeviceGetMPSComputeRunningProcesses_v3": {"mem.process_gib"},
}


@pytest.mark.parametrize(("code", "more"), [(NOT_SUPPORTED, {}), (UNKNOWN, UNTIL_GIVEN_UP)])
def test_whatever_function_fails_the_rest_is_read(
    read_nvml: Read, code: int, more: dict[str, set[str]]
) -> None:
    """Each function of NVML fails on one device: it misses the slots of that function, no more."""
    broken = [
        failure
        for index, function in enumerate(FUNCTIONS)
        for failure in failing(function, code, str(index))
    ]
    everyone = machine(len(FUNCTIONS))
    answer = read_nvml(Scenario(devices=everyone, failures=broken), *TENTHS[:12], pids=[4242])
    missing = {
        function: slots
        for index, function in enumerate(FUNCTIONS)
        if (slots := (EVERYWHERE | ACTIVE) - columns(answer)[str(index)])
    }
    assert missing == ONLY_WAY | more


OLD = (
    "nvmlGpm*",
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetP2PStatus",
    "nvmlDeviceGetMigMode",
    "nvmlDeviceGetFieldValues",
)


def test_an_old_driver_is_read_through_its_old_functions(read_nvml: Read) -> None:
    """Where a function is missing its elder is used; what has none is said to need a new driver."""
    answer = read_nvml(Scenario(devices={"0": h100()}, without=OLD), 0.0, pids=[4242])
    assert EVERYWHERE - columns(answer)["0"] == set()
    assert not ACTIVE & columns(answer)["0"]
    (note,) = answer["notes"]
    assert note.startswith("GPU 0: no SM, tensor, FP32 and device memory activity: this driver")


def test_a_library_without_lists_of_processes_leaves_them_out(read_nvml: Read) -> None:
    """Where no function lists processes, the job's memory is unknown and the rest is read."""
    scenario = Scenario(devices={"0": a100()}, without=("nvmlDeviceGet*RunningProcesses*",))
    answer = read_nvml(scenario, 0.0, pids=[4242])
    assert EVERYWHERE - columns(answer)["0"] == {"mem.process_gib"}


def test_gpm_that_a_profiler_holds_is_taken_up_when_it_is_free(read_nvml: Read) -> None:
    """While another tool holds the counters the rest is read; afterwards they are too."""
    held = failing("nvmlGpmSampleGet", IN_USE, "0", until_s=1.0)
    answer = read_nvml(Scenario(devices={"0": h100()}, failures=held), *TENTHS)
    known = [i for i, v in enumerate(series(answer, "0", "util.sm_active")) if v is not None]
    assert known[0] == 12
    assert None not in series(answer, "0", "util.kernel_time")


@pytest.mark.parametrize(
    ("stated", "pids", "expected"),
    [
        pytest.param({"process.7": 2.0, "process.8": 1.5}, [7, 8, 9], 3.5, id="two of the job's"),
        pytest.param({"process.7": 2.0, "process.8": 1.5}, [7], 2.0, id="another's beside it"),
        pytest.param({"process.7": 2.0}, [1000], None, id="none of the job's: unknown, not 0"),
        pytest.param({"process.7": -1}, [7], None, id="no process"),
        pytest.param({"process.7": float("nan")}, [7], None, id="memory not said"),
    ],
)
def test_memory_of_the_jobs_processes(
    read_nvml: Read, stated: dict[str, float], pids: list[int], expected: float | None
) -> None:
    """The job's processes are added up; where the driver names none of them it is unknown."""
    device = {k: v for k, v in a100().items() if not k.startswith("process.")} | stated
    answer = read_nvml(Scenario(devices={"0": device}), 0.0, pids=pids)
    assert series(answer, "0", "mem.process_gib") == [expected]


def test_a_process_that_ended_holds_nothing(read_nvml: Read) -> None:
    """Once the driver has named a process of the job, none is 0 GiB, on every device."""
    trace = rows("0", (1.0, {"process.4242": 1.0}), (1.0, {"process.4242": -1}))
    idle = {**a100(1), "process.4242": -1}
    answer = read_nvml(
        Scenario(devices={"0": a100(), "1": idle}, rows=trace), 0.0, 1.5, pids=[4242]
    )
    assert series(answer, "0", "mem.process_gib") == [1.0, 0.0]
    assert series(answer, "1", "mem.process_gib") == [0.0, 0.0]


def test_not_found_means_no_process(read_nvml: Read) -> None:
    """A driver that says NotFound where no process runs is not taken for failing."""
    none = failing("nvmlDeviceGetComputeRunningProcesses_v3", NOT_FOUND, "0", from_s=0.5)
    answer = read_nvml(
        Scenario(devices={"0": a100()}, failures=none), *[float(i) for i in range(15)], pids=[4242]
    )
    assert series(answer, "0", "mem.process_gib") == [1.0, *[0.0] * 14]
    assert not [note for note in answer["notes"] if "process" in note]


def test_processes_that_cannot_be_listed_now_are_unknown(read_nvml: Read) -> None:
    """While the list of processes times out, the job's memory is unknown and not 0."""
    broken = failing("nvmlDeviceGetComputeRunningProcesses_v3", TIMEOUT, "0", from_s=0.5)
    answer = read_nvml(Scenario(devices={"0": a100()}, failures=broken), 0.0, 1.0, pids=[4242])
    assert series(answer, "0", "mem.process_gib") == [1.0, None]


def test_a_gpu_that_others_use_too_is_named(read_nvml: Read) -> None:
    """When processes outside the job hold memory on its GPU, the readings are said to be of all."""
    device = {**a100(), "process.1": 5.0}
    answer = read_nvml(Scenario(devices={"0": device}), 0.0, 1.0, pids=[4242])
    (note,) = [note for note in answer["notes"] if "GPU 0 is shared" in note]
    assert "5.0 GiB" in note


def test_a_costly_call_comes_less_often_alone(read_nvml: Read) -> None:
    """A call of 20 ms of the processor is made once a second at most; the others at every tick."""
    device = {**t4(), "busy_s.nvmlDeviceGetPowerUsage": 0.02}
    answer = read_nvml(Scenario(devices={"0": device}), *TENTHS)
    known = [value for value in series(answer, "0", "power.board_w") if value is not None]
    assert 2 <= len(known) <= 4
    assert None not in series(answer, "0", "clock.sm_mhz")


def test_a_costly_reading_waits_longer() -> None:
    """A reading that takes 20 ms of a core, twice, waits until that is no more than its share."""
    pace = Pace(1.0, 0.005)
    assert pace.due(0.0)
    pace.took(0.0, 0.02)
    assert pace.due(1.0)
    pace.took(1.0, 0.02)
    assert not pace.due(4.9)
    assert pace.due(5.1)
