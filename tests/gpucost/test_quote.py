"""`gpucost quote` and `gpucost prices`: bills to the cent, in the contract's form."""

import csv
import io
import shlex
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, training

EIGHT = "digitalocean/gpu-h100x8-640gb"
KEYS = (
    *("schema", "as_of", "currency", "total", "offer", "count", "duration_s", "billed_s"),
    *("lines", "warnings"),
)
OFFER_KEYS = (
    *("provider", "region", "instance_type", "gpu", "gpu_count", "purchase", "usd_per_hour"),
    *("as_of", "source"),
)
LINE_KEYS = ("what", "usd", "how", "rule", "source", "as_of")


def test_the_conformance_bills(shared: Path, call: Call) -> None:
    """Every bill of the conformance table comes out to the cent."""
    text = (shared / "conformance" / "bills.csv").read_text(encoding="utf-8")
    bills = list(csv.DictReader(io.StringIO(text)))
    assert len(bills) >= 10
    for bill in bills:
        given = shlex.split(bill["arguments"])
        day = () if "--as-of" in given else ("--as-of", AS_OF)
        ran = call("quote", bill["offer"], *given, *day, "-f", "json")
        assert ran.code == 0, ran.err
        lines = [line for line in ran.json["lines"] if line["what"] == bill["line"]]
        total = sum((Decimal(line["usd"]) for line in lines), Decimal(0))
        rounded = total.quantize(Decimal("0.01"), ROUND_HALF_UP)
        assert rounded == Decimal(bill["usd"]), bill


@pytest.mark.parametrize(
    ("rest", "total", "price"),
    [
        (("--duration", "90s"), "0.88", "35.28"),
        (("--duration", "10s"), "0.59", "35.28"),
        (("--duration", "90s", "--as-of", "2026-07-01"), "0.60", "23.92"),
        (("--duration", "1h", "--count", "3"), "105.84", "35.28"),
    ],
    ids=str,
)
def test_the_bills_of_the_eight_gpu_node(
    rest: tuple[str, ...], total: str, price: str, call: Call
) -> None:
    """By the second, at least a minute, at the price of the day, for every machine."""
    day = () if "--as-of" in rest else ("--as-of", AS_OF)
    ran = call("quote", EIGHT, *rest, *day, "-f", "json")
    assert ran.code == 0, ran.err
    assert (ran.json["total"], ran.json["offer"]["usd_per_hour"]) == (total, price)


def test_the_keys_of_a_quote_are_the_contract(call: Call) -> None:
    """The JSON of a quote has the contract's keys, with money as text."""
    quote = call(
        "quote", EIGHT, "--duration", "90s", "--egress", "1GB", "--as-of", AS_OF, "-f", "json"
    ).json
    assert tuple(quote) == KEYS
    assert tuple(quote["offer"]) == OFFER_KEYS
    assert {tuple(line) for line in quote["lines"]} == {LINE_KEYS}
    assert (quote["schema"], quote["currency"]) == ("gpucost.quote/v1", "USD")
    assert (quote["duration_s"], quote["billed_s"], quote["count"]) == (90, 90, 1)
    assert all(isinstance(line["usd"], str) for line in quote["lines"])


def test_the_lines_add_up_to_the_total(call: Call) -> None:
    """The total is the sum of the exact lines, rounded once."""
    quote = call(
        *("quote", "digitalocean/gpu-h100x1-80gb", "--duration", "336h", "--as-of", AS_OF),
        *("--egress", "10000GiB", "--storage", "500GiB", "-f", "json"),
    ).json
    assert len(quote["lines"]) >= 3
    exact = sum((Decimal(line["usd"]) for line in quote["lines"]), Decimal(0))
    assert str(exact.quantize(Decimal("0.01"), ROUND_HALF_UP)) == quote["total"]


def test_only_lines_that_were_asked_for(call: Call) -> None:
    """Without egress and storage there is one line: compute."""
    quote = call("quote", EIGHT, "--duration", "1h", "--as-of", AS_OF, "-f", "json").json
    assert [line["what"] for line in quote["lines"]] == ["compute"]


def test_the_option_of_a_plan_is_quoted(call: Call, write: Write) -> None:
    """`quote PLAN --option JOB/ID` gives the option's total, offer and lines."""
    write("profile.json", training())
    assert call("plan", "--as-of", AS_OF, "-q", "-o", "plan.json").code == 0
    quote = call("quote", "plan.json", "--option", "train/o1", "-f", "json").json
    assert tuple(quote) == KEYS
    plan = call("plan", "--as-of", AS_OF, "-f", "json", "-q").json
    option = plan["jobs"][0]["options"][0]
    assert quote["total"] == option["cost"]["mid"]
    assert quote["offer"]["instance_type"] == option["offer"]["instance_type"]
    assert call("quote", "plan.json", "--option", "o1", "-f", "json").json == quote


