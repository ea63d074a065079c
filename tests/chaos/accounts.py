"""Accounts at the stand-ins with things that are not ours, and what can be counted of them."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from providers.aws.calls import client_token
from providers.digitalocean.resources import tags
from tests.chaos.computers import Computer, Computers, Seen
from tests.chaos.exchange import served
from tests.chaos.lambda_account import LambdaTrialAccount
from tests.chaos.strangers import Life, eve
from tests.providers.fakes.account import KEY, SECRET, TOKEN
from tests.providers.fakes.aws_account import IMAGE, AwsAccount, AwsFault
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.droplets import droplet_json
from tests.providers.fakes.estate import Estate
from tests.providers.fakes.sizes import the_sizes
from tests.providers.fakes.world import World
from tests.providers.launches import PUBLIC_KEY

REAPER = "dop_v1_" + "4ea9e4" * 8


class DigitalOceanAccount:
    """An account at DigitalOcean with a Droplet, key, firewall, snapshot of others, and Eve's."""

    host = "digitalocean.test"
    makes_nodes = False

    def ends_pool(self, _: Computer) -> bool:
        """Whether something else than the machine ends it."""
        return False

    def __init__(self) -> None:
        sizes = [size for size in the_sizes() if size["slug"].startswith("gpu-")]
        for size in sizes:
            size["regions"] = ["nyc2", "tor1"]
        self.app = DigitalOcean(token=TOKEN, sizes=sizes, others=(REAPER,))
        self.marks = eve()
        self.computers = Computers(estate=self)
        self.taken: dict[str, str] = {}

    def reset(self, world: World) -> None:
        """Empty it, but for what is not ours."""
        self.taken.clear()
        self.app.faults.clear()
        self.app.requests.clear()
        self.app.lost.clear()
        self.app.estate = Estate(world=world)
        things, size = self.app.estate.things, self.app.sizes[0]
        born = datetime.now(UTC) - timedelta(days=1)
        for key, name, marked in (
            (1, "web", ["prod"]),
            (2, self.marks.name("1"), tags(self.marks)),
        ):
            body = {"name": name, "region": "nyc2", "image": "ubuntu", "tags": marked}
            things["droplets"][str(key)] = droplet_json(key, body, size, born)
        for name in ("laptop", self.marks.text(".")):
            key = {"id": 5, "fingerprint": name, "public_key": "k", "name": name}
            things["ssh_keys"][name] = key
            things["firewalls"][name] = {"id": name, "name": name}
        things["volumes"]["v1"] = {"id": "v1", "name": "data", "tags": ["prod"]}
        for tag in ("prod", "gpucost", *tags(self.marks)):
            things["tags"][tag] = {"name": tag}

    def fault(self, **told: Any) -> None:
        """Let something go wrong once."""
        self.app.faults.append(Fault(**told))

    def untag(self) -> None:
        """Somebody deletes the tags of our runs in the panel."""
        for tag in list(self.app.estate.things["tags"]):
            if "gpucost" in tag and self.marks.run not in tag:
                del self.app.estate.things["tags"][tag]
                self.app.estate.untag(tag)

    def take_over(self) -> None:
        """Somebody makes our machines theirs: another name, other tags."""
        self.taken |= {one.id: one.run for one in self.seen()}
        for key in self.taken:
            told = {"name": f"prod-db-{key}", "tags": ["prod"]}
            self.app.estate.things["droplets"][key] |= told

    def copy_tags(self) -> None:
        """Somebody snapshots one of our machines, and its tags are copied to the snapshot."""
        for key, droplet in list(self.app.estate.things["droplets"].items()):
            if int(key) > 1000:
                name = f"keep-{key}"
                told = {"id": name, "name": name, "tags": list(droplet["tags"])}
                self.app.estate.things["snapshots"][name] = told

    def leave(self) -> None:
        """From here on the credentials are of another account."""
        self.app.world = replace(self.app.world, elsewhere=True)

    def heal(self) -> None:
        """The provider answers the right credentials; whoever took machines over ends them."""
        self.app.world = World(skew_s=self.app.world.skew_s)
        for key in self.taken:
            self.app.estate.end_itself(key, datetime.now(UTC))
            self.app.estate.things["droplets"].pop(key, None)
            self.computers.ended.add(key)  # by its new owner: our journal may never have had its id
        self.taken.clear()

    def foreign(self) -> set[str]:
        """What is not ours and there."""
        return set(self._names(ours=False))

    def left(self) -> tuple[list[str], list[str]]:
        """Our machines that are billed, and our side resources."""
        self.computers.now()
        ours = sorted(self._names(ours=True))
        machines = [one.id for one in self.seen()]
        return machines, [one for one in ours if not one.startswith("droplets")]

    def _names(self, *, ours: bool) -> Iterator[str]:
        for kind, things in self.app.estate.things.items():
            for key, thing in things.items():
                name = str(thing["name"])
                if kind == "tags" and "gpucost" in key and not key.startswith("gpucost-run"):
                    continue  # labels shared by runs
                mine = "gpucost" in name and self.marks.run not in name
                if mine == ours:
                    yield f"{kind}/{key}/{name}"

    def seen(self) -> Iterable[Seen]:
        """Machines of ours that are billed."""
        estate = self.app.estate
        skew = timedelta(seconds=estate.world.skew_s)
        for key, (born, died) in estate.bills.items():
            if died is None and born is not None and key not in self.taken:
                given = estate.user_data[key]
                yield Seen(id=key, born=born - skew, user_data=given, ends_by_power=False)

    def end_itself(self, key: str, at: datetime) -> None:
        """A Droplet destroys itself."""
        self.app.estate.end_itself(key, at)

    def lives(self) -> dict[str, Life]:
        """The life of each machine of ours, by its clock."""
        return {k: (v[0], v[1]) for k, v in self.app.estate.bills.items() if v[0] is not None}

    def environment(self) -> dict[str, str]:
        """The variables that point at it."""
        return {
            "DIGITALOCEAN_TOKEN": TOKEN,
            "GPUCOST_DIGITALOCEAN_ENDPOINT": f"https://{self.host}",
            "GPUCOST_DIGITALOCEAN_REAPER_TOKEN": REAPER,
        }


