"""`gpucost quote`: bills to the cent, in the contract's form."""

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
    "schema",
    "as_of",
    "currency",
    "total",
    "offer",
    "count",
    "duration_s",
    "billed_s",
    "lines",
    "warnings",
)
OFFER_KEYS = (
    "provider",
    "region",
    "instance_type",
    "gpu",
    "gpu_count",
    "purchase",
    "usd_per_hour",
    "as_of",
    "source",
)
LINE_KEYS = ("what", "usd", "how", "rule", "source", "as_of")


OVERTAKEN = {("aws/p5.48xlarge/us-east-1", "--duration 10h --egress 500GB"): "32.91"}
"""AWS calls 2^30 bytes a GB (the contract, later than the table): 465.66 less 100, at 0.09."""


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
        usd = OVERTAKEN.get((bill["offer"], bill["arguments"]), bill["usd"])
        assert rounded == Decimal(usd), bill


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
        "quote",
        "digitalocean/gpu-h100x1-80gb",
        "--duration",
        "336h",
        "--as-of",
        AS_OF,
        "--egress",
        "10000GiB",
        "--storage",
        "500GiB",
        "-f",
        "json",
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


DO1, P5 = "digitalocean/gpu-h100x1-80gb", "aws/p5.48xlarge/us-east-1"
EVERY_LINE = (
    "--egress",
    "1TB",
    "--storage",
    "100GB",
    "--snapshots",
    "10GB",
    "--object-storage",
    "300GiB",
    "--addresses",
    "2",
    "--control-plane",
    "standard",
    "--boot",
    "5m",
    "--idle-tail",
    "10m",
)


def test_every_kind_of_line_can_be_asked_for(call: Call) -> None:
    """Each option adds its line, in the contract's order, and the total is their sum."""
    quote = call("quote", P5, "--duration", "1h", *EVERY_LINE, "--as-of", AS_OF, "-f", "json").json
    assert [line["what"] for line in quote["lines"]] == [
        "compute",
        "boot",
        "disk",
        "snapshot",
        "object-storage",
        "egress",
        "address",
        "control-plane",
        "idle-tail",
    ]
    exact = sum((Decimal(line["usd"]) for line in quote["lines"]), Decimal(0))
    assert str(exact.quantize(Decimal("0.01"), ROUND_HALF_UP)) == quote["total"]


