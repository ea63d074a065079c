"""`gpucost provision --kubernetes` at DigitalOcean: a node pool from its preview to its end."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import time_machine
import yaml

from providers.doks import ender, inventory
from tests.gpucost.conftest import Call
from tests.providers.fakes.account import TOKEN
from tests.providers.fakes.clusters import NAME
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.world import Denied, World

TYPE = "digitalocean/gpu-h100x8-640gb"
ONTO = ("provision", "--type", TYPE, "--kubernetes", NAME, "--ttl", "2h", "--yes")
POOL = (*ONTO, "--allow-stale", "--no-self-destroy")


def _alive(ocean: DigitalOcean) -> int:
    return sum(ended is None for _, ended in ocean.estate.bills.values())


def test_a_pool_that_nothing_in_the_cluster_sees_is_undone(
    call: Call, ocean: DigitalOcean, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the CronJob a launch that must end by itself leaves nothing, and says what to do."""
    monkeypatch.setattr("providers.lifecycle.launch._UNSEEN_S", 0.0)
    ran = call(*ONTO, "--allow-stale")
    assert ran.code == 5
    assert "gpucost watch --in-cluster" in ran.err
    assert "nothing is left" in ran.err
    assert (_alive(ocean), ocean.estate.clusters.ours) == (0, {})


