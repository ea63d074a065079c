"""The idle rule: the real watch and the real look at the GPUs, on a driven clock."""

import os
import random
from pathlib import Path
from typing import Any

import pytest

from templates.bootstrap_deadline import WATCH
from tests.bootstrap.box import BOOT_S, NOW_S, Box
from tests.bootstrap.gpus import Work, give_gpus
from tests.bootstrap.machines import a_machine

IDLE_S = 120
TICK_S, BLIND_S = WATCH["tick_s"], WATCH["blind_s"]
_DRAWS = min(100, int(os.environ.get("GPUCOST_DRAWS", "3")))
_FOREVER = 10**6


def a_box(root: Path, *work: Work, tool: str = "nvidia-smi", **machine: Any) -> Box:
    """A machine that is ready 100 s after its boot and has eight hours to live."""
    asked = {"end": "poweroff", "idle_s": IDLE_S, **machine}
    box = Box(root, a_machine(**asked))
    give_gpus(box, *work, tool=tool)
    box.write("var/lib/gpucost/status", "ready\n")
    box.set_clock(NOW_S + BOOT_S + 100, up_s=100)
    return box


def watch(box: Box, until_s: int, *, window_s: float | str = 16.76, gpus: int = 1) -> int | None:
    """Let the watch run; the second since boot at which it ended the machine, None: it did not."""
    box.run("deadline.sh", UNTIL_S=str(until_s), WINDOW_S=str(window_s), GPUS=str(gpus))
    ends = [line for line in box.calls.splitlines() if "ends now" in line]
    return int(ends[0].split()[2].rstrip(":")) - NOW_S - BOOT_S if ends else None


@pytest.mark.parametrize("draw", range(_DRAWS))
def test_a_stalled_loop_ends(tmp_path: Path, draw: int) -> None:
    """A job that stops using its GPU, however busy its processors, ends within idle + 60 s."""
    drawn = random.Random(draw)  # noqa: S311 - a drawn job
    stalls_s = 100 + drawn.uniform(0, 200)
    box = a_box(tmp_path, Work(0, stalls_s, drawn.randint(1, 100)))
    window_s = drawn.choice([0, 14.11, 16.76, 20.0])
    ended_s = watch(box, 1000, window_s=window_s)
    assert ended_s is not None
    assert IDLE_S - TICK_S <= ended_s - stalls_s <= IDLE_S + 60
    assert "no GPU has worked for" in box.read("var/lib/gpucost/end.log")


@pytest.mark.parametrize("draw", range(_DRAWS))
def test_a_busy_gpu_is_kept(tmp_path: Path, draw: int) -> None:
    """Kernels of a tenth of a second, with pauses shorter than the idle time, keep a machine."""
    drawn = random.Random(draw)  # noqa: S311 - a drawn job
    bursts, at_s = [], 50.0
    while at_s < 600:
        bursts.append(Work(at_s, at_s + drawn.choice([0.1, 1, 30]), drawn.randint(1, 100)))
        at_s = bursts[-1].end_s + drawn.uniform(1, IDLE_S - 2 * TICK_S)
    box = a_box(tmp_path, *bursts)
    assert watch(box, 500, window_s=drawn.choice([14.11, 16.76, 20.0])) is None
    assert "ends now" not in box.calls


@pytest.mark.parametrize("tool", ["rocm-smi", "amd-smi"])
def test_amd_machines_have_the_rule_too(tmp_path: Path, tool: str) -> None:
    """Both of AMD's tools are read: work keeps the machine, its end ends it."""
    box = a_box(tmp_path, Work(0, 250), tool=tool, gpu_vendor="amd", gpu_count=8)
    ended_s = watch(box, 800, window_s=0, gpus=8)
    assert ended_s is not None
    assert 250 + IDLE_S <= ended_s <= 250 + IDLE_S + 2 * TICK_S


@pytest.mark.parametrize(
    ("break_it", "why"),
    [
        (lambda box: box.tool("nvidia-smi", "echo 'NVML: Driver mismatch'; exit 18"), "mismatch"),
        (lambda box: box.tool("nvidia-smi", "exit 127"), "nvidia-smi fails"),
        (lambda box: (box.root / "opt/gpucost/activity").unlink(), "no answer about the GPUs"),
        (lambda box: box.tool("nvidia-smi", "true"), "shows 0 GPUs, and 1 are paid for"),
    ],
    ids=["mismatch", "absent", "no script", "silent"],
)
def test_no_reading_is_not_idle(tmp_path: Path, break_it: Any, why: str) -> None:
    """Where the driver says nothing the machine stays, the log says so, and the deadline holds."""
    box = a_box(tmp_path, ttl_s=900)
    break_it(box)
    ended_s = watch(box, 1500)
    assert ended_s is not None
    assert ended_s >= 900
    told = box.read("var/lib/gpucost/end.log")
    assert why in told
    assert told.count("only the deadline ends this machine") == 1


def test_a_look_that_fails_now_and_then_changes_nothing(tmp_path: Path) -> None:
    """A driver that is silent for less than a minute holds up no end and makes none."""
    box = a_box(tmp_path, Work(0, 100))
    flaky = (
        'read -r up _ <"$GPUCOST_ROOT/proc/uptime"; '
        'if [ $((${up%.*} % 50)) -lt 25 ]; then exit 9; fi; exec "$0.real" "$@"'
    )
    (box.root / "bin/nvidia-smi").rename(box.root / "bin/nvidia-smi.real")
    box.tool("nvidia-smi", flaky)
    ended_s = watch(box, 600)
    assert ended_s is not None
    assert 100 + IDLE_S <= ended_s <= 100 + IDLE_S + 60


