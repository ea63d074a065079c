"""Node pools of Amazon EKS: one call makes a managed node group, and the group makes its nodes.

CreateNodegroup has a token of its own, and is sent once all the same; a lost answer is reconciled
by the group's name. Role and subnets of the nodes are those of a group that the cluster has.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from pricing.errors import InputError, ProviderError
from providers import interface
from providers.aws import schedule
from providers.aws.access import AwsClients, if_known, sdk_errors
from providers.aws.cloud import AwsCloud
from providers.aws.cloud import connect as connect_aws
from providers.aws.inventory import enabled_regions
from providers.aws.placement import check_quota
from providers.eks import inventory, note_region, seen_regions
from providers.eks.inventory import PROVIDER
from providers.ownership_tags import OwnershipTags, read_labels

_TITLE = "Amazon EKS"
_LAG_S = 300.0
"""EKS documents no figure; its nodes are instances of EC2, whose guide says five minutes."""


def connect(connection: interface.Connection) -> "EksCloud":
    """Return the clusters of the account of the SDK's own chain of credentials.

    Raises:
        MissingCredentialsError: the chain finds none.
    """
    return EksCloud(account_cloud=connect_aws(connection), state=Path(connection.state))


@dataclass(kw_only=True)
class EksCloud(interface.PoolCloud):
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
    kinds: tuple[str, ...] = (interface.POOL, interface.NODE, interface.OUTSIDE)
    _clients: AwsClients = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._clients = AwsClients(self.account_cloud.session, self.note_clock)

    @staticmethod
    def resources_to_create(
        spec: interface.LaunchSpec, target: interface.Place
    ) -> tuple[interface.Creation, ...]:
        """Return the calls of a launch: what ends the group comes before it; pure."""
        group = inventory.creation(spec, interface.pool_of(spec, _TITLE), target)
        if not spec.end_role:
            return (group,)
        names = {"ClusterName": group.arguments["clusterName"], "NodegroupName": group.name}
        ends = ("eks:deleteNodegroup", names)
        return (schedule.creation(spec, group.name, target.region, ends), group)

    @staticmethod
    def termination_steps(spec: interface.LaunchSpec) -> tuple[str, ...]:
        """Return our call, and that nothing happens by itself; pure."""
        group = f"{interface.pool_of(spec, _TITLE).cluster}/{interface.pool_name(spec.marks)}"
        return (
            f"eks:DeleteNodegroup {group}, and its nodes go",
            schedule.in_words(spec) if spec.end_role else interface.NOT_BY_ITSELF,
        )

    def check(self, spec: interface.LaunchSpec) -> tuple[interface.LaunchSpec, tuple[str, ...]]:
        """Return the launch with the role and the subnets of its nodes, and notes."""
        pool, target = interface.pool_of(spec, _TITLE), spec.places[0]
        if target.purchase == "spot":
            raise InputError(
                "--purchase spot with --kubernetes: a managed node group takes no highest price, "
                "so no cap would hold; say on_demand."
            )
        region = target.region or (target.offer.region if target.offer else "")
        with sdk_errors(f"reading cluster {pool.cluster} in {region}"):
            self._refuse_unknown(pool.cluster, region)
            groups = list(self._usable_groups(pool.cluster, region))
        if not groups:
            raise InputError(_no_group(pool.cluster, region))
        group, size = groups[0], target.instance_type
        with sdk_errors(f"reading where {target.instance_type} is offered"):
            subnets, notes = self._subnets(tuple(group["subnets"]), size, region)
        if not subnets:
            raise interface.NoCapacityError(
                f"AWS offers {size} in no zone of {region} in which cluster "
                f"{pool.cluster} has nodes ({', '.join(group['subnets'])})."
            )
        pool = replace(pool, node_role=str(group["nodeRole"]), subnets=subnets)
        checked = replace(spec, places=(replace(target, region=region),), pool=pool)
        session = self.account_cloud.session
        quota = check_quota(session, checked.places[0], spec.most_machines)
        limits = "EKS has no autoscaler of its own: min and max are limits for the cluster's"
        return checked, (
            *notes,
            f"role and subnets are those of node group {group['nodegroupName']}",
            *((limits,) if pool.min_nodes is not None else ()),
            quota,
        )

    def _refuse_unknown(self, cluster: str, region: str) -> None:
        """Refuse a cluster that the region has not, naming those that it has."""
        eks = self._clients.get("eks", region)
        answer = if_known(lambda: eks.describe_cluster(name=cluster))
        if answer is None:
            names = ", ".join(inventory.clusters(eks)) or "none"
            raise InputError(
                f"--kubernetes {cluster}: no such cluster in {region}; it has: {names}."
            )
        status = str(answer["cluster"]["status"])
        if status not in ("ACTIVE", "UPDATING"):
            raise ProviderError(f"AWS: cluster {cluster} in {region} is {status}.")

    def _usable_groups(self, cluster: str, region: str) -> Iterator[dict[str, Any]]:
        """Yield node groups whose role and subnets nodes can have, too."""
        eks = self._clients.get("eks", region)
        for name in inventory.group_names(eks, cluster):
            group = inventory.read_group(eks, cluster, name)
            if group is None or group.get("status") not in ("ACTIVE", "UPDATING", "DEGRADED"):
                continue
            if group.get("nodeRole") and group.get("subnets"):
                yield group

    def _subnets(
        self, candidates: tuple[str, ...], instance_type: str, region: str
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the subnets in zones that offer the type, and what to say of the others."""
        zones = self.account_cloud.zones(instance_type, region)
        ec2 = self._clients.get("ec2", region)
        subnets = ec2.describe_subnets(SubnetIds=list(candidates))["Subnets"]
        zone_of = {str(subnet["SubnetId"]): str(subnet["AvailabilityZone"]) for subnet in subnets}
        fits = tuple(subnet for subnet in candidates if zone_of.get(subnet) in zones)
        without = sorted({zone for zone in zone_of.values() if zone not in zones})
        note = f"{instance_type} is not offered in {', '.join(without)}"
        return fits, (note,) if without and fits else ()

    def account(self) -> str:
        """Return the number of the account, which STS tells any caller; asked once."""
        return self.account_cloud.account()

    def limits(self) -> tuple[str, ...]:
        """Return the quotas of machines with GPUs: nodes are instances."""
        return self.account_cloud.limits()

    def create(self, creation: interface.Creation) -> interface.Resource:
        """Note the region, then make one call that the SDK does not repeat."""
        try:
            note_region(self.state, creation.region)
        except OSError as error:
            raise ProviderError(
                f"{self.state}: {creation.region} cannot be noted there ({error.strerror}), so "
                "nobody would look for the pool; nothing was made."
            ) from None
        if creation.kind == interface.OUTSIDE:
            return self.account_cloud.create(creation)
        eks = self._clients.get("eks", creation.region, repeats=False)
        with sdk_errors(f"making node group {creation.name}"):
            created = eks.create_nodegroup(**creation.arguments).get("nodegroup") or {}
        marks = read_labels(creation.arguments["tags"], inventory.TAG_SEPARATOR)
        if "nodegroupArn" not in created or marks is None:
            raise interface.UncertainError(
                f"AWS: the answer about {creation.name} does not say what it is."
            )
        return inventory.group_resource(created, creation.region, marks)

    def _list(
        self, regions: interface.Regions, kinds: tuple[str, ...], marks_by_run: interface.MarksByRun
    ) -> interface.Listing:
        """Return node groups with our tags or names, and their nodes; each region on its own."""
        places = regions
        if places is None:  # where the folder that names them was lost, any may have groups
            places = seen_regions(self.state) or enabled_regions(self._clients)
        listing = inventory.listing(self._clients, places, kinds, marks_by_run)
        if interface.OUTSIDE not in kinds:
            return listing
        return self.account_cloud.with_schedules(listing, places, marks_by_run, of_pools=True)

    def look(
        self, entry: interface.JournaledResource, marks: OwnershipTags
    ) -> interface.ExistenceCheck:
        """Return what AWS answers about that id."""
        if entry.kind == interface.OUTSIDE:
            return self.account_cloud.look(entry, marks)
        return inventory.look(self._clients, entry, marks)

    def mark(
        self, resource: interface.Resource, marks: OwnershipTags
    ) -> tuple[interface.Resource, ...]:
        """Put the later deadline on a group, as its tag; a schedule moves; a node has none."""
        if resource.kind == interface.OUTSIDE:
            return self.account_cloud.mark(resource, marks)
        if resource.kind == interface.POOL:
            eks = self._clients.get("eks", resource.region)
            with sdk_errors(f"moving the deadline of {resource.name}"):
                tag = {inventory.DEADLINE: marks.tags()["deadline"]}
                eks.tag_resource(resourceArn=resource.id, tags=tag)
        return ()

    def destroy(self, resource: interface.Resource) -> bool:
        """Make one call by id; False where AWS knows no such id; a node ends with its group."""
        if resource.kind == interface.OUTSIDE:
            return self.account_cloud.destroy(resource)
        return super().destroy(resource)

    def _end_pool(self, pool: interface.Resource) -> bool:
        if pool.state == "ending":
            return True
        cluster, name = inventory.parts(pool.id)
        eks = self._clients.get("eks", pool.region)
        with sdk_errors(f"ending {pool.kind} {pool.name}"):
            call = partial(eks.delete_nodegroup, clusterName=cluster, nodegroupName=name)
            return if_known(call) is not None

    def _end_node(self, node: interface.Resource) -> bool:
        return self.account_cloud.destroy(replace(node, kind=interface.MACHINE))


def _no_group(cluster: str, region: str) -> str:
    return (
        f"--kubernetes {cluster}: the cluster has no node group whose role and subnets nodes could "
        f"have. Make one first: eksctl create nodegroup --cluster {cluster} --region {region} "
        "--nodes 1 --node-type t3.medium"
    )


CLOUD = EksCloud