class AwsTrialAccount:
    """An account at AWS with an instance, key and group of others, and Eve's."""

    host = "aws.test"
    makes_nodes = False
    region = "us-east-1"

    def ends_pool(self, _: Computer) -> bool:
        """Whether something else than the machine ends it."""
        return False

    def __init__(self) -> None:
        self.app = AwsAccount()
        self.marks = eve()
        self.computers = Computers(estate=self)
        self.kept: frozenset[str] = frozenset()
        self.copies: set[str] = set()
        self.taken: dict[str, str] = {}

    def _furnish(self) -> None:
        """Make what is not ours, by calls of somebody else's."""
        import boto3  # noqa: PLC0415 - heavy

        self.app.reset()
        named = {"aws_access_key_id": KEY, "aws_secret_access_key": SECRET}
        with served(self.app):
            ec2 = boto3.client(
                "ec2", region_name=self.region, endpoint_url=f"http://{self.host}", **named
            )
            ec2.import_key_pair(KeyName="laptop", PublicKeyMaterial=PUBLIC_KEY.encode())
            ec2.create_security_group(GroupName="office", Description="theirs")
            hers = {f"gpucost:{k}": v for k, v in self.marks.tags().items()}
            name, zone = self.marks.name("1"), f"{self.region}a"
            token = client_token(name, "t2.micro", "on_demand", f"{self.region}{zone}")
            for told, by in (({"Name": "web"}, "theirs"), ({"Name": name, **hers}, token)):
                marked = [{"Key": key, "Value": value} for key, value in told.items()]
                ec2.run_instances(
                    ImageId=IMAGE,
                    InstanceType="t2.micro",
                    MinCount=1,
                    MaxCount=1,
                    KeyName="laptop",
                    SecurityGroups=["office"],
                    Placement={"AvailabilityZone": zone},
                    ClientToken=by,
                    TagSpecifications=[
                        {"ResourceType": kind, "Tags": marked} for kind in ("instance", "volume")
                    ],
                )
        self.kept = frozenset(self._there())

    def reset(self, world: World) -> None:
        """Take away what is ours; what is not is made anew where it was touched."""
        if not self.kept or set(self._there()) & self.kept != self.kept:
            self._furnish()
        self.app.forget(self.kept)
        self.copies.clear()
        self.taken.clear()
        self.app.world = world

    def fault(self, **told: Any) -> None:
        """Let something go wrong once."""
        self.app.faults.append(AwsFault(**told))

    def untag(self) -> None:
        """Somebody takes the tags of our runs away."""
        for region in (self.region, "us-west-2"):
            for key, marked in self.app.backend(region).tags.items():
                if key not in self.kept:
                    marked.clear()

    def take_over(self) -> None:
        """Somebody makes our machines theirs: another name, other tags."""
        self.taken |= {one.id: one.run for one in self.seen()}
        tags = self.app.backend(self.region).tags
        tags.update({key: {"Name": f"prod-db-{key}", "env": "prod"} for key in self.taken})

    def copy_tags(self) -> None:
        """Somebody snapshots the disk of one of our machines, with its tags."""
        backend = self.app.backend(self.region)
        for key in [key for key in backend.volumes if key not in self.kept]:
            shot = backend.create_snapshot(key, "keep")
            shot.add_tags(dict(backend.tags.get(key, {})))

    def copy_machine(self) -> None:
        """Somebody starts one "more like this": tags, name, group, key and user data are copied."""
        backend = self.app.backend(self.region)
        for one in [one for one in self.app.instances() if self._is_ours(one)]:
            copied = backend.run_instances(
                one.image_id,
                1,
                one.user_data,
                [group.name for group in one.security_groups],
                instance_type=one.instance_type,
                is_instance_type_default=False,
                key_name=one.key_name,
                tags={"instance": dict(backend.tags.get(one.id, {}))},
                client_token="the-console's",  # noqa: S106 - no secret
                instance_initiated_shutdown_behavior="terminate",
            )
            self.copies |= {made.id for made in copied.instances}

    def leave(self) -> None:
        """From here on the credentials are of another account."""
        self.app.world = replace(self.app.world, elsewhere=True)

    def heal(self) -> None:
        """The provider answers the right credentials; whoever copied or took a machine ends it."""
        self.app.world = World(skew_s=self.app.world.skew_s)
        for key in (*self.copies, *self.taken):
            self.app.end_itself(key, datetime.now(UTC))
        self.taken.clear()

    def _is_ours(self, instance: Any) -> bool:
        others = self.kept | self.copies | self.taken.keys()
        return instance.id not in others and instance.state != "terminated"

    def foreign(self) -> set[str]:
        """What is not ours and still there."""
        shots = set(self.app.backend(self.region).snapshots)
        others = self.kept | self.copies | self.taken.keys()
        return {*others.intersection(self._there()), *shots}

    def _there(self) -> list[str]:
        return [*self.app.alive_ids(), *self.app.side_resources()]

    def left(self) -> tuple[list[str], list[str]]:
        """Our machines that are billed, and our side resources."""
        self.computers.now()
        self.app.run_schedules()
        return (
            [one.id for one in self.app.instances() if self._is_ours(one)],
            [one for one in self.app.side_resources() if one not in self.kept],
        )

    def seen(self) -> Iterable[Seen]:
        """Machines of ours that are billed."""
        for one in self.app.instances():
            if self._is_ours(one):
                yield Seen(
                    id=one.id,
                    born=one.launch_time.replace(tzinfo=UTC),
                    user_data=one.user_data.decode() if one.user_data else "",
                    ends_by_power=one.instance_initiated_shutdown_behavior == "terminate",
                )

    def end_itself(self, key: str, at: datetime) -> None:
        """An instance powers off, and is terminated."""
        self.app.end_itself(key, at)

    def lives(self) -> dict[str, Life]:
        """The life of each machine of ours, by its clock."""
        others = self.kept | self.copies
        return {k: v for k, v in self.app.bills().items() if k not in others}

    def environment(self) -> dict[str, str]:
        """The variables that point at it."""
        names = {
            "ENDPOINT_URL": f"http://{self.host}",
            "ACCESS_KEY_ID": KEY,
            "SECRET_ACCESS_KEY": SECRET,
        }
        return {f"AWS_{name}": value for name, value in names.items()}


Account = DigitalOceanAccount | AwsTrialAccount | LambdaTrialAccount
ACCOUNTS: dict[str, Callable[[], Account]] = {
    "digitalocean": DigitalOceanAccount,
    "aws": AwsTrialAccount,
    "lambda": LambdaTrialAccount,
}
