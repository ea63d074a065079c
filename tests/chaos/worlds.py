"""Fake providers in processes of their own, with things that are not ours, for chaos."""

import multiprocessing
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from providers.digitalocean.calls import tags
from providers.ownership_tags import Marks
from tests.providers.fakes.account import KEY, SECRET, TOKEN
from tests.providers.fakes.aws_account import IMAGE, AwsAccount, AwsFault
from tests.providers.fakes.digitalocean import DigitalOcean, Fault
from tests.providers.fakes.droplets import droplet_json
from tests.providers.fakes.estate import Estate
from tests.providers.fakes.server import serving
from tests.providers.fakes.sizes import the_sizes
from tests.providers.fakes.world import World
from tests.providers.launches import PUBLIC_KEY

REGION = "us-east-1"
Bills = dict[str, tuple[datetime, datetime | None]]


def eve() -> Marks:
    """The marks of a live run of another owner."""
    deadline = (datetime.now(UTC) + timedelta(days=1)).replace(microsecond=0)
    return Marks(run="evesrun1", deadline=deadline, owner="eve", plan="hers")


class DigitalOceanWorld:
    """An account at DigitalOcean with a Droplet, key, firewall and tag of others, and Eve's."""

    def __init__(self) -> None:
        self.address = ""
        sizes = [size for size in the_sizes() if size["slug"].startswith("gpu-")]
        for size in sizes:
            size["regions"] = ["nyc2", "tor1"]
        self.app = DigitalOcean(token=TOKEN, sizes=sizes)
        self.marks = eve()
        self.lists = 0

    def lag(self, lists: int) -> None:
        """Keep new Droplets out of so many lists, from the next trial on."""
        self.lists = lists

    def reset(self) -> None:
        """Empty it, but for what is not ours."""
        self.app.faults.clear()
        self.app.requests.clear()
        self.app.estate = Estate(world=World(list_lag_s=self.lists * 0.3))
        things, size = self.app.estate.things, self.app.sizes[0]
        now = datetime.now(UTC)
        for key, name, marked in (
            (1, "web", ["prod"]),
            (2, "gpucost-evesrun1-1", tags(self.marks)),
        ):
            body = {"name": name, "region": "nyc2", "image": "ubuntu", "tags": marked}
            things["droplets"][str(key)] = droplet_json(key, body, size, now)
        for name in ("laptop", self.marks.text(".")):
            things["ssh_keys"][name] = {
                "id": 5,
                "fingerprint": name,
                "public_key": "k",
                "name": name,
            }
        for name in ("office", self.marks.text(".")):
            things["firewalls"][name] = {"id": name, "name": name}
        things["volumes"]["v1"] = {"id": "v1", "name": "data", "tags": ["prod"]}
        things["tags"]["prod"] = {"name": "prod"}

    def fault(self, **told: Any) -> None:
        """Let something go wrong."""
        self.app.faults.append(Fault(**told))

    def foreign(self) -> list[str]:
        """What is not ours, to be compared."""
        return [*self._names(ours=False)]

    def left(self) -> tuple[list[str], list[str]]:
        """Our machines and our side resources."""
        ours = list(self._names(ours=True))
        return (
            [one for one in ours if one.startswith("droplets")],
            [one for one in ours if not one.startswith("droplets")],
        )

    def _names(self, *, ours: bool) -> Iterator[str]:
        for kind, things in self.app.estate.things.items():
            for key, thing in things.items():
                if kind == "tags" and key != "prod" and not key.startswith("gpucost-run"):
                    continue  # labels shared by runs
                words = " ".join((str(thing["name"]), *thing.get("tags", ())))
                is_ours = "gpucost" in words and self.marks.run not in words
                if is_ours == ours:
                    yield f"{kind}/{key}/{thing['name']}"

    def bills(self) -> Bills:
        """The life of each machine of ours."""
        return {k: (v[0], v[1]) for k, v in self.app.estate.bills.items() if v[0] is not None}

    def calls(self) -> int:
        """Requests so far."""
        return len(self.app.requests)


