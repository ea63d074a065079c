"""Node pools of DigitalOcean Kubernetes: one call makes a pool, and the pool makes its nodes.

A lost answer is reconciled by the pool's name.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from pricing.errors import InputError, ProviderError
from pricing.tables import members, objects
from providers import interface
from providers.digitalocean.access import VARIABLES, DigitalOceanApi
from providers.digitalocean.cloud import DigitalOceanCloud
from providers.doks import inventory
from providers.doks.ender import with_labels
from providers.doks.inventory import PROVIDER
from providers.ownership_tags import OwnershipTags, read_labels
from providers.token_api import JsonDocument, TokenAccess

_TITLE = "DigitalOcean Kubernetes"
_IN_CLUSTER = "at the deadline a CronJob in the cluster makes the same call"
_UNSEEN = "nothing in the cluster ends it; `gpucost watch --in-cluster` prints what would"
_LAG_S = 180.0
"""Reads may miss what was just made; no figure is documented, so it is as for Droplets: ours."""


def connect(connection: interface.Connection) -> "DoksCloud":
    """Return the clusters of the account that the environment names.

    Raises:
        MissingCredentialsError, InputError: the environment names none, or wrongly.
    """
    return DoksCloud(access=VARIABLES.read(connection.environment))


@dataclass(kw_only=True)
class DoksCloud(interface.PoolCloud):
    """The Kubernetes clusters of an account.

    Attributes:
        access: where and as whom.
        name: of the row; offers are those of its machines.
    """

    access: TokenAccess
    name: str = PROVIDER
    lag_s: float = _LAG_S
    _droplets: DigitalOceanCloud = field(init=False, repr=False)
    _clusters: dict[str, None] = field(default_factory=dict, repr=False)  # with pools of ours

    def __post_init__(self) -> None:
        self._droplets = DigitalOceanCloud(access=self.access)
        self._api.on_date = self.note_clock

    @property
    def _api(self) -> DigitalOceanApi:
        return self._droplets.api

    @staticmethod
    def resources_to_create(
        spec: interface.LaunchSpec, target: interface.Place
    ) -> tuple[interface.Creation, ...]:
        """Return the call of a launch; pure."""
        return (inventory.creation(spec, interface.pool_of(spec, _TITLE), target),)

    @staticmethod
    def termination_steps(spec: interface.LaunchSpec) -> tuple[str, ...]:
        """Return our call, and what the cluster does; pure."""
        pool = interface.pool_of(spec, _TITLE)
        return (
            f"DELETE {inventory.pool_path(pool.cluster_id or pool.cluster)}/ID, and its nodes go",
            _IN_CLUSTER if spec.self_destroy else interface.NOT_BY_ITSELF,
        )

    def check(self, spec: interface.LaunchSpec) -> tuple[interface.LaunchSpec, tuple[str, ...]]:
        """Return the launch in the region of its cluster, and notes; change nothing."""
        pool = interface.pool_of(spec, _TITLE)
        if pool.min_nodes == 0:
            raise InputError(
                "--min 0: the autoscaler of DOKS keeps one node at least; give --min 1. `gpucost "
                "down` ends the last one with its pool."
            )
        doing = "reading the Kubernetes clusters"
        clusters = list(self._api.pages(inventory.PATH, inventory.CLUSTERS, doing))
        cluster = _chosen(clusters, pool.cluster)
        region, state = (
            str(cluster["region"]),
            str(members(cluster.get("status") or {}).get("state")),
        )
        if state in ("error", "deleted", "deleting"):
            raise ProviderError(f"DigitalOcean: cluster {cluster['name']} is in state {state!r}.")
        size = spec.places[0].instance_type
        answer = self._api.get("/v2/kubernetes/options", "reading what node pools may be")
        options = members(answer.get("options") or {})
        sizes = {str(entry.get("slug")) for entry in objects(options.get("sizes") or ())}
        if sizes and size not in sizes:
            raise interface.NoCapacityError(
                f"DigitalOcean Kubernetes takes no nodes of size {size} now."
            )
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
            replace(spec, pool=None, places=places, self_destroy=False, ssh_from=interface.ANYWHERE)
        )
        pool = replace(pool, cluster=str(cluster["name"]), cluster_id=str(cluster["id"]))
        return replace(spec, places=places[:1], pool=pool), notes

    def account(self) -> str:
        """Return the id of the team that the token is of, else of its user; asked once."""
        return self._droplets.account()

    def limits(self) -> tuple[str, ...]:
        """Return the droplets that are used and allowed: nodes are Droplets."""
        return self._droplets.limits()

    def create(self, creation: interface.Creation) -> interface.Resource:
        """Send one POST, never repeated."""
        doing = f"making pool {creation.name}"
        body = dict(creation.arguments)
        cluster = str(body.pop("cluster_id"))
        self._clusters[cluster] = None
        answer = self._api.change("POST", inventory.pool_path(cluster), body, doing)
        created = answer.get("node_pool") if isinstance(answer, dict) else None
        marks = read_labels(body["labels"], inventory.LABEL_SEPARATOR)
        if not isinstance(created, Mapping) or "id" not in created or marks is None:
            raise interface.UncertainError(
                f"DigitalOcean: {doing}: the answer does not say what was made."
            )
        return inventory.pool_resource(cluster, creation.region, created, marks)

    def _list(
        self, regions: interface.Regions, kinds: tuple[str, ...], marks_by_run: interface.MarksByRun
    ) -> interface.Listing:
        """Return pools with our marks or names, and their nodes; of the whole account."""
        _ = regions
        return inventory.listing(self._api, kinds, marks_by_run, tuple(self._clusters))

    def look(
        self, entry: interface.JournaledResource, marks: OwnershipTags
    ) -> interface.ExistenceCheck:
        """Return what the API answers about that id."""
        if entry.kind == interface.NODE:
            return inventory.look_at_node(self._api, entry.id, marks)
        self._clusters[inventory.cluster_of(entry.id)] = None
        return inventory.look_at_pool(self._api, entry.id, entry.region, marks)

    def self_termination_problem(self, machine: interface.Resource) -> str:
        """Return why nothing in the cluster would end a pool at its deadline; empty: it would."""
        pool = inventory.read_pool(self._api, machine.id)
        labels = {} if pool is None else pool.get("labels") or {}
        return "" if labels.get(inventory.ENDER) == inventory.ARMED else _UNSEEN

    def mark(
        self, resource: interface.Resource, marks: OwnershipTags
    ) -> tuple[interface.Resource, ...]:
        """Put marks with a later deadline on a pool, as its labels; on a node nothing is read."""
        if resource.kind == interface.NODE:
            return ()
        doing = f"marking {resource.name} with its deadline"
        pool = inventory.read_pool(self._api, resource.id)
        if pool is None:
            raise ProviderError(f"DigitalOcean: {doing}: it does not show the pool.")
        body = with_labels(pool, marks.labels(inventory.LABEL_SEPARATOR))
        self._api.change("PUT", inventory.own_path(resource.id), body, doing)
        return ()

    def _end_pool(self, pool: interface.Resource) -> bool:
        return self._api.delete(inventory.own_path(pool.id), f"ending {pool.kind} {pool.name}")

    def _end_node(self, node: interface.Resource) -> bool:
        if interface.run_of_node(node.name) != node.marks.run:
            raise ProviderError(f"{node.name} is not named as a node of {node.marks.run}.")
        return self._droplets.destroy(replace(node, kind=interface.MACHINE))


def _chosen(clusters: list[JsonDocument], name_or_id: str) -> JsonDocument:
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
