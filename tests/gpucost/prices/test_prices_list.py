"""`gpucost prices`: its filters, its orders and the price of a day."""

from decimal import Decimal

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.documents import AS_OF


def test_prices_are_filtered(call: Call) -> None:
    """Every filter of `prices` holds for every row, and the cheapest comes first."""
    rows = call(
        "prices",
        "--gpu",
        "NVIDIA H100 80GB HBM3",
        "--gpus",
        "8",
        "--max-price",
        "40",
        "--purchase",
        "on_demand",
        "--as-of",
        AS_OF,
        "-f",
        "json",
    ).json
    assert rows
    prices = [Decimal(row["usd_per_hour"]) for row in rows]
    assert prices == sorted(prices)
    assert max(prices) <= 40
    assert {row["gpu_count"] for row in rows} == {8}
    assert {(row["gpu"], row["purchase"]) for row in rows} == {("H100-SXM-80GB", "on_demand")}
    assert all(row["source"] and row["as_of"] for row in rows)


def test_one_price_everywhere_is_not_a_region(call: Call) -> None:
    """Where one price holds in all regions there is no star but in JSON, as the contract says."""
    asked = ("prices", "--provider", "lambda", "--as-of", AS_OF)
    for format_, told in (("table", "lambda/gpu_1x_a10  "), ("md", "| any |"), ("csv", ",any,")):
        out = call(*asked, "-f", format_).out
        assert told in out
        assert "*" not in out
    assert {row["region"] for row in call(*asked, "-f", "json").json} == {"*"}


def test_a_price_is_written_with_its_cents(call: Call) -> None:
    """People read cents; CSV, which programs read, has the digits alone."""
    asked = ("prices", "--provider", "coreweave", "--as-of", AS_OF, "-q", "-f")
    assert "| 68.80 |" in call(*asked, "md").out
    assert ",68.8," in call(*asked, "csv").out


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


@pytest.mark.parametrize("group", ["gpu", "provider"])
@pytest.mark.parametrize("sort", ["price", "gpu-price", "provider"])
def test_a_group_is_its_cheapest_offer(group: str, sort: str, call: Call) -> None:
    """Each group is one row, its cheapest by the same prices ungrouped, with their number."""
    asked = ("prices", "--region", "eu", "--sort", sort, "--as-of", AS_OF, "-f", "json")
    everything, groups = call(*asked).json, call(*asked, "--group-by", group).json
    by_gpu = sort == "gpu-price"
    expected: dict[str, list[Decimal]] = {}
    for row in everything:
        price = Decimal(row["usd_per_hour"])
        price = price / Decimal(str(row["gpu_count"])) if by_gpu else price
        expected.setdefault(row[group], []).append(price)
    assert {row[group]: row["offers_in_group"] for row in groups} == {
        name: len(prices) for name, prices in expected.items()
    }
    assert len(groups) == len(expected) < len(everything)
    for row in groups:
        divisor = Decimal(str(row["gpu_count"])) if by_gpu else 1
        assert Decimal(row["usd_per_hour"]) / divisor == min(expected[row[group]])
    order = [row["provider"] if sort == "provider" else min(expected[row[group]]) for row in groups]
    assert order == sorted(order)
    assert not any("offers_in_group" in row for row in everything)


def test_a_table_of_groups_says_how_many_offers_there_are(call: Call) -> None:
    """The column `offers` adds up to the number below the table."""
    asked = ("prices", "--gpu", "L4", "--group-by", "provider", "--as-of", AS_OF, "-f", "csv")
    ran = call(*asked)
    lines = ran.out.splitlines()
    column = lines[0].split(",").index("offers")
    total = sum(int(line.split(",")[column]) for line in lines[1:])
    assert f"{total} offers in {len(lines) - 1} groups" in ran.err
