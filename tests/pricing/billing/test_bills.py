"""One table of bills, each with its arithmetic in words: 0 cents off.

116 bills at 16 providers, worked by hand from the rules in pricing/data. Those that others worked
out are in outside_bills.csv.
"""

from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, NamedTuple

import pytest

from pricing.billing.quote import Quote, Usage, quote, quote_over
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from tests.pricing.factories import ASKED_ON, an_offer

GB, GIB, HOUR, MONTH = 10**9, 2**30, 3600, 730 * 3600
BUNDLED = load_catalog(ASKED_ON)

DO8, DO1 = "digitalocean/gpu-h100x8-640gb", "digitalocean/gpu-h100x1-80gb"
DO_ADA, P5 = "digitalocean/gpu-4000adax1-20gb", "aws/p5.48xlarge/us-east-1"
A3, UNRULED = "gcp/a3-highgpu-8g/us-central1", an_offer(usd_per_hour=Decimal("4.76"))
AZURE, LAMBDA = "azure/Standard_NC8as_T4_v3/uksouth", "lambda/gpu_8x_h100_sxm5"
RUNPOD = "runpod/1x_A100-SXM-80GB_secure"

WEST, FRANKFURT = (
    an_offer(provider="aws", region=there) for there in ("us-west-2", "eu-central-1")
)
"""Machines in the region of a bill; only what is beside them is compared."""


def droplet(usd_per_hour: str) -> Offer:
    """A size of the examples, which are about sizes without GPUs."""
    return an_offer(provider="digitalocean", usd_per_hour=Decimal(usd_per_hour))


