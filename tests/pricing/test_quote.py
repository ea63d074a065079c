"""Bills to the cent: a table worked by hand, and what must hold for every bill."""

import csv
import json
import math
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.catalog import Catalog, load_catalog
from pricing.errors import InputError
from pricing.money import cents
from pricing.quote import Quote, Usage, quote, to_json
from tests.pricing.factories import ASKED_ON, an_offer

GB, GIB, HOUR = 10**9, 2**30, 3600
BUNDLED = load_catalog(ASKED_ON)


def _bill(name: str, *, as_of: date = ASKED_ON, purchase: str = "on_demand", **use: Any) -> Quote:
    provider, instance_type, region = (*name.split("/"), None)[:3]
    offer = BUNDLED.at(as_of).find(str(provider), str(instance_type), region, purchase)
    return quote(offer, Usage(as_of=as_of, **use))


def _sum(bill: Quote, what: str) -> str:
    return str(cents(sum((line.usd for line in bill.lines if line.what == what), Decimal(0))))


DO8, DO1 = "digitalocean/gpu-h100x8-640gb", "digitalocean/gpu-h100x1-80gb"
DO_ADA, P5 = "digitalocean/gpu-4000adax1-20gb", "aws/p5.48xlarge/us-east-1"
A3, NEBIUS = "gcp/a3-highgpu-8g/us-central1", "nebius/gpu-h100-sxm_1gpu-16vcpu-200gb"
AZURE, LAMBDA = "azure/Standard_NC8as_T4_v3/uksouth", "lambda/gpu_8x_h100_sxm5"

