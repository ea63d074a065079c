"""The shipped files: complete, with provenance, consistent with the hardware, as researched."""

import csv
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer, bundled_offers, offer_from_row, offers_from_file
from pricing.catalog.sizes import sizes
from pricing.errors import InputError
from pricing.hardware import find, gpus
from pricing.tables import DATA, names, number, read_csv
from tests.pricing.factories import an_offer

WITHOUT_HARDWARE_ROW = {"Radeon-Pro-V520"}
# Two offers print what is usable of a B300 instead of its 288 GiB (data/README.md).
OTHER_MEMORY = {"verda/verda-b300-sxm-on-demand", "verda/verda-b300-sxm-spot"}


def _facts(shared: Path, name: str) -> list[dict[str, str]]:
    with (shared / "facts" / name).open(newline="") as file:
        return list(csv.DictReader(file))


# Rows of the research that are not offers: Google sells these sizes as spot or flex-start only, and
# its own table of 2025 contradicts two prices of DigitalOcean.
NOT_ON_DEMAND = {"a3-highgpu-1g", "a3-highgpu-2g", "a3-highgpu-4g"}
# Undated, and its page has a dated price since.
REPLACED = "gpu-b200-sxm_8gpu-160vcpu-1792gb"
CONTRADICTED = {("gpu-h100x1-80gb", "6.74"), ("gpu-h100x8-640gb", "47.6")}


def _is_sold(row: dict[str, str]) -> bool:
    only_spot = row["instance_type"] in NOT_ON_DEMAND and row["purchase"] == "on_demand"
    return not only_spot and (row["instance_type"], row["usd_per_hour"]) not in CONTRADICTED


# Names of price pages, whose prices stand under the flavors that the provider sells at them.
PAGE_NAMES = {
    "coreweave": {"hgx-h100", "hgx-h200", "nvidia-a100", "nvidia-b200", "nvidia-b300",
                  "nvidia-l40s"},
    "crusoe": {"NVIDIA L40S 48GB", "NVIDIA A100 80GB PCIe"},
    "hyperstack": {"NVIDIA A100", "NVIDIA A100 NVLink", "NVIDIA H100", "NVIDIA H100 NVLink",
                   "NVIDIA H100 SXM"},
    "nebius": {"NVIDIA HGX B200", "NVIDIA L40S"},
    "jarvis-labs": {"H100 (public list)", "H200 (public list)"},
}  # fmt: skip


def _is_page_name(row: dict[str, str]) -> bool:
    """Whether a researched row is of a price page and ours is of the flavors sold at it."""
    bought = row["provider"] == "coreweave" or row["purchase"] == "on_demand"
    return bought and row["instance_type"] in PAGE_NAMES.get(row["provider"], ())


@cache
def _later(shared: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    """The readings of October 2026, by provider, type and way of buying."""
    rows = _facts(shared, "offers_2026-10.csv")
    return {(row["provider"], row["instance_type"], row["purchase"]): row for row in rows}


def _stands(row: dict[str, str], shared: Path) -> bool:
    """Whether a researched row is an offer that no later reading took the place of."""
    key = (row["provider"], row["instance_type"], row["purchase"])
    later = _later(shared).get(key, {"read_date": ""})
    replaced = row["instance_type"] == REPLACED or later["read_date"] > row["as_of"]
    return _is_sold(row) and not _is_page_name(row) and not replaced


def test_a_later_reading_is_the_price(shared: Path) -> None:
    """Of October's readings the ones of sizes that we have are the price, unless a later one is."""
    ours = {(o.provider, o.instance_type, o.purchase): o for o in bundled_offers() if o.current}
    taken = {key: row for key, row in _later(shared).items() if key in ours}
    assert len(taken) == 60
    for key, row in taken.items():
        if ours[key].as_of_text == row["read_date"]:
            assert ours[key].usd_per_hour == Decimal(row["usd_per_h"]), key
        else:
            assert ours[key].as_of_text > row["read_date"] or not ours[key].dated, key
    assert ours["verda", "1H100.80S.32V", "on_demand"].usd_per_hour == Decimal("3.737")


def _key(offer: Offer) -> tuple[str, ...]:
    return (offer.provider, offer.region, offer.instance_type, offer.gpu, offer.purchase,
            str(offer.usd_per_hour), offer.as_of_text)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "current"), [("offers_fresh.csv", True), ("offers_superseded.csv", False)]
)
def test_every_researched_offer_is_ours_at_the_same_price(
    shared: Path, name: str, *, current: bool
) -> None:
    """Each researched row is in our files with its name, price, date and status."""
    researched = {
        (row["provider"], row["region"], row["instance_type"], row["gpu_model"], row["purchase"],
         row["usd_per_hour"], row["as_of"])
        for row in _facts(shared, name) if (_stands(row, shared) if current else _is_sold(row))
    }  # fmt: skip
    assert researched <= {_key(offer) for offer in bundled_offers() if offer.current is current}