def at(text: str) -> datetime:
    """An instant in UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


BY_HAND = [
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
    (DO1, {"duration_s": 1.5 * HOUR, "as_of": date(2025, 12, 31)}, "compute", "6.78",
     "by the hour in 2025: 2 x 3.39"),
    (DO1, {"duration_s": 1.5 * HOUR, "as_of": date(2026, 1, 1)}, "compute", "5.09",
     "by the second in 2026: 1.5 x 3.39 = 5.085, half up"),
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
    (P5, {"duration_s": 10 * HOUR, "egress_bytes": 500 * GIB}, "egress", "36.00",
     "100 GB free; 400 x 0.09"),
    (P5, {"duration_s": HOUR, "egress_bytes": 100 * GIB}, "egress", "0.00", "the free 100 GB"),
    (P5, {"duration_s": HOUR, "egress_bytes": 11_000 * GIB}, "egress", "977.70",
     "100 free; 10240 x 0.09 + 660 x 0.085"),
    (P5, {"duration_s": HOUR, "egress_bytes": 200_100 * GIB}, "egress", "13891.20",
     "10240 x 0.09 + 40960 x 0.085 + 102400 x 0.07 + 46400 x 0.05"),
    (P5, {"duration_s": 1460 * HOUR, "egress_bytes": 400 * GIB}, "egress", "18.00",
     "two months, 100 GB free in each; 200 x 0.09"),
    ("aws/p4d.24xlarge/us-gov-west-1", {"duration_s": HOUR, "egress_bytes": 200 * GIB}, "egress",
     "15.50", "100 x 0.155 in GovCloud"),
    (P5, {"duration_s": 365 * HOUR, "storage_bytes": 1000 * GIB}, "disk", "40.00",
     "gp3: 1000 x 0.08 / 2"),
    (A3, {"duration_s": 45}, "compute", "1.47", "at least 60 s: 88.49 / 60 = 1.4748"),
    (A3, {"duration_s": HOUR, "egress_bytes": 2024 * GIB}, "egress", "232.88",
     "1024 x 0.12 + 1000 x 0.11"),
    (A3, {"duration_s": 10 * HOUR, "storage_bytes": 730 * GIB}, "disk", "0.40",
     "730 x 0.04 x 10 / 730"),
    (AZURE, {"duration_s": 20}, "compute", "0.01", "at least 60 s: 0.88 / 60 = 0.0147"),
    (AZURE, {"duration_s": HOUR, "egress_bytes": 600 * GIB}, "egress", "43.50",
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
    ("hotaisle/1x_MI300X", {"duration_s": 90}, "compute", "0.10",
     "whole minutes: 2 x 2.99 / 60 = 0.0997"),
    ("nebius/gpu-h100-sxm_1gpu-16vcpu-200gb", {"duration_s": 5400}, "compute", "6.75",
     "by the second: 1.5 x 4.50"),
    ("vultr/vultr-l40s-on-demand", {"duration_s": 90}, "compute", "1.67", "a whole hour: 1.671"),
    ("vultr/vultr-l40s-on-demand", {"duration_s": 744 * HOUR}, "compute", "1219.83",
     "no more than 730 h of a month: 730 x 1.671"),
    ("oci/VM.GPU.A10.1", {"duration_s": 30}, "compute", "0.03", "at least 60 s: 2.00 / 60"),
    ("oci/BM.GPU.H100.8", {"duration_s": 90}, "compute", "80.00", "bare metal: at least an hour"),
    ("oci/BM.GPU.H100.8", {"duration_s": 5400}, "compute", "120.00", "then by the second"),
    (P5, {"duration_s": 745 * HOUR, "egress_bytes": 500 * GIB}, "egress", "36.00",
     "the free 100 GB are a month's: an hour more does not double them"),
    (P5, {"duration_s": 48 * HOUR, "egress_bytes": 400 * GIB, "start": at("2026-10-31")}, "egress",
     "18.00", "200 GB in October, 200 GB in November, 100 free in each: 200 x 0.09"),
    (AZURE, {"duration_s": HOUR, "egress_bytes": 61_440 * GIB}, "egress", "5000.36",
     "100 free; 10240 x 0.087 + 40960 x 0.083 + 10140 x 0.07"),
    (AZURE, {"duration_s": 10 * HOUR, "nat_gateways": 1}, "address", "0.45", "10 x 0.045"),
    (AZURE, {"duration_s": HOUR, "nat_bytes": 100 * GIB}, "egress", "4.50", "100 x 0.045"),
    (A3, {"duration_s": HOUR, "egress_bytes": 100 * GIB, "egress_to": "china"}, "egress", "23.00",
     "to China: 100 x 0.23"),
    (A3, {"duration_s": HOUR, "egress_bytes": 100 * GIB, "egress_to": "australia"}, "egress",
     "19.00", "to Australia: 100 x 0.19"),
    (A3, {"duration_s": HOUR, "egress_bytes": 100 * GIB, "egress_to": "germany"}, "egress",
     "12.00", "elsewhere the usual price: 100 x 0.12"),
    ("aws/g6.xlarge/us-east-1", {"duration_s": MONTH, "boot_disk_bytes": 100 * GIB}, "boot-disk",
     "8.00", "gp3: 100 x 0.08"),
    ("aws/g6.xlarge/us-east-1", {"duration_s": 73 * HOUR, "count": 4, "storage_h": 730,
     "boot_disk_bytes": 100 * GIB}, "boot-disk", "3.20", "4 machines for 73 h: 4 x 8.00 / 10"),
    ("aws/g6.xlarge/us-east-1", {"duration_s": 73 * HOUR, "boot_disk_h": 730,
     "boot_disk_bytes": 100 * GIB}, "boot-disk", "8.00", "off 657 of 730 h, the disk stays"),
    ("runpod/1x_RTX-4090_secure", {"duration_s": 73 * HOUR, "boot_disk_h": 730,
     "boot_disk_bytes": 100 * GB}, "boot-disk", "19.00", "100 x (0.10 x 73 + 0.20 x 657) / 730"),
    ("lambda/gpu_1x_a10", {"duration_s": 73 * HOUR, "boot_disk_h": 730,
     "boot_disk_bytes": 100 * GIB}, "boot-disk", "18.25",
     "its own disk goes, a filesystem stays for 657 of 720 h: 100 x 0.20 x 657 / 720"),
    ("azure/Standard_NC4as_T4_v3/eastus", {"duration_s": 20 * HOUR, "count": 2,
     "boot_disk_bytes": 100 * GIB}, "boot-disk", "1.08", "a P10 each, 20 of 730 h: 2 x 0.54"),
    (DO8, {"duration_s": MONTH, "boot_disk_bytes": 100 * GIB}, "boot-disk", "0.00",
     "2,046 GiB come with the machine"),
    ("lambda/gpu_1x_a10", {"duration_s": MONTH, "boot_disk_bytes": 100 * GIB}, "boot-disk", "0.00",
     "it comes with its SSD; 0.20 is the filesystem's price"),
    ("runpod/1x_A100-PCIe-80GB_secure", {"duration_s": MONTH, "boot_disk_bytes": 100 * GB},
     "boot-disk", "10.00", "the container disk: 100 x 0.10"),
    ("nebius/gpu-h100-sxm_1gpu-16vcpu-200gb", {"duration_s": MONTH, "addresses": 1}, "address",
     "0.00", "free"),
    ("aws/g6.xlarge/us-east-1", {"duration_s": MONTH, "storage_bytes": 500 * GIB}, "disk", "40.00",
     "gp3: 500 x 0.08"),
    (FRANKFURT, {"duration_s": MONTH, "storage_bytes": 500 * GIB}, "disk",
     "47.60", "gp3 in Frankfurt: 500 x 0.0952"),
    ("digitalocean/gpu-mi300x1-192gb-contracted", {"duration_s": 10 * HOUR, "commitment": "term",
     "purchase": "reserved_1y"}, "compute", "16731.60", "a year is owed whole: 8760 x 1.91"),
    ("digitalocean/gpu-mi300x1-192gb-contracted", {"duration_s": 8761 * HOUR, "commitment": "term",
     "purchase": "reserved_1y"}, "compute", "33463.20", "a second year begins: 2 x 8760 x 1.91"),
    ("coreweave/coreweave-h100-sxm-classic", {"duration_s": 90}, "compute", "0.16",
     "whole minutes: 2 x 4.76 / 60 = 0.1587"),
    (UNRULED, {"duration_s": 5400}, "compute", "9.52", "granularity unknown: 2 x 4.76"),
    (UNRULED, {"duration_s": 1800, "lost_work_s": 1200}, "lost-work", "0.00",
     "inside the hour that is paid anyway"),
    (UNRULED, {"duration_s": 1800, "lost_work_s": 2400}, "lost-work", "4.76",
     "the second hour begins"),
    (DO8, {"duration_s": HOUR, "idle_tail_s": 1800}, "idle-tail", "17.64",
     "half an hour after the work at 35.28"),
    (UNRULED, {"duration_s": HOUR, "idle_tail_s": 60}, "idle-tail", "4.76",
     "a second hour begins"),
    (DO1, {"duration_s": 365 * HOUR, "control_plane": "ha"}, "control-plane", "20.00",
     "DOKS HA prorated: 40 x 365 / 730"),
    (DO1, {"duration_s": 744 * HOUR, "control_plane": "ha"}, "control-plane", "40.00",
     "a month of 744 h costs one month's fee"),
    (DO1, {"duration_s": 365 * HOUR, "control_plane": "standard"}, "control-plane", "0.00",
     "DOKS is free"),
    (A3, {"duration_s": 1.5 * HOUR, "control_plane": "standard"}, "control-plane", "0.20",
     "GKE: begun hours count: 2 x 0.10"),
    (AZURE, {"duration_s": 10 * HOUR, "control_plane": "standard"}, "control-plane", "1.00",
     "AKS with SLA: 10 x 0.10"),
    (AZURE, {"duration_s": 10 * HOUR, "control_plane": "free"}, "control-plane", "0.00",
     "AKS free tier"),
    (P5, {"duration_s": 10 * HOUR, "addresses": 8}, "address", "0.40", "8 x 10 x 0.005"),
    (AZURE, {"duration_s": 100 * HOUR, "addresses": 1}, "address", "0.50", "100 x 0.005"),
    ("gcp/a2-highgpu-1g/us-central1", {"duration_s": 100 * HOUR, "addresses": 2,
     "purchase": "spot"}, "address", "0.50", "on spot half the price: 2 x 100 x 0.0025"),
    (P5, {"duration_s": 1.5 * HOUR, "nat_gateways": 1}, "address", "0.09",
     "a begun hour is whole: 2 x 0.045"),
    (DO1, {"duration_s": MONTH, "snapshot_bytes": 100 * GIB}, "snapshot", "6.00", "100 x 0.06"),
    (A3, {"duration_s": 73 * HOUR, "snapshot_bytes": 1000 * GIB}, "snapshot", "5.00",
     "1000 x 0.05 x 73 / 730, 0.026 in lists before 2025-03-06"),
    (DO1, {"duration_s": MONTH, "object_storage_bytes": 300 * GIB}, "object-storage", "6.00",
     "5 with 250 GiB, 50 x 0.02 beyond"),
    (DO1, {"duration_s": 73 * HOUR, "object_storage_bytes": GIB}, "object-storage", "0.50",
     "5 x 73 / 730"),
    (DO1, {"duration_s": HOUR, "object_storage_bytes": GIB, "object_egress_bytes": 2048 * GIB},
     "egress", "10.24", "1024 GiB in the base price; 1024 x 0.01"),
    (P5, {"duration_s": MONTH, "object_storage_bytes": 1000 * GIB}, "object-storage", "23.00",
     "1000 x 0.023"),
    (A3, {"duration_s": MONTH, "object_storage_bytes": 100 * GIB}, "object-storage", "2.00",
     "100 x 0.020: a bucket of the machine's region"),
    (P5, {"duration_s": HOUR, "inter_zone_bytes": 100 * GIB}, "egress", "2.00",
     "0.01 where it leaves, 0.01 where it arrives"),
    (P5, {"duration_s": HOUR, "inter_region_bytes": 100 * GIB}, "egress", "2.00", "100 x 0.02"),
    (A3, {"duration_s": HOUR, "inter_region_bytes": 500 * GIB}, "egress", "10.00", "500 x 0.02"),
    (DO1, {"duration_s": HOUR, "ingress_bytes": 500 * GIB}, "egress", "0.00", "inbound is free"),
    (RUNPOD, {"duration_s": MONTH, "storage_bytes": 2000 * GB, "storage_kind": "network"}, "disk",
     "120.00", "1000 x 0.07 + 1000 x 0.05"),
    (RUNPOD, {"duration_s": 73 * HOUR, "storage_bytes": 100 * GB, "storage_kind": "stopped"},
     "disk", "2.00", "100 x 0.20 x 73 / 730"),
    (RUNPOD, {"duration_s": 73 * HOUR, "storage_bytes": 100 * GB, "storage_kind": "container"},
     "disk", "1.00", "100 x 0.10 x 73 / 730"),
    (AZURE, {"duration_s": 20 * HOUR, "storage_bytes": 100 * GIB, "storage_kind": "p10"}, "disk",
     "0.54", "a begun disk of 128 GiB, by the hour: 19.71 x 20 / 730"),
    (AZURE, {"duration_s": 20 * HOUR, "storage_bytes": 128 * GIB}, "disk", "0.54",
     "the usual disk: one P10 is less than four P4 of 5.28"),
    (AZURE, {"duration_s": MONTH, "storage_bytes": 30 * GIB}, "disk", "5.28", "one P4"),
    (AZURE, {"duration_s": MONTH, "storage_bytes": 500 * GIB, "storage_kind": "p10"}, "disk",
     "78.84", "4 disks of 128 GiB: 4 x 19.71"),
    (P5, {"duration_s": 12 * HOUR, "storage_bytes": 2000 * GIB, "start": at("2026-11-10")}, "disk",
     "2.67", "November has 720 h: 2000 x 0.08 x 12 / 720"),
    (P5, {"duration_s": 744 * HOUR, "storage_bytes": 1000 * GIB}, "disk", "80.00",
     "a whole month of any length is one month: 1000 x 0.08"),
    (P5, {"duration_s": 48 * HOUR, "storage_bytes": 744 * GIB, "start": at("2026-10-31")}, "disk",
     "3.90", "744 x 0.08 x 24 / 744 in October + 744 x 0.08 x 24 / 720 in November"),
    (DO1, {"duration_s": 24 * HOUR, "start": at("2026-07-31T12:00")}, "compute", "93.60",
     "12 x 3.39 until the end of July + 12 x 4.41"),
    (DO8, {"duration_s": 2 * HOUR, "start": at("2024-12-31T23:00")}, "compute", "43.92",
     "the promotion ends: 20.00 + 23.92"),
    (DO8, {"duration_s": HOUR, "start": at("2024-12-31T23:30")}, "compute", "20.00",
     "the hour that begins in the promotion has its price"),
    (DO1, {"duration_s": 1.5 * HOUR, "start": at("2025-12-31T23:30")}, "compute", "5.09",
     "the hour begun in 2025 is whole, 30 min by the second in 2026: 3.39 + 1.695, half up"),
    (DO1, {"duration_s": HOUR, "idle_tail_s": HOUR, "start": at("2026-07-31T23:00")}, "idle-tail",
     "4.41", "the second hour has the new price"),
]  # fmt: skip


class Bill(NamedTuple):
    """What is asked for, what it costs and why."""

    offer: str | Offer
    use: dict[str, Any]
    what: str
    usd: str
    why: str


BILLS = tuple(Bill(*row) for row in BY_HAND)


def _quote(
    name: str | Offer,
    *,
    as_of: date = ASKED_ON,
    purchase: str = "on_demand",
    start: datetime | None = None,
    **use: Any,
) -> Quote:
    day = as_of if start is None else start.date()
    usage = Usage(as_of=day, start=start, **use)
    if isinstance(name, Offer):
        return quote(name, usage)
    provider, instance_type, region = (*name.split("/"), None)[:3]
    if start is None:
        found = BUNDLED.at(day).find(str(provider), str(instance_type), region, purchase)
        return quote(found, usage)
    rows = BUNDLED.history(str(provider), str(instance_type), region, purchase)
    return quote_over(rows, usage, region)


@pytest.mark.parametrize("bill", BILLS, ids=lambda bill: f"{bill.usd} {bill.what}")
def test_every_bill_to_the_cent(bill: Bill) -> None:
    """Each bill is what the arithmetic in words says: 0 cents off."""
    lines = [line.usd for line in _quote(bill.offer, **bill.use).lines if line.what == bill.what]
    assert lines, f"no {bill.what} line: {bill.why}"
    digits = Decimal(bill.usd)
    assert sum(lines).quantize(digits, ROUND_HALF_UP) == digits, bill.why


def test_the_table_is_as_large_as_it_says() -> None:
    """The counts in the docstring above are those of the table."""
    names = {
        bill.offer.provider if isinstance(bill.offer, Offer) else bill.offer.split("/")[0]
        for bill in BILLS
    }
    said = " ".join(str(__doc__).split())
    assert f"{len(BILLS)} bills at {len(names)} providers" in said
    assert len(BILLS) >= 60
    assert len(names) >= 6
