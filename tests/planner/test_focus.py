"""A plan as FOCUS rows: the columns, types and nulls of FOCUS 1.2, and the plan's own dollars."""

import csv
import io
import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.documents.focus_export import CUSTOM, Row, columns, rows, to_csv
from planner.documents.selection import Selection, select
from planner.models.document import encode
from planner.plan.bill import CostLine, PricedPart, RentedOffer
from planner.plan.making import to_plan
from pricing.billing.lines import Priced
from pricing.errors import InputError
from pricing.money import cents
from pricing.tables import read_csv
from tests.planner.factories import TODAY, a_profile, plan, running, sold
from tests.planner.plan.kept import as_values

RULES = {row["column"]: row for row in read_csv("focus.csv") if row["since"] == "1.2"}
MANDATORY = (
    "BilledCost",
    "BillingAccountId",
    "BillingAccountName",
    "BillingCurrency",
    "BillingPeriodEnd",
    "BillingPeriodStart",
    "ChargeCategory",
    "ChargeClass",
    "ChargeDescription",
    "ChargePeriodEnd",
    "ChargePeriodStart",
    "ContractedCost",
    "EffectiveCost",
    "InvoiceIssuerName",
    "ListCost",
    "PricingQuantity",
    "PricingUnit",
    "ProviderName",
    "PublisherName",
    "ServiceCategory",
    "ServiceName",
)
TYPES = {
    "Decimal": re.compile(r"\d+(\.\d+)?"),
    "DateTime": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"),
    "Currency": re.compile(r"[A-Z]{3}"),
    "String": re.compile(r".+"),
    "JSON": re.compile(r"\{.*\}"),
}


def document(**asked: Any) -> dict[str, Any]:
    """The plan document of a job that moves to a cheaper machine, with storage and traffic."""
    job = running(a_profile(dataset_gib=10.0, unit="image", rate_per_s=250.0))
    asked = {"storage_bytes": 500 * 10**9, "egress_bytes": 10**12} | asked
    made: dict[str, Any] = json.loads(
        json.dumps(encode(to_plan(plan(job, offers=(TODAY, sold("cheap", "0.50")), **asked))))
    )
    return made


def exported(made: dict[str, Any], *named: str) -> tuple[Row, ...]:
    """The rows of a plan document."""
    read = as_values(made)
    return rows(read, select(read, named)[0])


OFFER: dict[str, Any] = {
    "provider": "digitalocean",
    "instance_type": "gpu-h100x1-80gb",
    "region": "*",
    "purchase": "on_demand",
    "gpu": "H100-SXM-80GB",
    "gpu_count": 1,
    "usd_per_hour": Decimal("4.41"),
    "as_of": date(2026, 10, 8),
    "source": "a list",
}


def a_choice(**changes: Any) -> Selection:
    """A job on one H100 of DigitalOcean, one line of compute."""
    offer = {name: changes.pop(name) for name in set(changes) & set(OFFER)}
    plain: dict[str, Any] = {
        "job": "train",
        "option": "o1",
        "offer": RentedOffer(**OFFER | offer),
        "machines": 1,
        "hours": Decimal(10),
        "low": Decimal("40.00"),
        "mid": Decimal("44.10"),
        "high": Decimal("48.00"),
        "lines": (line(),),
    }
    return Selection(**plain | changes)


def line(what: str = "compute", usd: str = "44.1", *parts: PricedPart) -> CostLine:
    """A planned line."""
    return CostLine(
        what=what, usd=Decimal(usd), how="10 h", rule="", source="", as_of="2026-11-21", parts=parts
    )


PLAN = as_values(document())


def misfits(row: Row) -> list[str]:
    """What a row has against the rules of FOCUS 1.2, as our table states them."""
    found = []
    for name, rule in RULES.items():
        value = row.get(name)
        if value is None:
            found += [f"{name} is null"] if rule["nullable"] == "no" else []
        elif not TYPES[rule["type"]].fullmatch(value):
            found.append(f"{name} is no {rule['type']}: {value}")
        elif rule["rule"] and value not in rule["rule"].split("|"):
            found.append(f"{name} may not be {value}")
    needed = ("PricingQuantity", "PricingUnit", "ListUnitPrice", "ContractedUnitPrice", "SkuId")
    needed += ("SkuPriceId", "PricingCategory", "ConsumedQuantity", "ConsumedUnit")
    return found + [f"{name} is null in a Usage row" for name in needed if row[name] is None]


