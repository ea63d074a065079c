"""What measuring eight GPUs ten times a second costs, as a share of one core.

Measured is a job of 33 processes (a rank, and 32 loaders that sleep): on all GPUs, on one of them
while the others are idle, and before it is seen on any. The GPUs are stand-ins: a small library of
ours in place of the NVIDIA driver's, compiled here with
gcc, that the real pynvml loads. So this is what our reading and pynvml cost; what a driver adds to
each call is not in it, and can be seen only on a machine with GPUs. Prints shares and always exits
0: on a shared machine a time is a measurement, not a test.

Usage: python benchmarks/sampler.py [SECONDS]
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.fake_nvml.fixture import build, environment  # noqa: E402 - of this checkout
from tests.fake_nvml.machines import a100, h100, machine, t4  # noqa: E402
from tests.fake_nvml.scenario import Scenario  # noqa: E402

GPUS, EVERY_S, SECONDS = 8, 0.1, 20.0
PROMISED = 0.015
MACHINES: dict[str, Callable[..., object]] = {"H100": h100, "A100": a100, "T4": t4}
PLACES = {"on all": range(GPUS), "on one": [2], "on none": []}
LOADERS = 32
JOB = (
    "import subprocess, sys\n"
    f"loaders = [subprocess.Popen(['sleep', '600']) for _ in range({LOADERS})]\n"
    "print(flush=True)\nsys.stdin.read()\nfor one in loaders: one.kill()\n"
)
READ = "--read"  # in the process that loads the stand-in


def read(seconds: float, folder: str, pid: int) -> None:
    """Read a job's GPUs on time for so long; again with the host, into a capture; print both."""
    from telemetry.measure.capture_file import CaptureFile  # noqa: PLC0415 - not in main
    from telemetry.measure.nvml_reader import NvmlReader  # noqa: PLC0415 - not in main
    from telemetry.measure.recorder import GpuThread, Recorder, Subject  # noqa: PLC0415 - not in main

    with closing(NvmlReader()) as reader:
        start_s, spent_s, late_s, rows = time.monotonic(), time.process_time(), 0.0, 0
        for tick in range(round(seconds / EVERY_S)):
            due_s = start_s + tick * EVERY_S
            time.sleep(max(0.0, due_s - time.monotonic()))
            late_s = max(late_s, time.monotonic() - due_s)
            rows += len(reader.read((pid,)))
        share = (time.process_time() - spent_s) / (time.monotonic() - start_s)
    capture = CaptureFile(Path(folder) / f"{os.getpid()}.capture.jsonl")
    subject = Subject(job=None, pid=pid, metadata=False)
    recorder = Recorder(capture, GpuThread(None), subject, EVERY_S)
    recorder.begin()
    start_s, spent_s = time.monotonic(), time.process_time()
    recorder.record(lambda left_s: time.sleep(max(0.0, left_s)) or False, seconds)
    whole = (time.process_time() - spent_s) / (time.monotonic() - start_s)
    recorder.end()
    print(share, whole, late_s, rows)


def main(arguments: Sequence[str]) -> None:
    """Measure every machine and print it."""
    if arguments[:1] == [READ]:
        read(float(arguments[1]), arguments[2], int(arguments[3]))
        return
    seconds = float(arguments[0]) if arguments else SECONDS
    print(
        f"{GPUS} stand-ins read every {EVERY_S:g} s for {seconds:g} s, "
        f"Python {sys.version.split()[0]}; promised: under {PROMISED:.1%} of one core; "
        f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        subprocess.Popen(
            [sys.executable, "-c", JOB], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as job,
    ):
        if job.stdout is not None:
            job.stdout.readline()
        build(Path(folder) / "nvml")
        for name, kind in MACHINES.items():
            for where, indices in PLACES.items():
                cost = _measured(folder, kind, indices, job, seconds)
                print(f"  {GPUS}x {name:<5} {where:<8}{cost}")
        job.communicate(b"")


def _measured(
    folder: str,
    kind: Callable[..., object],
    indices: Sequence[int],
    job: subprocess.Popen[bytes],
    seconds: float,
) -> str:
    """What it costs while the job is on these GPUs, as a line."""
    devices = machine(GPUS, kind) if kind is not t4 else {str(i): t4(i) for i in range(GPUS)}
    for device in devices.values():  # the only processes are the job's
        device |= {"process.children": -1.0, "process.4242": -1.0}
    trace, there = Path(folder) / "trace.txt", Path(folder) / "processes"
    trace.write_text(Scenario(devices=devices).text())
    there.mkdir(exist_ok=True)
    for path in there.iterdir():
        path.unlink()
    for index in indices:
        (there / f"{index},{job.pid},compute").write_text("10 50")
    done = subprocess.run(
        [sys.executable, __file__, READ, str(seconds), folder, str(job.pid)],
        env={
            **environment(Path(folder) / "nvml", trace),
            "FAKE_NVML_PROCESSES": str(there),
        },
        check=True,
        capture_output=True,
        text=True,
    )
    share, whole, late_s, rows = done.stdout.split()
    return (
        f"{float(share):6.2%} of one core for the GPUs, "
        f"{float(whole):6.2%} with host, processes and capture; "
        f"latest tick {float(late_s) * 1000:.1f} ms, {rows} rows"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