BAD = {
    "no duration": ((EIGHT,), "--duration"),
    "unknown provider": (("digitalocan/x", "--duration", "1h"), "digitalocean"),
    "unknown type": (("digitalocean/gpu-h100x9", "--duration", "1h"), "gpu-h100x8-640gb"),
    "no type": (("digitalocean", "--duration", "1h"), "PROVIDER/TYPE"),
    "a region is needed": (("aws/g4dn.xlarge", "--duration", "1h"), "us-east-1"),
    "unknown region": (("aws/g4dn.xlarge/mars", "--duration", "1h"), "us-east-1"),
    "never sold as spot": ((EIGHT, "--duration", "1h", "--purchase", "spot"), "on_demand"),
    "no such plan": (("plan.json", "--option", "a/o1"), "gpucost plan -o plan.json"),
    "a plan without option": (("plan.json",), "--option"),
    "an overlong name": (("a/" * 3000, "--duration", "1h"), "a/"),
    "a count of none": ((EIGHT, "--duration", "1h", "--count", "0"), "--count"),
    "more seconds than counted": ((EIGHT, "--duration", "9" * 29 + "d"), "999"),
    "more bytes than counted": ((EIGHT, "--duration", "1h", "--egress", "9" * 38 + "PiB"), "999"),
    "more machines than counted": ((EIGHT, "--duration", "1h", "--count", "9" * 40), "999"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_quote_says_what_to_type(case: str, call: Call) -> None:
    """A request that cannot be priced exits 2 and names the way out, without data."""
    arguments, told = BAD[case]
    ran = call("quote", *arguments)
    assert ran.code == 2, ran.err
    assert told in ran.err
    assert ran.out == ""


def test_an_unknown_option_lists_the_known_ones(call: Call, write: Write) -> None:
    """An option that the plan lacks exits 2 with the ones it has."""
    write("profile.json", training())
    call("plan", "--as-of", AS_OF, "-q", "-o", "plan.json")
    ran = call("quote", "plan.json", "--option", "train/o99")
    assert ran.code == 2
    assert "train/o1" in ran.err


@pytest.mark.parametrize(
    "given", [("--count", "4"), ("--as-of", AS_OF), ("--egress", "1GB"), ("--purchase", "spot")]
)
def test_what_a_plan_has_fixed_cannot_be_asked_again(
    given: tuple[str, str], call: Call, write: Write
) -> None:
    """An option that does not apply to a plan's option is refused, never ignored."""
    write("profile.json", training())
    call("plan", "--as-of", AS_OF, "-q", "-o", "plan.json")
    ran = call("quote", "plan.json", "--option", "train/o1", *given)
    assert ran.code == 2
    assert given[0] in ran.err


def test_prices_are_filtered(call: Call) -> None:
    """Every filter of `prices` holds for every row, and the cheapest comes first."""
    rows = call(
        *("prices", "--gpu", "NVIDIA H100 80GB HBM3", "--gpus", "8", "--max-price", "40"),
        *("--purchase", "on_demand", "--as-of", AS_OF, "-f", "json"),
    ).json
    assert rows
    prices = [Decimal(row["usd_per_hour"]) for row in rows]
    assert prices == sorted(prices)
    assert max(prices) <= 40
    assert {row["gpu_count"] for row in rows} == {8}
    assert {(row["gpu"], row["purchase"]) for row in rows} == {("H100-SXM-80GB", "on_demand")}
    assert all(row["source"] and row["as_of"] for row in rows)


@pytest.mark.parametrize("sort", ["price", "gpu-price", "provider", "gpu", "gpus", "age"])
def test_every_order_of_prices_has_every_row(sort: str, call: Call) -> None:
    """Sorting neither adds nor drops rows, and the same order comes out twice."""
    first = call("prices", "--sort", sort, "--as-of", AS_OF, "-f", "csv", "-q")
    again = call("prices", "--sort", sort, "--as-of", AS_OF, "-f", "csv", "-q")
    assert first.out == again.out
    plain = call("prices", "--as-of", AS_OF, "-f", "csv", "-q")
    assert sorted(first.out.splitlines()) == sorted(plain.out.splitlines())


def test_the_price_of_a_day(call: Call) -> None:
    """`prices --as-of` shows the price that held on that day."""
    shown = [
        call("prices", "--provider", "digitalocean", "--gpu", "H100", "--gpus", "8", "--as-of", day)
        for day in ("2026-07-01", AS_OF)
    ]
    assert "23.92" in shown[0].out
    assert "35.28" in shown[1].out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--provider", "digitalocan"), "digitalocean"),
        (("--gpu", "H1000"), "H100"),
        (("--sort", "colour"), "--sort"),
        (("--gpus", "8..1"), "--gpus"),
    ],
)
def test_a_bad_filter_is_refused(arguments: tuple[str, ...], told: str, call: Call) -> None:
    """A filter that can match nothing exits 2 and names the known values."""
    ran = call("prices", *arguments)
    assert ran.code == 2
    assert told in ran.err
