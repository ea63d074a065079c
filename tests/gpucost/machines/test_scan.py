"""`gpucost scan` against moto, the DigitalOcean and the Lambda stand-in: read, priced, judged."""

import csv
import json
import os
import re
import shlex
import time
from collections.abc import Iterator
from decimal import Decimal
from http import HTTPStatus
from pathlib import Path
from typing import Any

import boto3
import pytest
from werkzeug.wrappers import Request, Response

from providers.digitalocean.access import VARIABLES, DigitalOceanApi
from providers.lambda_cloud import access
from providers.provider import permissions
from tests.gpucost.conftest import Call, Ran
from tests.gpucost.machines.accounts import (
    BUSY,
    IDLE,
    a_volume,
    cpu_matrix,
    ec2,
    note_use,
    run_droplets,
    run_instances,
    run_lambda,
)
from tests.providers.fakes import aws_account
from tests.providers.fakes.account import TOKEN, a_lambda
from tests.providers.fakes.aws_account import AwsAccount
from tests.providers.fakes.clusters import CLUSTER
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.lambda_account.account import Lambda
from tests.providers.fakes.server import serving
from tests.providers.fakes.world import Denied, World
from tests.templates.test_strangers import alive_in_markdown

READS = ("Describe", "Get", "List")
VOLUME = "506f78a4-e098-11e5-ad9f-000f53306ae1"


@pytest.fixture
def lambdas(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lambda]:
    """An empty Lambda, which is not waited for where it fails."""
    monkeypatch.setattr(access, "BACKOFF_S", 0.0)
    with a_lambda(tmp_path, monkeypatch) as fake:
        yield fake


def only_reads(aws: AwsAccount, ocean: DigitalOcean) -> bool:
    """Whether nothing but reads came, and some did."""
    calls = [*aws.requests, *ocean.requests]
    return bool(calls) and all(call.startswith((*READS, "GET ")) for call in calls)


def test_forty_of_two_hundred_are_idle(
    aws: AwsAccount, ocean: DigitalOcean, lambdas: Lambda, call: Call
) -> None:
    """All 40 are named, none twice; a denied region and a provider that is down are said."""
    idle = set[str]()
    for region, quiet, busy in (("us-east-1", 15, 45), ("us-west-2", 10, 50)):
        ids = run_instances(region, quiet + busy, tags={"Owner": "ada"} if quiet > 10 else None)
        for place, id_ in enumerate(ids):
            note_use(region, id_, IDLE if place < quiet else BUSY)
        idle |= set(ids[:quiet])
    run_instances("eu-west-1", 5)
    idle |= set(run_droplets(ocean, 15, IDLE, tags=["owner:ada", "prod"]))
    run_droplets(ocean, 65, BUSY)
    run_lambda(lambdas, 7)
    lambdas.world = World(denied=(Denied(status=503),))
    aws.world = World(denied=(Denied(region="eu-west-1"),))
    aws.requests.clear()
    ran = call("scan", "-f", "json")
    assert ran.code == 0, ran.err
    machines = [item for item in ran.json["items"] if item["kind"] == "machine"]
    assert len(machines) == len({item["id"] for item in machines}) == 200
    named = [item["id"] for item in machines if item["idle"]]
    assert len(named) == 40
    assert set(named) == idle
    assert [item["idle"] for item in machines[:40]] == [True] * 40
    assert sum(item["owner"] == "ada" for item in machines) == 60 + 15
    assert only_reads(aws, ocean)
    assert all(request.startswith("GET ") for request in lambdas.requests)
    # 730 h: 25 x (0.526 $/h, 8 GiB of gp2 at 0.10 $, an address at 0.005 $/h), 15 x 4.41 $/h:
    # 25 x 388.43 + 15 x 3,219.30.
    assert round(Decimal(ran.json["idle_usd_per_month"]), 2) == Decimal("58000.25")
    assert ran.json["at_least"] is True
    unseen = " ".join(ran.json["unseen"])
    assert "aws in eu-west-1" in unseen
    assert "lambda: " in unseen
    assert "503" in unseen


def by_id(ran: Ran) -> dict[str, dict[str, Any]]:
    """What a scan shows."""
    return {item["id"]: item for item in ran.json["items"]}