def test_the_columns_are_those_of_the_specification() -> None:
    """All 21 mandatory columns of 1.2 are there; what is ours begins with x_."""
    assert [name for name in MANDATORY if RULES[name]["level"] != "Mandatory"] == []
    assert len([r for r in RULES.values() if r["level"] == "Mandatory"]) == len(MANDATORY) == 21
    assert columns() == (*RULES, *CUSTOM)
    assert all(name.startswith("x_Gpucost") for name in CUSTOM)
    assert all(rule["source"] for rule in RULES.values())


@pytest.mark.parametrize("asked", [{}, {"work_total": 9e6}], ids=["month", "run"])
@pytest.mark.parametrize("named", [(), ("job/o0",)], ids=["recommended", "today"])
def test_every_row_keeps_the_rules(asked: dict[str, Any], named: tuple[str, ...]) -> None:
    """Types, nulls and allowed values of every column hold in every row."""
    table = exported(document(**asked), *named)
    assert table
    assert [problem for row in table for problem in misfits(row)] == []
    read = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert [tuple(row) for row in read] == [columns()] * len(table)


def test_a_row_of_each_line_and_the_same_dollars() -> None:
    """Rows are the plan's lines in order, and add up to the plan's total."""
    made = document()
    (job,) = made["jobs"]
    option = next(o for o in job["options"] if o["id"] == job["recommended"])
    table = exported(made)
    assert [row["x_GpucostLine"] for row in table] == [
        one["what"] for one in option["cost"]["lines"]
    ]
    total = sum((Decimal(row["ListCost"] or "") for row in table), Decimal(0))
    assert str(cents(total)) == option["cost"]["mid"]


@given(st.decimals("0.000001", 10**12, places=6), st.decimals("0.0001", 10**4, places=9))
def test_list_cost_is_exactly_price_times_quantity(quantity: Decimal, price: Decimal) -> None:
    """Not to the cent: to the last digit, and so are the other three costs."""
    hours = Priced(quantity, "Hours", price, Decimal(3600)).quantity
    part = PricedPart(quantity=hours, unit="Hours", unit_usd=price)
    (row,) = rows(PLAN, (a_choice(lines=(line("compute", "1", part),)),))
    product = Fraction(row["ListUnitPrice"] or "") * Fraction(row["PricingQuantity"] or "")
    costs = {row[f"{name}Cost"] for name in ("List", "Billed", "Effective", "Contracted")}
    assert {Fraction(cost or "") for cost in costs} == {product}


def test_a_line_without_a_quantity_is_one_unit_of_itself() -> None:
    """A least charge has no quantity at a price: one unit at its dollars."""
    (row,) = rows(PLAN, (a_choice(lines=(line("compute", "0.01"),)),))
    assert (row["PricingQuantity"], row["PricingUnit"], row["ListCost"]) == ("1", "Units", "0.01")


def test_every_tier_of_a_line_has_a_row() -> None:
    """Two price tiers are two rows, with price ids of their own."""
    tiers = (
        PricedPart(quantity=Decimal(10), unit="GB", unit_usd=Decimal("0.09")),
        PricedPart(quantity=Decimal(5), unit="GB", unit_usd=Decimal("0.085")),
    )
    table = rows(PLAN, (a_choice(lines=(line("egress", "1.325", *tiers),)),))
    assert [row["ListCost"] for row in table] == ["0.9", "0.425"]
    assert len({row["SkuPriceId"] for row in table}) == 2
    assert len({row["SkuId"] for row in table}) == 1


SERVICES = {
    "compute": ("Compute", "Virtual Machines"),
    "lost-work": ("Compute", "Virtual Machines"),
    "disk": ("Storage", "Block Storage"),
    "snapshot": ("Storage", "Backup Storage"),
    "object-storage": ("Storage", "Object Storage"),
    "egress": ("Networking", "Network Connectivity"),
    "address": ("Networking", "Network Infrastructure"),
    "control-plane": ("Compute", "Containers"),
    "anything new": ("Other", "Other (Other)"),
}


@pytest.mark.parametrize("what", SERVICES)
def test_every_kind_of_line_has_its_service(what: str) -> None:
    """A subcategory has one parent category; only machines have a size and GPUs."""
    (row,) = rows(PLAN, (a_choice(lines=(line(what),)),))
    assert (row["ServiceCategory"], row["ServiceSubcategory"]) == SERVICES[what]
    machine = SERVICES[what][1] == "Virtual Machines"
    assert (row["SkuPriceDetails"] is not None) == machine