BILLS = [
    (DO8, {"duration_s": 90}, "compute", "0.88", "35.28 x 90 / 3600 = 0.882"),
    (DO8, {"duration_s": 10}, "compute", "0.59", "at least 60 s: 0.588"),
    (DO8, {"duration_s": 61}, "compute", "0.60", "35.28 x 61 / 3600 = 0.5978"),
    (DO8, {"duration_s": 60.4}, "compute", "0.60", "a begun second counts: 61 s"),
    (DO8, {"duration_s": 24 * HOUR, "as_of": date(2026, 7, 15)}, "compute", "574.08",
     "23.92 x 24 before 2026-08-01"),
    (DO8, {"duration_s": HOUR, "as_of": date(2024, 12, 31)}, "compute", "20.00",
     "last day of the promotion"),
    (DO1, {"duration_s": 8.5 * HOUR}, "compute", "37.49", "37.485 half up"),
    (DO1, {"duration_s": 8.5 * HOUR, "count": 2}, "compute", "74.97", "2 x 37.485, rounded once"),
    (DO1, {"duration_s": 1.5 * HOUR, "as_of": date(2025, 12, 31)}, "compute", "13.48",
     "by the hour in 2025: 2 x 6.74"),
    (DO1, {"duration_s": 1.5 * HOUR, "as_of": date(2026, 1, 1)}, "compute", "10.11",
     "by the second in 2026: 1.5 x 6.74"),
    (DO_ADA, {"duration_s": 30}, "compute", "0.01", "60 s = 0.0127, above the least 0.01"),
    (DO_ADA, {"duration_s": 30, "count": 3}, "compute", "0.04", "3 x 0.012667 = 0.038"),
    ("digitalocean/gpu-mi300x8-1536gb", {"duration_s": 730 * HOUR}, "compute", "15125.60",
     "20.72 x 730, no monthly cap for GPU sizes"),
    ("digitalocean/gpu-mi355x8-2304gb-spot", {"duration_s": HOUR, "purchase": "spot"}, "compute",
     "23.76", "the spot price"),
    (DO1, {"duration_s": 336 * HOUR, "egress_bytes": 10_000 * GIB}, "egress", "25.00",
     "half of 672 h accrues half of 15000 GiB; 2500 x 0.01"),
    (DO1, {"duration_s": 730 * HOUR, "egress_bytes": 15_000 * GIB}, "egress", "0.00",
     "a full month includes 15000 GiB"),
    (DO1, {"duration_s": 744 * HOUR, "egress_bytes": 16_000 * GIB}, "egress", "10.00",
     "31 days include no more than 15000 GiB; 1000 x 0.01"),
    (DO8, {"duration_s": 336 * HOUR, "count": 2, "egress_bytes": 100_000 * GIB}, "egress",
     "400.00", "pooled: 2 x 30000 GiB; 40000 x 0.01"),
    ("digitalocean/gpu-l40sx1-48gb", {"duration_s": 67.2 * HOUR, "egress_bytes": 1500 * GIB},
     "egress", "5.00", "a tenth of 672 h accrues 1000 GiB; 500 x 0.01"),
    (DO1, {"duration_s": 73 * HOUR, "storage_bytes": 500 * GIB}, "disk", "5.00",
     "500 x 0.10 x 73 / 730"),
    (DO1, {"duration_s": 1.5 * HOUR, "storage_bytes": 500 * GIB}, "disk", "0.14",
     "volumes accrue by the hour: 500 x 0.10 x 2 / 730 = 0.137"),
    (DO1, {"duration_s": HOUR, "storage_bytes": 100 * GIB, "storage_h": 365}, "disk", "5.00",
     "kept longer than the machine: 100 x 0.10 / 2"),
    (DO8, {"duration_s": HOUR, "boot_s": 300}, "boot", "2.94", "35.28 x 300 / 3600"),
    (DO8, {"duration_s": HOUR, "checkpoint_s": 36.5}, "checkpoint", "0.36",
     "37 s begun: 35.28 x 37 / 3600 = 0.3626"),
    (P5, {"duration_s": 30}, "compute", "0.92", "at least 60 s: 55.04 / 60"),
    (P5, {"duration_s": 10 * HOUR, "egress_bytes": 500 * GB}, "egress", "36.00",
     "100 GB free; 400 x 0.09"),
    (P5, {"duration_s": HOUR, "egress_bytes": 100 * GB}, "egress", "0.00", "the free 100 GB"),
    (P5, {"duration_s": HOUR, "egress_bytes": 11_000 * GB}, "egress", "977.70",
     "100 free; 10240 x 0.09 + 660 x 0.085"),
    (P5, {"duration_s": HOUR, "egress_bytes": 200_100 * GB}, "egress", "13891.20",
     "10240 x 0.09 + 40960 x 0.085 + 102400 x 0.07 + 46400 x 0.05"),
    (P5, {"duration_s": 1460 * HOUR, "egress_bytes": 400 * GB}, "egress", "18.00",
     "two months, 100 GB free in each; 200 x 0.09"),
    ("aws/p4d.24xlarge/us-gov-west-1", {"duration_s": HOUR, "egress_bytes": 200 * GB}, "egress",
     "15.50", "100 x 0.155 in GovCloud"),
    (P5, {"duration_s": 365 * HOUR, "storage_bytes": 1000 * GB}, "disk", "40.00",
     "gp3: 1000 x 0.08 / 2"),
    (A3, {"duration_s": 45}, "compute", "1.47", "at least 60 s: 88.49 / 60 = 1.4748"),
    (A3, {"duration_s": HOUR, "egress_bytes": 2024 * GB}, "egress", "232.88",
     "1024 x 0.12 + 1000 x 0.11"),
    (A3, {"duration_s": 10 * HOUR, "storage_bytes": 730 * GB}, "disk", "0.40",
     "730 x 0.04 x 10 / 730"),
    (AZURE, {"duration_s": 20}, "compute", "0.01", "at least 60 s: 0.88 / 60 = 0.0147"),
    (AZURE, {"duration_s": HOUR, "egress_bytes": 600 * GB}, "egress", "43.50",
     "100 GB free; 500 x 0.087"),
    (LAMBDA, {"duration_s": 90}, "compute", "1.06", "whole minutes: 2 x 31.92 / 60 = 1.064"),
    (LAMBDA, {"duration_s": 60, "egress_bytes": 5000 * GB}, "egress", "0.00", "egress is free"),
    (LAMBDA, {"duration_s": 7.3 * HOUR, "storage_bytes": 100 * GIB}, "disk", "0.22",
     "by the hour: 100 x 0.20 x 8 / 730 = 0.219"),
    ("runpod/1x_A100-SXM-80GB_secure", {"duration_s": 90}, "compute", "0.04",
     "1.79 x 90 / 3600 = 0.04475, no minimum"),
    ("hyperstack/1x_H100-SXM-80GB", {"duration_s": 90}, "compute", "0.11",
     "whole minutes: 2 x 3.20 / 60 = 0.1067"),
    ("scaleway/L4-1-24G/fr-par", {"duration_s": 150}, "compute", "0.05",
     "whole minutes: 3 x 0.95 / 60 = 0.0475"),
    ("vast/1x_H100-SXM-80GB_median", {"duration_s": 90}, "compute", "0.06",
     "2.4024 x 90 / 3600 = 0.06006"),
    ("together/8x_H100-SXM-80GB", {"duration_s": 600}, "compute", "31.92", "a whole hour"),
    ("hotaisle/1x_MI300X", {"duration_s": 90}, "compute", "2.99",
     "its granularity is only a lead: a whole hour"),
    (NEBIUS, {"duration_s": 5400}, "compute", "9.00", "granularity unknown: 2 x 4.50"),
    (NEBIUS, {"duration_s": 1800, "lost_work_s": 1200}, "lost-work", "0.00",
     "inside the hour that is paid anyway"),
    (NEBIUS, {"duration_s": 1800, "lost_work_s": 2400}, "lost-work", "4.50",
     "the second hour begins"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "use", "what", "usd", "why"), BILLS)
