"""`gpucost provision`, `list`, `show`, `down`, `reap` against DigitalOcean over https."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine

from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.gpucost.launching import Ready, prepare
from tests.providers.fakes.account import REAPER, TOKEN, a_digitalocean, contract
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.sizes import a_gpu_size

VISUAL_SEARCH = ROOT / "examples" / "visual-search.json"
SIZE = "digitalocean/gpu-h100x8-640gb"
LAUNCH = ("provision", "--type", SIZE, "--ttl", "2h", "--yes", "--allow-stale")


@pytest.fixture(autouse=True)
def no_network(login: Ready) -> None:
    """Reach this machine only."""
    assert login.delivered == []


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Ready:
    """Machines that are ready."""
    return prepare(monkeypatch, tmp_path)


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, login: Ready) -> Iterator[DigitalOcean]:
    """A DigitalOcean that sells the size in two regions, and a token for its machines."""
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    assert login.delivered == []
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        for size in fake.sizes:
            if size["slug"].startswith("gpu-h100x"):
                size["regions"] = ["nyc2", "tor1"]
            if size["slug"] == "gpu-h100x8-640gb":
                size["price_hourly"] = 35.28
        spot = {"vram": 288, "regions": ["nyc2"]}
        fake.sizes.append(a_gpu_size("gpu-b300x1-288gb-spot", 8.0, "nvidia_b300", 1, **spot))
        yield fake


def test_plan_to_ready_to_down(cloud: DigitalOcean, call: Call, login: Ready) -> None:
    """A launch is previewed, made, ready, listed with its cost, and gone after down."""
    ran = call(*LAUNCH, "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["state"] == "ready"
    assert ran.json["predicted_usd"] == "70.56"
    assert "at most $70.56" in ran.err
    assert login.delivered == [ran.json["resources"][-1]["name"]]
    run = ran.json["run"]
    listed = call("list", "-f", "json").json["runs"]
    assert [one["run"] for one in listed] == [run]
    assert listed[0]["usd_per_hour"] == "35.28"
    shown = call("show", run)
    assert f"{run}: ready" in shown.out
    assert "about to make machine" in shown.out
    ended = call("down", run, "--yes")
    assert ended.code == 0, ended.err
    assert not any(cloud.estate.things[name] for name in ("droplets", "ssh_keys", "firewalls"))
    (after,) = call("list", "--all", "-f", "json").json["runs"]
    assert after["state"] == "ended"
    assert after["billed_s"] >= 60  # the provider's minimum
    assert call("list", "-f", "json").json["runs"] == []


@pytest.mark.parametrize("count", ["1", "2"])
@pytest.mark.parametrize(
    ("size", "purchase"),
    [
        ("gpu-h100x1-80gb", "on_demand"),
        ("gpu-h100x8-640gb", "on_demand"),
        ("gpu-b300x1-288gb-spot", "spot"),
    ],
)
def test_every_kind_of_launch(
    cloud: DigitalOcean, call: Call, size: str, purchase: str, count: str
) -> None:
    """One GPU, eight, spot, two nodes: ready, and then nothing is left of any kind."""
    asked = ("--type", f"digitalocean/{size}", "--purchase", purchase, "--count", count)
    ran = call("provision", *asked, "--ttl", "2h", "--yes", "--allow-stale", "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["machines"] == int(count)
    assert {d["size_slug"] for d in cloud.estate.things["droplets"].values()} == {size}
    assert call("down", ran.json["run"], "--yes").code == 0
    left = {kind: list(things) for kind, things in cloud.estate.things.items() if kind != "tags"}
    assert not any(left.values())
    assert not any(tag.startswith("gpucost-run") for tag in cloud.estate.things["tags"])
    assert cloud.is_checked == (contract() is not None)


def test_two_nodes_come_together_or_not_at_all(cloud: DigitalOcean, call: Call) -> None:
    """Where the second machine exceeds the quota, the first is removed; exit 5."""
    cloud.estate.gpu_limit = 1
    ran = call(*LAUNCH, "--count", "2")
    assert ran.code == 5
    assert "will exceed your GPU limit" in ran.err
    assert "nothing is left" in ran.err
    assert cloud.estate.things["droplets"] == {}
    assert cloud.estate.things["ssh_keys"] == {}
    cloud.estate.gpu_limit = None
    ran = call(*LAUNCH, "--count", "2", "-f", "json")
    assert ran.code == 0, ran.err
    assert len(cloud.estate.things["droplets"]) == 2
    assert call("down", "--all", "--yes").code == 0
    assert cloud.estate.things["droplets"] == {}


def test_the_next_region_is_tried(cloud: DigitalOcean, call: Call) -> None:
    """A region that turns out to be closed is left for the next one of the size."""
    cloud.estate.closed.add("nyc2")
    ran = call(*LAUNCH, "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["region"] == "tor1"


@pytest.mark.parametrize(("image", "is_told"), [("gpu-h100x8-base", False), ("no-such", True)])
def test_an_image_that_is_not_shown_is_told(
    cloud: DigitalOcean, call: Call, image: str, *, is_told: bool
) -> None:
    """DigitalOcean is asked for the image before anything is made; the preview has its doubt."""
    ran = call(*LAUNCH, "--image", image)
    assert (f"shows no image {image}" in ran.out + ran.err) is is_told
    first = next(n for n, one in enumerate(cloud.requests) if one.startswith("POST"))
    assert f"GET /v2/images/{image}" in cloud.requests[:first]


def test_a_lost_answer_makes_no_second_machine(cloud: DigitalOcean, call: Call) -> None:
    """The work is done and the connection cut: the machine is found by name, not made again."""
    cloud.faults.append(Fault(path="/v2/droplets", method="POST", drop=True))
    ran = call(*LAUNCH, "-f", "json")
    assert ran.code == 0, ran.err
    assert len(cloud.estate.things["droplets"]) == 1
    assert sum(r.startswith("POST /v2/droplets") for r in cloud.requests) == 1


@pytest.mark.parametrize("status", [500, 503, 504])
def test_a_server_error_after_the_work_makes_no_second_machine(
    cloud: DigitalOcean, call: Call, status: int
) -> None:
    """POST is not repeated by the SDK on a 5xx; what it made is found."""
    cloud.faults.append(Fault(path="/v2/droplets", method="POST", status=status, after=True))
    ran = call(*LAUNCH, "-f", "json")
    assert ran.code == 0, ran.err
    assert len(cloud.estate.things["droplets"]) == 1


def test_a_server_error_without_the_work_is_a_maybe(cloud: DigitalOcean, call: Call) -> None:
    """Nothing is found after several looks: exit 6, nothing is left, reap closes the entry."""
    cloud.faults.append(Fault(path="/v2/droplets", method="POST", status=500))
    ran = call(*LAUNCH)
    assert ran.code == 6
    assert "gpucost reap" in ran.err
    assert cloud.estate.things["droplets"] == {}
    assert call("reap", "--yes").code == 0


def test_throttling_is_waited_out(cloud: DigitalOcean, call: Call) -> None:
    """A 429 made nothing, so the call is made again after Retry-After."""
    fault = Fault(path="/v2/droplets", method="POST", status=429, headers=(("Retry-After", "1"),))
    cloud.faults.append(fault)
    ran = call(*LAUNCH, "-f", "json")
    assert ran.code == 0, ran.err
    assert len(cloud.estate.things["droplets"]) == 1


def test_no_yes_no_machine(cloud: DigitalOcean, call: Call) -> None:
    """Where nobody can be asked and nobody said --yes, nothing is made."""
    ran = call("provision", "--type", SIZE, "--ttl", "2h", "--allow-stale")
    assert ran.code == 2
    assert "--yes" in ran.err
    assert not any(r.startswith("POST") for r in cloud.requests)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (("--type", SIZE), 2, "--ttl"),
        (("--type", SIZE, "--ttl", "2h", "--idle", "30s"), 2, "--idle 30s is shorter than 60 s"),
        (("--type", SIZE, "--ttl", "2h", "--recipe", "r.json"), 2, "--recipe: only with --run"),
        (("--type", SIZE, "--ttl", "2h", "--option", "a/o1"), 2, "different things"),
        (("--type", "nebius/any", "--ttl", "2h"), 2, "nebius"),
        (("--type", "digitalocean/no-such", "--ttl", "2h"), 2, "no-such"),
        (("--type", SIZE, "--ttl", "2h", "--no-wait", "--yes"), 2, "--no-wait leaves a machine"),
        (("--ttl", "2h", "--region", "nyc2"), 2, "--region needs --type"),
        (("--ttl", "2h"), 2, "plan.json"),
        (("--type", SIZE, "--ttl", "2h", "--max-cost", "10", "--yes"), 4, "--max-cost is $10.00"),
        (("--type", SIZE, "--ttl", "2h", "--max-cost", "70.56", "--yes"), 4, "up to $71.05 by the"),
    ],
    ids=str,
)
def test_what_is_refused(
    cloud: DigitalOcean, call: Call, arguments: tuple[str, ...], code: int, told: str
) -> None:
    """Bad usage is exit 2, what is unsafe exit 4; neither makes anything."""
    ran = call("provision", *arguments)
    assert ran.code == code
    assert told in ran.err
    assert not any(r.startswith("POST") for r in cloud.requests)


def test_without_the_reaper_token_the_user_must_say_so(
    cloud: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Droplet that cannot end itself needs --no-self-destroy, and a cron line is printed."""
    monkeypatch.delenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN")
    ran = call(*LAUNCH)
    assert ran.code == 2
    assert "GPUCOST_DIGITALOCEAN_REAPER_TOKEN" in ran.err
    ran = call(*LAUNCH, "--no-self-destroy")
    assert ran.code == 0, ran.err
    assert "gpucost reap --yes" in ran.err
    assert len(cloud.estate.things["droplets"]) == 1


