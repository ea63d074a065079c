"""`gpucost top`: what the GPUs of this machine do now, who holds them, and what that costs."""

import os
import select
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING

import click
import psutil

from gpucost.arguments.parameters import options
from gpucost.machines.state import offer_here
from gpucost.views.output import Output, common_options
from pricing.errors import InputError
from pricing.money import show
from telemetry.measure.nvml_device import DeviceRow
from telemetry.measure.nvml_processes import Holder

if TYPE_CHECKING:
    from rich.text import Text

    from telemetry.measure.nvml_reader import NvmlReader

_SHORTEST_S, _HOUR_S = Decimal("0.2"), Decimal(3600)
_NAME = 14  # characters of a process
_NONE = "-"


@dataclass(kw_only=True)
class Meter:
    """What a GPU has done and cost since it is watched.

    Attributes:
        usd_per_hour: of this GPU; None where no price is known.
        usd: since it is watched.
        idle_usd: of it, while no kernel ran.
        values: the newest reading of each slot.
        holders: the processes on it, as last read.
    """

    usd_per_hour: Decimal | None
    usd: Decimal = Decimal(0)
    idle_usd: Decimal = Decimal(0)
    values: dict[str, float] = field(default_factory=dict)
    holders: Mapping[int, Holder] = field(default_factory=dict)

    def take(self, row: DeviceRow, elapsed_s: float) -> None:
        """Take a reading, and the time since the one before."""
        self.values |= row.values
        if row.holders is not None:
            self.holders = row.holders
        busy = row.values.get("util.kernel_time")
        if self.usd_per_hour is not None:
            usd = self.usd_per_hour * Decimal(str(elapsed_s)) / _HOUR_S
            self.usd += usd
            if busy is not None:
                self.idle_usd += usd * (1 - Decimal(str(busy)))


@click.command(name="top", epilog="Example: gpucost top --machine aws/p5.48xlarge")
@options("machine.top price interval readings no-metadata")
@common_options
def command(
    machine: str | None,
    price: Decimal | None,
    interval: Decimal,
    readings: int | None,
    no_metadata: bool,  # noqa: FBT001 - click's
    output: Output,
) -> None:
    """Watch the GPUs of this machine: busy, power, who holds them, dollars and idle dollars.

    Busy is the time in which kernels ran; SM the share of the processors that they filled, where
    the GPU tells. Dollars count from the start of the command; q ends it.
    """
    from telemetry.measure.nvml_reader import NvmlReader  # noqa: PLC0415 - opens the driver

    if interval < _SHORTEST_S:
        raise InputError(f"--interval {interval}s: give at least {_SHORTEST_S}s.")
    offer = offer_here(machine, metadata=not no_metadata)
    with closing(NvmlReader()) as reader:
        unsliced = [gpu for gpu in reader.identities if gpu.partition is None]
        hourly = price if price is not None else offer.usd_per_hour if offer else None
        count = max(len(unsliced), round(offer.gpu_count) if offer and price is None else 1)
        hourly_per_gpu = None if hourly is None else hourly / count
        meters = {gpu.key: Meter(usd_per_hour=hourly_per_gpu) for gpu in unsliced}
        names = sorted({gpu.model or "GPU" for gpu in unsliced})
        title = f"{len(unsliced)}x {', '.join(names)}" + (f" on {offer.place}" if offer else "")
        _watch(reader, meters, title, float(interval), readings)
    if offer is None and price is None:
        output.say("No price: this machine does not say what it is; give --machine or --price.")


def _watch(
    reader: "NvmlReader",
    meters: Mapping[str, Meter],
    title: str,
    interval_s: float,
    readings: int | None,
) -> None:
    """Show a reading at each interval; one alone where nobody watches a terminal."""
    from rich.console import Console  # noqa: PLC0415 - lazy
    from rich.live import Live  # noqa: PLC0415

    console = Console(highlight=False)
    if readings is None and not console.is_terminal:
        readings = 1
    sizes = {gpu.key: gpu.memory_gib for gpu in reader.identities}
    begun_s = last_s = time.monotonic()
    with _keys() as pressed, Live(console=console, auto_refresh=False) as live:
        while True:
            now_s = time.monotonic()
            for row in reader.read():
                if row.key in meters:
                    meters[row.key].take(row, now_s - last_s)
            last_s = now_s
            live.update(_screen(title, meters, sizes, now_s - begun_s), refresh=True)
            readings = None if readings is None else readings - 1
            if readings == 0 or pressed(interval_s) in {"q", "Q", "\x03", ""}:
                return


