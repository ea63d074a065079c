"""A machine that its user has renamed and retagged is not ended because the journal has its id."""

import json
import socket
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from gpucost.machines import state
from gpucost.views import output
from providers.digitalocean import access
from tests.gpucost.conftest import Call
from tests.gpucost.launching import prepare
from tests.gpucost.machines.test_gone import LAUNCH, SIZE
from tests.providers.fakes.account import REAPER, a_digitalocean
from tests.providers.fakes.digitalocean import DigitalOcean


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DigitalOcean]:
    """A DigitalOcean that sells the size, and a token for its machines."""
    prepare(monkeypatch, tmp_path)
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        for size in fake.sizes:
            if size["slug"] == SIZE:
                size["regions"] = ["nyc2"]
        yield fake


def test_it_is_left_and_told(cloud: DigitalOcean, call: Call) -> None:
    """`down`, `down --all`, `reap` with --yes leave it, and say what it is called now."""
    ran = call(*LAUNCH, "-f", "json")
    run = ran.json["run"]
    ((key, droplet),) = cloud.estate.things["droplets"].items()
    droplet |= {"name": "prod-db-2", "tags": ["prod"]}
    for words in (("down", run, "--yes"), ("down", "--all", "--yes"), ("reap", "--yes")):
        ran = call(*words)
        assert "'prod-db-2'" in ran.err, (words, ran.err)
        assert ran.code == 6
        assert list(cloud.estate.things["droplets"]) == [key]
    shown = call("list")
    assert "left alone: it is called 'prod-db-2' now" in shown.err


def test_what_a_lost_answer_made_and_somebody_took_is_not_called_gone(
    cloud: DigitalOcean, call: Call, tmp_path: Path
) -> None:
    """A launch died before it knew the id, and both marks went: its run stays open, for a day."""
    run = call(*LAUNCH, "-f", "json").json["run"]
    ((key, droplet),) = cloud.estate.things["droplets"].items()
    droplet |= {"name": "prod-db-2", "tags": ["prod"]}
    (file,) = tmp_path.rglob("journal.sqlite")
    with closing(sqlite3.connect(file)) as journal, journal:
        ((text,),) = journal.execute("SELECT document FROM runs").fetchall()
        document = json.loads(text)
        (machine,) = [part for part in document["resources"] if part["kind"] == "machine"]
        machine |= {"id": "", "state": "intended"}
        journal.execute("UPDATE runs SET document = ?", (json.dumps(document),))
    ran = call("down", run, "--yes")
    assert ran.code == 6
    assert f"'prod-db-2' ({key}), made in the minutes after that call, has none of" in ran.err
    assert list(cloud.estate.things["droplets"]) == [key]
    droplet["created_at"] = "2020-01-01T00:00:00Z"  # somebody else's, made at another time
    assert call("down", run, "--yes").code == 0
    assert list(cloud.estate.things["droplets"]) == [key]


@pytest.mark.parametrize("change", [{"name": "mine"}, {"tags": []}], ids=["renamed", "untagged"])
def test_one_of_both_is_still_ours(
    cloud: DigitalOcean, call: Call, change: dict[str, object]
) -> None:
    """Its tags or its name say whose it is: it ends, as it always did."""
    run = call(*LAUNCH, "-f", "json").json["run"]
    ((_, droplet),) = cloud.estate.things["droplets"].items()
    droplet |= change
    assert call("down", run, "--yes").code == 0
    assert cloud.estate.things["droplets"] == {}


def test_a_lost_state_folder_is_told_and_rebuilt(
    cloud: DigitalOcean, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`list` and `down --all` say that there is something; `list --recover` takes it over."""
    run = call(*LAUNCH, "-f", "json").json["run"]
    monkeypatch.setenv("GPUCOST_STATE_DIR", str(tmp_path / "another"))
    for words in (("list",), ("down", "--all", "--yes")):
        told = call(*words).err
        assert "list --recover" in told, words
        assert "no machines running" not in told
    assert len(cloud.estate.things["droplets"]) == 1
    rebuilt = call("list", "--recover", "-f", "json")
    assert rebuilt.code == 0, rebuilt.err
    assert [one["run"] for one in rebuilt.json["runs"]] == [run]
    assert call("down", "--all", "--yes").code == 0
    assert cloud.estate.things["droplets"] == {}


@pytest.fixture(params=["refuses", "takes every connection and never answers"])
def nowhere(request: pytest.FixtureRequest) -> Iterator[str]:
    """An address at which nobody answers."""
    if request.param == "refuses":
        yield "https://127.0.0.1:9"
        return
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"https://127.0.0.1:{server.getsockname()[1]}"


def test_without_a_network_the_reason_comes_at_once(
    cloud: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch, nowhere: str
) -> None:
    """Within 3 s: who cannot be reached, what may burn by the last record, until when."""
    run = call(*LAUNCH, "-f", "json").json["run"]
    said: list[tuple[float, str]] = []
    began_s = time.monotonic()
    say = output.Output.say
    monkeypatch.setattr(
        output.Output,
        "say",
        lambda self, text: said.append((time.monotonic() - began_s, text)) or say(self, text),
    )
    monkeypatch.setattr(access, "RETRIES", 0)
    monkeypatch.setattr(state, "PATIENCE", replace(state.PATIENCE, gone_s=0.0, unasked_s=0.0))
    monkeypatch.setattr(access, "READ_S", 0.2)
    shipped_s = vars(state)["_SAID_S"]
    assert shipped_s < 3  # a part of it here, for twenty calls wait longer than that
    monkeypatch.setattr(state, "_SAID_S", 0.1)
    monkeypatch.setattr(state, "_WAITED_S", 0.2)
    monkeypatch.setattr(access, "CONNECT_S", 0.15)  # over the time after which the reason is said
    monkeypatch.setenv("GPUCOST_DIGITALOCEAN_ENDPOINT", nowhere)
    for words in (("list",), ("down", run, "--yes"), ("reap", "--dry-run")):
        said.clear()
        began_s = time.monotonic()
        assert call(*words).code == 6
        at_s, text = next(one for one in said if "cannot be reached" in one[1])
        assert at_s < 3
        assert "127.0.0.1" in text
        assert text.endswith("trying on ...") == (words[0] != "list" or "no answer yet" in text)
        assert any(f"{run} ($36.00 an hour until " in one for _, one in said), said
    assert len(cloud.estate.things["droplets"]) == 1