def test_a_price_of_a_page_is_that_of_each_flavor_sold_at_it(shared: Path) -> None:
    """Every flavor costs the researched price of a GPU times its GPUs, and says its host."""
    rows = [row for row in _facts(shared, "offers_fresh.csv") if _is_page_name(row)]
    assert len(rows) == 22
    for row in rows:
        sold = [
            offer
            for offer in bundled_offers()
            if offer.current
            and (offer.provider, offer.gpu, offer.purchase, offer.as_of_text)
            == (row["provider"], row["gpu_model"], row["purchase"], row["as_of"])
            and offer.usd_per_hour * int(row["gpu_count"])
            == Decimal(row["usd_per_hour"]) * int(offer.gpu_count)
        ]
        assert sold, row
        assert all(offer.not_for_rent_reason(offer.as_of) is None for offer in sold)


def test_what_the_newest_research_leaves_out_is_undated(shared: Path) -> None:
    """Every other current row is one of the older research that no dated one took the place of."""
    fresh = {
        (row["provider"], row["instance_type"], row["region"], row["purchase"])
        for row in _facts(shared, "offers_fresh.csv")
    }
    left = [
        offer
        for offer in bundled_offers()
        if offer.current
        and (offer.provider, offer.instance_type, offer.region, offer.purchase) not in fresh
        and offer.provider != "scaleway"
        and not any(word in offer.notes for word in ("lavor", "name and host", "preset"))
    ]
    assert len(left) == 65
    assert not any(offer.dated for offer in left)


def test_researched_windows_and_machines_are_kept(shared: Path) -> None:
    """Windows, counts, memory, processors and RAM of the current rows are as researched."""
    ours = {(o.place, o.purchase): o for o in bundled_offers() if o.current}
    for row in _facts(shared, "offers_fresh.csv"):
        if not _stands(row, shared):
            continue
        region = "" if row["region"] == "*" else f"/{row['region']}"
        offer = ours[f"{row['provider']}/{row['instance_type']}{region}", row["purchase"]]
        if row["valid_from"]:
            assert str(offer.valid_from) == row["valid_from"]
        assert offer.starts <= offer.as_of or row["valid_from"]
        assert offer.gpu_count == float(row["gpu_count"])
        slice_of_gpu = offer.gpu_count < 1  # the research prints the whole GPU's memory for some
        told = (offer.gpu_memory_gib, offer.vcpus, offer.ram_gib)[slice_of_gpu:]
        researched = (row["gpu_memory_gib"], row["vcpus"], row["ram_gib"])[slice_of_gpu:]
        for value, text in zip(told, researched, strict=True):
            assert not text or value == float(text)
        assert offer.confidence == row["confidence"]


def test_one_type_is_one_machine() -> None:
    """A type of a provider has the same processors and memory however and wherever it is sold."""
    machines: dict[tuple[str, str], set[tuple[float | None, ...]]] = {}
    for offer in bundled_offers():
        if offer.current:
            told = (offer.gpu_count, offer.vcpus, offer.ram_gib)
            machines.setdefault((offer.provider, offer.instance_type), set()).add(told)
    several = {name for name, told in machines.items() if len(told) > 1}
    assert not several