def test_use_that_was_not_measured_is_unknown(
    aws: AwsAccount, ocean: DigitalOcean, lambdas: Lambda, call: Call
) -> None:
    """No reading, too short a one, a denied one, or a GPU at work on a quiet CPU: none is idle."""
    silent, young, working, resting = run_instances("us-east-1", 4)
    note_use("us-east-1", young, IDLE, hours=5)
    note_use("us-east-1", working, 0.001)
    note_use("us-east-1", working, 0.9, gpu=True)
    note_use("us-east-1", resting, 0.3)
    note_use("us-east-1", resting, 0.0, gpu=True)
    (agentless,) = run_droplets(ocean, 1, None)
    (instance,) = run_lambda(lambdas, 1)
    shown = by_id(call("scan", "-f", "json"))
    verdicts = {id_: shown[id_]["idle"] for id_ in shown}
    unknown = dict.fromkeys((silent, young, agentless, instance))
    assert verdicts == unknown | {working: False, resting: True}
    assert "too few to judge" in shown[young]["why"]
    assert shown[silent]["cpu_fraction"] is shown[silent]["gpu_fraction"] is None
    assert shown[instance]["usd_so_far"] is shown[instance]["started_at"] is None
    aws.world = World(denied=(Denied(kind="", region="us-east-1"),))
    ocean.world = World(denied=(Denied(kind="use"),))
    ran = call("scan", "-f", "json")
    assert not any(item["idle"] for item in ran.json["items"])
    assert "digitalocean (use)" in " ".join(ran.json["unseen"])


def test_what_nothing_holds_and_what_is_switched_off(
    aws: AwsAccount, ocean: DigitalOcean, lambdas: Lambda, call: Call
) -> None:
    """Unattached disks, free addresses, stopped machines with their disks, priced by hand."""
    region, client = "us-east-1", ec2("us-east-1")
    (stopped,) = run_instances(region, 1)
    client.stop_instances(InstanceIds=[stopped])
    zone, lone = f"{region}a", "volume"
    volumes = {
        lone: client.create_volume(AvailabilityZone=zone, Size=100, VolumeType="gp3"),
        "fast": client.create_volume(AvailabilityZone=zone, Size=9, VolumeType="gp3", Iops=9000),
    }
    address = client.allocate_address(Domain="vpc")["AllocationId"]
    (off,) = run_droplets(ocean, 1, None)
    ocean.estate.things["droplets"][off]["status"] = "off"
    a_volume(ocean, VOLUME, 50)
    a_volume(ocean, VOLUME.replace("506f", "606f"), 10, [int(off)])
    lambdas.things["/file-systems"]["f1"] = {
        "id": "f1",
        "name": "shared",
        "mount_point": "/lambda/nfs/shared",
        "created": "2026-10-01T00:00:00+00:00",
        "created_by": {"id": "u1", "email": "ada@example.org", "status": "active"},
        "is_in_use": False,
        "bytes_used": 36 * 2**30,
        "region": {"name": "us-east-1", "description": ""},
    }
    assert len(aws.instances()) == 1
    shown = by_id(call("scan", "-f", "json"))
    assert all(item["idle"] for item in shown.values())
    month = {
        id_: None if item["usd_per_hour"] is None else round(730 * Decimal(item["usd_per_hour"]), 2)
        for id_, item in shown.items()
    }
    assert month == {
        stopped: Decimal("0.80"),  # 8 GiB of gp2 at 0.10 $; its time is free
        volumes[lone]["VolumeId"]: Decimal("8.00"),  # 100 x 0.08 $
        volumes["fast"]["VolumeId"]: None,  # 9,000 IOPS are billed beside its size
        address: Decimal("3.65"),  # 0.005 $/h
        off: Decimal("3220.30"),  # 4.41 $/h, on or off, and 10 x 0.10 $
        VOLUME: Decimal("5.00"),
        "f1": Decimal("7.30"),  # 36 x 0.20 $ for 720 h
    }
    commands = {id_: item["command"] for id_, item in shown.items()}
    assert commands[address] == (
        f"aws ec2 release-address --region us-east-1 --allocation-id {address}"
    )
    assert commands[off] == f"doctl compute droplet delete {off}"
    assert commands["f1"].endswith("-X DELETE https://cloud.lambda.ai/api/v1/filesystems/f1")