@pytest.mark.parametrize(
    ("rest", "what", "usd"),
    [
        (("--snapshots", "100GiB"), "snapshot", "0.006849315068493150684931506849"),
        (("--ingress", "1TB"), "egress", "0"),
        (("--inter-zone", "100GiB"), "egress", "2"),
        (("--inter-region", "100GiB"), "egress", "2"),
        (("--nat-gateways", "2"), "address", "0.09"),
        (("--nat-traffic", "100GiB"), "egress", "4.5"),
        (("--control-plane", "extended"), "control-plane", "0.6"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_each_option_prices_its_own_line(
    rest: tuple[str, ...], what: str, usd: str, call: Call
) -> None:
    """One hour of it costs what the rule says."""
    quote = call("quote", P5, "--duration", "1h", *rest, "--as-of", AS_OF, "-f", "json").json
    assert [Decimal(line["usd"]) for line in quote["lines"] if line["what"] == what] == [
        Decimal(usd)
    ]


def test_several_offers_side_by_side(call: Call) -> None:
    """JSON is an array of the quotes that each offer has alone; the table has a row for each."""
    rest = ("--duration", "1h", "--addresses", "1", "--as-of", AS_OF)
    both = call("quote", DO1, P5, *rest, "-f", "json").json
    assert both == [call("quote", name, *rest, "-f", "json").json for name in (DO1, P5)]
    table = call("quote", DO1, P5, *rest).out
    assert DO1 in table
    assert P5 in table
    assert "address" in table
    rows = list(csv.DictReader(io.StringIO(call("quote", DO1, P5, *rest, "-f", "csv").out)))
    assert [row["USD"] for row in rows if row["line"] == "total"] == ["4.41", "55.05"]


def test_a_month_has_730_and_744_hours(call: Call) -> None:
    """`--monthly` is the bill of 730 hours, with that of 744 beside it and no cap for GPU sizes."""
    ran = call("quote", DO1, "--monthly", "--as-of", AS_OF, "-f", "json")
    assert ran.json["total"] == "3219.30"
    assert ran.json["duration_s"] == 730 * 3600
    assert ran.json["months"] == [
        {"hours": 730, "total": "3219.30"},
        {"hours": 744, "total": "3281.04"},
    ]
    assert any("672 h" in text and "none is applied" in text for text in ran.json["warnings"])
    table = call("quote", DO1, "--monthly", "--as-of", AS_OF).out
    assert "month of 744 h" in table
    assert not any(
        "672" in text
        for text in call("quote", P5, "--monthly", "--as-of", AS_OF, "-f", "json").json["warnings"]
    )


def test_a_run_across_a_price_change_is_billed_by_segment(call: Call) -> None:
    """`--start` bills half a day at each price, and says so."""
    ran = call("quote", DO1, "--duration", "24h", "--start", "2026-07-31T12:00", "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["total"] == "93.60"
    assert ran.json["as_of"] == "2026-07-31"
    assert ran.json["start"] == "2026-07-31T12:00:00+00:00"
    assert ran.json["lines"][0]["how"] == (
        "43,200 s x 3.39 USD/h / 3600 + 43,200 s x 4.41 USD/h / 3600"
    )
    assert any("3.39 to 4.41" in text for text in ran.json["warnings"])
    east = call("quote", DO1, "--duration", "24h", "--start", "2026-07-31T14:00+02:00")
    assert "93.60" in east.out


def test_a_commitment_says_what_is_owed(call: Call) -> None:
    """A reserved offer carries its term, its dollars, and the use from which it pays."""
    name = "digitalocean/gpu-mi300x1-192gb-contracted"
    quote = call(
        "quote",
        name,
        "--purchase",
        "reserved_1y",
        "--duration",
        "1h",
        "--as-of",
        AS_OF,
        "-f",
        "json",
    ).json
    assert quote["commitment"] == {
        "term_h": 8760,
        "term_usd": "16731.60",
        "on_demand": "digitalocean/gpu-mi300x1-192gb",
        "on_demand_usd_per_hour": "2.59",
        "break_even_fraction": 0.7375,
    }
    assert any("owed whole" in text for text in quote["warnings"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((DO1, "--monthly", "--duration", "1h"), "--monthly"),
        ((DO1, "--monthly", "--start", "2026-07-31"), "--start"),
        ((DO1, "--duration", "1h", "--start", "2026-07-31", "--as-of", AS_OF), "--as-of"),
        ((DO1, "--duration", "1h", "--start", "noon"), "2026-07-31T12:00"),
        ((DO1, "aws/none", "runpod/none", "--duration", "1h"), "runpod"),
        ((DO1, "aws/none", "runpod/none", "--duration", "1h"), "aws"),
        ((DO1, "plan.json", "--option", "a/o1"), "one plan at a time"),
        (("plan.json", "--option", "a/o1", "--snapshots", "1GB"), "--snapshots"),
    ],
)
def test_what_does_not_go_together_is_refused(
    arguments: tuple[str, ...], told: str, call: Call
) -> None:
    """Contradictions exit 2 and name the option; of several unknown offers all are named."""
    ran = call("quote", *arguments)
    assert (ran.code, ran.out) == (2, ""), ran.out
    assert told in ran.err


def test_an_unknown_price_is_no_line(call: Call) -> None:
    """What has no known price is left out with a note, also by kind."""
    ran = call(
        "quote",
        "verda/1H100.80S.32V",
        "--duration",
        "1h",
        "--addresses",
        "1",
        "--control-plane",
        "ha",
        "--as-of",
        AS_OF,
        "-f",
        "json",
    )
    assert [line["what"] for line in ran.json["lines"]] == ["compute"]
    assert sum("is left out" in text for text in ran.json["warnings"]) == 2