def test_work_behind_a_blind_minute_is_believed(tmp_path: Path) -> None:
    """After more than a minute without a reading the idle time counts from anew."""
    box = a_box(tmp_path)
    (box.root / "bin/nvidia-smi").rename(box.root / "bin/nvidia-smi.real")
    box.tool(
        "nvidia-smi",
        'read -r up _ <"$GPUCOST_ROOT/proc/uptime"; up="${up%.*}"\n'
        f'if [ "$up" -ge 150 ] && [ "$up" -le {150 + BLIND_S + 20} ]; then exit 9; fi\n'
        'exec "$0.real" "$@"',
    )
    ended_s = watch(box, 800)
    assert ended_s is not None
    assert ended_s >= 150 + BLIND_S + 20 + IDLE_S - TICK_S


@pytest.mark.parametrize(
    ("duration", "max_", "told"),
    [
        ("14.06 sec", "0 %", "idle 14"),
        ("14.06 sec", "3 %", "active: a GPU works"),
        ("18446744073709.22 sec", "0 %", "idle 0"),  # as drivers 415 and 430 say it
        ("Not Found", "Not Found", "idle 0"),
    ],
)
@pytest.mark.parametrize("word", ["Gpu", "GPU"])
def test_what_drivers_say_is_read(
    tmp_path: Path, word: str, duration: str, max_: str, told: str
) -> None:
    """The text of `nvidia-smi -q -d UTILIZATION` as drivers 415 to 580 write it."""
    box = a_box(tmp_path)
    report = (
        "\n==============NVSMI LOG==============\n\nTimestamp       : Mon Mar  4 21:22:01 2024\n"
        "Driver Version  : 545.29.06\nCUDA Version    : 12.3\n\nAttached GPUs   : 1\n"
        f"GPU 00000000:06:10.0\n    Utilization\n        {word}       : 0 %\n"
        "        Memory    : 0 %\n        Encoder   : 0 %\n        JPEG      : N/A\n"
        f"    GPU Utilization Samples\n        Duration  : {duration}\n"
        f"        Number of Samples : 71\n        Max       : {max_}\n"
    )
    box.write("report", report)
    box.tool("nvidia-smi", 'cat "$GPUCOST_ROOT/report"')
    assert box.run("activity").stdout.strip() == told


def test_a_watch_that_starts_late_knows_no_idle_time_before_it(tmp_path: Path) -> None:
    """Started again hours after boot, the watch counts idle time from its own first look."""
    box = a_box(tmp_path)
    box.set_clock(NOW_S + BOOT_S + 7200, up_s=7200)
    ended_s = watch(box, 8000, window_s=18446744073709.22)
    assert ended_s is not None
    assert 7200 + IDLE_S <= ended_s <= 7200 + IDLE_S + 2 * TICK_S


def test_mig_is_idle_only_without_processes(tmp_path: Path) -> None:
    """With MIG the driver tells no utilisation: a process keeps the machine, none ends it."""
    box = a_box(tmp_path / "held")
    box.write("processes", "4711\n")
    assert watch(box, 700, window_s="mig") is None
    assert "processes hold a GPU" in box.read("var/lib/gpucost/end.log")
    assert watch(a_box(tmp_path / "free"), 700, window_s="mig") is not None


def test_who_is_there_is_warned_and_may_keep_it(tmp_path: Path) -> None:
    """A warning comes first, on every terminal and in the log; a file keeps the machine."""
    box = a_box(tmp_path)
    watch(box, 100 + IDLE_S - 20)
    assert "to keep it until its deadline: touch /" in box.calls
    assert "so this machine ends in" in box.read("var/lib/gpucost/end.log")
    box.write("var/lib/gpucost/keep", "")
    assert watch(box, 900) is None


@pytest.mark.parametrize("status", ["", "failed: x\n"])
def test_a_machine_that_is_not_ready_is_not_idle(tmp_path: Path, status: str) -> None:
    """Boot and bootstrap are not idle time; what never gets ready ends by its own rule."""
    box = a_box(tmp_path)
    box.write("var/lib/gpucost/status", status)
    assert watch(box, 100 + 3 * IDLE_S) is None


def test_bringing_code_and_data_is_work(tmp_path: Path) -> None:
    """A process that prepares the job keeps the machine while it lives, and no longer."""
    box = a_box(tmp_path)
    mark = box.write(f"run/gpucost/working/{os.getpid()}", "")
    assert watch(box, 100 + 3 * IDLE_S) is None
    mark.rename(mark.with_name(str(_FOREVER * 100)))
    assert watch(box, 100 + 6 * IDLE_S) is not None
    assert not list(mark.parent.iterdir())


def test_a_transfer_is_work(tmp_path: Path) -> None:
    """While rsync brings data, or results back, the machine is kept."""
    box = a_box(tmp_path)
    box.write("transfers", "4711\n")
    assert watch(box, 100 + 3 * IDLE_S) is None


def test_a_tool_that_hangs_holds_up_no_deadline(tmp_path: Path) -> None:
    """Where asking the GPUs never ends, the deadline is kept to the second all the same."""
    box = a_box(tmp_path, ttl_s=130)
    box.tool("nvidia-smi", "exec /bin/sleep 30")
    box.tool("timeout", 'shift; exec "$@"')  # a process in the driver cannot be killed
    script = box.root / "opt/gpucost/deadline.sh"
    hasty = script.read_text(encoding="utf-8").replace("read -r -t 9", "read -r -t 0.2")
    script.write_text(hasty, encoding="utf-8")
    ended_s = watch(box, 400)
    assert ended_s is not None
    assert 130 <= ended_s <= 130 + TICK_S
