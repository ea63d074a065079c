"""A log in which a job fills the GPU's memory and is gone, again and again."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from gpucost import diagnose, read_telemetry
from planner.actions import ACTIONS
from planner.profile.model import Profile
from pricing.errors import InputError

HEADER = "timestamp, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"
FULL_MIB, ROOM_MIB = 81_050, 81_920


def log(folder: Path, attempts: Sequence[tuple[int, int]], *, pause: int = 5) -> Profile:
    """The profile of attempts of forty minutes, each from one fill of the memory to another."""
    rows, minute = [HEADER], 0
    for first_mib, last_mib in attempts:
        held = [first_mib + (last_mib - first_mib) * step // 39 for step in range(40)]
        for busy, mib in [(95, mib) for mib in held] + [(0, 4)] * pause:
            time = f"2026/11/25 {10 + minute // 60:02}:{minute % 60:02}:00.000"
            rows.append(f"{time}, NVIDIA A100-SXM4-80GB, {busy} %, {mib} MiB, {ROOM_MIB} MiB")
            minute += 1
    path = folder / "smi.csv"
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return read_telemetry([path])


@pytest.mark.parametrize("times", [2, 4])
def test_memory_that_fills_and_is_free_again_likely_ran_out(tmp_path: Path, times: int) -> None:
    """Each attempt grows to 99 % of the GPU and is gone: memory is the verdict, as likely."""
    profile = log(tmp_path, [(60_000, FULL_MIB)] * times)
    assert profile.job.ended == "gpu-out-of-memory-likely"
    first = diagnose(profile)[0]
    assert (first.code, first.confidence) == ("memory-pressure", "likely")


@pytest.mark.parametrize(
    ("attempts", "why"),
    [
        ([(60_000, FULL_MIB)], "once may be the end of the work"),
        ([(8_000, 8_000), (FULL_MIB, FULL_MIB)], "a second job took all memory at once"),
        ([(FULL_MIB, FULL_MIB)] * 4, "an allocator's cache is full from the start"),
        ([(20_000, 40_000)] * 4, "half of the memory was free"),
        ([(60_000, FULL_MIB), (30_000, 30_000)] * 2, "not each of them filled it"),
    ],
)
def test_jobs_one_by_one_did_not_run_out(
    tmp_path: Path, attempts: list[tuple[int, int]], why: str
) -> None:
    """What ends without filling the memory, or fills it at once, ended by itself."""
    assert log(tmp_path, attempts).job.ended is None, why


def test_memory_that_climbs_to_the_end_of_the_gpu_once_likely_ran_out(tmp_path: Path) -> None:
    """From 8 GB to 99 % at a steady pace, then free to the end of the log: no steady job."""
    profile = log(tmp_path, [(8_000, FULL_MIB)])
    assert profile.job.ended == "gpu-out-of-memory-likely"
    assert "smaller-batch" in diagnose(profile)[0].actions
    assert log(tmp_path, [(8_000, FULL_MIB), (8_000, 8_000)]).job.ended is None, "it went on"


TRACEBACK = "Traceback (most recent call last):\n"
GPU_END = TRACEBACK + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 172 MiB\n"
KILLED = "RuntimeError: DataLoader worker (pid 14647) is killed by signal: Killed.\n"
STEPS = "".join(f"Epoch: [0][{n}/500] Time 1.0 (1.0) Data 0.2 (0.2)\n" for n in (10, 20))


@pytest.mark.parametrize(
    ("text", "ended", "cure"),
    [
        ("--per_device_train_batch_size 1\n" + GPU_END, "gpu", "gradient-checkpointing"),
        ("--per_device_train_batch_size 4\n" + GPU_END, "gpu", "smaller-batch"),
        (TRACEBACK + KILLED, "host", "less-host-memory"),
        (STEPS[: STEPS.index("\n") + 1] + TRACEBACK + KILLED, "host", "less-host-memory"),
    ],
)
def test_the_log_of_a_run_that_memory_ended_joins_the_log_of_its_gpu(
    tmp_path: Path, text: str, ended: str, cure: str
) -> None:
    """Alone it says what frees memory; a batch of one is not halved."""
    log(tmp_path, [(20_000, 40_000)])
    end = tmp_path / "train.log"
    end.write_text(text, "utf-8")
    with pytest.raises(InputError, match=cure):
        read_telemetry([end])
    profile = read_telemetry([tmp_path / "smi.csv", end])
    assert profile.job.ended == f"{ended}-out-of-memory"
    first = diagnose(profile)[0]
    assert first.confidence == "measured"
    assert cure == next(code for code in first.actions if ACTIONS[code].kind != "structural")


def test_a_program_that_went_on_with_a_smaller_batch_did_not_end(tmp_path: Path) -> None:
    """Steps after the error say that it was caught."""
    caught = tmp_path / "train.log"
    caught.write_text(GPU_END + STEPS, "utf-8")
    assert read_telemetry([caught]).job.ended is None
    caught.write_text(STEPS + GPU_END, "utf-8")
    assert read_telemetry([caught]).job.ended == "gpu-out-of-memory"


FULL = GPU_END[:-1] + ". GPU 0 has a total capacity of {}. Including non-PyTorch memory, this\n"
OLDER = (
    GPU_END[:-1] + " (GPU 0; 79.15 GiB total capacity; 76.80 GiB already allocated; {} free; 77\n"
)


@pytest.mark.parametrize(
    ("text", "in_use_gib"),
    [
        (FULL.format("79.15 GiB of which 1.11 GiB is free"), 78.04),
        (FULL.format("79.15 GiB of which 568.00 MiB is free"), 78.5953),
        (OLDER.format("1.11 GiB"), 78.04),
        (GPU_END, None),
    ],
)
def test_the_error_alone_makes_a_job_of_a_stated_machine(
    tmp_path: Path, text: str, in_use_gib: float | None
) -> None:
    """It says how the job ended and what the GPU's memory held: the cause needs no more."""
    end = tmp_path / "train.log"
    end.write_text(text, "utf-8")
    profile = read_telemetry([end], machine="aws/p4de.24xlarge")
    assert profile.hardware.gpu_memory_gib == (in_use_gib and 79.15)
    full = profile.gpus[0].metrics.get("mem.used_gib")
    assert (full and full.max) == (in_use_gib and pytest.approx(in_use_gib, abs=1e-3))
    assert diagnose(profile)[0].confidence == "measured"
