"""What must hold for every bill; the table of bills is in test_bills.py."""

import csv
import json
import math
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpucost.files.quote_documents import document_of
from planner.models.document import encode
from pricing.billing.billing_rule import all_rules
from pricing.billing.quote import Quote, Usage, quote
from pricing.catalog.catalog import Catalog, load_catalog
from pricing.errors import InputError
from pricing.money import cents
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
VERDA = "verda/1H100.80S.32V"
CRUSOE, RUNPOD = "crusoe/a100-80gb.1x/us-east1-a", "runpod/1x_A100-SXM-80GB_secure"
AZURE, LAMBDA = "azure/Standard_NC8as_T4_v3/uksouth", "lambda/gpu_8x_h100_sxm5"


def test_conformance_bills(shared: Path) -> None:
    """The published sample of bills comes out to the cent."""
    # Since the contract says that AWS calls 2^30 bytes a GB: 10^9 x 500 are 465.66 of its GB.
    overtaken = {("aws/p5.48xlarge/us-east-1", "--duration 10h --egress 500GB"): "32.91"}
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
        usd = overtaken.get((row["offer"], row["arguments"]), row["usd"])
        assert _sum(bill, row["line"]) == usd, row


@pytest.mark.parametrize(
    ("name", "use", "said"),
    [
        (CRUSOE, {"duration_s": 60}, "crusoe: the billing granularity is not documented"),
        ("verda/verda-h100-sxm-on-demand", {"duration_s": 60}, "granularity of 600 s is a lead"),
        ("aws/p4d.24xlarge/us-gov-west-1", {"duration_s": 60, "storage_bytes": GB},
         "volume storage at aws/us-gov-west-1 is not known"),
        (RUNPOD, {"duration_s": 60, "storage_bytes": GB}, "how many bytes its GB has"),
        ("gcp/a2-highgpu-1g/us-central1", {"duration_s": 60, "purchase": "spot",
         "interrupted": True}, "spot machines that it ends itself is not documented"),
        (LAMBDA, {"duration_s": 90}, "how a part of 60 s is rounded is not documented"),
        (DO1, {"duration_s": 5400, "as_of": date(2025, 6, 1)}, "a part of 3,600 s is rounded"),
        (VERDA, {"duration_s": 60, "egress_bytes": GB}, "egress: the price of traffic out of ver"),
        ("oci/VM.GPU.A10.1", {"duration_s": 60, "egress_bytes": 20_000 * GB},
         "egress of 0.0085 USD/GB is a lead"),
        (AZURE, {"duration_s": 60, "storage_bytes": GB, "storage_kind": "p30"},
         "kinds with a known price: p4, p10"),
        (AZURE, {"duration_s": 60, "storage_bytes": GB, "storage_kind": "p10"},
         "volume storage p10 of 19.71 USD/month is a lead"),
        ("vultr/vultr-l40s-on-demand", {"duration_s": 60, "snapshot_bytes": GB},
         "how many bytes its GB has"),
        (VERDA, {"duration_s": 60, "addresses": 1}, "price of a public IPv4 address at verda"),
        (VERDA, {"duration_s": 60, "boot_disk_bytes": GB}, "boot-disk: the price of boot disk at"),
        (P5, {"duration_s": 60, "control_plane": "ha"}, "kinds with a known price: extended"),
        (A3, {"duration_s": 60, "control_plane": "standard"}, "a part of an hour is rounded"),
        (NEBIUS, {"duration_s": 60, "snapshot_bytes": GB}, "snapshot: the price of snapshots at"),
        ("digitalocean/gpu-mi350x1-288gb-spot", {"duration_s": 60, "egress_bytes": GB,
         "purchase": "spot"}, "includes is not known"),
        ("coreweave/coreweave-h100-sxm-classic", {"duration_s": 60}, "the price is 181 days old"),
        ("oci/VM.GPU.A10.1", {"duration_s": 60}, "'2025/2026 (undated)', not by day"),
    ],
)  # fmt: skip
def test_what_is_unknown_is_said(name: str, use: dict[str, Any], said: str) -> None:
    """Unknown rules and prices, and old ones, are named in a warning."""
    assert any(said in warning for warning in _bill(name, **use).warnings)