def test_a_node_shrinks_its_pool(ocean: DigitalOcean, call: Call) -> None:
    """A node of DOKS is ended in its pool; where the pool is not seen, no command is printed."""
    pool = {"name": "gpus", "size": "gpu-h100x1-80gb", "count": 2}
    api = DigitalOceanApi(access=VARIABLES.read(os.environ))
    path = f"/v2/kubernetes/clusters/{CLUSTER}/node_pools"
    made = api.change("POST", path, pool, "")["node_pool"]["id"]
    nodes = [api.get(f"{path}/{made}", "")["node_pool"]["nodes"] for _ in range(3)][-1]
    for node in nodes:
        ocean.estate.use[node["droplet_id"]] = cpu_matrix(IDLE / 10)
        ocean.estate.things["droplets"][node["droplet_id"]]["created_at"] = "2026-01-01T00:00:00Z"
    ocean.requests.clear()
    shown = by_id(call("scan", "-f", "json"))
    assert {id_: item["idle"] for id_, item in shown.items()} == {
        node["droplet_id"]: True for node in nodes
    }
    ends = f"doctl kubernetes cluster node-pool delete-node {CLUSTER} {made}"
    for node in nodes:
        assert shown[node["droplet_id"]]["command"] == f"{ends} {node['id']}"
        assert shown[node["droplet_id"]]["pool"] == "gpus"
    assert all(request.startswith("GET ") for request in ocean.requests)
    ocean.world = World(denied=(Denied(kind="pool"),))
    ran = call("scan", "-f", "json")
    assert {item["command"] for item in ran.json["items"]} == {""}
    assert ran.json["at_least"] is False  # no machine is hidden by that
    assert f"# digitalocean: end '{nodes[0]['droplet_id']}' on its page" in call("scan").out


def test_an_address_without_a_known_price_is_unknown(ocean: DigitalOcean, call: Call) -> None:
    """A reserved IP that no Droplet has is idle, and its cost is said to be unknown."""
    region = {"name": "nyc2", "slug": "nyc2", "features": [], "available": True, "sizes": []}
    ocean.estate.things["reserved_ips"]["203.0.113.9"] = {
        "ip": "203.0.113.9",
        "region": region,
        "droplet": None,
        "locked": False,
    }
    ran = call("scan")
    assert "Idle: 1 address: an unknown amount a month." in ran.out
    assert "In all: 1 address: an unknown amount a month." in ran.out
    assert "doctl compute reserved-ip delete 203.0.113.9  # 1" in ran.out


def test_csv_has_digits_alone(ocean: DigitalOcean, call: Call) -> None:
    """Amounts are numbers, whether or not a part is missing from them."""
    run_droplets(ocean, 1, IDLE)
    ocean.world = World(denied=(Denied(kind="volume"),))
    (row,) = csv.DictReader(call("scan", "-f", "csv").out.splitlines())
    assert (row["USD/month"], row["at least"], row["USD/h"]) == ("3219.3", "yes", "4.41")


def test_age_and_dollars_so_far(aws: AwsAccount, ocean: DigitalOcean, call: Call) -> None:
    """After 10 days: 240 h x 4.41 $/h, and 240 h x (0.526 + 0.005 + 0.80 / 730) $/h."""
    (droplet,), (instance,) = run_droplets(ocean, 1, BUSY), run_instances("us-west-2", 1)
    assert aws.instances()
    shown = by_id(call("scan", "-f", "json"))
    spent = [Decimal(shown[id_]["usd_so_far"]) for id_ in (droplet, instance)]
    assert abs(spent[0] - Decimal("1058.40")) < Decimal("0.07")  # what a minute costs
    assert abs(spent[1] - Decimal("127.70")) < Decimal("0.01")
    assert shown[instance]["at_least"] is False
    assert "10 d" in call("scan").out


def test_what_gpucost_started_is_marked_and_ended_by_gpucost(
    aws: AwsAccount, ocean: DigitalOcean, call: Call
) -> None:
    """Its run is named; a machine of a group shrinks the group with it."""
    marks = "gpucost-run:k3f9xw2m:20990101T000000Z:ada--5hq2mzt8:plan"
    (mine,) = run_droplets(ocean, 1, IDLE, tags=[marks, "gpucost"])
    tags = {"aws:autoscaling:groupName": "eks-g", "eks:nodegroup-name": "g"}
    (node,) = run_instances("us-west-2", 1, tags=tags)
    note_use("us-west-2", node, IDLE)
    assert aws.instances()
    ran = call("scan")
    assert "gpucost down k3f9xw2m  # 1" in ran.out
    assert "Started by gpucost: 1" in ran.out
    assert "terminate-instance-in-auto-scaling-group --region us-west-2" in ran.out
    assert "--should-decrement-desired-capacity" in ran.out
    assert by_id(call("scan", "-f", "json"))[mine]["run"] == "k3f9xw2m"


HOSTILE = "\x1b]0;owned\x07$(reboot)\n; rm -rf /\u202e`id` | =HYPERLINK(1)"

IN_XML = "".join(c for c in HOSTILE if c >= " ")
"""What EC2 can answer of it."""


