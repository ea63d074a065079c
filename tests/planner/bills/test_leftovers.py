"""What counts as used by nobody, and what does not."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from planner.bills.bill import BillLine
from planner.bills.leftovers import gpu_lines, leftovers

FIRST = datetime(2026, 11, 1, tzinfo=UTC)
LAST = datetime(2026, 12, 1, tzinfo=UTC)


def line(kind: str, **changed: object) -> BillLine:
    """A charge of a dollar for the whole month in one place."""
    made = BillLine(
        kind=kind, usd=Decimal(1), provider="aws", description=kind, region="us-east-1",
        account="a", start=FIRST, end=LAST, resource=kind,
    )  # fmt: skip
    return replace(made, **changed)  # type: ignore[arg-type] - fields by name


ELSEWHERE = line("compute", region="eu-west-1")
DISK = line("disk")
TEN_DAYS = FIRST + timedelta(days=10)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([DISK, ELSEWHERE], "1"),
        ([DISK, line("compute")], "0"),
        ([DISK], "0"),
        ([DISK, line("compute", account="b")], "1"),
        ([DISK, line("compute", account=None)], "0"),
        ([DISK, line("compute", region=None)], "0"),
        ([DISK, replace(ELSEWHERE, provider="gcp")], "0"),
        ([replace(DISK, zone="1a"), line("compute", zone="1b")], "1"),
        ([replace(DISK, zone="1a"), line("compute")], "0"),
        ([DISK, ELSEWHERE, line("other", description="Kubernetes node")], "0"),
        ([DISK, ELSEWHERE, line("other", description="SQS requests")], "1"),
        ([DISK, line("compute", end=TEN_DAYS)], "0"),
        ([replace(DISK, start=TEN_DAYS), line("compute", end=TEN_DAYS)], "1"),
        ([replace(DISK, start=TEN_DAYS), line("compute", end=None)], "0"),
        ([replace(DISK, start=LAST - timedelta(days=2)),
          line("compute", end=LAST - timedelta(days=2)), ELSEWHERE], "0"),
        ([line("address", idle=True), line("compute")], "1"),
        ([line("address", idle=False), ELSEWHERE], "0"),
        ([line("address"), ELSEWHERE], "1"),
        ([line("address"), ELSEWHERE, line("other", description="NAT Gateway hour")], "0"),
        ([line("fee", idle=True), line("compute")], "1"),
        ([line("fee"), line("compute")], "0"),
        ([line("compute", idle=True), DISK, ELSEWHERE], "2"),
        ([replace(DISK, usd=Decimal(-1)), ELSEWHERE], "0"),
        ([replace(DISK, start=None, end=None), ELSEWHERE], "1"),
    ],
)  # fmt: skip
def test_only_what_is_proved_counts(lines: list[BillLine], expected: str) -> None:
    """The bill's own word, or no machine in reach from some day to the end; else not a cent."""
    lines = [replace(one, source=f"bill:{n}") for n, one in enumerate(lines)]
    found, undecided = leftovers(lines)
    assert sum((one.usd for one in found), Decimal(0)) == Decimal(expected)
    told = {each.source for one in found for each in one.lines}
    open_ = [one for one in lines if one.kind == "disk" and one.source not in told and one.usd > 0]
    assert sum(one.lines for one in undecided if one.what == "disk") == len(open_)


def test_a_whole_bill_without_machines_shows_that_there_were_none() -> None:
    """An export may leave machines out; an invoice of everything cannot."""
    found, _ = leftovers([DISK], frozenset({"aws"}))
    assert [one.proof for one in found] == [
        "no machine of its account ran in us-east-1 on this bill"
    ]


def test_a_machine_billed_in_parts_is_bought_as_its_gpu() -> None:
    """Cores beside a GPU under a commitment are of one machine with it, no others are."""

    def part(resource: str | None, purchase: str, gpu: str | None, hours: int) -> BillLine:
        return BillLine(
            kind="compute", usd=Decimal(1), provider="gcp", description="", purchase=purchase,
            resource=resource, gpu=gpu, gpu_hours=Decimal(hours), instance_type="a2-highgpu-1g",
        )  # fmt: skip

    lines = [
        part("a", "on_demand", None, 0),
        part("a", "reserved", "A100", 1),
        part("b", "on_demand", None, 0),
        part(None, "on_demand", None, 0),
        part(None, "reserved", "A100", 1),
    ]
    read = gpu_lines(lines, {("gcp", "a2-highgpu-1g"): ("A100-SXM-40GB", Decimal(1))})
    bought = [charge.line.purchase for charge in read]
    assert bought == ["reserved", "reserved", "on_demand", "on_demand", "reserved"]
