"""The reference of what is measured."""

import re

from planner.profile.kinds import SLOTS
from tests.conftest import ROOT
from tests.fake_nvml.fixture import SOURCE

_FOLDER = ROOT / "telemetry" / "measure"
_FILES = (*sorted(_FOLDER.rglob("*.py")), _FOLDER / "readings.toml")
_SOURCES = [path.read_text(encoding="utf-8") for path in _FILES]
PAGE = (ROOT / "docs" / "reference" / "measured.md").read_text(encoding="utf-8")


def test_every_slot_is_on_the_page() -> None:
    """The page says of each slot where it comes from, and names no slot that there is not."""
    assert set(re.findall(r"`((?:util|mem|power|temp|throttle|clock|io|energy)\.\w+)`", PAGE)) == {
        *SLOTS
    }


def test_every_call_on_the_page_is_made() -> None:
    """Each function that the page names is one that the readings call."""
    code = "".join(_SOURCES)
    named = {name.removesuffix("_v2") for name in re.findall(r"`(nvml[A-Z]\w+)`", PAGE)}
    assert [name for name in sorted(named) if name not in code] == []


def test_every_call_is_answered_by_the_stand_in() -> None:
    """Each function that the readings call is one that the stand-in has, maybe a later version."""
    code = "".join(_SOURCES)
    called = set(re.findall(r"\b(?:nvml\.|call = \")(nvml(?:Device|System|Gpm)\w+)[(\"]", code))
    answered = set(
        re.findall(r"^int (nvml\w+)\(", SOURCE.read_text(encoding="utf-8"), re.MULTILINE)
    )
    assert {name for name in called if not answered & {name, f"{name}_v2", f"{name}_v3"}} == set()