@pytest.mark.parametrize("form", ["table", "md", "csv", "json"])
def test_a_strangers_words_stay_words(
    aws: AwsAccount, lambdas: Lambda, call: Call, form: str
) -> None:
    """Names with escapes move no terminal, and an id with shell signs is one quoted word."""
    run_instances("us-east-1", 1, tags={"Name": IN_XML, "owner": IN_XML})
    (id_,) = run_lambda(lambdas, 1)
    lambdas.things["/instances"]["x'; reboot #"] = {
        **lambdas.things["/instances"][id_],
        "id": "x'; reboot #",
        "name": HOSTILE,
    }
    assert aws.instances()
    ran = call("scan", "-f", form, "-v")
    assert ran.code == 0, ran.err
    if form != "json":
        assert all(c.isprintable() or c == "\n" for c in ran.out)
    words = shlex.split(by_id(call("scan", "-f", "json"))["x'; reboot #"]["command"])
    assert json.loads(words[-1]) == {"instance_ids": ["x'; reboot #"]}


class Hook:
    """Takes messages, and answers as it is told."""

    def __init__(self, status: int = 200) -> None:
        self.status = status
        self.messages: list[Any] = []

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:
        """Note the message."""
        self.messages.append(Request(environ).get_json())
        return Response("ok", self.status)(environ, start_response)


def test_a_webhook_gets_the_summary(ocean: DigitalOcean, call: Call) -> None:
    """Slack's form, its three signs escaped, no secret, and exit 7 above the limit."""
    run_droplets(ocean, 25, IDLE, name="<!channel> & co", tags=[f"owner:{TOKEN}"])
    hook = Hook()
    with serving(hook) as address:
        secret = f"{address}/services/T0/B0/5ecre75ecre7"
        ran = call("scan", "--webhook", secret, "--fail-over", "80000", "-q")
        under = call("scan", "--webhook", secret, "--fail-over", "80482.50", "-q")
    assert (ran.code, under.code) == (7, 0)  # 25 x 3,219.30 = 80,482.50
    assert "$80,482.50 a month, above --fail-over $80,000.00" in ran.err
    text = hook.messages[0]["text"]
    assert list(hook.messages[0]) == ["text"]
    assert "Idle: 25 GPU machines: $80,482.50 a month." in text
    assert "and 5 more" in text
    assert "&lt;!channel&gt; &amp; co" in text
    assert TOKEN not in text + ran.out + ran.err
    assert "5ecre75ecre7" not in ran.out + ran.err


def test_a_name_in_a_chat_is_only_a_name(ocean: DigitalOcean, call: Call) -> None:
    """Other chats that take Slack's form read Markdown: no mention, image, link or line of its."""
    run_droplets(
        ocean, 1, IDLE, name="@channel ![i](https://e.example/i) [l](/x)\n@all a@b.example"
    )
    hook = Hook()
    with serving(hook) as address:
        call("scan", "--webhook", f"{address}/services/T0", "-q")
    (line,) = (line for line in hook.messages[0]["text"].splitlines() if "e.example" in line)
    assert list(alive_in_markdown(line)) == []
    assert not re.search(r"@(channel|all|b)|https?://", line)


@pytest.mark.parametrize("status", [HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.FOUND, None])
def test_a_webhook_that_fails_is_said_and_loses_nothing(
    ocean: DigitalOcean, call: Call, status: int | None
) -> None:
    """The output is whole, the host is named, its path is not."""
    (id_,) = run_droplets(ocean, 1, IDLE)
    with serving(Hook(status or 200)) as address:
        secret = f"{address}/services/T0/B0/5ecre75ecre7"
        ran = call("scan", "--webhook", secret, "-f", "json") if status else None
    ran = ran or call("scan", "--webhook", secret, "-f", "json")
    assert ran.code == 0
    assert id_ in by_id(ran)
    assert "webhook at 127.0.0.1" in ran.err
    assert "5ecre75ecre7" not in ran.err


@pytest.mark.parametrize("url", ["http://example.com/x", "ftp://example.com", "hooks", "http://["])
def test_a_webhook_is_https(call: Call, url: str) -> None:
    """Anything else is refused before a provider is asked."""
    ran = call("scan", "--webhook", url)
    assert ran.code == 2
    assert "--webhook" in ran.err


def test_every_call_is_in_the_policy(aws: AwsAccount, call: Call) -> None:
    """A scan makes no call that the printed policy lacks, and the policy allows no other."""
    (id_,) = run_instances("us-east-1", 1)
    note_use("us-east-1", id_, BUSY, gpu=True)
    aws.requests.clear()
    assert call("scan", "--provider", "aws").code == 0
    (statement,) = permissions()["aws-scan"]["Statement"]
    metric = ("GetMetricData", "ListMetrics")
    made = {f"{'cloudwatch' if one in metric else 'ec2'}:{one}" for one in aws.requests}
    assert made == set(statement["Action"])
    assert call("iam-policy", "--provider", "aws-scan").json["Statement"] == [statement]