@pytest.mark.parametrize(
    ("name", "use", "what"),
    [
        (VERDA, {"egress_bytes": GB}, "egress"),
        (VERDA, {"boot_disk_bytes": GB}, "boot-disk"),
        ("aws/p5.48xlarge/ap-southeast-3", {"egress_bytes": 500 * GIB}, "egress"),
        ("aws/p4d.24xlarge/us-gov-west-1", {"storage_bytes": GB}, "disk"),
        (AZURE, {"storage_bytes": GB, "storage_kind": "p30"}, "disk"),
        (VERDA, {"addresses": 1}, "address"),
        (LAMBDA, {"control_plane": "standard"}, "control-plane"),
        (LAMBDA, {"snapshot_bytes": GB}, "snapshot"),
        (LAMBDA, {"object_storage_bytes": GB}, "object-storage"),
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
        (P5, {"duration_s": 60, "egress_bytes": 500 * GIB},
         ["60 s x 55.04 USD/h / 3600", "(500 GiB - 100 GiB free) x 0.09 USD/GiB"]),
        (P5, {"duration_s": 60, "egress_bytes": 50 * GIB},
         ["60 s x 55.04 USD/h / 3600", "50 GiB within 100 GiB free"]),
        (A3, {"duration_s": 60, "egress_bytes": 2000 * GIB, "egress_to": "australia"},
         ["60 s x 88.49 USD/h / 3600",
          "1,024 GiB x 0.19 USD/GiB + 976 GiB x 0.18 USD/GiB (2,000 GiB)"]),
        (A3, {"duration_s": 60, "egress_bytes": 2024 * GIB},
         ["60 s x 88.49 USD/h / 3600",
          "1,024 GiB x 0.12 USD/GiB + 1,000 GiB x 0.11 USD/GiB (2,024 GiB)"]),
        (DO1, {"duration_s": 7200, "storage_bytes": 500 * GIB},
         ["7,200 s x 4.41 USD/h / 3600",
          "500 GiB x 0.10 USD/GiB-month x 2 h / 730 h per month"]),
        (DO8, {"duration_s": 90, "boot_s": 30},
         ["90 s x 35.28 USD/h / 3600", "30 s x 35.28 USD/h / 3600"]),
        (DO1, {"duration_s": 3600, "snapshot_bytes": GIB, "control_plane": "ha"},
         ["3,600 s x 4.41 USD/h / 3600", "1 GiB x 0.06 USD/GiB-month x 1 h / 730 h per month",
          "40.00 USD/month x 1 h / 730 h"]),
        (P5, {"duration_s": 3600, "addresses": 3, "inter_zone_bytes": GIB},
         ["3,600 s x 55.04 USD/h / 3600", "1 GiB x 0.01 USD/GiB x 2 ways",
          "3 x 1 h x 0.005 USD/h"]),
        (DO1, {"duration_s": 3600, "object_storage_bytes": 251 * GIB},
         ["3,600 s x 4.41 USD/h / 3600", "5.00 USD/month x 1 h / 730 h",
          "1 GiB x 0.02 USD/GiB-month x 1 h / 730 h per month"]),
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
    found = json.loads(json.dumps(encode(document_of(_bill(DO8, duration_s=90)))))
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
        "warnings": [],
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
        ({"duration_s": 1, "addresses": -1}, "addresses is -1"),
        ({"duration_s": 1, "start": datetime(2026, 11, 21)}, "without a time zone"),  # noqa: DTZ001 - that is the case
        ({"duration_s": 1, "start": datetime(2026, 11, 22, tzinfo=UTC)}, "not on the day"),
    ],
)
def test_impossible_uses_are_refused(use: dict[str, Any], said: str) -> None:
    """Negative, infinite or unknown quantities are not a use that could be billed."""
    with pytest.raises(InputError, match=said):
        Usage(as_of=ASKED_ON, **use)


