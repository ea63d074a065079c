"""`gpucost provision` at Lambda, where a machine ends itself with a key alone: preview to reap."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from tests.bootstrap.box import parts
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready, prepare
from tests.providers.fakes.account import LAMBDA_KEY, LAMBDA_REAPER, a_lambda
from tests.providers.fakes.digitalocean import Fault
from tests.providers.fakes.lambda_account.account import Lambda
from tests.providers.fakes.world import World

LAUNCH = ("provision", "--type", "lambda/gpu_1x_a10", "--ttl", "2h", "--yes", "--no-self-destroy")
ENDS_ITSELF = tuple(word for word in LAUNCH if word != "--no-self-destroy")
_PATH = "/api/v1/instance-operations/launch"
_NO_ROOM = (
    b'{"error": {"code": "instance-operations/launch/insufficient-capacity",'
    b' "message": "Not enough capacity"}}'
)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Reach this machine only; machines are ready."""
    return prepare(monkeypatch, tmp_path)


@pytest.fixture(autouse=True)
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, no_network: Ready) -> Iterator[Lambda]:
    """An empty account; its requests keep to the document."""
    assert no_network.delivered == []
    monkeypatch.setattr("providers.lambda_cloud.access.BACKOFF_S", 0.0)
    with a_lambda(tmp_path, monkeypatch) as fake:
        yield fake


def _alive(account: Lambda) -> int:
    return sum(ended is None for _, ended in account.bills.values())


def test_the_preview_says_that_nothing_there_ends_it(call: Call, account: Lambda) -> None:
    """Without a key for its end nothing is launched, unless --no-self-destroy says so."""
    ran = call(*ENDS_ITSELF)
    assert (ran.code, account.requests) == (2, [])
    assert "GPUCOST_LAMBDA_REAPER_KEY is not set" in ran.err
    assert "reaches everything in the account" in ran.err
    dry = call(*LAUNCH, "--dry-run", "-f", "json")
    assert dry.code == 0, dry.err
    assert account.requests == []
    told = " ".join(dry.json["warnings"])
    assert "gpucost watch --install" in told
    assert "for each day until `gpucost reap` runs" in told
    assert "boothook" not in dry.out
    assert dry.json["total_at_ttl"] == "2.58"
    assert "at the deadline nothing happens by itself" in " ".join(dry.json["ends"])


