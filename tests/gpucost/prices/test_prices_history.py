"""`gpucost prices history`: how prices moved, as a table, a line of bars and JSON."""

from pathlib import Path

import pytest

from tests.gpucost.conftest import Call


@pytest.fixture(autouse=True)
def _nothing_refreshed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "kept"))


def test_the_readings_of_a_model(call: Call) -> None:
    """Each reading has its day, price and source; readings after the day are not told."""
    asked = ("prices", "history", "--gpu", "H100", "--provider", "digitalocean", "-f", "json")
    found = {one["instance_type"]: one for one in call(*asked, "--as-of", "2026-11-21").json}
    eight = [(p["date"], p["usd_per_hour"]) for p in found["gpu-h100x8-640gb"]["prices"]]
    assert eight[-1] == ("2026-10-08", "35.28")
    assert ("2026-02-11", "23.92") in eight
    assert eight == sorted(eight)
    assert all(p["source"] for p in found["gpu-h100x8-640gb"]["prices"])
    earlier = call(*asked, "--as-of", "2026-06-01").json
    assert max(p["date"] for one in earlier for p in one["prices"]) <= "2026-06-01"


def test_a_line_of_bars_rises_with_the_price(call: Call) -> None:
    """The largest change comes first; the bars go from the lowest price to the highest."""
    asked = ("prices", "history", "--gpu", "H100", "--provider", "digitalocean")
    ran = call(*asked, "--as-of", "2026-11-21", "-f", "csv")
    first = ran.out.splitlines()[1]
    assert "gpu-h100x8-640gb" in first
    assert "+47.5%" in first
    bars = first.rpartition(",")[2].strip()
    assert (bars[0], bars[-1]) == ("▁", "█")
    assert list(bars) == sorted(bars)


@pytest.mark.parametrize(
    ("rest", "said"),
    [(("--provider", "awss"), "aws"), (("--gpu", "RTX-3090"), "no matching price")],
)
def test_what_was_not_read_is_exit_2(call: Call, rest: tuple[str, ...], said: str) -> None:
    """An unknown provider, or nothing read on two days, is told."""
    ran = call("prices", "history", *rest, "--as-of", "2026-11-21")
    assert ran.code == 2
    assert said in ran.err
