"""Node pools of Amazon EKS: one call makes a managed node group, and the group makes its nodes.

CreateNodegroup has a token of its own, and is sent once all the same; a lost answer is reconciled
by the group's name. Role and subnets of the nodes are those of a group that the cluster has.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pricing.errors import InputError, ProviderError
from providers.aws.access import AwsClient, client, is_not_found, launch_errors
from providers.aws.cloud import AwsCloud
from providers.aws.cloud import connect as connect_aws
from providers.aws.placement import check_quota
from providers.deployment import NODE, POOL, NodePool, pool_name
from providers.eks import inventory, note_region, seen_regions
from providers.eks.inventory import PROVIDER, EksReader
from providers.interface import (
    Cloud,
    Connection,
    Creation,
    ExistenceCheck,
    JournaledResource,
    LaunchSpec,
    Listing,
    NoCapacityError,
    Place,
    Resource,
    UncertainError,
)
from providers.ownership_tags import OwnershipTags

_LAG_S = 300.0
"""EKS documents no figure; its nodes are instances of EC2, whose guide says five minutes."""


def connect(connection: Connection) -> "EksCloud":
    """Return the clusters of the account of the SDK's own chain of credentials.

    Raises:
        MissingCredentialsError: the chain finds none.
    """
    return EksCloud(account_cloud=connect_aws(connection), state=Path(connection.state))


@dataclass(kw_only=True)
class EksCloud(Cloud):
    """The EKS clusters of an account.

    Attributes:
        account_cloud: the account that they are in.
        state: folder in which regions are noted.
        name: of the row; offers are those of its machines.
    """

    account_cloud: AwsCloud
    state: Path
    name: str = PROVIDER
    lag_s: float = _LAG_S
    kinds: tuple[str, ...] = (POOL, NODE)
    _clients: dict[tuple[str, str, bool], AwsClient] = field(default_factory=dict, repr=False)
    _making: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def _client(self, service: str, region: str, *, repeats: bool = True) -> AwsClient:
        key = (service, region, repeats)
        with self._making:  # regions are asked at once, and a session makes one client at a time
            if key not in self._clients:
                options = {} if repeats else {"attempts": 1}
                made = client(self.account_cloud.session, service, region, **options)
                made.meta.events.register(f"after-call.{service}", self._on_answer)
                self._clients[key] = made
        return self._clients[key]

    def _on_answer(self, http_response: AwsClient, **_: object) -> None:
        self.note_clock(http_response.headers.get("Date", ""))

    @property
    def _reader(self) -> EksReader:
        return EksReader(
            eks=lambda region: self._client("eks", region),
            ec2=lambda region: self._client("ec2", region),
            secrets=self.account_cloud.secrets,
        )

    @staticmethod
    def resources_to_create(spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """Return the call of a launch; pure."""
        return (inventory.creation(spec, _pool(spec), place),)

    @staticmethod
    def termination_steps(spec: LaunchSpec) -> tuple[str, ...]:
        """Return our call, and that nothing happens by itself; pure."""
        return (
            f"eks:DeleteNodegroup {_pool(spec).cluster}/{pool_name(spec.marks)}, and its nodes go",
            "at the deadline nothing happens by itself: gpucost reap, or watch, must run",
        )

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Return the launch with the role and the subnets of its nodes, and notes."""
        pool, place = _pool(spec), spec.places[0]
        if place.purchase == "spot":
            raise InputError(
                "--purchase spot with --kubernetes: a managed node group takes no highest price, "
                "so no cap would hold; say on_demand."
            )
        region = place.region or (place.offer.region if place.offer else "")
        with launch_errors(f"reading cluster {pool.cluster} in {region}", self._secrets):
            self._refuse_unknown(pool.cluster, region)
            groups = list(self._usable_groups(pool.cluster, region))
        if not groups:
            raise InputError(_no_group(pool.cluster, region))
        found = groups[0]
        with launch_errors(f"reading where {place.instance_type} is offered", self._secrets):
            subnets, notes = self._subnets(tuple(found["subnets"]), place.instance_type, region)
        if not subnets:
            raise NoCapacityError(
                f"AWS offers {place.instance_type} in no zone of {region} in which cluster "
                f"{pool.cluster} has nodes ({', '.join(found['subnets'])})."
            )
        pool = replace(pool, node_role=str(found["nodeRole"]), subnets=subnets)
        checked = inventory.in_region(spec, pool, region)
        session = self.account_cloud.session
        quota = check_quota(session, checked.places[0], spec.most_machines)
        limits = "EKS has no autoscaler of its own: min and max are limits for the cluster's"
        return checked, (
            *notes,
            f"role and subnets are those of node group {found['nodegroupName']}",
            *((limits,) if pool.min_nodes is not None else ()),
            quota,
        )

    @property
    def _secrets(self) -> tuple[str, ...]:
        return self.account_cloud.secrets

    def _refuse_unknown(self, cluster: str, region: str) -> None:
        """Refuse a cluster that the region has not, naming those that it has."""
        eks = self._client("eks", region)
        try:
            status = str(eks.describe_cluster(name=cluster)["cluster"]["status"])
        except Exception as error:
            if not is_not_found(error):
                raise
            known = ", ".join(inventory.clusters(eks)) or "none"
            raise InputError(
                f"--kubernetes {cluster}: no such cluster in {region}; it has: {known}."
            ) from None
        if status not in ("ACTIVE", "UPDATING"):
            raise ProviderError(f"AWS: cluster {cluster} in {region} is {status}.")

    def _usable_groups(self, cluster: str, region: str) -> Iterator[dict[str, Any]]:
        """Yield node groups whose role and subnets nodes can have, too."""
        eks = self._client("eks", region)
        for name in inventory.group_names(eks, cluster):
            group = inventory.read_group(eks, cluster, name)
            if group is None or group.get("status") not in ("ACTIVE", "UPDATING", "DEGRADED"):
                continue
            if group.get("nodeRole") and group.get("subnets"):
                yield group

    def _subnets(
        self, known: tuple[str, ...], instance_type: str, region: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the subnets in zones that offer the type, and what to say of the others."""
        ec2 = self._client("ec2", region)
        pages = ec2.get_paginator("describe_instance_type_offerings").paginate(
            LocationType="availability-zone",
            Filters=[{"Name": "instance-type", "Values": [instance_type]}],
        )
        zones = {str(o["Location"]) for page in pages for o in page["InstanceTypeOfferings"]}
        told = ec2.describe_subnets(SubnetIds=list(known))["Subnets"]
        here = {str(one["SubnetId"]): str(one["AvailabilityZone"]) for one in told}
        fits = tuple(one for one in known if here.get(one) in zones)
        without = sorted({zone for zone in here.values() if zone not in zones})
        note = f"{instance_type} is not offered in {', '.join(without)}"
        return fits, (note,) if without and fits else ()

    def account(self) -> str:
        """Return the number of the account, which STS tells any caller; asked once."""
        return self.account_cloud.account()

    def limits(self) -> tuple[str, ...]:
        """Return the quotas of machines with GPUs: nodes are instances."""
        return self.account_cloud.limits()

    def create(self, creation: Creation) -> Resource:
        """Note the region, then make one call that the SDK does not repeat."""
        try:
            note_region(self.state, creation.region)
        except OSError as error:
            raise ProviderError(
                f"{self.state}: {creation.region} cannot be noted there ({error.strerror}), so "
                "nobody would look for the pool; nothing was made."
            ) from None
        eks = self._client("eks", creation.region, repeats=False)
        with launch_errors(f"making node group {creation.name}", self._secrets):
            made = eks.create_nodegroup(**creation.arguments).get("nodegroup") or {}
        marks = inventory.read_tags(creation.arguments["tags"])
        if "nodegroupArn" not in made or marks is None:
            raise UncertainError(f"AWS: the answer about {creation.name} does not say what it is.")
        return inventory.group_resource(made, creation.region, marks)

    def _list(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...],
        marks_by_run: Mapping[str, OwnershipTags],
    ) -> Listing:
        """Return node groups with our tags or names, and their nodes; each region on its own."""
        places = seen_regions(self.state) if regions is None else regions
        return inventory.listing(self._reader, places, kinds, marks_by_run)

    def look(self, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """Return what AWS answers about that id."""
        return inventory.look(self._reader, entry, marks)

    def mark(self, resource: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Put the later deadline on a group, as its tag; on a node nothing is read."""
        if resource.kind == POOL:
            eks = self._client("eks", resource.region)
            with launch_errors(f"moving the deadline of {resource.name}", self._secrets):
                tag = {inventory.DEADLINE: marks.tags()["deadline"]}
                eks.tag_resource(resourceArn=resource.id, tags=tag)
        return ()

    def destroy(self, resource: Resource) -> bool:
        """Make one call by id; False where AWS knows no such id.

        A node ends with its group, for that would replace it; the instance itself is terminated
        only where no group of its run is there.
        """
        doing = f"ending {resource.kind} {resource.name}"
        if resource.kind == POOL:
            cluster, name = inventory.parts(resource.id)
            call = self._client("eks", resource.region).delete_nodegroup
            return self._is_taken(doing, call, clusterName=cluster, nodegroupName=name)
        run = resource.marks.run
        seen = self.list_owned((resource.region,), (POOL,), {run: resource.marks})
        pools = [one for one in seen.resources if one.marks.run == run]
        if seen.unasked:
            raise ProviderError(f"{resource.name} ends with its pool: {seen.unasked[0].why}")
        if pools:
            ended = [one.state == "ending" or self.destroy(one) for one in pools]
            return all(ended)
        call = self._client("ec2", resource.region).terminate_instances
        return self._is_taken(doing, call, InstanceIds=[resource.id])

    def _is_taken(self, doing: str, call: AwsClient, **arguments: object) -> bool:
        with launch_errors(doing, self._secrets):
            try:
                call(**arguments)
            except Exception as error:
                if not is_not_found(error):
                    raise
                return False
        return True


def _pool(spec: LaunchSpec) -> NodePool:
    if spec.pool is None:
        raise InputError("Amazon EKS makes node pools: name a cluster.")
    return spec.pool


def _no_group(cluster: str, region: str) -> str:
    return (
        f"--kubernetes {cluster}: the cluster has no node group whose role and subnets nodes could "
        f"have. Make one first: eksctl create nodegroup --cluster {cluster} --region {region} "
        "--nodes 1 --node-type t3.medium"
    )


CLOUD = EksCloud
