"""What a person decides by fits the terminal: whole amounts, whole ids, the answer last."""

import re

import pytest

from tests.conftest import ROOT
from tests.gpucost.conftest import Call

EXAMPLE = str(ROOT / "examples" / "visual-search.json")
FLEET = str(ROOT / "examples" / "fleet")
DAY = ("--as-of", "2026-11-22")
SCREEN_LINES = 24
SCREENS = {
    "plan": ("plan", EXAMPLE, *DAY),
    "fleet": ("plan", FLEET, *DAY),
    "demo": ("demo",),
}
TABLES = {
    **SCREENS,
    "plan --all": ("plan", EXAMPLE, "--all", *DAY),
    "plan -v": ("plan", EXAMPLE, "-v", *DAY),
    "fleet --all": ("plan", FLEET, "--all", *DAY),
    "diagnose": ("diagnose", EXAMPLE),
    "prices": ("prices", "--gpu", "H100", *DAY),
    "quotes": ("quote", "aws/p5.48xlarge", "digitalocean/gpu-h100x8-640gb", "--duration", "9h"),
    "quote": ("quote", "digitalocean/gpu-h100x8-640gb", "--duration", "90m", *DAY),
}


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("case", TABLES)
def test_no_amount_is_broken(
    case: str, columns: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every amount and percentage of the screen also stands in the same output 400 wide."""
    monkeypatch.setenv("COLUMNS", str(columns))
    narrow = call(*TABLES[case]).out
    monkeypatch.setenv("COLUMNS", "400")
    wide = call(*TABLES[case]).out
    amounts = re.compile(r"(?:>= )?\$[\d,.]*\d|[\d,]*\d\.\d+|\d+ %")
    assert set(amounts.findall(narrow)) <= set(amounts.findall(wide))
    assert re.search(r"\$[\d,.]*…", narrow) is None
    assert [line for line in narrow.splitlines() if len(line) > columns] == []


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("case", SCREENS)
def test_a_plan_is_one_screen(
    case: str, columns: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most 23 lines of the terminal's width, so that the prompt is on the screen, too."""
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = call(*SCREENS[case]).out.splitlines()
    assert len(lines) < SCREEN_LINES
    assert max(map(len, lines)) <= columns
