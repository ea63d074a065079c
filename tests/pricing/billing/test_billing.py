"""Billing rules are data: complete, windowed, in the provider's own units, never a lead."""

import csv
import re
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pricing import tables
from pricing.billing import billing_rule
from pricing.billing.billing_rule import BillingRule, Gigabyte, all_rules, caveats
from pricing.billing.provider_rules import rules_of
from pricing.catalog.offer import bundled_offers
from pricing.errors import InputError
from pricing.tables import names
from tests.pricing.factories import ASKED_ON

PROVIDERS = sorted({offer.provider for offer in bundled_offers()})

# Names that changed on the way from the research to data/billing.
RENAMED = {
    "minimum_charge_s": "minimum_s",
    "minimum_charge_usd": "minimum_usd",
    "stopped_instance_billed": "stopped_billed",
    "cpu_droplet_monthly_cap_h": "cpu_monthly_cap_h",
    "gpu_droplet_monthly_cap_h": "gpu_monthly_price_h",
    "included_transfer x1 H100/H200/MI300X/MI325X": "included_transfer_x1",
    "included_transfer x8": "included_transfer_x8",
    "included_transfer L40S/RTX4000Ada/RTX6000Ada": "included_transfer_workstation",
    "egress_overage": "egress",
    "boot/scratch x1": "disks_x1",
    "boot/scratch x8": "disks_x8",
    "block_storage_gp3": "volume_storage",
    "object_storage_s3_std": "object_storage",
    "nat_gateway": "nat_gateway_hour",
    "p4d/p4de/p5 price cut": "price_change",
    "pd_standard": "volume_storage",
    "pd_ssd": "volume_storage",
    "object_storage_standard": "object_storage",
    "ipv4_in_use": "ipv4",
    "ipv4_static": "ipv4",
    "spot_discount_max": "spot_discount_max_fraction",
    "managed_disk_P10_128GiB": "volume_storage",
    "filesystem": "volume_storage",
    "object_storage_extra": "object_storage",
    "k8s_ha_control_plane": "k8s_control_plane",
    "inter_az_each_way": "inter_zone_each_way",
    "intra_continent": "inter_region",
    "container_disk": "volume_storage",
    "volume_disk_stopped": "volume_storage",
    "network_volume": "volume_storage",
}
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def test_every_researched_rule_has_a_home(shared: Path) -> None:
    """All 100 researched rows are in our files, numbers with the same value and unit."""
    with (shared / "facts/billing.csv").open(newline="") as file:
        researched = list(csv.DictReader(file))
    assert len(researched) == 100
    for row in researched:
        if row["rule"] == "all":
            continue  # "not established" then; rules were found since
        name = RENAMED.get(row["rule"], "egress" if " TB" in row["rule"] else row["rule"])
        ours = [rule for rule in all_rules(row["provider"]) if rule.name == name]
        assert ours, row
        if NUMBER.fullmatch(row["value"]):
            same = [r for r in ours if (r.value, r.unit) == (Decimal(row["value"]), row["unit"])]
            assert same, row
        if not row["source"]:
            assert all(rule.is_lead or "https://" in rule.source for rule in ours), row


def test_every_rule_is_charged_or_it_is_said_why_not() -> None:
    """The tables of data/README.md name every rule there is, each once."""
    text = (tables.DATA / "README.md").read_text(encoding="utf-8")
    rows = text.split("Quotes charge by these names")[1].split("## Our readings")[0].splitlines()
    cells = [row.split("|")[1] for row in rows if row.startswith("| `")]
    told = [name for cell in cells for part in cell.split("`")[1::2] for name in part.split()]
    files = names("billing/*.toml")
    known = {rule.name for file in files for rule in all_rules(Path(file).stem)}
    assert sorted(told) == sorted(known)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_rules_of_every_provider_are_readable(provider: str) -> None:
    """Every provider's rules load, have provenance, and are what quotes can use."""
    for rule in all_rules(provider):
        assert rule.source, rule
        assert rule.as_of, rule
        assert rule.confidence in {"high", "medium", "low", "lead"}, rule
        assert rule.is_lead or "https://" in rule.source, rule
    rules = rules_of(provider, ASKED_ON)
    for amount in (rules.granularity_s, rules.minimum_s, rules.minimum_usd):
        assert amount is None or amount > 0
    storage = rules.rule("volume_storage")
    assert storage is None or storage.each_gib or storage.per in {"GB", "GiB"}
    for offer in bundled_offers():
        if offer.provider == provider:
            rules.egress(offer.region)


