"""`gpucost prices update --provider aws`: prices of the regions asked for, believed or refused."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpucost.arguments.parameters import today
from tests.gpucost.conftest import Call
from tests.providers.fakes.aws import Aws
from tests.providers.fakes.reach import reach_this_machine_only
from tests.providers.fakes.server import serving

HERE = "us-east-1"
UPDATE = ("prices", "update", "--provider", "aws", "--region", HERE)
QUOTE = ("quote", f"aws/g6.xlarge/{HERE}", "--duration", "1h", "-f", "json", "-q")
KEY, SECRET = "AKIA" + "Q" * 16, "5ec4e7" * 7


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach this machine only."""
    reach_this_machine_only(monkeypatch)


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Aws, str]]:
    """The fake and its address."""
    fake = Aws(on_demand=[], spot=[])
    with serving(fake) as address:
        yield fake, address


@pytest.fixture
def aws(served: tuple[Aws, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Aws]:
    """An AWS with a spot price that is not bundled; no key of ours is ever written."""
    fake, address = served
    fake.on_demand = [("g6.xlarge", HERE, "0.9100000000"), ("g5.xlarge", HERE, "1.0060000000")]
    fake.spot = [("g6.xlarge", "us-east-1a", "0.350000")]
    fake.failures = {}
    settings = {"ENDPOINT_URL": address, "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}
    for name, value in settings.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "kept"))
    yield fake
    for path in (tmp_path / "kept").rglob("*.csv"):
        text = path.read_text(encoding="utf-8")
        assert KEY not in text
        assert SECRET not in text


def test_new_prices_of_aws_are_quoted(aws: Aws, call: Call) -> None:
    """A way of buying that is new, and a dearer price; other regions keep theirs."""
    assert aws.spot
    elsewhere = ("quote", "aws/p5.48xlarge/us-west-2", "--duration", "1h", "-f", "json", "-q")
    before = call(*elsewhere).out
    assert call(*QUOTE, "--purchase", "spot").code == 2
    ran = call(*UPDATE, "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json[0]["new"] == ["aws/g6.xlarge/us-east-1, spot: 0.35 USD/h"]
    assert ran.json[0]["changed"] == ["aws/g6.xlarge/us-east-1, on_demand: 0.91 USD/h"]
    assert all(name.endswith(HERE) for name in ran.json[0]["withdrawn"])
    on_demand, spot = call(*QUOTE).json, call(*QUOTE, "--purchase", "spot").json
    assert (on_demand["total"], spot["total"]) == ("0.91", "0.35")
    assert on_demand["offer"]["as_of"] == today().isoformat()
    assert call(*elsewhere).out == before


def test_a_poisoned_answer_of_aws_changes_nothing(aws: Aws, call: Call, tmp_path: Path) -> None:
    """A zero price or a refusal: exit 5, one sentence, no file, no key in it."""
    aws.on_demand[1] = ("g5.xlarge", HERE, "0.0000000000")
    ran = call(*UPDATE)
    assert ran.code == 5
    assert "the answer is damaged (1 of 3 rows: aws/g5.xlarge/us-east-1" in ran.err
    aws.failures["GetProducts"] = (400, "AccessDeniedException")
    ran = call(*UPDATE)
    assert ran.code == 5
    assert "AccessDeniedException" in ran.err
    assert KEY not in ran.err
    assert not (tmp_path / "kept").exists()
