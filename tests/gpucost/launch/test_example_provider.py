"""Adding a provider is one folder and one row: the example goes through every command."""

from pathlib import Path

import pytest

from providers.registry import ROWS
from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready, prepare
from tests.providers.example_cloud import FOLDER, PROVIDER

EXAMPLE = ROOT / "tests" / "providers" / "example_cloud"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Reach this machine only."""
    return prepare(monkeypatch, tmp_path)


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The one row, and an empty account."""
    monkeypatch.setitem(ROWS, PROVIDER.name, PROVIDER)
    monkeypatch.setenv(FOLDER, str(tmp_path / "account"))
    return tmp_path / "account"


def test_prices_are_fetched_and_quoted(call: Call) -> None:
    """`prices update` asks it, and its offer is in every list and quote from then on."""
    ran = call("prices", "update", "--provider", "example")
    assert ran.code == 0, ran.err
    (row,) = call("prices", "--provider", "example", "-f", "json").json
    assert (row["gpu"], row["usd_per_hour"]) == ("L4", "0.6")
    quoted = call("quote", "example/one-l4", "--duration", "2h", "-f", "json")
    assert quoted.json["total"] == "1.20"


def test_a_launch_and_its_end(call: Call, account: Path) -> None:
    """Preview without an account, launch, list, show and down, with its own user and end."""
    assert call("prices", "update", "--provider", "example", "-q").code == 0
    named = ("provision", "--type", "example/one-l4", "--region", "here", "--ttl", "1h")
    dry = call(*named, "--dry-run", "-f", "json")
    assert dry.code == 0, dry.err
    assert [one["call"] for one in dry.json["calls"]] == ["POST /machines"]
    assert not account.exists()
    ran = call(*named, "--yes", "-f", "json")
    assert ran.code == 0, ran.err
    assert len(list(account.iterdir())) == 1
    listed = call("list", "-f", "json")
    assert ran.json["run"] in listed.out
    assert call("down", ran.json["run"], "--yes").code == 0
    assert list(account.iterdir()) == []


def test_doctor_and_rental_pages_know_it(call: Call) -> None:
    """Its variable and its orphans are in `doctor`; what cannot be launched names its page."""
    checks = {one["check"]: one["state"] for one in call("doctor", "-f", "json").json}
    assert checks[FOLDER] == "set"
    assert checks["example orphans"] == "ok"


def test_the_guide_walks_through_its_files() -> None:
    """CONTRIBUTING.md names the folder and each of its files."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    guide = text[text.index("## Add a provider to launch on") :]
    assert "tests/providers/example_cloud/" in guide
    written = {path.name for path in EXAMPLE.glob("*.py")} - {"__init__.py"}
    assert all(f"`{name}`" in guide for name in written)