def test_a_machine_with_a_key_ends_itself(
    call: Call, account: Lambda, no_network: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is tried before anything is made and handed over SSH; what it reaches is told."""
    monkeypatch.setenv("GPUCOST_LAMBDA_REAPER_KEY", "secret_gpucost_wrong")
    wrong = call(*ENDS_ITSELF)
    assert wrong.code == 5
    assert "trying GPUCOST_LAMBDA_REAPER_KEY failed: HTTP 401" in wrong.err
    assert account.bills == {}
    monkeypatch.setenv("GPUCOST_LAMBDA_REAPER_KEY", LAMBDA_REAPER)
    ran = call(*ENDS_ITSELF, "-f", "json")
    assert ran.code == 0, ran.err
    assert "that token reaches everything in the account" in ran.err
    assert "it costs $30.96 for each day until `gpucost reap` runs" in ran.err
    (id_,) = account.bills
    assert no_network.delivered == [f"gpucost-{ran.json['run']}-1"]
    hook = parts(account.user_data[id_])["cloud-boothook"]
    assert "/api/v1/instance-operations/terminate" in hook
    assert LAMBDA_REAPER not in ran.out + ran.err + hook


def test_a_launch_its_later_deadline_and_its_end(call: Call, account: Lambda) -> None:
    """Launch, list, extend, show and down: the bill is by the minute, and nothing is left."""
    ran = call(*LAUNCH, "-f", "json")
    assert ran.code == 0, ran.err
    (id_,) = account.bills
    assert account.things["/instances"][id_]["tags"][0] == {
        "key": "gpucost-run",
        "value": ran.json["run"],
    }
    assert LAMBDA_KEY not in ran.out + ran.err + account.user_data[id_]
    assert call("extend", ran.json["run"], "1h", "--yes").code == 0
    assert "-until-" in account.things["/instances"][id_]["name"]
    assert "1 machine" in call("list").out + call("list").err
    down = call("down", ran.json["run"], "--yes")
    assert down.code == 0, down.err
    assert _alive(account) == 0
    assert not any(list(account.things.values())[1:])
    assert call("show", ran.json["run"], "-f", "json").json["billed_s"] % 60 == 0


@pytest.mark.parametrize(
    "image", ["lambda-stack-24-04", "43336648-096d-4cba-9aa2-000000000001", "ubuntu-99"]
)
def test_an_image_is_asked_for_before_anything_is_made(
    image: str, call: Call, account: Lambda
) -> None:
    """By its family or its id; without one nothing is asked."""
    is_there = image != "ubuntu-99"
    ran = call(*LAUNCH, "--image", image)
    assert (f"Lambda shows no image {image}" in ran.err) is not is_there
    assert (ran.code == 0, _alive(account)) == (is_there, int(is_there))
    assert account.requests.index("GET /api/v1/images") < account.requests.index(
        "POST /api/v1/ssh-keys"
    )
    assert not is_there or call("down", "--all", "--yes").code == 0
    account.requests.clear()
    assert call(*LAUNCH).code == 0
    assert "GET /api/v1/images" not in account.requests


def test_what_nobody_ended_is_reaped_after_its_deadline(call: Call, account: Lambda) -> None:
    """With the journal lost, too: the tags say whose it is, and that its time is over."""
    assert call(*LAUNCH).code == 0
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=3)):
        ran = call("reap", "--yes")
    assert ran.code == 0, ran.err
    assert _alive(account) == 0


def test_a_lost_answer_makes_one_machine(call: Call, account: Lambda) -> None:
    """The launch is sent once; what its lost answer has made is found by its name."""
    account.faults.append(Fault(path=_PATH, method="POST", drop=True))
    ran = call(*LAUNCH)
    assert ran.code == 0, ran.err
    assert len(account.bills) == account.requests.count(f"POST {_PATH}") == 1


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"error": {"code": "global/quota-exceeded", "message": "Quota exceeded."}}', "quota"),
        (_NO_ROOM, "no place had all machines"),
    ],
    ids=["quota", "capacity"],
)
def test_a_refused_launch_leaves_nothing(
    call: Call, account: Lambda, body: bytes, told: str
) -> None:
    """No quota or no room: exit 5, no machine, no key, no firewall."""
    account.faults.append(Fault(path=_PATH, method="POST", status=400, body=body, times=9))
    ran = call(*LAUNCH)
    assert ran.code == 5
    assert told in ran.err
    assert account.bills == {}
    assert not any(account.things.values())


def test_a_throttled_launch_waits_and_goes_on(call: Call, account: Lambda) -> None:
    """Launches are limited: a 429 is waited for, and nothing is made twice."""
    account.faults.append(Fault(path=_PATH, method="POST", status=429, times=2))
    assert call(*LAUNCH).code == 0
    assert len(account.bills) == 1


def test_an_id_of_another_account_is_no_end(call: Call, account: Lambda) -> None:
    """With a key of another account the machine is not called gone."""
    run = call(*LAUNCH, "-f", "json").json["run"]
    account.world = World(elsewhere=True)
    ran = call("down", run, "--yes")
    assert ran.code == 6
    assert "of another account" in ran.err.replace("another\n", "another ")
    account.world = World()
    assert call("down", run, "--yes").code == 0
    assert _alive(account) == 0


def test_live_prices_are_read(call: Call) -> None:
    """`prices update` takes every type with a GPU, in dollars; one without is left out."""
    ran = call("prices", "update", "--provider", "lambda")
    assert ran.code == 0, ran.err
    rows = call("prices", "--provider", "lambda", "-f", "json").json
    prices = {one["instance_type"]: one["usd_per_hour"] for one in rows}
    assert prices == {"gpu_1x_a10": "1.29", "gpu_8x_h100_sxm5": "27.92"}


def test_without_a_key_it_says_which(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 5 and the variable; nothing else is asked for."""
    monkeypatch.delenv("LAMBDA_API_KEY")
    ran = call(*LAUNCH)
    assert ran.code == 5
    assert "LAMBDA_API_KEY is not set" in ran.err