def test_the_details_of_a_machine() -> None:
    """FOCUS's keys for size and GPUs; ours begin with x_."""
    (row,) = rows(PLAN, (a_choice(gpu_count=8),))
    details = json.loads(row["SkuPriceDetails"] or "")
    assert (details.pop("GpuCount"), details.pop("InstanceType")) == (8, "gpu-h100x1-80gb")
    assert all(key.startswith("x_") for key in details)


@pytest.mark.parametrize(
    ("purchase", "category"),
    [("on_demand", "Standard"), ("spot", "Dynamic"), ("reserved_1y", "Committed")],
)
def test_the_way_of_buying_is_the_pricing_category(purchase: str, category: str) -> None:
    """Spot is dynamic, a term is committed; storage beside it stays at the standard price."""
    table = rows(
        PLAN,
        (
            a_choice(
                purchase=purchase,
                lines=(line(), line("disk")),
            ),
        ),
    )
    assert [row["PricingCategory"] for row in table] == [category, "Standard"]


@pytest.mark.parametrize(
    ("period", "hours", "start", "end"),
    [
        ("month", "10", "2026-11-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ("run", "36.5", "2026-11-21T00:00:00Z", "2026-11-22T12:30:00Z"),
        ("run", "0.0001", "2026-11-21T00:00:00Z", "2026-11-21T00:00:01Z"),
    ],
)
def test_the_charge_period(period: str, hours: str, start: str, end: str) -> None:
    """The month of the plan's day, or its hours from that day on."""
    (row,) = rows(msgspec.structs.replace(PLAN, period=period), (a_choice(hours=Decimal(hours)),))
    assert (row["ChargePeriodStart"], row["ChargePeriodEnd"]) == (start, end)
    assert row["BillingPeriodStart"] == "2026-11-01T00:00:00Z"
    assert datetime.fromisoformat(row["BillingPeriodEnd"] or "") == datetime(
        2026, 12, 1, tzinfo=UTC
    )


def test_a_forecast_is_marked_in_every_row() -> None:
    """No row can be mistaken for a charge; each names its plan, job, option and range."""
    made = document()
    for row in exported(made):
        assert row["x_GpucostIsForecast"] == "true"
        assert row["x_GpucostPlanId"] == as_values(made).id
        assert row["BillingAccountId"] == "gpucost-forecast"
        low, mid, high = (
            Decimal(row[f"x_GpucostOption{e}Cost"] or "") for e in ("Low", "Mid", "High")
        )
        assert low <= mid <= high


def test_the_plan_id_is_of_its_values() -> None:
    """White space and the order of keys make no other plan; another dollar does."""
    made = document()
    again = json.loads(json.dumps(made, indent=7, sort_keys=True))
    assert as_values(again).id == as_values(made).id
    again["jobs"][0]["baseline"]["cost"]["total"] = "1.00"
    assert as_values(again).id != as_values(made).id


def test_names_of_a_provider_are_those_on_bills() -> None:
    """Known providers have the name of their own exports, others ours."""
    (aws,) = rows(PLAN, (a_choice(provider="aws"),))
    (other,) = rows(PLAN, (a_choice(provider="hotaisle"),))
    assert (aws["ProviderName"], aws["ServiceName"]) == ("AWS", "Amazon Elastic Compute Cloud")
    assert (other["ProviderName"], other["InvoiceIssuerName"]) == ("hotaisle", "hotaisle")


def test_an_option_can_be_named() -> None:
    """`o0` is today's machine; a name that fits nothing lists what there is."""
    made = document()
    assert {row["x_GpucostOption"] for row in exported(made, "o0")} == {"o0"}
    for bad in (("job/o99",), ("x/o1",), ("o0", "o1")):
        with pytest.raises(InputError, match="job"):
            select(as_values(made), bad)


def test_a_job_without_a_price_is_said_and_left_out() -> None:
    """An unknown cost is not a row; where nothing is known, that is an error."""
    unpriced = a_profile(gpu="Tesla K80", precision="fp32", name="old")
    made = encode(to_plan(plan(running(a_profile()), unpriced)))
    chosen, unknown = select(as_values(made), ("old/o0",))
    assert [one.job for one in chosen] == ["job"]
    assert "old/o0" in unknown[0]
    made["jobs"] = [job for job in made["jobs"] if job["name"] == "old"]
    with pytest.raises(InputError, match="not known"):
        select(as_values(made), ("old/o0",))


def test_an_amount_that_is_none_is_named() -> None:
    """A plan edited by hand is refused with the place of the amount."""
    made = document()
    made["jobs"][0]["baseline"]["cost"]["lines"][0]["usd"] = "many"
    with pytest.raises(InputError, match=r"jobs\[0\]\.baseline\.cost\.lines\[0\]\.usd is .many"):
        as_values(made)
