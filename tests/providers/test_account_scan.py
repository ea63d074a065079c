"""What a scan takes for a GPU machine, for busy and for idle: without any provider."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES
from msgspec.structs import replace

from providers.account_scan import (
    ScannedItem,
    command,
    disk_usd_per_hour,
    judge,
    measured,
    read_instant,
)
from providers.aws.scan import _GPU_FAMILY
from providers.digitalocean.scan import busy_hours

NOW = datetime(2026, 11, 28, tzinfo=UTC)
DAY = NOW.date()


def a_machine(vcpus: int | None) -> ScannedItem:
    """A machine with so many vCPUs."""
    names = {"provider": "aws", "kind": "machine", "id": "i-1", "name": "", "region": "us-east-1"}
    return ScannedItem(vcpus=vcpus, **names)


def test_a_gpu_machine_is_known_by_its_family() -> None:
    """Of all types of EC2 those with GPUs are taken, and no other."""
    gpus = {name for name, told in INSTANCE_TYPES.items() if "GpuInfo" in told}
    taken = {name for name in INSTANCE_TYPES if _GPU_FAMILY.match(name)}
    assert len(gpus) > 50
    assert gpus == taken


@pytest.mark.parametrize(
    ("vcpus", "cpu", "gpu", "verdict"),
    [
        (4, [0.049] * 24, [], True),
        (4, [0.049] * 23 + [0.051], [], False),  # one hour of work is work
        (192, [0.004] * 24, [], True),
        (192, [0.006] * 24, [], False),  # over a core of 192
        (None, [0.006] * 24, [], False),
        (4, [0.0] * 23, [], None),
        (4, [0.0] * 168, [0.011] * 24, False),  # the GPU works, whatever the CPU does
        (4, [0.9] * 168, [0.009] * 24, True),
        (4, [0.0] * 168, [0.0] * 3, None),
        (4, [], [], None),
    ],
)
def test_the_busiest_hour_decides(
    vcpus: int | None, cpu: list[float], gpu: list[float], *, verdict: bool | None
) -> None:
    """Under 5 % and under a core in every hour; GPUs, where they are read, under 1 %."""
    assert judge(measured(a_machine(vcpus), cpu, gpu), NOW).idle is verdict


@pytest.mark.parametrize(("hours", "verdict"), [(23, None), (24, True)])
def test_what_was_just_started_is_not_idle(hours: int, *, verdict: bool | None) -> None:
    """Readings of the week before its start judge nothing."""
    item = replace(a_machine(4), started_at=NOW - timedelta(hours=hours))
    assert judge(measured(item, [0.0] * 100), NOW).idle is verdict


def test_counters_become_hours() -> None:
    """Two cores: 25 % busy in the first hour; a reboot's interval is left out, the next counts."""
    samples = {
        "idle": [[0, "1000"], [1800, "3700"], [3600, "6400"], [5400, "10"], [7199, "3608"]],
        "user": [[0, "100"], [1800, "1000"], [3600, "1900"], [5400, "1"], [7199, "1"]],
    }
    series = [{"metric": {"mode": mode}, "values": values} for mode, values in samples.items()]
    assert busy_hours({"data": {"result": series}}) == [0.25, 0.0]
    assert busy_hours({"data": {"result": []}}) == []


def test_a_disk_has_its_providers_gigabyte() -> None:
    """AWS calls 2^30 bytes a GB; a kind or region without a price has none."""
    month = disk_usd_per_hour("aws", DAY, "us-east-1", Decimal(100))
    assert month is not None
    assert round(month * 730, 6) == 8
    assert disk_usd_per_hour("aws", DAY, "us-east-1", Decimal(100), "standard") is None
    assert disk_usd_per_hour("aws", DAY, "mx-central-1", Decimal(100)) is None


def test_a_time_is_utc_where_it_names_no_zone() -> None:
    """A provider's time, or nothing where it is none."""
    assert read_instant("2026-11-28T00:00:00Z") == read_instant("2026-11-28T00:00:00") == NOW
    assert read_instant("2026-11-28T02:00:00+02:00") == NOW
    assert read_instant(None) is read_instant("yesterday") is None


def test_a_command_is_one_of_plain_words() -> None:
    """What a shell would read is quoted; what a terminal would obey makes no command."""
    assert command("doctl", "x", "a b;c") == "doctl x 'a b;c'"
    assert command("doctl", "x", "a\x1b]0;b") == ""
    assert command("doctl", "x", "") == ""
