"""`gpucost top` in a real terminal: what the GPUs do, who holds them, what they cost."""

import re
from collections.abc import Callable
from decimal import Decimal

import pytest

from gpucost.commands.measuring.top import Meter
from telemetry.measure.nvml_device import DeviceRow
from tests.fake_nvml.machines import h100, machine
from tests.fake_nvml.scenario import Scenario
from tests.gpucost.profiling.test_profile import GPUCOST
from tests.gpucost.terminal import Terminal

Nvml = Callable[[Scenario], dict[str, str]]


def test_eight_gpus_fit_on_the_smallest_screen(fake_nvml: Nvml) -> None:
    """At 80x24 one line a GPU: busy, power, memory, and its eighth of the machine's price."""
    environment = {**fake_nvml(Scenario(devices=machine(8, h100))), "TERM": "xterm-256color"}
    command = [GPUCOST, "top", "--price", "24", "--interval", "0.2s", "--readings", "3"]
    seen = Terminal(command, environment, size=(80, 24))
    assert seen.code == 0
    rows = [line for line in seen.text if re.match(r" *[0-7] +\d+ %", line)]
    assert len(rows) == 8
    for row in rows:
        assert re.search(r"62 % .* \d+ W .*GiB .* 3\.00 ", row), row
    assert any(re.search(r"0\.\d+ USD in \d+ s, 0\.\d+ of it idle; q ends", r) for r in seen.text)


def test_without_a_price_it_says_what_to_give(fake_nvml: Nvml) -> None:
    """A machine that no cloud calls its own shows no dollars, and how to get them."""
    environment = {**fake_nvml(Scenario(devices=machine(1, h100))), "TERM": "xterm-256color"}
    seen = Terminal([GPUCOST, "top", "--readings", "1", "--no-metadata"], environment)
    assert seen.code == 0
    assert "give --machine or --price" in "\n".join(seen.text)


def test_idle_dollars_are_those_without_a_kernel() -> None:
    """Half an hour at $4, busy a quarter of the time, then half an hour unknown."""
    meter = Meter(usd_per_hour=Decimal(4))
    meter.take(DeviceRow(key="0", values={"util.kernel_time": 0.25}), 1800.0)
    meter.take(DeviceRow(key="0", values={}), 1800.0)
    assert (meter.usd, meter.idle_usd) == (Decimal(4), Decimal("1.5"))


@pytest.mark.parametrize("words", [["--interval", "0.05s"], ["--machine", "aws/p9.huge"]])
def test_what_cannot_be_is_refused(words: list[str], fake_nvml: Nvml) -> None:
    """An interval that would load the driver, a machine that nobody sells."""
    environment = {**fake_nvml(Scenario(devices=machine(1, h100))), "TERM": "xterm-256color"}
    assert Terminal([GPUCOST, "top", *words], environment).code == 2