def test_a_fresher_row_of_the_same_hardware_is_the_only_one() -> None:
    """No machine is offered twice under a name of the provider and under one of ours.

    Bare metal is another machine than a virtual one with the same GPU.
    """
    names: dict[tuple[object, ...], set[tuple[str, bool]]] = {}
    for offer in load_catalog().offers:
        if "bare-metal" in offer.instance_type:
            continue
        hardware = (offer.provider, offer.region, offer.gpu, offer.gpu_count, offer.purchase,
                    offer.host)  # fmt: skip
        names.setdefault(hardware, set()).add((offer.instance_type, offer.by_hand_at is None))
    twice = [found for found in names.values() if len({own for _, own in found}) > 1]
    assert twice == []


def test_prices_in_euro_carry_their_rate() -> None:
    """Scaleway's list is in EUR: each offer says the price and the rate of the day it was taken at.

    1.1225 by hand: 3.2176 USD (the feed of 2026-10-03) over 2.8665 EUR.
    """
    sold = [offer for offer in load_catalog().offers if offer.provider == "scaleway"]
    assert len(sold) == 17
    for offer in sold:
        euro = Decimal(offer.notes.split(" EUR x 1.1225 (ECB's rate of 2026-10-03")[0])
        assert abs(euro * Decimal("1.1225") - offer.usd_per_hour) <= Decimal("0.00005")


@pytest.mark.parametrize(
    ("provider", "instance_type", "by_hand", "minimum"),
    [
        ("runpod", "1x_H100-SXM-80GB_secure", "https://console.runpod.io", 1),
        ("together", "8x_B200-SXM", "https://api.together.ai", 256),
        ("verda", "1H100.80S.32V", None, 1),
        ("nebius", "NVIDIA HGX B300", "https://console.nebius.com", 1),
        ("nebius", "gpu-h100-sxm_1gpu-16vcpu-200gb", None, 1),
        ("aws", "p5.48xlarge", None, 1),
    ],
)
def test_names_that_nobody_can_rent_are_known(
    provider: str, instance_type: str, by_hand: str | None, minimum: int
) -> None:
    """A name of a price page says where to rent by hand; least orders are known."""
    offer = an_offer(provider=provider, instance_type=instance_type)
    assert (offer.by_hand_at or "").startswith(by_hand or "")
    assert (offer.by_hand_at is None) == (by_hand is None)
    assert offer.minimum_gpus == minimum


def test_every_size_of_the_research_is_ours(shared: Path) -> None:
    """All 37 sizes are here with their transfer and disks, the contracted ones included."""
    researched = _facts(shared, "do_gpu_sizes.csv")
    assert len(researched) == len(sizes()) == 37
    for row in researched:
        size = sizes()["digitalocean", row["slug"]]
        assert size.included_transfer_gib == number(row["transfer_gib_month"])
        assert size.boot_disk_gib == number(row["boot_disk_gib"])
        assert size.scratch_disk_gib == number(row["scratch_disk_gib"])
        assert size.gpu == row["gpu_model"]
    assert sum(size.sold == "contract" for size in sizes().values()) == 18


def test_sizes_and_offers_state_one_price() -> None:
    """A price in the size table is the price of the offer."""
    offers = {o.instance_type: o for o in bundled_offers() if o.current}
    for row in read_csv("digitalocean_sizes.csv"):
        if row["usd_per_hour"]:
            assert offers[row["instance_type"]].usd_per_hour == Decimal(row["usd_per_hour"])


def test_every_gpu_of_an_offer_is_known() -> None:
    """Offers name canonical models; the one model without a hardware row is listed here."""
    unknown = {offer.gpu for offer in bundled_offers() if offer.gpu not in gpus()}
    assert unknown == WITHOUT_HARDWARE_ROW
    assert find("Radeon-Pro-V520") is None


def test_memory_of_offers_is_that_of_the_gpu() -> None:
    """A whole GPU has the memory of its model; a slice has its share of it."""
    for offer in bundled_offers():
        if offer.gpu in WITHOUT_HARDWARE_ROW or offer.name in OTHER_MEMORY:
            continue
        memory_gib = gpus()[offer.gpu].memory_gib * min(1.0, offer.gpu_count)
        assert offer.gpu_memory_gib == pytest.approx(memory_gib, rel=0.08), offer.place


