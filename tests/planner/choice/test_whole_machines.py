"""Plans bill whole machines: boot disk and public address are on every bill, today's too."""

from decimal import Decimal
from typing import Any

import pytest
from msgspec import structs

from planner.choice.requirements import BOOT_DISK_GIB
from planner.plan.draft import JobDraft
from planner.profile.model import Statistics
from pricing.billing.quote import Quote
from pricing.catalog.offer import Offer
from tests.planner.factories import a_profile, plan, running, sold

GIB = 2**30
WHOLE: dict[str, Any] = {"boot_disk_bytes": BOOT_DISK_GIB * GIB, "public_address": True}
TODAY = sold("today", "2.00", provider="aws", region="us-east-1")
STATED = sold("stated", "1.00", provider="aws", region="us-east-1")
SILENT = sold("silent", "0.99", provider="verda")  # neither its disks nor its addresses are priced
INCLUDED = sold("included", "1.50", provider="digitalocean", boot_disk_gib=720.0)
FREE = {"engineer_usd_per_hour": Decimal(0)}
H = Decimal(100)  # hours a month


def job(*offers: Offer, profile: Any = None, **asked: Any) -> JobDraft:
    """The plan of a job that runs for 100 h a month on TODAY."""
    profile = running(profile or a_profile(), TODAY)
    (found,) = plan(profile, offers=(TODAY, *offers), **WHOLE | FREE | asked).jobs
    return found


def parts(bill: Quote | None) -> dict[str, Decimal]:
    """Dollars by kind of line."""
    assert bill is not None
    return {line.what: line.usd for line in bill.lines}


def option(found: JobDraft, name: str) -> Quote:
    """The bill of the option on a size."""
    return next(o.quote for o in found.options if o.offer.instance_type == name)


def test_today_and_every_option_have_the_same_lines() -> None:
    """A disk of 100 GiB and an address stand on both sides, for the hours of the machine."""
    found = job(STATED)
    expected = {"boot-disk": 8 * H / 730, "address": H * Decimal("0.005")}
    for bill, compute in ((found.baseline.quote, 200), (option(found, "stated"), 100)):
        got = parts(bill)
        assert got.pop("compute") == compute
        assert {what: round(usd, 9) for what, usd in got.items()} == {
            what: round(usd, 9) for what, usd in expected.items()
        }


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ({"boot_disk_bytes": 0}, {"compute", "address"}),
        ({"public_address": False}, {"compute", "boot-disk"}),
        ({"machine_only": True}, {"compute"}),
        ({}, {"compute", "boot-disk", "address"}),
    ],
    ids=lambda value: str(sorted(value)),
)
def test_each_can_be_left_out(asked: dict[str, Any], left: set[str]) -> None:
    """What is left out is left out of every bill, today's too."""
    found = job(STATED, **asked)
    assert set(parts(found.baseline.quote)) == set(parts(option(found, "stated"))) == left


def test_what_comes_with_the_machine_costs_nothing_and_is_said() -> None:
    """The boot disk of a Droplet and its address are lines of 0."""
    got = option(job(INCLUDED), "included")
    assert parts(got) == {"compute": 150, "boot-disk": 0, "address": 0}
    assert not got.at_least


def test_an_unknown_price_is_at_least_and_never_zero() -> None:
    """A silent provider is cheaper by its known part, and is not recommended for it."""
    found = job(STATED, structs.replace(SILENT, usd_per_hour=Decimal("1.01")))
    silent = next(o for o in found.options if o.offer.instance_type == "silent")
    stated = next(o for o in found.options if o.offer.instance_type == "stated")
    assert silent.quote.unknown == ("boot-disk", "address")
    assert silent.cost == Decimal("101.00") < stated.cost
    assert silent.usd_range.high > silent.cost
    assert found.choice is not None
    assert found.choice.offer.instance_type == "stated"


def test_the_disk_of_a_machine_that_is_stopped_when_idle_stays_and_is_billed() -> None:
    """Somebody comes back to it: fewer machine hours, the same disk for all hours it is held."""
    quiet = {"util.kernel_time": Statistics(mean=0.1, p50=0.0, p75=0.02, p90=0.5)}
    found = job(profile=a_profile({**quiet, "mem.used_gib": 9.0}, kind="interactive"))
    stopped = next(o for o in found.options if o.offer == TODAY and "idle-shutdown" in o.actions)
    assert stopped.hours.mid < found.baseline.hours.mid == H
    disks = [line.usd for line in stopped.quote.lines if line.what == "boot-disk"]
    assert round(sum(disks, Decimal(0)), 9) == round(8 * H / 730, 9)


def test_the_disk_of_a_training_goes_with_its_machine() -> None:
    """A faster machine ends earlier, and its disk with it."""
    faster = sold("faster", "3.00", "H100-SXM-80GB", provider="aws", region="us-east-1")
    got = option(job(faster), "faster")
    (disk,) = (line.usd for line in got.lines if line.what == "boot-disk")
    assert disk < 8 * H / 730


def test_each_of_several_machines_has_its_own() -> None:
    """Two machines boot from two disks and have two addresses."""
    double = sold("double", "1.00", gpu_count=8, provider="aws", region="us-east-1")
    profile = a_profile(gpu_count=16, nodes=2)
    today = sold("today8", "9.00", gpu_count=8, provider="aws", region="us-east-1")
    (found,) = plan(running(profile, today), offers=(today, double), **WHOLE | FREE).jobs
    assert found.baseline.quote is not None
    assert found.baseline.quote.usage.count == 2
    assert round(parts(found.baseline.quote)["boot-disk"], 9) == round(2 * 8 * H / 730, 9)
    assert parts(found.baseline.quote)["address"] == 2 * H * Decimal("0.005")


def test_a_tenant_bears_its_part_of_the_disk_and_the_address() -> None:
    """They are the machine's: a job on 1 of 8 GPUs bears an eighth; its data stay its own."""
    eight = sold("eight", "8.00", gpu_count=8, provider="aws", region="us-east-1")
    profile = running(a_profile(), eight)
    (found,) = plan(profile, offers=(eight,), storage_bytes=100 * GIB, **WHOLE).jobs
    got = parts(found.baseline.quote)
    assert got["address"] == H * Decimal("0.005") / 8
    assert round(got["boot-disk"], 9) == round(8 * H / 730 / 8, 9)
    assert got["disk"] == 8


def test_an_own_machine_has_its_disk_already() -> None:
    """A machine of one's own, priced with --price, has nothing on its bill that nobody sold."""
    (found,) = plan(a_profile(), offers=(STATED,), price_usd_per_hour=Decimal(3), **WHOLE).jobs
    assert parts(found.baseline.quote) == {"compute": 300}


def test_the_plan_says_what_it_assumes() -> None:
    """The sizes are an assumption that is listed, with the options that change it."""
    asked = {"boot_disk_bytes": 50 * GIB, "public_address": True}
    said = plan(running(a_profile(), TODAY), offers=(TODAY,), **asked).assumptions
    assert any("50 GiB (--boot-disk)" in one and "--no-public-address" in one for one in said)
    alone = plan(running(a_profile(), TODAY), offers=(TODAY,), machine_only=True, **WHOLE)
    assert not any("boot" in one for one in alone.assumptions)
