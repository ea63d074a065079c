"""`gpucost provision --idle`: said before, written down, on the machine, and shown after."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bootstrap.box import parts
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready, prepare
from tests.providers.fakes.account import an_aws
from tests.providers.fakes.aws_account import AwsAccount

AMAZON = ("provision", "--type", "aws/g6.xlarge/us-east-1", "--allow-stale", "--ttl", "2h")


@pytest.fixture(autouse=True)
def no_network(login: Ready) -> None:
    """Reach this machine only."""
    assert login.delivered == []


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Machines that are ready."""
    return prepare(monkeypatch, tmp_path)


@pytest.fixture
def aws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: Ready) -> Iterator[AwsAccount]:
    """An empty AWS."""
    assert login.delivered == []
    with an_aws(tmp_path, monkeypatch) as fake:
        yield fake


def test_a_dry_run_says_when_it_ends(call: Call) -> None:
    """The preview has the rule in words and in JSON, and the machine's script has it in seconds."""
    ran = call(*AMAZON, "--idle", "30m", "--dry-run")
    assert ran.code == 0
    assert "each machine ends itself after 30 min of idle GPUs" in ran.out
    told = json.loads(call(*AMAZON, "--idle", "30m", "--dry-run", "-f", "json").out)
    assert told["idle_s"] == 1800
    (machine,) = [one["arguments"] for one in told["calls"] if "UserData" in one["arguments"]]
    document = "".join(parts(machine["UserData"]).values())
    assert 'end "no GPU has worked for 1800 s"' in document
    assert "/opt/gpucost/activity" in document
    without = json.loads(call(*AMAZON, "--dry-run", "-f", "json").out)
    assert without["idle_s"] is None
    assert "no GPU has worked" not in json.dumps(without)


def test_the_journal_keeps_the_rule(aws: AwsAccount, call: Call) -> None:
    """A launched run shows its rule; one without it shows none."""
    assert call(*AMAZON, "--idle", "45m", "--yes").code == 0
    assert call(*AMAZON, "--yes").code == 0
    assert len(aws.instances()) == 2
    runs = json.loads(call("list", "--offline", "-f", "json").out)["runs"]
    assert sorted(str(run["idle_s"]) for run in runs) == ["2700", "None"]
    (idle,) = [run["run"] for run in runs if run["idle_s"]]
    assert "each machine ends itself after 45 min of idle GPUs" in call("show", idle).out


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (("--idle", "20s"), "--idle 20s is shorter than 60 s"),
        (("--idle", "30m", "--no-self-destroy"), "--idle and --no-self-destroy exclude each other"),
        (("--idle", "soon"), "is not a duration"),
    ],
)
def test_a_rule_that_cannot_hold_is_refused(call: Call, asked: tuple[str, ...], told: str) -> None:
    """Too short a time, and a machine that does not end itself, are refused before anything."""
    ran = call(*AMAZON, *asked, "--dry-run")
    assert ran.code == 2
    assert told in ran.err


def test_a_machine_of_ones_own_has_no_rule(call: Call) -> None:
    """Nothing ends a machine that the user already has."""
    ran = call("provision", "--type", "ssh/root@10.0.0.5", "--ttl", "2h", "--idle", "1h", "--yes")
    assert ran.code == 2
    assert "the machine is yours" in ran.err
