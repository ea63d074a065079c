"""The page that maps an EKS node to its DOKS twin says what quotes say."""

import re

import pytest

from tests.conftest import ROOT
from tests.gpucost.conftest import Call

PAGE = (ROOT / "docs" / "how-to" / "kubernetes-pools.md").read_text(encoding="utf-8")
ROWS = re.findall(r"\| `(\S+)` \| `(gpu-\S+)` \| (\d) (\S+) \| (\S+) \| (\S+) \|", PAGE)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_both_prices_are_quotes(row: tuple[str, ...], call: Call) -> None:
    """Each pair has the same GPUs, and the dollars of a month with the control plane."""
    aws, ocean, count, gpu, *dollars = row
    for place, usd in zip((f"aws/{aws}/us-east-1", f"digitalocean/{ocean}"), dollars, strict=True):
        asked = ("--monthly", "--control-plane", "standard", "--as-of", "2026-11-21", "-f", "json")
        quoted = call("quote", place, *asked).json
        assert quoted["total"] == usd.replace(",", "")
        assert quoted["offer"]["gpu_count"] == int(count)
        assert quoted["offer"]["gpu"].startswith(gpu)


def test_the_page_has_its_rows() -> None:
    """The table is read."""
    assert len(ROWS) == 4