class AwsWorld:
    """An account at AWS with an instance, key and group of others, and Eve's."""

    def __init__(self) -> None:
        self.app = AwsAccount()
        self.marks = eve()
        self.kept: list[str] = []
        self.address = ""
        self.built: Any = None

    def _client(self) -> Any:
        """A client of somebody else's."""
        import boto3  # noqa: PLC0415 - in the process of the fake only

        if self.built is None:
            self.built = boto3.client(
                "ec2",
                region_name=REGION,
                endpoint_url=self.address,
                aws_access_key_id=KEY,
                aws_secret_access_key=SECRET,
            )
        return self.built

    def reset(self) -> None:
        """Empty it, but for what is not ours."""
        self.app.reset()
        ec2 = self._client()
        ec2.import_key_pair(KeyName="laptop", PublicKeyMaterial=PUBLIC_KEY.encode())
        ec2.create_security_group(GroupName="office", Description="theirs")
        hers = {f"gpucost:{k}": v for k, v in self.marks.tags().items()}
        for told in ({"Name": "web"}, {"Name": "gpucost-evesrun1-1", **hers}):
            marked = [{"Key": key, "Value": value} for key, value in told.items()]
            ec2.run_instances(
                ImageId=IMAGE,
                InstanceType="t2.micro",
                MinCount=1,
                MaxCount=1,
                KeyName="laptop",
                SecurityGroups=["office"],
                TagSpecifications=[
                    {"ResourceType": kind, "Tags": marked} for kind in ("instance", "volume")
                ],
            )
        self.kept = [*self.app.alive_ids(), *self.app.side_resources()]

    def fault(self, **told: Any) -> None:
        """Let something go wrong."""
        self.app.faults.append(AwsFault(**told))

    def foreign(self) -> list[str]:
        """What is not ours and still there."""
        there = {*self.app.alive_ids(), *self.app.side_resources()}
        return [one for one in self.kept if one in there]

    def left(self) -> tuple[list[str], list[str]]:
        """Our machines and our side resources."""
        return (
            [one for one in self.app.alive_ids() if one not in self.kept],
            [one for one in self.app.side_resources() if one not in self.kept],
        )

    def bills(self) -> Bills:
        """The life of each machine of ours."""
        return {k: v for k, v in self.app.bills().items() if k not in self.kept}

    def calls(self) -> int:
        """Requests so far."""
        return len(self.app.requests)


WORLDS: dict[str, Callable[[], Any]] = {"digitalocean": DigitalOceanWorld, "aws": AwsWorld}


def _serve(kind: str, here: Connection, folder: Path) -> None:
    """The process: serves the fake, and does what it is told through the pipe."""
    world = WORLDS[kind]()
    authority = folder / "ca.pem" if kind == "digitalocean" else None
    with serving(world.app, authority) as address:
        world.address = address
        here.send(address)
        while (told := here.recv()) is not None:
            name, options = told
            try:
                here.send(getattr(world, name)(**options))
            except Exception as error:  # noqa: BLE001 - told to the other side
                here.send(error)


@dataclass(kw_only=True)
class Remote:
    """A world in another process; its methods are called by name."""

    kind: str
    address: str
    folder: Path
    pipe: Connection = field(repr=False)

    def ask(self, name: str, **options: Any) -> Any:
        """Call a method of the world."""
        self.pipe.send((name, options))
        answer = self.pipe.recv()
        if isinstance(answer, Exception):
            raise answer
        return answer

    def environment(self) -> dict[str, str]:
        """The variables that point at it, and at nothing else."""
        common = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
        common |= {"AWS_EC2_METADATA_DISABLED": "true", "GPUCOST_OWNER": "ada"}
        if self.kind == "aws":
            named = {
                "ENDPOINT_URL": self.address,
                "ACCESS_KEY_ID": KEY,
                "SECRET_ACCESS_KEY": SECRET,
            }
            return common | {f"AWS_{name}": value for name, value in named.items()}
        return common | {
            "DIGITALOCEAN_TOKEN": TOKEN,
            "GPUCOST_DIGITALOCEAN_ENDPOINT": self.address,
            "GPUCOST_DIGITALOCEAN_CA": str(self.folder / "ca.pem"),
        }


@contextmanager
def world(kind: str, folder: Path) -> Iterator[Remote]:
    """A fake provider in a process of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(kind, theirs, folder), daemon=True)
    process.start()
    try:
        yield Remote(kind=kind, address=ours.recv(), folder=folder, pipe=ours)
    finally:
        ours.send(None)
        process.join(5)
        process.kill()