@contextmanager
def _keys() -> Iterator[Callable[[float], str | None]]:
    """Hand out a wait for a key: None where none was pressed, empty where input has ended."""
    typed = sys.stdin.isatty()
    stdin = sys.stdin.fileno() if typed else -1
    before = termios.tcgetattr(stdin) if typed else []

    def pressed(wait_s: float) -> str | None:
        if not typed:
            time.sleep(wait_s)
            return None
        ready = select.select([stdin], [], [], wait_s)[0]
        return os.read(stdin, 1).decode("ascii", "replace") if ready else None

    if typed:
        tty.setcbreak(stdin)
    try:
        yield pressed
    finally:
        if typed:
            termios.tcsetattr(stdin, termios.TCSADRAIN, before)


_COLUMNS = ("GPU", "busy", "SM", "power", "memory", "who", "USD/h", "so far", "idle")
_LEFT = frozenset(("GPU", "who"))


def _screen(
    title: str, meters: Mapping[str, Meter], sizes: Mapping[str, float | None], elapsed_s: float
) -> "Text":
    """Return all lines as one text: to lay out a table takes rich longer than all else here."""
    from rich.text import Text  # noqa: PLC0415 - lazy

    total = sum((meter.usd for meter in meters.values()), Decimal(0))
    idle = sum((meter.idle_usd for meter in meters.values()), Decimal(0))
    priced = any(meter.usd_per_hour is not None for meter in meters.values())
    spent = f"{total:.4f} USD in {elapsed_s:.0f} s, {idle:.4f} of it idle" if priced else "no price"
    rows = [_COLUMNS, *(_row(key, meter, sizes.get(key)) for key, meter in meters.items())]
    columns = [
        [f"{cell:{'<' if cells[0] in _LEFT else '>'}{max(map(len, cells))}}" for cell in cells]
        for cells in zip(*rows, strict=True)
    ]
    lines = (f" {'  '.join(cells)}" for cells in zip(*columns, strict=True))
    return Text("\n".join((title, *lines, f"{spent}; q ends")), no_wrap=True, overflow="crop")


def _row(key: str, meter: Meter, size_gib: float | None) -> tuple[str, ...]:
    values = meter.values
    used, power_w = values.get("mem.used_gib"), values.get("power.board_w")
    memory = (
        _NONE
        if used is None
        else f"{used:.0f}/{size_gib:.0f} GiB"
        if size_gib
        else f"{used:.0f} GiB"
    )
    return (
        key,
        _percent(values.get("util.kernel_time")),
        _percent(values.get("util.sm_active")),
        _NONE if power_w is None else f"{power_w:.0f} W",
        memory,
        _who(meter.holders),
        _NONE if meter.usd_per_hour is None else show(meter.usd_per_hour),
        _NONE if meter.usd_per_hour is None else f"{meter.usd:.3f}",
        _NONE if meter.usd_per_hour is None else f"{meter.idle_usd:.3f}",
    )


def _percent(share: float | None) -> str:
    return _NONE if share is None else f"{100 * share:.0f} %"


def _who(holders: Mapping[int, Holder]) -> str:
    """Return the process that holds most of the memory, and how many more there are."""
    if not holders:
        return "free"
    largest = max(holders, key=lambda pid: (holders[pid].gib or 0.0, -pid))
    name = "process"
    with suppress(psutil.Error):
        process = psutil.Process(largest)
        name = f"{process.username()}:{process.name()}"
    more = f" +{len(holders) - 1}" if len(holders) > 1 else ""
    return f"{name[:_NAME]} {largest}{more}"