@pytest.mark.parametrize(
    ("provider", "day", "terms"),
    [
        ("digitalocean", date(2025, 12, 31), (3600, 60, "0.01", "yes")),
        ("digitalocean", date(2026, 1, 1), (1, 60, "0.01", "yes")),
        ("aws", ASKED_ON, (1, 60, None, "no")),
        ("gcp", ASKED_ON, (1, 60, None, "no")),
        ("azure", ASKED_ON, (1, 60, None, "until deallocated")),
        ("lambda", ASKED_ON, (60, None, None, "no stop state")),
        ("runpod", ASKED_ON, (1, None, None, "no")),
        ("together", ASKED_ON, (3600, None, None, None)),
        ("hotaisle", ASKED_ON, (60, None, None, None)),
        ("nebius", ASKED_ON, (1, None, None, "no")),
        ("verda", ASKED_ON, (600, None, None, "yes")),
        ("coreweave", ASKED_ON, (60, None, None, None)),
        ("vultr", ASKED_ON, (3600, None, None, "yes")),
        ("crusoe", ASKED_ON, (None, None, None, "no")),
        ("nobody", ASKED_ON, (None, None, None, None)),
    ],
)
def test_terms_of_the_day(provider: str, day: date, terms: tuple[Any, ...]) -> None:
    """Granularity, minima and stopping: windows kept, leads unused, the undocumented unknown."""
    rules = rules_of(provider, day)
    granularity_s, minimum_s, minimum_usd, stopped = terms
    assert (rules.granularity_s, rules.minimum_s) == (granularity_s, minimum_s)
    assert rules.minimum_usd == (None if minimum_usd is None else Decimal(minimum_usd))
    assert rules.stopped_billed == stopped


@pytest.mark.parametrize(
    ("provider", "region", "terms"),
    [
        ("digitalocean", "*", ("GiB", 0, "0.01", 1)),
        ("aws", "us-east-1", ("GiB", 100, "0.09", 4)),
        ("aws", "us-gov-west-1", ("GiB", 100, "0.155", 4)),
        ("aws", "af-south-1", ("GiB", 100, "0.154", 4)),
        ("aws", "eu-south-2", ("GiB", 100, "0.09", 4)),
        ("aws", "ap-southeast-3", ("GiB", 100, None, 0)),
        ("gcp", "us-central1", ("GiB", 0, "0.12", 3)),
        ("azure", "uksouth", ("GiB", 100, "0.087", 4)),
        ("azure", "japaneast", ("GiB", 100, "0.12", 4)),
        ("azure", "brazilsouth", ("GiB", 100, "0.181", 4)),
        ("azure", "australiaeast", ("GiB", 100, "0.12", 4)),
        ("azure", "chinaeast", ("GiB", 100, None, 0)),
        ("oci", "*", ("GB", 10240, "0.0085", 1)),
        ("runpod", "*", ("GB", 0, "0", 1)),
    ],
)
def test_egress_by_region(provider: str, region: str, terms: tuple[Any, ...]) -> None:
    """A region's own tiers beat patterns; a region with neither has no known price."""
    price = rules_of(provider, ASKED_ON).egress(region)
    assert price is not None
    unit, free_per_month, first_price, tiers = terms
    assert (price.unit, price.free_per_month) == (unit, free_per_month)
    assert len(price.tiers) == tiers
    if tiers:
        assert price.tiers[0].amount == Decimal(first_price)