def test_a_changed_price_is_refused(cloud: DigitalOcean, call: Call) -> None:
    """A live price that is over 1 % off is exit 4, unless --allow-stale; then it is what counts."""
    for size in cloud.sizes:
        size["price_hourly"] = 40.0 if size["slug"] == "gpu-h100x8-640gb" else size["price_hourly"]
    plain = [one for one in LAUNCH if one != "--allow-stale"]
    ran = call(*plain)
    assert ran.code == 4
    assert "13.4 % off" in ran.err
    ran = call(*LAUNCH, "-f", "json")
    assert ran.json["predicted_usd"] == "80.00"


def test_missing_credentials_are_exit_5(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable is named."""
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    ran = call(*LAUNCH)
    assert ran.code == 5
    assert "DIGITALOCEAN_TOKEN" in ran.err


def test_a_dry_run_needs_nothing_and_makes_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without credentials and network each changing call is printed, with the total at the TTL."""
    monkeypatch.setattr("socket.socket.connect", lambda *_: pytest.fail("network"))
    ran = call("provision", "--type", SIZE, "--ttl", "8h", "--dry-run", "-f", "json")
    assert ran.code == 0, ran.err
    assert ran.json["total_at_ttl"] == "282.24"
    calls = [one["call"] for one in ran.json["calls"]]
    assert calls == [
        "POST /v2/tags",
        "POST /v2/account/keys",
        "POST /v2/firewalls",
        "POST /v2/droplets",
    ]
    assert any("DELETE /v2/droplets" in end for end in ran.json["ends"])
    assert "would be refused" in ran.err
    assert not (tmp_path / "state").exists()
    shown = call("provision", "--type", SIZE, "--ttl", "8h", "--dry-run")
    assert "a region chosen at launch" in shown.out
    assert "POST /v2/droplets" in shown.out
    assert "at most $282.24 by the deadline" in shown.out
    assert "at most $282.73 by the end of the bill, up to 50 s later" in shown.out


def test_no_token_is_written_anywhere(cloud: DigitalOcean, call: Call, tmp_path: Path) -> None:
    """Neither token is in the journal, user data, output, a request's body, a plan or a report."""
    ran = call(*LAUNCH, "-v")
    planned = call("plan", str(VISUAL_SEARCH), "-o", "plan.json", "--report", "report.md")
    assert planned.code == 0
    cloud.faults.append(Fault(path="/v2/droplets", status=401, method="POST"))
    failed = call(*LAUNCH)
    everything = "".join(one.out + one.err for one in (ran, planned, failed))
    everything += json.dumps(cloud.estate.things) + json.dumps(cloud.requests)
    for path in tmp_path.rglob("*"):
        if path.is_file():
            everything += path.read_bytes().decode("latin-1")
    assert TOKEN not in everything
    assert REAPER not in everything


def test_reap_removes_what_is_late_and_keeps_what_lives(
    cloud: DigitalOcean, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Past the deadline: removed, also with an empty journal; live or of others: kept."""
    assert call(*LAUNCH).code == 0
    late = call("provision", "--type", SIZE, "--ttl", "1s", "--yes", "--allow-stale", "-f", "json")
    assert late.code == 0, late.err
    ada = late.json["owner"]
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "another"))
    assert call("reap", "--yes").code == 0
    assert len(cloud.estate.things["droplets"]) == 2
    monkeypatch.setenv("GPUCOST_OWNER", ada)
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=3)):
        looked = call("reap", "--dry-run", "-f", "json").json
        assert sorted(one["action"] for one in looked) == ["adopt", "remove"]
        assert len(cloud.estate.things["droplets"]) == 2
        assert call("reap", "--yes").code == 0
    assert len(cloud.estate.things["droplets"]) == 1
    assert [one["state"] for one in call("list", "-f", "json").json["runs"]] == ["ready"]


def test_an_unreadable_journal_stops_launches_but_not_their_end(
    cloud: DigitalOcean, call: Call, tmp_path: Path
) -> None:
    """Provision refuses (4); down --all sets the file aside and ends what the provider lists."""
    assert call(*LAUNCH).code == 0
    journal = tmp_path / "state" / "journal.sqlite"
    journal.write_bytes(b"this is not a database, and long enough to be taken for one" * 99)
    ran = call(*LAUNCH)
    assert ran.code == 4
    assert "journal" in ran.err
    assert len(cloud.estate.things["droplets"]) == 1
    ran = call("down", "--all", "--yes")
    assert ran.code == 0, ran.err
    assert "set aside" in ran.err
    assert cloud.estate.things["droplets"] == {}
    assert cloud.estate.things["ssh_keys"] == {}


@pytest.mark.parametrize("command", [("down", "--all", "--yes"), ("reap", "--yes")], ids=str)
def test_an_interrupt_says_how_to_go_on(
    cloud: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    """Ctrl-C while something is ended is exit 130, with the command that goes on."""
    late = call("provision", "--type", SIZE, "--ttl", "1s", "--yes", "--allow-stale")
    assert late.code == 0, late.err
    with time_machine.travel(datetime.now(UTC) + timedelta(seconds=3)):
        with monkeypatch.context() as patched:
            patched.setattr("providers.digitalocean.cloud.DigitalOceanCloud.destroy", _interrupted)
            ran = call(*command)
        assert ran.code == 130
        assert "goes on" in ran.err
        assert call(*command).code == 0
    assert cloud.estate.things["droplets"] == {}


def _interrupted(*_: object) -> None:
    raise KeyboardInterrupt
