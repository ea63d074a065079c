"""`gpucost extend`: a later deadline, within a cap, that each machine has said that it took."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call
from tests.gpucost.launching import AMAZON, LIFE_S, OCEAN, Ready
from tests.providers.fakes.aws_account import AwsAccount, AwsFault
from tests.providers.fakes.digitalocean import DigitalOcean, Fault

TWO_HOURS = timedelta(hours=2)


pytestmark = pytest.mark.usefixtures("login")


def _launched(call: Call, launch: tuple[str, ...], *more: str) -> tuple[str, datetime]:
    ran = call(*launch, "--ttl", "2h", "-f", "json", *more)
    assert ran.code == 0, ran.err
    return ran.json["run"], datetime.fromisoformat(ran.json["deadline"])


def _deadline(call: Call, run: str) -> datetime:
    return datetime.fromisoformat(call("show", run, "-f", "json").json["deadline"])


def test_a_droplet_ends_later(ocean: DigitalOcean, call: Call, login: Ready) -> None:
    """The machine goes by the later deadline, its tags say so, and all of it goes with the run."""
    run, deadline = _launched(call, OCEAN)
    ran = call("extend", run, "2h", "--yes", "-f", "json")
    assert ran.code == 0, ran.err
    until = deadline + TWO_HOURS
    assert datetime.fromisoformat(ran.json["deadline"]) == until
    usd = float(ran.json["predicted_usd"])  # up to 4 h and 50 s of 35.28 USD/h
    assert usd == pytest.approx(14450 / 3600 * 35.28, abs=0.2)
    assert f"at most ${ran.json['predicted_usd']} by the end of the bill" in ran.err
    assert list(login.ends.values()) == [(until, LIFE_S + 7200)]
    (droplet,) = ocean.estate.things["droplets"].values()
    assert sum(f"{until:%Y%m%dT%H%M%SZ}" in tag for tag in droplet["tags"]) == 1
    told = [event["what"] for event in ran.json["events"]]
    begun, taken = (
        f"about to move its deadline to {until:%F %T} UTC",
        f"ends itself at {until:%F %T}",
    )
    assert told.index(begun) < next(at for at, what in enumerate(told) if taken in what)
    assert call("down", run, "--yes").code == 0
    assert [name for name in ocean.estate.things["tags"] if name.startswith("gpucost-run")] == []


def test_another_home_does_not_reap_what_was_extended(
    ocean: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of two run tags on a machine the later deadline counts, with an empty journal, too."""
    run, deadline = _launched(call, OCEAN)
    assert call("extend", run, "2h", "--yes").code == 0
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "another"))
    looked = call("reap", "--dry-run", "--all-owners", "-f", "json").json
    assert [one["deadline"] for one in looked] == [f"{deadline + TWO_HOURS:%Y-%m-%d %H:%M}"]
    assert len(ocean.estate.things["droplets"]) == 1


def test_an_instance_ends_later(aws: AwsAccount, call: Call, login: Ready) -> None:
    """Its tag has the later deadline, and both machines have taken it."""
    run, deadline = _launched(call, AMAZON, "--count", "2")
    assert call("extend", run, "30m", "--yes").code == 0
    until = deadline + timedelta(minutes=30)
    assert _deadline(call, run) == until
    assert {end for end, _ in login.ends.values()} == {until}
    assert len(login.ends) == 2
    marks = [aws.backend("us-east-1").tags[one]["gpucost:deadline"] for one in aws.alive_ids()]
    assert marks == [f"{until:%Y%m%dT%H%M%SZ}"] * 2


def test_twice_is_later_still(aws: AwsAccount, call: Call, login: Ready) -> None:
    """Each time counts from the deadline before; a time that is none is refused."""
    run, deadline = _launched(call, AMAZON)
    assert call("extend", run, "1h", "--yes").code == 0
    assert call("extend", run, "1h", "--yes").code == 0
    assert list(login.ends.values()) == [(deadline + TWO_HOURS, LIFE_S + 7200)]
    assert call("extend", run, "0s", "--yes").code == 2
    assert call("extend", "zzzzzzzz", "1h", "--yes").code == 2
    assert len(aws.alive_ids()) == 1