def test_float_noise_does_not_begin_a_second() -> None:
    """0.3 h as 0.1 h + 0.2 h bills 1080 s, not 1081."""
    assert _bill(DO8, duration_s=(0.1 + 0.2) * HOUR).billed_s == 1080


def test_a_machine_that_never_ran_costs_nothing() -> None:
    """No life, no bill: a minimum is for machines that exist."""
    assert _bill(DO8, duration_s=0).exact == 0


QUANTITY = r"s|h|fraction|Gbps|droplets|(GB|GiB)/month"
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
        idle_tail_s=draw(SECONDS),
        snapshot_bytes=draw(BYTES),
        object_storage_bytes=draw(BYTES),
        object_egress_bytes=draw(BYTES),
        inter_zone_bytes=draw(BYTES),
        nat_bytes=draw(BYTES),
        addresses=draw(st.integers(0, 9)),
        nat_gateways=draw(st.integers(0, 3)),
        control_plane=draw(st.sampled_from(("", "standard", "ha", "free"))),
        storage_kind=draw(st.sampled_from(("", "network", "p10"))),
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
    json.dumps(encode(document_of(bill)))


@given(OFFERS, SECONDS, SECONDS, st.integers(1, 8))
def test_more_seconds_never_cost_less(offer: Any, one: Decimal, other: Decimal, count: int) -> None:
    """A longer life of the machines never lowers what they cost."""
    short, long = sorted((one, other))
    bills = [
        quote(offer, Usage(duration_s=duration_s, as_of=ASKED_ON, count=count))
        for duration_s in (short, long)
    ]
    assert bills[0].exact <= bills[1].exact


@given(OFFERS, SECONDS, SECONDS, st.sampled_from(("standard", "ha")))
def test_more_seconds_never_cost_less_beside_machines(
    offer: Any, one: Decimal, other: Decimal, plane: str
) -> None:
    """The same holds with storage and services; traffic is left out, whose allowance grows."""
    bills = [
        quote(
            offer,
            Usage(
                duration_s=duration_s,
                as_of=ASKED_ON,
                storage_bytes=300 * GB,
                snapshot_bytes=GB,
                object_storage_bytes=300 * GIB,
                addresses=2,
                control_plane=plane,
            ),
        ).exact
        for duration_s in sorted((one, other))
    ]
    assert bills[0] <= bills[1] + Decimal("1e-15")


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


def test_every_price_is_in_dollars() -> None:
    """Currencies never mix: no rule that a quote charges is in another one."""
    providers = {offer.provider for offer in BUNDLED.offers}
    units = {
        rule.unit
        for provider in providers
        for rule in all_rules(provider)
        if isinstance(rule.value, Decimal) and not re.fullmatch(QUANTITY, rule.unit)
    }
    assert units
    assert all(unit.startswith("USD") for unit in units), units


def test_parts_of_a_line_are_its_amount() -> None:
    """Quantities at unit prices, as exports show them, multiply out to the line."""
    use = {
        "duration_s": 5000, "storage_bytes": 1500 * GB, "snapshot_bytes": GB, "addresses": 2,
        "control_plane": "standard", "object_storage_bytes": GB, "egress_bytes": 12_000 * GB,
        "inter_zone_bytes": GB, "nat_bytes": GB, "nat_gateways": 1, "idle_tail_s": 77,
    }  # fmt: skip
    for name in (DO1, P5, A3, LAMBDA):
        for line in _bill(name, **use).lines:
            parts = sum(part.counted / part.per * part.unit_usd for part in line.parts)
            assert abs(parts - line.usd) < Decimal("1e-12"), line