@pytest.mark.parametrize("provider", ["verda", "vast", "nobody"])
def test_undocumented_egress_is_unknown(provider: str) -> None:
    """Without a rule the price is unknown, not zero."""
    assert rules_of(provider, ASKED_ON).egress("*") is None


def a_rule(**changes: Any) -> BillingRule:
    """A plain tier of egress."""
    fields: dict[str, Any] = {
        "provider": "example", "name": "egress", "value": Decimal("0.01"), "unit": "USD/GB",
        "source": "a test", "as_of": "2026-11-01", "confidence": "high",
    }  # fmt: skip
    return BillingRule(**fields | changes)


@pytest.mark.parametrize(
    ("unit", "per"),
    [("USD/GB", "GB"), ("USD/GiB-month", "GiB"), ("GB/month", "GB"), ("USD/GB-month", "GB")],
)
def test_units_are_as_printed(unit: str, per: str) -> None:
    """GB and GiB are told apart by the rule's own unit."""
    assert a_rule(unit=unit).per == per


@pytest.mark.parametrize(
    ("provider", "size"),
    [("aws", 2**30), ("gcp", 2**30), ("azure", 2**30), ("runpod", 10**9), ("digitalocean", 2**30)],
)
def test_a_gb_is_what_the_provider_says(provider: str, size: int) -> None:
    """Every rule by size knows its bytes, with the sentence that says so."""
    priced = [rule for rule in all_rules(provider) if rule.unit.startswith(("USD/GB", "USD/GiB"))]
    assert priced
    for rule in priced:
        assert rule.bytes_per_unit == size, rule
        if rule.printed == "GB" and size == 2**30:
            assert rule.gigabyte is not None
            assert "2^30 bytes" in rule.gigabyte.sentence
            assert "https://" in rule.gigabyte.source


def test_leads_and_unexplained_units_are_said() -> None:
    """A lead names its price, and a GB that nobody explains is 10^9 bytes with a warning."""
    (lead, unit) = caveats([a_rule(confidence="lead", note="heard of")])
    assert (
        lead == "example: egress of 0.01 USD/GB is a lead, not a fact; check it: a test; heard of"
    )
    assert "10^9 are taken" in unit
    said = Gigabyte(Decimal(2**30), "1 GB is 2^30 bytes", "https://example.com", "2026")
    assert caveats([a_rule(gigabyte=said)]) == ()


def test_words_and_foreign_units_are_refused_as_prices() -> None:
    """A rule that is words, or is per something else, is an error where a price is needed."""
    with pytest.raises(InputError, match="where a number is needed"):
        _ = a_rule(value="about a cent").amount
    with pytest.raises(InputError, match="neither GB nor GiB"):
        _ = a_rule(unit="USD/h").per


TIER = """
[[rule]]
name = "egress"
value = 1
unit = "USD/GB"
source = "s"
as_of = "2026"
confidence = "high"
"""
FREE = TIER.replace("egress", "egress_free").replace("USD/GB", "GiB/month")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (TIER.replace('confidence = "high"', ""), "field 'confidence' is missing"),
        (TIER.replace("value", "valu"), "unknown field 'valu'"),
        (TIER + "from = 5", "egress has no price from 0 GB"),
        (TIER + "until = 5" + TIER + "from = 4", "egress has no price from 5 GB"),
        (TIER + "until = 5", "egress has no price from 5 GB"),
        (TIER + FREE, "egress has both GB and GiB"),
    ],
)
def test_bad_rule_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: str, said: str
) -> None:
    """A missing field, an unknown field, a gap between tiers or mixed units is an error."""
    (tmp_path / "billing").mkdir()
    broken = f"broken-{len(document)}"  # rules are kept by provider
    (tmp_path / f"billing/{broken}.toml").write_text(document)
    monkeypatch.setattr(tables, "DATA", tmp_path)
    monkeypatch.setattr(billing_rule, "DATA", tmp_path)
    all_rules.cache_clear()
    with pytest.raises(InputError, match=said):
        rules_of(broken, date(2001, 1, 1)).egress("*")
    all_rules.cache_clear()
