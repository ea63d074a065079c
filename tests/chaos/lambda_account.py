"""An account at Lambda with an instance, a key and a firewall of others, and Eve's."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from providers.lambda_cloud.inventory import tags
from tests.chaos.computers import Computer, Computers, Seen
from tests.chaos.strangers import Life, eve
from tests.providers.fakes.account import LAMBDA_KEY, LAMBDA_REAPER
from tests.providers.fakes.digitalocean import Fault
from tests.providers.fakes.lambda_account.account import Lambda, instance
from tests.providers.fakes.world import World
from tests.providers.launches import PUBLIC_KEY


class LambdaTrialAccount:
    """What the trials do to it, and count of it."""

    host = "lambda.test"
    makes_nodes = False

    def ends_pool(self, _: Computer) -> bool:
        """Whether something else than the machine ends it."""
        return False

    def __init__(self) -> None:
        self.app = Lambda(token=LAMBDA_KEY, others=(LAMBDA_REAPER,))
        self.marks = eve()
        self.computers = Computers(estate=self)
        self.taken: dict[str, str] = {}

    def reset(self, world: World) -> None:
        """Empty it, but for what is not ours."""
        self.app.reset()
        self.app.world = world
        for log in (self.app.faults, self.app.requests):
            log.clear()
        sold = self.app.types["gpu_1x_a10"]["instance_type"]
        things = self.app.things
        for key, name, marked in (
            ("a1", "web", []),
            ("a2", self.marks.name("1"), tags(self.marks)),
        ):
            body = {"name": name, "region_name": "us-east-1", "ssh_key_names": ["laptop"]}
            things["/instances"][key] = instance(key, 1, body | {"tags": marked}, sold)
        for name, comment in (
            ("laptop", "me@home"),
            (self.marks.name("key"), self.marks.text(".")),
        ):
            words = " ".join((*PUBLIC_KEY.split()[:2], comment))
            things["/ssh-keys"][name] = {"id": name, "name": name, "public_key": words}
            rules = [{"description": comment}]
            wall = {"id": name, "name": name, "rules": rules, "region": {"name": "us-east-1"}}
            things["/firewall-rulesets"][name] = wall

    def fault(self, **told: Any) -> None:
        """Let something go wrong once."""
        self.app.faults.append(Fault(**told))

    def untag(self) -> None:
        """Somebody takes the tags off our instances."""
        for key in self.app.bills:
            self.app.things["/instances"].get(key, {})["tags"] = []

    def copy_tags(self) -> None:
        """Nothing at Lambda takes the tags of an instance over."""

    def leave(self) -> None:
        """From here on the key is of another account."""
        self.app.world = replace(self.app.world, elsewhere=True)

    def heal(self) -> None:
        """The provider answers again, and the key is the right one."""
        self.app.world = World(skew_s=self.app.world.skew_s)

    def foreign(self) -> set[str]:
        """What is not ours and there."""
        return set(self._names(ours=False))

    def left(self) -> tuple[list[str], list[str]]:
        """Our instances that are billed, and our side resources."""
        self.computers.now()
        sides = (one for one in self._names(ours=True) if not one.startswith("/instances"))
        return [one.id for one in self.seen()], sorted(sides)

    def _names(self, *, ours: bool) -> Iterator[str]:
        for kind, things in self.app.things.items():
            for key, thing in things.items():
                name = str(thing["name"])
                if ("gpucost" in name and self.marks.run not in name) == ours:
                    yield f"{kind}/{key}/{name}"

    def seen(self) -> Iterable[Seen]:
        """Instances of ours that are billed."""
        skew = timedelta(seconds=self.app.world.skew_s)
        for key, (born, died) in self.app.bills.items():
            if died is None and born is not None:
                given = self.app.user_data[key]
                yield Seen(id=key, born=born - skew, user_data=given, ends_by_power=False)

    def end_itself(self, key: str, at: datetime) -> None:
        """An instance terminates itself."""
        self.app.end_itself(key, at)

    def lives(self) -> dict[str, Life]:
        """The life of each instance of ours, by its clock."""
        return {k: (v[0], v[1]) for k, v in self.app.bills.items() if v[0] is not None}

    def environment(self) -> dict[str, str]:
        """The variables that point at it."""
        return {
            "LAMBDA_API_KEY": LAMBDA_KEY,
            "GPUCOST_LAMBDA_REAPER_KEY": LAMBDA_REAPER,
            "GPUCOST_LAMBDA_ENDPOINT": f"https://{self.host}",
        }