@pytest.mark.parametrize("fault", ["", "nothing watches the deadline"], ids=["away", "unarmed"])
def test_what_does_not_answer_is_not_extended(
    aws: AwsAccount, call: Call, login: Ready, fault: str
) -> None:
    """A machine that is not reached, or not armed: exit 5, and nothing at all has changed."""
    run, deadline = _launched(call, AMAZON)
    login.reached, login.fault = bool(fault), fault
    ran = call("extend", run, "2h", "--yes")
    assert ran.code == 5
    assert f"Nothing was changed: {run} ends at {deadline:%Y-%m-%d %H:%M:%S} UTC" in ran.err
    assert "CreateTags" not in aws.requests
    assert _deadline(call, run) == deadline
    assert login.ends == {}


def test_a_machine_that_does_not_take_it_is_told(aws: AwsAccount, call: Call, login: Ready) -> None:
    """Read back: what still goes by the earlier deadline is exit 6; the same command goes on."""
    run, deadline = _launched(call, AMAZON)
    login.takes = False
    ran = call("extend", run, "2h", "--yes")
    assert ran.code == 6
    assert f"it goes by {deadline}" in ran.err
    assert _deadline(call, run) == deadline
    login.takes = True
    assert call("extend", run, "2h", "--yes").code == 0
    assert _deadline(call, run) == deadline + TWO_HOURS
    assert len(aws.alive_ids()) == 1


def test_a_refusal_of_the_provider_tells_no_machine(
    aws: AwsAccount, ocean: DigitalOcean, call: Call, login: Ready
) -> None:
    """Where the marks cannot be moved, a reap elsewhere would end it: so no machine is told."""
    run, deadline = _launched(call, AMAZON)
    aws.faults.append(AwsFault(action="CreateTags", status=403, code="UnauthorizedOperation"))
    ran = call("extend", run, "2h", "--yes")
    assert ran.code == 5
    assert login.ends == {}
    assert _deadline(call, run) == deadline
    droplet, _ = _launched(call, OCEAN)
    ocean.faults.append(Fault(path="/v2/tags", below=True, method="POST", status=403))
    assert call("extend", droplet, "2h", "--yes").code == 5
    assert login.ends == {}


def test_the_cap_holds(aws: AwsAccount, call: Call, login: Ready) -> None:
    """The whole run to the end of its bill: within --max-cost, else within the launch's cap."""
    run, deadline = _launched(call, AMAZON, "--max-cost", "2")
    refused = call("extend", run, "2h", "--yes")
    assert refused.code == 4
    assert "its cap is $2.00" in refused.err
    assert call("extend", run, "2h", "--yes", "--max-cost", "3.20").code == 4
    assert "CreateTags" not in aws.requests
    assert login.ends == {}
    looked = call("extend", run, "2h", "--max-cost", "4", "--dry-run")
    assert looked.code == 0
    assert re.search(r"at most \$3\.(29|30) by the end of the bill", looked.err)
    assert _deadline(call, run) == deadline
    assert call("extend", run, "2h", "--yes", "--max-cost", "4").code == 0
    again = call("extend", run, "2h", "--yes")
    assert again.code == 4
    assert "its cap is $4.00" in again.err


def test_nobody_is_extended_unasked(aws: AwsAccount, call: Call, login: Ready) -> None:
    """Without --yes and a terminal nothing is changed, and another owner's run is refused."""
    run, deadline = _launched(call, AMAZON)
    assert call("extend", run, "2h").code == 2
    assert _deadline(call, run) == deadline
    assert login.ends == {}
    assert call("down", run, "--yes").code == 0
    over = call("extend", run, "2h", "--yes")
    assert over.code == 4
    assert f"{run} is ended" in over.err
    assert aws.alive_ids() == []
