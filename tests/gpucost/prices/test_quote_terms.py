"""`gpucost quote`: commitments, own prices, interruptions, destinations; figures for people."""

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.documents import AS_OF

DO1 = "digitalocean/gpu-h100x1-80gb"
RESERVED = "digitalocean/gpu-mi300x1-192gb-contracted"
P4DE = "aws/p4de.24xlarge/ap-northeast-1"


@pytest.mark.parametrize(
    ("rest", "total", "how"),
    [
        ((RESERVED, "--purchase", "reserved_1y", "--duration", "10h"), "16731.60",
         "8,760 h x 1.91 USD/h, the whole term (ran 10 h)"),
        ((RESERVED, "--purchase", "reserved_1y", "--monthly"), "1394.30",
         "730 h x 1.91 USD/h, the whole month of a commitment (ran 730 h)"),
        ((DO1, "--price", "12.50", "--duration", "90m"), "18.75", "5,400 s x 12.50 USD/h / 3600"),
        ((DO1, "--price", "3", "--purchase", "reserved_1y", "--duration", "9d"), "26280.00",
         "8,760 h x 3.00 USD/h, the whole term (ran 216 h)"),
        ((P4DE, "--purchase", "spot", "--interrupted", "--duration", "59m"), "0.00",
         "3,540 s of less than 3,600 s, ended by the provider: no charge"),
        ((P4DE, "--purchase", "spot", "--price", "10", "--interrupted", "--duration", "61m"),
         "10.17", "3,660 s x 10.00 USD/h / 3600"),
    ],
)  # fmt: skip
def test_commitments_own_prices_and_interruptions(
    rest: tuple[str, ...], total: str, how: str, call: Call
) -> None:
    """A term is owed whole, a price of one's own is taken, what the provider ends early is free."""
    quote = call("quote", *rest, "--as-of", AS_OF, "-f", "json").json
    assert (quote["total"], quote["lines"][0]["how"]) == (total, how)


def test_only_spot_machines_are_interrupted(call: Call) -> None:
    """--interrupted beside another purchase is a usage error."""
    ran = call("quote", DO1, "--duration", "1h", "--interrupted")
    assert ran.code == 2
    assert "--purchase spot" in ran.err


@pytest.mark.parametrize("word", ["china", "CN"])
def test_traffic_has_a_destination(word: str, call: Call) -> None:
    """--egress-to takes a country by name or code; one that is nowhere is refused."""
    a3 = ("quote", "gcp/a3-highgpu-8g/us-central1", "--duration", "1h", "--egress", "100GiB")
    quote = call(*a3, "--egress-to", word, "--as-of", AS_OF, "-f", "json").json
    assert [line["usd"] for line in quote["lines"] if line["what"] == "egress"] == ["23"]
    assert call(*a3, "--egress-to", "atlantis").code == 2


def test_a_bill_for_people_has_cents_and_thousands(call: Call) -> None:
    """Amounts have cents and thousands apart, quantities no more digits than a person reads."""
    ran = call("quote", DO1, "--duration", "6h", "--egress", "10TB", "--as-of", AS_OF)
    assert "(9,313.23 GiB - 133.929 GiB free) x 0.01 USD/GiB" in ran.out
    assert "118.25" in ran.out
    assert "133.928" not in ran.out
