"""A price that nothing replaced, of a size that its provider may no longer sell."""

from tests.gpucost.conftest import Call


def test_a_leftover_price_says_so(call: Call) -> None:
    """A size that the provider's newest reading leaves out is priced, and said to be a leftover."""
    asked = ("digitalocean/gpu-mi350x1-288gb", "--duration", "1h", "--as-of", "2026-11-22")
    document = call("quote", *asked, "-f", "json").json
    assert any("no later one is known" in said for said in document["warnings"])