def test_bills_worked_by_hand(
    name: str, use: dict[str, Any], what: str, usd: str, why: str
) -> None:
    """Each bill is what the arithmetic in words says, to the cent."""
    assert _sum(_bill(name, **use), what) == usd, why


def test_conformance_bills(shared: Path) -> None:
    """The published sample of bills comes out to the cent."""
    units = {"s": 1, "h": HOUR, "GiB": GIB, "GB": GB}
    with (shared / "conformance/bills.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 10
    for row in rows:
        words = row["arguments"].split()
        given = dict(zip(words[::2], words[1::2], strict=True))
        sizes = {
            option: float(text.rstrip("GiBhs")) * units[text.lstrip("0123456789.")]
            for option, text in given.items()
            if option != "--as-of"
        }
        bill = _bill(
            row["offer"],
            as_of=date.fromisoformat(given.get("--as-of", ASKED_ON.isoformat())),
            duration_s=sizes["--duration"],
            egress_bytes=int(sizes.get("--egress", 0)),
        )
        assert _sum(bill, row["line"]) == row["usd"], row


@pytest.mark.parametrize(
    ("name", "use", "said"),
    [
        (NEBIUS, {"duration_s": 60}, "nebius: the billing granularity is not documented"),
        (LAMBDA, {"duration_s": 90}, "how a part of 60 s is rounded is not documented"),
        (DO1, {"duration_s": 5400, "as_of": date(2025, 6, 1)}, "a part of 3600 s is rounded"),
        (NEBIUS, {"duration_s": 60, "egress_bytes": GB}, "egress: the price of traffic out of neb"),
        (AZURE, {"duration_s": 60, "egress_bytes": 20_000 * GB}, "beyond 10340 GB is not known"),
        ("oci/VM.GPU.A10.1", {"duration_s": 60, "egress_bytes": 20_000 * GB}, "9760 GB are left"),
        (AZURE, {"duration_s": 60, "storage_bytes": GB}, "disk: the price of volume storage"),
        ("digitalocean/gpu-mi350x1-288gb-spot", {"duration_s": 60, "egress_bytes": GB,
         "purchase": "spot"}, "includes is not known"),
        (P5, {"duration_s": 60}, "the price is 124 days old"),
        ("oci/VM.GPU.A10.1", {"duration_s": 60}, "'2025/2026 (undated)', not by day"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_said(name: str, use: dict[str, Any], said: str) -> None:
    """Unknown rules and prices, and old ones, are named in a warning."""
    assert any(said in warning for warning in _bill(name, **use).warnings)


@pytest.mark.parametrize(
    ("name", "use", "what"),
    [
        (NEBIUS, {"egress_bytes": GB}, "egress"),
        ("aws/p5.48xlarge/ap-southeast-3", {"egress_bytes": 500 * GB}, "egress"),
        ("oci/VM.GPU.A10.1", {"egress_bytes": 20_000 * GB}, "egress"),
        (AZURE, {"storage_bytes": GB}, "disk"),
    ],
)
def test_an_unknown_price_makes_no_line(name: str, use: dict[str, Any], what: str) -> None:
    """What has no known price is left out, not billed at zero."""
    assert what not in [line.what for line in _bill(name, duration_s=60, **use).lines]


@pytest.mark.parametrize("duration_s", [60, 120, 3600])
def test_whole_units_need_no_warning_about_rounding(duration_s: int) -> None:
    """A duration of whole minutes is billed as it is at a provider that bills by the minute."""
    assert not any("rounded" in said for said in _bill(LAMBDA, duration_s=duration_s).warnings)


def test_a_fresh_documented_bill_has_no_warning() -> None:
    """Nothing is said where nothing is wrong."""
    assert _bill(DO8, duration_s=90, as_of=date(2026, 10, 20)).warnings == ()


@pytest.mark.parametrize(
    ("name", "use", "how"),
    [
        (DO8, {"duration_s": 90}, ["90 s x 35.28 USD/h / 3600"]),
        (DO8, {"duration_s": 10}, ["60 s (ran 10 s) x 35.28 USD/h / 3600"]),
        (DO8, {"duration_s": 90, "count": 3}, ["3 x (90 s x 35.28 USD/h / 3600)"]),
        (P5, {"duration_s": 60, "egress_bytes": 500 * GB},
         ["60 s x 55.04 USD/h / 3600", "(500 GB - 100 GB free) x 0.09 USD/GB"]),
        (P5, {"duration_s": 60, "egress_bytes": 50 * GB},
         ["60 s x 55.04 USD/h / 3600", "50 GB within 100 GB free"]),
        (AZURE, {"duration_s": 60, "egress_bytes": 20_000 * GB},
         ["60 s x 0.88 USD/h / 3600", "10240 GB x 0.087 USD/GB (after 100 GB free)"]),
        (A3, {"duration_s": 60, "egress_bytes": 2024 * GB},
         ["60 s x 88.49 USD/h / 3600",
          "1024 GB x 0.12 USD/GB + 1000 GB x 0.11 USD/GB (2024 GB)"]),
        (DO1, {"duration_s": 7200, "storage_bytes": 500 * GIB},
         ["7200 s x 4.41 USD/h / 3600",
          "500 GiB x 0.1 USD/GiB-month x 2 h / 730 h per month"]),
        (DO8, {"duration_s": 90, "boot_s": 30},
         ["90 s x 35.28 USD/h / 3600", "30 s x 35.28 USD/h / 3600"]),
        (DO8, {"duration_s": 50, "boot_s": 30},
         ["60 s (ran 50 s) x 35.28 USD/h / 3600", "20 s x 35.28 USD/h / 3600"]),
    ],
)  # fmt: skip
def test_every_line_explains_itself(name: str, use: dict[str, Any], how: list[str]) -> None:
    """The formula of each line has the numbers in it."""
    bill = _bill(name, **use)
    assert [line.how for line in bill.lines] == how
    assert all(line.rule and line.source and line.as_of for line in bill.lines)


def test_the_least_charge_is_explained() -> None:
    """A machine cheaper than the least charge pays that, and more time pays only what is above."""
    cheap = an_offer(provider="digitalocean", usd_per_hour=Decimal("0.36"))
    bill = quote(cheap, Usage(duration_s=20, boot_s=120, as_of=ASKED_ON, count=2))
    assert [(line.what, line.usd, line.how) for line in bill.lines] == [
        ("compute", Decimal("0.02"), "2 x (least charge 0.01 USD (ran 20 s))"),
        ("boot", Decimal("0.008"), "2 x (charge for 140 s less charge for 60 s)"),
    ]


def test_json_is_the_contracts_format() -> None:
    """The keys and values of the quote format, money as strings, and it is JSON."""
    found = json.loads(json.dumps(to_json(_bill(DO8, duration_s=90))))
    (line,) = found.pop("lines")
    source = found["offer"].pop("source")
    assert source
    assert found == {
        "schema": "gpucost.quote/v1",
        "as_of": "2026-11-21",
        "currency": "USD",
        "total": "0.88",
        "offer": {
            "provider": "digitalocean",
            "region": "*",
            "instance_type": "gpu-h100x8-640gb",
            "gpu": "H100-SXM-80GB",
            "gpu_count": 8,
            "purchase": "on_demand",
            "usd_per_hour": "35.28",
            "as_of": "2026-10-08",
        },
        "count": 1,
        "duration_s": 90,
        "billed_s": 90,
        "warnings": [f"{DO8}: the price is 44 days old (read 2026-10-08); check it before buying"],
    }
    assert sorted(line) == ["as_of", "how", "rule", "source", "usd", "what"]
    assert (line["what"], line["usd"]) == ("compute", "0.882")


@pytest.mark.parametrize(
    ("use", "said"),
    [
        ({"duration_s": -1}, "duration_s is -1"),
        ({"duration_s": math.nan}, "duration_s is nan"),
        ({"duration_s": math.inf}, "duration_s is inf"),
        ({"duration_s": Decimal("NaN")}, "duration_s is NaN"),
        ({"duration_s": 1, "count": 0}, "count is 0"),
        ({"duration_s": 1, "egress_bytes": -1}, "egress_bytes is -1"),
        ({"duration_s": 1, "storage_h": -2}, "storage_h is -2"),
    ],
)
def test_impossible_uses_are_refused(use: dict[str, Any], said: str) -> None:
    """Negative, infinite or unknown quantities are no use that could be billed."""
    with pytest.raises(InputError, match=said):
        Usage(as_of=ASKED_ON, **use)


def test_float_noise_does_not_begin_a_second() -> None:
    """0.3 h as 0.1 h + 0.2 h bills 1080 s, not 1081."""
    assert _bill(DO8, duration_s=(0.1 + 0.2) * HOUR).billed_s == 1080


def test_a_machine_that_never_ran_costs_nothing() -> None:
    """No life, no bill: a minimum is for machines that exist."""
    assert _bill(DO8, duration_s=0).exact == 0


OFFERS = st.sampled_from(BUNDLED.offers)
SECONDS = st.decimals(min_value=0, max_value=5_000_000, places=3)
BYTES = st.integers(0, 300 * 10**12)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    """Any use of up to two months."""
    return Usage(
        duration_s=draw(SECONDS),
        as_of=draw(st.dates(date(2024, 1, 1), date(2027, 1, 1))),
        count=draw(st.integers(1, 64)),
        egress_bytes=draw(BYTES),
        storage_bytes=draw(BYTES),
        lost_work_s=draw(SECONDS),
        checkpoint_s=draw(SECONDS),
        boot_s=draw(SECONDS),
    )


@given(OFFERS, usages())
def test_lines_add_up(offer: Any, usage: Usage) -> None:
    """The lines are non-negative Decimals, sum to the exact total, which is rounded once."""
    bill = quote(offer, usage)
    assert all(type(line.usd) is Decimal and line.usd >= 0 for line in bill.lines)
    assert bill.exact == sum((line.usd for line in bill.lines), Decimal(0))
    assert bill.total == cents(bill.exact)
    assert bill.total.as_tuple().exponent == -2
    assert all(line.how for line in bill.lines)
    json.dumps(to_json(bill))


@given(OFFERS, SECONDS, SECONDS, st.integers(1, 8))
def test_more_seconds_never_cost_less(offer: Any, one: Decimal, other: Decimal, count: int) -> None:
    """A longer life of the machines never lowers what they cost."""
    short, long = sorted((one, other))
    bills = [
        quote(offer, Usage(duration_s=duration_s, as_of=ASKED_ON, count=count))
        for duration_s in (short, long)
    ]
    assert bills[0].exact <= bills[1].exact


@given(OFFERS, BYTES, BYTES)
def test_more_traffic_and_storage_never_cost_less(offer: Any, one: int, other: int) -> None:
    """More bytes never lower the bill."""
    less, more = sorted((one, other))
    bills = [
        quote(
            offer,
            Usage(duration_s=HOUR, as_of=ASKED_ON, egress_bytes=size, storage_bytes=size),
        )
        for size in (less, more)
    ]
    assert bills[0].exact <= bills[1].exact


@given(OFFERS, SECONDS, SECONDS, SECONDS)
def test_additional_time_is_part_of_one_bill(
    offer: Any, duration_s: Decimal, boot_s: Decimal, lost_work_s: Decimal
) -> None:
    """Work, boot and lost work together cost what one life of that length costs."""
    parts = quote(
        offer,
        Usage(duration_s=duration_s, boot_s=boot_s, lost_work_s=lost_work_s, as_of=ASKED_ON),
    )
    whole = quote(offer, Usage(duration_s=duration_s + boot_s + lost_work_s, as_of=ASKED_ON))
    assert abs(parts.exact - whole.exact) < Decimal("1e-15")
    assert parts.billed_s == whole.billed_s


def test_the_whole_catalog_can_be_quoted() -> None:
    """Every offer of every day has a bill."""
    for day in (date(2024, 6, 1), date(2026, 6, 1), ASKED_ON):
        catalog = Catalog(as_of=day, rows=BUNDLED.rows)
        for offer in catalog.offers:
            assert quote(offer, Usage(duration_s=HOUR, as_of=day)).total > 0
