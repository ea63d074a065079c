"""The team's conformance cases come out as their README says."""

import csv
import re
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.plan.draft import PlanDraft
from planner.profile.codec import parse_profiles
from pricing.billing.quote import Usage, quote
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import parse_place
from pricing.money import cents
from tests.pricing.factories import ASKED_ON

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
BYTES = {"GB": 10**9, "GiB": 2**30, "TB": 10**12, "TiB": 2**40}


def plan(shared: Path, names: Iterable[str], **asked: Any) -> PlanDraft:
    """The plan of conformance profiles over the whole catalog."""
    files = [shared / "conformance" / f"{name}.json" for name in names]
    profiles = [p for file in files for p in parse_profiles(file.read_bytes(), file.name)]
    requirements = Requirements(**asked)
    return draft_plan(tuple(profiles), load_catalog(ASKED_ON), requirements, as_of=ASKED_ON)


def amount(text: str, units: dict[str, int]) -> Decimal:
    """A number with its unit: 90s, 8.5h, 500GB."""
    number, unit = re.fullmatch(r"([\d.]+)(\w+)", text).groups()  # type: ignore[union-attr]
    return Decimal(number) * units[unit]


def test_the_bills(shared: Path) -> None:
    """Each line of bills.csv, rounded half up to cents."""
    with (shared / "conformance" / "bills.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) >= 10
    billed = {row["why"]: _bill(row) for row in rows}
    assert billed == {row["why"]: Decimal(row["usd"]) for row in rows}


def _bill(row: dict[str, str]) -> Decimal:
    words = row["arguments"].split()
    given = dict(zip(words[::2], words[1::2], strict=True))
    catalog = load_catalog(ASKED_ON)
    if "--as-of" in given:
        catalog = catalog.at(ASKED_ON.fromisoformat(given["--as-of"]))
    usage = Usage(
        duration_s=amount(given["--duration"], SECONDS),
        egress_bytes=int(amount(given.get("--egress", "0GB"), BYTES)),
        as_of=catalog.as_of,
    )
    offer = catalog.find(*parse_place(row["offer"]))
    lines = quote(offer, usage).lines
    return cents(sum((line.usd for line in lines if line.what == row["line"]), Decimal(0)))


@pytest.mark.parametrize(
    ("case", "after", "saves", "reasons"),
    [("r28-8gib", 1, 0.75, set()), ("r28-30gib", 2, 0.5, {"memory"})],
)
def test_inference_jobs_share_gpus(
    shared: Path, case: str, after: int, saves: float, reasons: set[str]
) -> None:
    """Four jobs of 20 %: one GPU holds four of 8 GiB, and two of 30 GiB."""
    fleet = plan(shared, [f"{case}-{i}" for i in range(4)]).fleet
    assert fleet is not None
    assert (fleet.gpus_before, fleet.gpus_after) == (4, after)
    assert fleet.gpus_lower_bound <= after
    assert float(1 - fleet.cost_after / fleet.cost_before) == pytest.approx(saves, abs=0.01)
    assert {u.reason for u in fleet.unmoved} == reasons


def test_a_latency_target_that_sharing_breaks_refuses_it(shared: Path) -> None:
    """Never four on one GPU, and the reason is latency."""
    fleet = plan(shared, [f"r28-latency-{i}" for i in range(4)]).fleet
    assert fleet is not None
    assert fleet.gpus_after > 1
    assert {u.reason for u in fleet.unmoved} == {"latency"}


def test_the_published_starved_case(shared: Path) -> None:
    """Data loading with CPU evidence, its two cures, dollars, and a choice of providers."""
    (job,) = plan(shared, ["r11-visual-search"]).jobs
    first = job.findings[0]
    assert first.code == "data-loading"
    assert {"gpu-preprocessing", "dataloader-workers"} <= set(first.actions)
    assert any(e.metric.startswith("host.cpu_util") for e in first.evidence)
    assert first.waste_usd
    assert first.waste_usd > 0
    assert len(job.options) >= 3
    assert len({option.offer.provider for option in job.options}) >= 2


def test_a_well_used_job_is_left_alone(shared: Path) -> None:
    """With provider and purchase kept there is nothing to gain, and nothing is made up."""
    (job,) = plan(shared, ["well-used"], providers=("digitalocean",), purchases=("on_demand",)).jobs
    assert job.recommended == "o0"
    found = {finding.code for finding in job.findings}
    assert not found & {"idle", "idle-held", "small-batch", "over-provisioned-gpu"}