def test_eight_gpus_cost_no_less_than_one() -> None:
    """Prices are for the whole machine: more GPUs of one type name never cost less per machine."""
    by_type = {(o.instance_type, o.region): o for o in bundled_offers() if o.current}
    for small, large in (
        ("gpu_1x_h100_sxm5", "gpu_8x_h100_sxm5"),
        ("gpu-h100x1-80gb", "gpu-h100x8-640gb"),
        ("gpu-mi300x1-192gb", "gpu-mi300x8-1536gb"),
    ):
        one, eight = by_type[small, "*"], by_type[large, "*"]
        assert 7 * one.usd_per_hour < eight.usd_per_hour <= 8 * one.usd_per_hour


@pytest.mark.parametrize("name", names("**/*.csv"))
def test_every_row_has_provenance(name: str) -> None:
    """Each row of each table has a source, a date and a confidence."""
    rows = read_csv(name)
    assert rows
    for row in rows:
        assert row["source"], row
        assert row["as_of"], row
        assert row["confidence"] in {"high", "medium", "low"}, row


def test_regional_egress_is_as_researched(shared: Path) -> None:
    """Every researched price of traffic to the internet is in our table."""
    ours = {(row["region"], row["usd_per_gb"]) for row in read_csv("aws_egress.csv")}
    for row in _facts(shared, "aws_egress_by_region.csv"):
        assert (row["region"], row["usd_per_gb"]) in ours


def test_spot_advisor_is_as_researched(shared: Path) -> None:
    """Savings and interruption buckets are the researched ones."""
    ours = {
        (row["region"], row["instance_type"]): (row["savings_fraction"], row["bucket_index"])
        for row in read_csv("aws_spot_advisor.csv")
    }
    researched = _facts(shared, "aws_spot_advisor.csv")
    assert len(ours) == len(researched)
    for row in researched:
        saving = f"{int(row['savings_over_on_demand_pct']) / 100:.2f}"
        assert ours[row["region"], row["instance_type"]] == (saving, row["bucket_index"])


@pytest.mark.parametrize(
    ("column", "value"),
    [("usd_per_hour", "0"), ("usd_per_hour", "free"), ("as_of", "older"), ("gpu_count", "many"),
     ("valid_until", "soon"), ("purchase", "")],
)  # fmt: skip
def test_a_bad_offer_row_is_refused(column: str, value: str) -> None:
    """A row with a zero price, no date or no number never becomes an offer."""
    row = read_csv("offers/lambda.csv")[0]
    with pytest.raises((InputError, ValueError)):
        offer_from_row("lambda", row | {column: value})


def test_every_bad_row_of_a_file_is_named(tmp_path: Path) -> None:
    """A file with bad rows is refused once, with the line and the value of each."""
    text = (DATA / "offers/lambda.csv").read_text(encoding="utf-8")
    header, *lines = csv.reader(text.splitlines())
    lines[1][header.index("usd_per_hour")] = "free"
    lines[3][header.index("gpu_count")] = "many"
    lines[4][header.index("gpu_memory_gib")] = "0"
    file = tmp_path / "offers.csv"
    with file.open("w", newline="", encoding="utf-8") as written:
        csv.writer(written).writerows((header, *lines))
    with pytest.raises(InputError) as refused:
        offers_from_file("lambda", str(file))
    first, second, third = refused.value.problems
    assert f"{file}:3: " in first
    assert "free" in first
    assert f"{file}:5: " in second
    assert "many" in second
    assert f"{file}:6: " in third
    assert "gpu_memory_gib is 0" in third


def test_the_order_of_columns_does_not_matter(tmp_path: Path) -> None:
    """A file with its columns turned round holds the same offers."""
    rows = read_csv("offers/lambda.csv")
    file = tmp_path / "offers.csv"
    with file.open("w", newline="", encoding="utf-8") as written:
        writer = csv.DictWriter(written, [*reversed(rows[0])])
        writer.writeheader()
        writer.writerows(rows)
    assert offers_from_file("lambda", str(file)) == [offer_from_row("lambda", row) for row in rows]