def test_what_stands_in_the_cluster_arms_a_pool_and_ends_it(
    call: Call, ocean: DigitalOcean, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The program of the manifest, over https: it arms our pool, and ends it at its deadline."""
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    settings = {
        "API": os.environ["GPUCOST_DIGITALOCEAN_ENDPOINT"],
        "TOKEN_FILE": str(tmp_path / "token"),
        "SSL_CERT_FILE": os.environ["GPUCOST_DIGITALOCEAN_CA"],
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    read = inventory.read_pool
    monkeypatch.setattr(inventory, "read_pool", lambda *a: (ender.look(), read(*a))[1])
    ran = call(*ONTO, "--allow-stale", "--count", "2", "-f", "json")
    assert ran.code == 0, ran.err
    assert "a CronJob in the cluster" in ran.err
    assert "for each day until `gpucost reap` runs" in ran.err
    (pool,) = ocean.estate.clusters.ours.values()
    assert (pool.told["labels"]["gpucost-ender"], pool.told["count"]) == ("armed", 2)
    monkeypatch.setattr(inventory, "read_pool", read)
    ender.look()
    assert len(ocean.estate.clusters.ours) == 1
    extended = call("extend", ran.json["run"], "1h", "--yes")
    assert extended.code == 0, extended.err
    assert "do not end themselves" not in extended.err
    ocean.world = World(skew_s=2.5 * 3600)
    ender.look()
    assert len(ocean.estate.clusters.ours) == 1
    ocean.world = World(skew_s=3.1 * 3600)
    ender.look()
    assert ocean.estate.clusters.ours == {}
    assert [one.told["name"] for one in ocean.estate.clusters.pools.values() if not one.ended] == [
        "web"
    ]


def test_the_manifest_holds_what_it_needs_and_no_right(call: Call) -> None:
    """Strict by the schemas of Kubernetes' own field names: no token of the cluster, no root."""
    parts = list(yaml.safe_load_all(call("watch", "--in-cluster").out))
    assert [part["kind"] for part in parts] == ["ServiceAccount", "ConfigMap", "CronJob"]
    script = parts[1]["data"]["ender.py"]
    assert compile(script, "ender.py", "exec")
    assert script.strip() == Path(ender.__file__).read_text(encoding="utf-8").strip()
    pod = parts[2]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["automountServiceAccountToken"] is parts[0]["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True


def test_the_preview_says_what_nobody_ends(call: Call, ocean: DigitalOcean) -> None:
    """With --no-self-destroy, what ends the pool and what that costs is said."""
    dry = call(*POOL, "--min", "1", "--max", "3", "--dry-run", "-f", "json")
    assert dry.code == 0, dry.err
    assert ocean.requests == []
    one = call(*POOL, "--dry-run", "-f", "json").json
    assert float(dry.json["total_at_ttl"]) == pytest.approx(3 * float(one["total_at_ttl"]))
    assert dry.json["node_pool"] == {"cluster": NAME, "min_nodes": 1, "max_nodes": 3}
    assert (dry.json["count"], dry.json["provider"]) == (1, "doks")
    (asked,) = dry.json["calls"]
    assert asked["call"] == f"POST /v2/kubernetes/clusters/{NAME}/node_pools"
    assert asked["arguments"]["max_nodes"] == 3
    told = " ".join(dry.json["warnings"])
    assert "may grow to 3" in told
    assert "for each day until `gpucost reap` runs" in told
    assert "SSH" not in told
    assert "at the deadline nothing happens by itself" in " ".join(dry.json["ends"])
    assert "user_data" not in dry.out


def test_a_pool_its_later_deadline_and_its_end(call: Call, ocean: DigitalOcean) -> None:
    """Up, list, show, extend and down: pool and nodes are billed, named, moved and gone."""
    ran = call(*POOL, "--count", "2", "-f", "json")
    assert ran.code == 0, ran.err
    run = ran.json["run"]
    assert (ran.json["state"], ran.json["machines"]) == ("ready", 2)
    assert [one["kind"] for one in ran.json["resources"]] == ["pool", "node", "node"]
    assert TOKEN not in ran.out + ran.err
    listed = call("list", "-f", "json")
    assert (listed.code, listed.json["asked"]) == (0, ["doks"])
    assert {one["presence"] for one in listed.json["runs"][0]["resources"]} == {"present"}
    shown = call("show", run)
    assert "log in" not in shown.out + shown.err
    assert "present" in shown.out
    assert call("extend", run, "1h", "--yes").code == 0
    (pool,) = ocean.estate.clusters.ours.values()
    deadline = datetime.fromisoformat(ran.json["deadline"]) + timedelta(hours=1)
    assert pool.told["labels"]["gpucost-deadline"] == f"{deadline:%Y%m%dT%H%M%SZ}"
    down = call("down", run, "--yes")
    assert down.code == 0, down.err
    assert (_alive(ocean), ocean.estate.clusters.ours) == (0, {})
    ended = call("show", run, "-f", "json").json
    assert ended["state"] == "ended"
    assert {one["state"] for one in ended["resources"]} == {"gone"}
    assert call("list", "-f", "json").json["runs"] == []


def test_the_cap_is_of_the_most_nodes(call: Call, ocean: DigitalOcean) -> None:
    """What the autoscaler may add counts before anything is made, and in an extension."""
    one = float(call(*POOL, "--dry-run", "-f", "json").json["total_at_end"])
    ran = call(*POOL, "--min", "1", "--max", "2", "--max-cost", f"{one * 1.5:.2f}")
    assert ran.code == 4
    assert "2 x gpu-h100x8-640gb" in ran.err
    assert not [asked for asked in ocean.requests if not asked.startswith("GET")]
    ran = call(*POOL, "--min", "1", "--max", "2", "--max-cost", f"{one * 2.2:.2f}", "-f", "json")
    assert ran.code == 0, ran.err
    more = call("extend", ran.json["run"], "1h", "--yes")
    assert more.code == 4
    assert "its cap is" in more.err


def test_reap_ends_what_is_past_its_deadline(call: Call, ocean: DigitalOcean) -> None:
    """A pool lives until its deadline and not longer, also where the journal is lost."""
    ran = call(*POOL, "-f", "json")
    assert ran.code == 0, ran.err
    assert call("reap", "--yes").code == 0
    assert _alive(ocean) == 1
    with time_machine.travel(datetime.now(UTC) + timedelta(hours=3)):
        reaped = call("reap", "--yes")
        assert reaped.code == 0, reaped.err
    assert (_alive(ocean), ocean.estate.clusters.ours) == (0, {})


def test_a_pool_of_another_computer_is_found(
    call: Call, ocean: DigitalOcean, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    """With an empty journal the marks of the pool tell, and `down` ends it."""
    ran = call(*POOL, "-f", "json")
    assert ran.code == 0, ran.err
    monkeypatch.setenv("GPUCOST_STATE_DIR", f"{tmp_path}/elsewhere")
    monkeypatch.setenv("GPUCOST_OWNER", ran.json["owner"])
    rows = call("reap", "--dry-run", "-f", "json").json
    assert [(row["run"], row["action"]) for row in rows] == [(ran.json["run"], "adopt")]
    assert call("down", "--all", "--yes").code == 0
    assert _alive(ocean) == 0


def test_doks_is_not_named_where_nothing_of_ours_may_be(call: Call, ocean: DigitalOcean) -> None:
    """Who never made a pool reads nothing of them, also where the token may not see clusters."""
    ocean.world = World(denied=(Denied(kind="pool", calls="all"),))
    listed, reaped = call("list", "-f", "json"), call("reap", "--yes")
    assert (listed.code, reaped.code) == (0, 0), listed.err + reaped.err
    assert listed.json["asked"] == ["digitalocean"]
    assert "doks" not in listed.err + reaped.err
    assert "you have no resources at digitalocean." in reaped.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--run", "python x.py", "--idle", "10m"), "--idle, --run: of machines of their own"),
        (("--min", "2"), "--min and --max go together"),
        (("--min", "3", "--max", "2"), "--min 3 is more than --max 2"),
        (("--min", "2", "--max", "4", "--count", "1"), "--count 1 is not between"),
        (("--purchase", "spot"), "spot"),
        (("--kubernetes", " "), "--kubernetes is empty"),
        (("--kubernetes", "prod-2"), "no such cluster in the account; it has: prod-1 (nyc2)"),
        (("--min", "0", "--max", "2"), "--min 1"),
    ],
    ids=str,
)
def test_what_does_not_fit_a_pool_is_refused(
    call: Call, ocean: DigitalOcean, more: tuple[str, ...], said: str
) -> None:
    """With the options that are wrong, all at once, before anything is made."""
    ran = call(*POOL, *more)
    assert ran.code == 2, ran.err
    assert said in ran.err
    assert not [asked for asked in ocean.requests if not asked.startswith("GET")]


def test_limits_belong_to_a_cluster(call: Call) -> None:
    """--min and --max without --kubernetes are refused, and so is a provider without pools."""
    ran = call("provision", "--type", TYPE, "--ttl", "2h", "--min", "1", "--max", "2")
    assert ran.code == 2
    assert "Give --kubernetes CLUSTER" in ran.err
    ran = call("provision", "--type", "lambda/gpu_1x_a10", "--ttl", "2h", "--kubernetes", "a")
    assert ran.code == 2
    assert "makes no node pools at lambda" in ran.err