def test_thirty_regions_are_asked_at_once(
    aws: AwsAccount, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a second a call: 30 regions take a third of the 45 s of one after another, at most.

    6.6 s were measured, on 2 cores with a load of 8 (2026-11-28).
    """
    names = tuple(boto3.Session().get_available_regions("ec2")[:30])
    monkeypatch.setattr(aws_account, "REGIONS", names)
    aws.world = World(latency_s=0.5)
    start_s = time.perf_counter()
    ran = call("scan", "--provider", "aws", "-f", "json")
    assert time.perf_counter() - start_s < 15
    assert ran.json["unseen"] == []
    assert aws.requests.count("DescribeInstances") == 30


def test_without_keys_each_variable_is_named(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit 5; a provider that was not asked for is a note where another answers."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    ran = call("scan")
    assert ran.code == 5
    for name in ("AWS_ACCESS_KEY_ID", "DIGITALOCEAN_TOKEN", "LAMBDA_API_KEY"):
        assert name in ran.err
    assert ran.out == ""


def test_the_only_provider_that_is_down_is_exit_5(ocean: DigitalOcean, call: Call) -> None:
    """Partial answers are a warning; none at all is a failure."""
    ocean.world = World(denied=(Denied(kind="machine", status=500),))
    ran = call("scan", "--provider", "digitalocean")
    assert ran.code == 0
    assert "Not seen: digitalocean (machine)." in ran.out
    assert "digitalocean (machine): DigitalOcean: listing GPU Droplets failed: " in ran.err
    ocean.world = World(denied=(Denied(status=403),))
    assert call("scan", "--provider", "digitalocean").code == 5


def test_an_answer_that_cannot_be_read_hides_no_other(
    aws: AwsAccount, ocean: DigitalOcean, call: Call
) -> None:
    """A provider whose answer makes no sense is not seen, and the rest is shown; alone it is 5."""
    (id_,) = run_instances("us-east-1", 1)
    run_droplets(ocean, 1, BUSY)
    ocean.faults += [Fault(path="/v2/droplets", change=lambda d: d["droplets"][0].pop("id"))] * 2
    assert aws.instances()
    ran = call("scan", "-f", "json")
    assert list(by_id(ran)) == [id_]
    assert "digitalocean: its answer cannot be read" in ran.json["unseen"][0]
    assert call("scan", "--provider", "digitalocean").code == 5


def test_the_first_screen_has_ten_lines(
    aws: AwsAccount, ocean: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At most ten lines of 80 columns stand before the table; commands are whole."""
    monkeypatch.setenv("COLUMNS", "80")
    (id_,) = run_instances("us-east-1", 1)
    note_use("us-east-1", id_, IDLE)
    run_droplets(ocean, 2, None)
    aws.world = World(denied=(Denied(region="eu-west-1"), Denied(region="us-west-2")))
    ran = call("scan")
    assert "Judged by CPU alone: 1 of the 1 idle" in ran.out
    lines = ran.out.splitlines()
    table = next(place for place, line in enumerate(lines) if "what" in line and "use" in line)
    assert table <= 10 + 1  # a blank line is the table's
    assert all(len(line) <= 80 for line in lines if not line.startswith(("aws ", "doctl ")))
    assert f"aws ec2 terminate-instances --region us-east-1 --instance-ids {id_}  # 1" in lines


@pytest.mark.parametrize(
    ("words", "places"),
    [(("us-west-2",), {"us-west-2"}), (("us",), {"us-east-1", "us-west-2", "nyc2"})],
)
def test_a_region_or_a_group_of_them(
    aws: AwsAccount, ocean: DigitalOcean, call: Call, words: tuple[str, ...], places: set[str]
) -> None:
    """Other regions of AWS are not even asked; a name that nothing has is exit 2."""
    for region in ("us-east-1", "us-west-2", "eu-west-1"):
        run_instances(region, 1)
    run_droplets(ocean, 1, BUSY)
    aws.requests.clear()
    ran = call("scan", *(x for word in words for x in ("--region", word)), "-f", "json")
    assert {item["region"] for item in ran.json["items"]} == places
    assert aws.requests.count("DescribeInstances") == len(places - {"nyc2"})
    assert call("scan", "--region", "atlantis").code == 2
    assert call("scan", "--region", "nyc2", "--provider", "aws", "-f", "json").json["items"] == []
