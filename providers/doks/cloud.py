"""Node pools of DigitalOcean Kubernetes: one call makes a pool, and the pool makes its nodes.

The API has no idempotency token and its SDK repeats POST, so the call goes through a client that
repeats nothing; a lost answer is reconciled by the pool's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pricing.errors import InputError, ProviderError
from pricing.tables import members, objects
from providers.deployment import NODE, run_of_node
from providers.digitalocean.access import (
    PydoClient,
    read_access,
    sdk_errors,
    what_was_made,
)
from providers.digitalocean.access import connect as open_client
from providers.digitalocean.cloud import DigitalOceanCloud
from providers.digitalocean.inventory import is_not_found, pages
from providers.doks import inventory
from providers.doks.ender import with_labels
from providers.doks.inventory import PROVIDER
from providers.interface import (
    ANYWHERE,
    MACHINE,
    NOT_BY_ITSELF,
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
from providers.ownership_tags import OwnershipTags, read_labels
from providers.pool_cloud import PoolCloud, pool_of
from providers.token_access import TokenAccess

_Json = dict[str, Any]
_TITLE = "DigitalOcean Kubernetes"
_IN_CLUSTER = "at the deadline a CronJob in the cluster makes the same call"
_UNSEEN = "nothing in the cluster ends it; `gpucost watch --in-cluster` prints what would"
_LAG_S = 180.0
"""Reads may miss what was just made; no figure is documented, so it is as for Droplets: ours."""


def connect(connection: Connection) -> "DoksCloud":
    """Return the clusters of the account that the environment names.

    Raises:
        MissingCredentialsError, InputError: the environment names none, or wrongly.
    """
    return DoksCloud(access=read_access(connection.environment))


@dataclass(kw_only=True)
class DoksCloud(PoolCloud):
    """The Kubernetes clusters of an account.

    Attributes:
        access: where and as whom.
        name: of the row; offers are those of its machines.
    """

    access: TokenAccess
    name: str = PROVIDER
    lag_s: float = _LAG_S
    _clients: dict[bool, PydoClient] = field(default_factory=dict, repr=False)
    _droplets: DigitalOceanCloud = field(init=False, repr=False)
    _clusters: dict[str, None] = field(default_factory=dict, repr=False)  # with pools of ours

    def __post_init__(self) -> None:
        self._droplets = DigitalOceanCloud(access=self.access)

    def _client(self, *, repeats: bool) -> PydoClient:
        if repeats not in self._clients:
            options = {} if repeats else {"retries": 0}
            self._clients[repeats] = open_client(self.access, on_date=self.note_clock, **options)
        return self._clients[repeats]

    @staticmethod
    def resources_to_create(spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """Return the call of a launch; pure."""
        return (inventory.creation(spec, pool_of(spec, _TITLE), place),)

    @staticmethod
    def termination_steps(spec: LaunchSpec) -> tuple[str, ...]:
        """Return our call, and what the cluster does; pure."""
        pool = pool_of(spec, _TITLE)
        return (
            f"DELETE {inventory.pool_path(pool.cluster_id or pool.cluster)}/ID, and its nodes go",
            _IN_CLUSTER if spec.self_destroy else NOT_BY_ITSELF,
        )

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Return the launch in the region of its cluster, and notes; change nothing."""
        pool = pool_of(spec, _TITLE)
        if pool.min_nodes == 0:
            raise InputError(
                "--min 0: the autoscaler of DOKS keeps one node at least; give --min 1. `gpucost "
                "down` ends the last one with its pool."
            )
        client = self._client(repeats=True)
        with sdk_errors(self.access, "reading the Kubernetes clusters"):
            clusters = list(pages(client.kubernetes.list_clusters, inventory.CLUSTERS, {}))
        cluster = _chosen(clusters, pool.cluster)
        region, state = (
            str(cluster["region"]),
            str(members(cluster.get("status") or {}).get("state")),
        )
        if state in ("error", "deleted", "deleting"):
            raise ProviderError(f"DigitalOcean: cluster {cluster['name']} is in state {state!r}.")
        size = spec.places[0].instance_type
        with sdk_errors(self.access, "reading what node pools may be"):
            options = members(client.kubernetes.list_options().get("options") or {})
        sizes = {str(entry.get("slug")) for entry in objects(options.get("sizes") or ())}
        if sizes and size not in sizes:
            raise NoCapacityError(f"DigitalOcean Kubernetes takes no nodes of size {size} now.")
        places = tuple(
            replace(entry, region=region) for entry in spec.places if entry.region in ("", region)
        )
        if not places:
            named = spec.places[0].region
            raise InputError(
                f"cluster {cluster['name']} is in {region}, and {named} was asked for."
            )
        # A size that is short in the region still is accepted by the API: its nodes wait.
        _, notes = self._droplets.check(
            replace(spec, pool=None, places=places, self_destroy=False, ssh_from=ANYWHERE)
        )
        pool = replace(pool, cluster=str(cluster["name"]), cluster_id=str(cluster["id"]))
        return replace(spec, places=places[:1], pool=pool), notes

    def account(self) -> str:
        """Return the id of the team that the token is of, else of its user; asked once."""
        return self._droplets.account()

    def limits(self) -> tuple[str, ...]:
        """Return the droplets that are used and allowed: nodes are Droplets."""
        return self._droplets.limits()

    def create(self, creation: Creation) -> Resource:
        """Send one POST, never repeated."""
        doing = f"making pool {creation.name}"
        body = dict(creation.arguments)
        cluster = str(body.pop("cluster_id"))
        self._clusters[cluster] = None
        with sdk_errors(self.access, doing):
            answer = self._client(repeats=False).kubernetes.add_node_pool(cluster, body=body)
        created = what_was_made(answer, "node_pool", doing)
        marks = read_labels(body["labels"], inventory.LABEL_SEPARATOR)
        if not isinstance(created, Mapping) or "id" not in created or marks is None:
            raise UncertainError(f"DigitalOcean: {doing}: the answer does not say what was made.")
        return inventory.pool_resource(cluster, creation.region, created, marks)

    def _list(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...],
        marks_by_run: Mapping[str, OwnershipTags],
    ) -> Listing:
        """Return pools with our marks or names, and their nodes; of the whole account."""
        _ = regions
        also = tuple(self._clusters)
        return inventory.listing(self._client(repeats=True), self.access, kinds, marks_by_run, also)

    def look(self, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """Return what the API answers about that id."""
        client = self._client(repeats=True)
        if entry.kind == NODE:
            return inventory.look_at_node(client, self.access, entry.id, marks)
        self._clusters[inventory.parts(entry.id)[0]] = None
        return inventory.look_at_pool(client, self.access, entry.id, entry.region, marks)

    def self_termination_problem(self, machine: Resource) -> str:
        """Return why nothing in the cluster would end a pool at its deadline; empty: it would."""
        pool = inventory.read_pool(self._client(repeats=True), self.access, machine.id)
        labels = {} if pool is None else pool.get("labels") or {}
        return "" if labels.get(inventory.ENDER) == inventory.ARMED else _UNSEEN

    def mark(self, resource: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Put marks with a later deadline on a pool, as its labels; on a node nothing is read."""
        if resource.kind == NODE:
            return ()
        client, doing = self._client(repeats=True), f"marking {resource.name} with its deadline"
        pool = inventory.read_pool(client, self.access, resource.id)
        if pool is None:
            raise ProviderError(f"DigitalOcean: {doing}: it does not show the pool.")
        with sdk_errors(self.access, doing):
            body = with_labels(pool, marks.labels(inventory.LABEL_SEPARATOR))
            answer = client.kubernetes.update_node_pool(*inventory.parts(resource.id), body=body)
        if not (isinstance(answer, Mapping) and "node_pool" in answer):
            raise ProviderError(f"DigitalOcean: {doing}: the pool was not changed.")
        return ()

    def _end_pool(self, pool: Resource) -> bool:
        client = self._client(repeats=False)
        with sdk_errors(self.access, f"ending {pool.kind} {pool.name}"):
            answer = client.kubernetes.delete_node_pool(*inventory.parts(pool.id))
        return not is_not_found(answer)

    def _end_node(self, node: Resource) -> bool:
        if run_of_node(node.name) != node.marks.run:
            raise ProviderError(f"{node.name} is not named as a node of {node.marks.run}.")
        return self._droplets.destroy(replace(node, kind=MACHINE))


def _chosen(clusters: list[_Json], name_or_id: str) -> _Json:
    """Return the cluster of that name or id.

    Raises:
        InputError: there is none, or two have the name.
    """
    fits = [
        cluster for cluster in clusters if name_or_id in (cluster.get("id"), cluster.get("name"))
    ]
    if len(fits) == 1:
        return fits[0]
    if fits:
        ids = ", ".join(str(cluster["id"]) for cluster in fits)
        raise InputError(f"--kubernetes {name_or_id}: {len(fits)} clusters have that name: {ids}.")
    names = (
        ", ".join(f"{cluster.get('name')} ({cluster.get('region')})" for cluster in clusters)
        or "none"
    )
    raise InputError(f"--kubernetes {name_or_id}: no such cluster in the account; it has: {names}.")


CLOUD = DoksCloud
