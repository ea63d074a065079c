"""Accounts with a Kubernetes cluster, in which others have node pools, too; Eve's among them."""

from datetime import UTC, datetime
from typing import Any

from providers.deployment import pool_name
from providers.doks.inventory import LABEL_SEPARATOR
from providers.eks.inventory import TAG_SEPARATOR
from tests.chaos.accounts import AwsTrialAccount, DigitalOceanAccount
from tests.providers.fakes.clusters import CLUSTER, Pool, node_pool
from tests.providers.fakes.eks import Group
from tests.providers.fakes.world import World


class DoksAccount(DigitalOceanAccount):
    """An account at DigitalOcean with a cluster."""

    makes_nodes = True

    def reset(self, world: World) -> None:
        """Empty it, but for what is not ours."""
        super().reset(world)
        told = {
            "name": pool_name(self.marks),
            "count": 0,
            "labels": self.marks.labels(LABEL_SEPARATOR),
        }
        hers = node_pool("11111111-0000-4000-8000-000000000000", told)
        pools = self.app.estate.clusters.pools
        pools[hers["id"]] = Pool(cluster=CLUSTER, told=hers, born=datetime.now(UTC))

    def untag(self) -> None:
        """Somebody takes the labels of our pools away."""
        for pool in self.app.estate.clusters.pools.values():
            if self._is_our_pool(pool.told):
                pool.told["labels"] = None

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
        self.app.eks.settle()
        machines, rest = super().left()
        return machines, [*rest, *(arn for arn in self.app.eks.groups if arn != self.hers)]


POOL_ACCOUNTS = {"doks": DoksAccount, "eks": EksAccount}
"""Accounts whose launches are node pools."""
