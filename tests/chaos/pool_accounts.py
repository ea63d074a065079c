"""Accounts with a Kubernetes cluster, in which others have node pools, too; Eve's among them."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any
from unittest import mock

from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

from providers.doks import ender
from providers.doks.ender import UNTIL
from providers.doks.inventory import ARMED, ENDER, LABEL_SEPARATOR
from providers.eks.inventory import TAG_SEPARATOR
from providers.interface import pool_name
from tests.chaos.accounts import AwsTrialAccount, DigitalOceanAccount
from tests.chaos.computers import Computer, Seen
from tests.providers.fakes.account import TOKEN
from tests.providers.fakes.clusters import CLUSTER, DRAIN, Pool, node_pool
from tests.providers.fakes.eks import Group
from tests.providers.fakes.world import World

_TICK = timedelta(seconds=60)
_BEARER = {"Authorization": f"Bearer {TOKEN}"}


class DoksAccount(DigitalOceanAccount):
    """An account at DigitalOcean with a cluster."""

    makes_nodes = True
    has_ender = True
    """Whether the CronJob stands in the cluster."""

    def reset(self, world: World) -> None:
        """Empty it, but for what is not ours."""
        super().reset(world)
        self.looked = datetime.now(UTC) - _TICK
        told = {
            "name": pool_name(self.marks),
            "count": 0,
            "labels": self.marks.labels(LABEL_SEPARATOR),
        }
        hers = node_pool("11111111-0000-4000-8000-000000000000", told)
        pools = self.app.estate.clusters.pools
        pools[hers["id"]] = Pool(cluster=CLUSTER, told=hers, born=datetime.now(UTC))

    def ends_pool(self, machine: Computer) -> bool:
        """Whether the CronJob knows a node's pool: by its labels, or by its tag."""
        pools = [one.told for one in self.app.estate.clusters.pools.values()]
        return any(
            machine.seen.run in one["name"]
            and (
                (one["labels"] or {}).get(ENDER) == ARMED
                or any(tag.startswith(UNTIL) for tag in one["tags"])
            )
            for one in pools
        )

    def seen(self) -> Iterable[Seen]:
        """Nodes of ours that are billed, once the CronJob has looked."""
        now = datetime.now(UTC)
        if self.has_ender and now - self.looked >= _TICK:
            self.looked = now
            with mock.patch.object(ender, "call", self._from_inside):
                ender.look()
            self.app.estate.clusters.settle()
        return super().seen()

    def _from_inside(self, method: str, path: str, body: object = None) -> tuple[Any, datetime]:
        """A call of the CronJob; where the trial's time has jumped, it was made in time."""
        builder = EnvironBuilder(path, method=method, json=body, headers=_BEARER)
        status, answer = self.app._work(Request(builder.get_environ()))  # noqa: SLF001
        pool = self.app.estate.clusters.pools.get(path.rpartition("/")[2])
        if method == "DELETE" and pool is not None:
            (until,) = (tag for tag in pool.told["tags"] if tag.startswith(UNTIL))
            deadline = datetime.strptime(f"{until[len(UNTIL) :]}+0000", "%Y%m%dT%H%M%SZ%z")
            pool.ended = min(deadline + _TICK, datetime.now(UTC))  # its clock may be ahead of ours
        if status >= HTTPStatus.BAD_REQUEST:
            raise OSError(status)
        return answer, self.app.world.now()

    def untag(self) -> None:
        """Somebody takes the labels of our pools away."""
        for pool in self.app.estate.clusters.pools.values():
            if self._is_our_pool(pool.told):
                pool.told["labels"] = None

    def take_over(self) -> None:
        """Somebody makes our pools theirs: another name, no labels and tags of ours."""
        self.taken |= {one.id: one.run for one in self.seen()}
        for key, pool in self.app.estate.clusters.pools.items():
            if self._is_our_pool(pool.told):
                pool.told |= {"name": f"prod-{key[:4]}", "labels": {"env": "prod"}}
                pool.told["tags"] = [tag for tag in pool.told["tags"] if tag.startswith("k8s")]

    def heal(self) -> None:
        """As at DigitalOcean; whoever took a pool over ends it."""
        for pool in self.app.estate.clusters.pools.values():
            if pool.told["name"].startswith("prod-"):
                pool.ended, pool.reads = datetime.now(UTC) - 2 * DRAIN, 99
        self.app.estate.clusters.settle()
        super().heal()

    def _is_our_pool(self, told: dict[str, Any]) -> bool:
        name = str(told["name"])
        return name.startswith("gpucost") and name != pool_name(self.marks)

    def foreign(self) -> set[str]:
        """What is not ours and there."""
        pools = self.app.estate.clusters.pools
        theirs = {key for key, one in pools.items() if not self._is_our_pool(one.told)}
        return super().foreign() | {f"pool/{key}" for key in theirs}

    def left(self) -> tuple[list[str], list[str]]:
        """Our nodes that are billed, and our pools."""
        self.app.estate.clusters.settle()
        machines, rest = super().left()
        pools = self.app.estate.clusters.pools
        ours = [f"pool/{key}" for key, one in pools.items() if self._is_our_pool(one.told)]
        return machines, [*rest, *ours]


class EksAccount(AwsTrialAccount):
    """An account at AWS with a cluster."""

    makes_nodes = True
    hers = ""

    def reset(self, world: World) -> None:
        """Take away what is ours; Eve's node group stands."""
        super().reset(world)
        name = pool_name(self.marks)
        arn = f"arn:aws:eks:{self.region}:123456789012:nodegroup/prod-1/{name}/1"
        told = {
            "nodegroupName": name,
            "nodegroupArn": arn,
            "clusterName": "prod-1",
            "clientRequestToken": "hers",
            "status": "ACTIVE",
            "instanceTypes": ["g6.xlarge"],
            "tags": self.marks.labels(TAG_SEPARATOR),
        }
        self.app.eks.groups[arn] = Group(region=self.region, told=told, born=datetime.now(UTC))
        self.hers = arn

    def untag(self) -> None:
        """Somebody takes the tags of our groups away."""
        for arn, group in self.app.eks.groups.items():
            if arn != self.hers:
                group.told["tags"] = {}

    def foreign(self) -> set[str]:
        """What is not ours and still there."""
        hers = {"group/hers"} if self.hers in self.app.eks.groups else set()
        return super().foreign() | hers

    def left(self) -> tuple[list[str], list[str]]:
        """Our nodes that are billed, and our node groups."""
        self.app.run_schedules()
        self.app.eks.settle()
        machines, rest = super().left()
        return machines, [*rest, *(arn for arn in self.app.eks.groups if arn != self.hers)]


POOL_ACCOUNTS = {"doks": DoksAccount, "eks": EksAccount}
"""Accounts whose launches are node pools."""
