"""What a provider must be able to do, and the values that pass between it and the lifecycle.

A failed call raises an error that says what was done:

```
ProviderError (pricing.errors, exit 5)
 ├ NoCapacityError   nothing was made here and now; another zone, region or type may have it
 ├ QuotaError        nothing was made, and nowhere else will be: a limit of the account
 ├ ForbiddenError    nothing was made: the credentials may not do or see that
 ├ ThrottledError    nothing was made; the same call may be repeated after a while
 └ UncertainError    the answer is lost: the work may have been done, so nobody repeats it blindly
```

Every other ProviderError is a refusal: nothing was made.

A provider is a `Cloud`: it says which calls a launch needs (pure), makes one resource a call, finds
what carries our marks, destroys one. Order, waiting and repair are in `providers.lifecycle`.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from email.utils import parsedate_to_datetime
from types import MappingProxyType
from typing import Any, Literal

from pricing.billing.quote import Quote
from pricing.catalog.offer import Offer
from pricing.errors import InputError, ProviderError
from providers.ownership_tags import PREFIX, OwnershipTags


class NoCapacityError(ProviderError):
    """The place has no such machine now, or does not sell it; nothing was made."""


class QuotaError(ProviderError):
    """A limit of the account; nothing was made. The message says how to raise it."""


class ForbiddenError(ProviderError):
    """The credentials lack a right; nothing was made."""


class ThrottledError(ProviderError):
    """Too many calls; nothing was made.

    Attributes:
        wait_s: seconds after which the provider wants to be asked again.
    """

    wait_s: float = 5.0


class UncertainError(ProviderError):
    """No answer, or one that says nothing about the work: it may have been done."""


OUTSIDE = "schedule"
"""The kind of resource that ends a machine from outside, at the provider, and then itself."""

OWN = "ssh"
"""The provider of machines that the user already has."""

NOT_BY_ITSELF = "at the deadline nothing happens by itself: gpucost reap, or watch, must run"
"""What is said of a provider where no machine ends itself."""

ANYWHERE = ("0.0.0.0/0", "::/0")
"""Every network, as `LaunchSpec.ssh_from`."""

LEAST_SKEW_S = 2.0
"""Less cannot be seen: the Date header has whole seconds and travelled for a while."""

MarksByRun = Mapping[str, OwnershipTags]
"""Run -> its marks, as the journal or something that carries them says."""

Regions = tuple[str, ...] | None
"""Where something is looked for; None: everywhere."""

State = Literal["starting", "running", "failed", "ending", "gone"]

POOL = "pool"
"""The kind of resource that makes nodes, and takes them with it when it ends."""

NODE = "node"
"""A machine that a pool makes; it is billed by time."""

ON_NODES = "nvidia.com/gpu"
"""Key of the taint that keeps pods without a GPU off the nodes."""

TAINT = "present"
"""Value of that taint, as the clouds' own GPU pools have it."""

_POOL_NAME = re.compile(rf"{PREFIX}-([a-z2-9]+)-{POOL}")
_NODE_NAME = re.compile(rf"{PREFIX}-([a-z2-9]+)-{POOL}-.+")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A node pool that is to be added to a cluster.

    Attributes:
        provider: row of the registry.
        cluster: its name, or its id, as the user named it.
        min_nodes, max_nodes: of the autoscaler; None, both: the number of nodes is fixed.
        cluster_id: by which calls name the cluster; empty until it was looked up.
        node_role: as whom nodes run; empty where the provider has no such thing.
        subnets: of the nodes; empty where the provider chooses.
    """

    provider: str
    cluster: str
    min_nodes: int | None = None
    max_nodes: int | None = None
    cluster_id: str = ""
    node_role: str = ""
    subnets: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        low, high = self.min_nodes, self.max_nodes
        if (low is None) != (high is None):
            raise InputError("node pool: min and max go together.")
        if low is not None and high is not None and not 0 <= low <= high != 0:
            raise InputError(f"node pool: from {low} to {high} nodes cannot be.")

    @property
    def text(self) -> str:
        """Whose, and between which numbers of nodes: "prod-1, 1 to 3 nodes"."""
        if self.min_nodes is None:
            return f"{self.cluster}, a fixed number of nodes"
        return f"{self.cluster}, {self.min_nodes} to {self.max_nodes} nodes"


def pool_name(marks: OwnershipTags) -> str:
    """Return the name of the pool of a run, unique in its cluster."""
    return marks.name(POOL)


def run_of_pool(name: str) -> str:
    """Return the run in the name of a pool; empty: it is not named as ours are."""
    match = _POOL_NAME.fullmatch(name)
    return match[1] if match else ""


def run_of_node(name: str) -> str:
    """Return the run in the name of a node, which begins with its pool's; empty: it has none."""
    match = _NODE_NAME.fullmatch(name)
    return match[1] if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What a launch was confirmed with.

    Attributes:
        self_destroy: whether its machines were to end themselves.
        max_usd: the cap, where one was named; None: it was the previewed total.
        most_usd_per_hour: the highest price that the provider may ask for a machine; None for the
            user's own.
        idle_s: its machines end themselves once no GPU has worked for so long; None: no such rule.
        pool: its machines are nodes of this pool, of which role and subnets are not kept; None:
            they are machines of their own.
    """

    self_destroy: bool
    max_usd: Decimal | None
    most_usd_per_hour: Decimal | None
    idle_s: int | None = None
    pool: NodePool | None = None


MACHINE = "machine"
"""The kind of resource that computes and is billed by time; a node is one that a pool makes."""

BILLED = (MACHINE, NODE)
"""Kinds that are billed by time; every other kind is a side resource, or a pool of nodes."""

COMPUTING = (POOL, *BILLED)
"""Kinds that end first, in that order: nodes end with their pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """A run as the journal knows it.

    Attributes:
        marks: run, deadline, owner, plan.
        provider: where it is.
        offer: what is rented, at which price.
        region: where; empty before a place was found.
        count: machines.
        state: launching; not-proved: the machines run, and nothing has proved that they end
            themselves; ready; failed; ending; ended.
        started_at: when it was written down.
        ended_at: when the last resource was gone; None before.
        predicted_usd: the total at the TTL that was confirmed; None for what was adopted.
        resources: with the state in which each was last seen.
        reason: why it failed or ended.
        account: at the provider that it is in; empty: not known.
        terms: what its launch was confirmed with; None: it was not launched from here.
    """

    marks: OwnershipTags
    provider: str
    offer: Offer | None
    region: str
    count: int
    state: str
    started_at: datetime
    ended_at: datetime | None
    predicted_usd: Decimal | None
    resources: tuple["JournaledResource", ...] = ()
    reason: str = ""
    account: str = ""
    terms: Terms | None = None

    @property
    def self_destroy(self) -> bool | None:
        """Whether its machines were to end themselves; None where that is not known."""
        return None if self.terms is None else self.terms.self_destroy

    @property
    def pool(self) -> NodePool | None:
        """The node pool that it was launched as; None: machines, or it is not known."""
        return None if self.terms is None else self.terms.pool

    @property
    def machines(self) -> tuple["JournaledResource", ...]:
        """The machines among its resources, nodes included."""
        return tuple(entry for entry in self.resources if entry.kind in BILLED)

    @property
    def computing(self) -> tuple["JournaledResource", ...]:
        """What must be gone before it has ended: machines, and pools, which make them."""
        return tuple(entry for entry in self.resources if entry.kind in COMPUTING)


@dataclass(frozen=True, slots=True, kw_only=True)
class JournaledResource:
    """A resource as the journal knows it.

    Attributes:
        kind, name, region: as in `Creation`.
        id: the provider's; empty while there is only the intent.
        state: intended, made, gone, refused.
        intended_at: when the intent was written, before the call.
        billed_from: start of billing, by the provider's clock; None while unknown.
        billed_until: when the provider said that it was gone; None while it is there.
        address: of a machine.
    """

    kind: str
    name: str
    region: str
    id: str
    state: str
    intended_at: datetime
    billed_from: datetime | None = None
    billed_until: datetime | None = None
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a machine may be made.

    Attributes:
        offer: what is rented there, at what price; None for a machine that is the user's own.
        host: of such a machine: "user@host[:port]".
        region: the provider's name of it; empty where it has none.
        zone: within the region; empty where the provider chooses.
        volumes: devices of the image whose volumes would stay without their machine; they are made
            to go with it.
        network: the provider's id of the private network; empty: its default one.
        user_data: the bootstrap for its machines, without any secret.
    """

    offer: Offer | None
    host: str = ""
    region: str = ""
    zone: str = ""
    network: str = ""
    volumes: tuple[str, ...] = ()
    user_data: str = field(default="", repr=False)

    @property
    def text(self) -> str:
        """Type and the narrowest known place: "p5.48xlarge in us-east-1a"."""
        where = self.zone or self.region or "a region chosen at launch"
        return self.host or f"{self.instance_type} in {where}"

    @property
    def provider(self) -> str:
        """Where it is rented; "ssh" for the user's own."""
        return OWN if self.offer is None else self.offer.provider

    @property
    def instance_type(self) -> str:
        """The provider's size; the host of the user's own."""
        return self.host if self.offer is None else self.offer.instance_type

    @property
    def purchase(self) -> str:
        """How it is bought."""
        return "on_demand" if self.offer is None else self.offer.purchase

    @property
    def cpu_architecture(self) -> str:
        """Of the host: "arm64" or "x86_64"."""
        return "x86_64" if self.offer is None else self.offer.cpu_architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """One launch: what, where, how long, as whose.

    Attributes:
        marks: run, deadline, owner, plan.
        places: where it may be, best first; the first that has all machines gets them.
        count: machines, all or none.
        ttl_s: longest life of a machine until its deadline, > 0.
        end_s: most seconds from there until its bill ends, >= 0.
        max_usd: the run must not cost more when its bill ends.
        public_key: of the run's own SSH key pair, in OpenSSH form; empty: no login of ours.
        ssh_key: a key at the provider that may log in, too; empty: none.
        image: in place of the provider's image for the size; empty: that one.
        self_destroy: whether the machine ends itself at its deadline.
        idle_s: the machines end themselves once no GPU has worked for so long; None: no such rule.
        pool: the machines are nodes of this new pool of a cluster, `count` of them at first; None:
            they are machines of their own.
        end_role: as whom the provider ends machines that did not; empty: nothing outside ends them.
        ssh_from: networks that may reach port 22 of the machines, such as "203.0.113.7/32".
        subnet: of a private network at the provider, for its machines; empty: the default one.
        security_group: at the provider, in place of one of the run's own; empty: its own.
    """

    marks: OwnershipTags
    places: tuple[Place, ...]
    count: int
    ttl_s: Decimal
    max_usd: Decimal
    public_key: str = ""
    ssh_key: str = ""
    image: str = ""
    self_destroy: bool = True
    ssh_from: tuple[str, ...] = ANYWHERE
    subnet: str = ""
    security_group: str = ""
    end_s: Decimal = Decimal(0)
    end_role: str = ""
    idle_s: int | None = None
    pool: NodePool | None = None

    def __post_init__(self) -> None:
        problems = []
        if not self.places:
            problems.append("no place to launch at")
        if self.count < 1:
            problems.append(f"count is {self.count}; at least 1")
        if self.ttl_s <= 0:
            problems.append(f"ttl_s is {self.ttl_s}; more than 0")
        if len({target.provider for target in self.places}) > 1:
            problems.append("places of several providers; a run has one")
        if problems:
            raise InputError(f"launch: {problem}" for problem in problems)

    @property
    def most_s(self) -> Decimal:
        """The longest life of a machine that can be billed, in seconds."""
        return self.ttl_s + self.end_s

    @property
    def provider(self) -> str:
        """The provider of every place; that of the pool, where there is one."""
        return self.places[0].provider if self.pool is None else self.pool.provider

    @property
    def most_machines(self) -> int:
        """How many machines there can be at once: what the cap is held against."""
        high = None if self.pool is None else self.pool.max_nodes
        return self.count if high is None else max(self.count, high)

    @property
    def machine_names(self) -> tuple[str, ...]:
        """The unique name of each machine."""
        return tuple(self.marks.name(str(node)) for node in range(1, self.count + 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Creation:
    """One call that makes one resource.

    Attributes:
        kind: such as "machine", "ssh-key", "firewall".
        name: unique, so that a lost answer can be reconciled.
        region: where it is made.
        call: such as "POST /v2/droplets", for people.
        arguments: of the call; no secret is in them.
    """

    kind: str
    name: str
    region: str
    call: str
    arguments: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """Something at a provider that carries our marks.

    Attributes:
        kind: as in `Creation`.
        id: the provider's.
        name: ours.
        region: where it is; empty where the kind has none.
        marks: whose.
        state: of a machine or a pool, where "failed" is one that will never run; side resources
            are "running".
        created_at: by the provider's clock; None where it does not say.
        address: a machine's public address, once it has one.
        private_address: by which machines of its run reach it; empty where it has none.
        instance_type: of a machine.
        purchase: how a machine is bought.
        fault: what the provider says is wrong with it; empty: nothing.
    """

    kind: str
    id: str
    name: str
    region: str
    marks: OwnershipTags
    state: State = "running"
    created_at: datetime | None = None
    address: str = ""
    private_address: str = ""
    instance_type: str = ""
    purchase: str = "on_demand"
    fault: str = ""

    @property
    def is_machine(self) -> bool:
        """Whether it is billed by time."""
        return self.kind in BILLED

    @property
    def computes(self) -> bool:
        """Whether it is billed by time, or makes what is."""
        return self.kind in COMPUTING


def as_kept(resource: Resource, now: datetime) -> JournaledResource:
    """Return what the journal would say of a resource that was found."""
    return JournaledResource(
        kind=resource.kind,
        name=resource.name,
        region=resource.region,
        id=resource.id,
        state="made",
        intended_at=resource.created_at or now,
        billed_from=resource.created_at,
        address=resource.address,
    )


ExistenceState = Literal["present", "gone", "not-shown", "not-asked"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistenceCheck:
    """What is known about one resource.

    Attributes:
        state: present: the provider shows it; gone: positively; not-shown: it is not shown, which
            proves nothing yet; not-asked: the provider could not be asked.
        resource: as the provider shows it, where it is present.
        why: for people, where it is not.
        is_ours: whether no answer says otherwise; what is not ours is not ended unasked.
        nodes: machines of a pool that the same answer shows.
    """

    state: ExistenceState
    resource: Resource | None = None
    why: str = ""
    is_ours: bool = True
    nodes: tuple[Resource, ...] = ()

    @classmethod
    def present(cls, resource: Resource) -> "ExistenceCheck":
        """Return that the provider shows it."""
        return cls(state="present", resource=resource)

    @classmethod
    def identified(cls, resource: Resource, carried: OwnershipTags | None) -> "ExistenceCheck":
        """Return that an id is shown, if by marks or name it is still what its run has made.

        Args:
            resource: with the marks of the journal and the name that it has now; empty: none.
            carried: the marks that it has now.
        """
        run, name = resource.marks.run, resource.name
        is_named = not (name and resource.computes) or name.startswith(resource.marks.name(""))
        if carried.run == run if carried is not None else is_named:
            return cls.present(resource)
        why = f"it is called {name!a} now and carries no mark of {run}"
        if carried is not None:
            why = f"it carries the marks of run {carried.run}"
        return cls(state="not-asked", why=why, is_ours=False)

    @classmethod
    def ended(cls, why: str) -> "ExistenceCheck":
        """Return that the provider says that it ended."""
        return cls(state="gone", why=why)

    @classmethod
    def not_shown(cls, why: str) -> "ExistenceCheck":
        """Return that the provider does not show it, which proves nothing yet."""
        return cls(state="not-shown", why=why)

    @classmethod
    def not_asked(cls, why: str) -> "ExistenceCheck":
        """Return that the provider could not be asked."""
        return cls(state="not-asked", why=why)


@dataclass(frozen=True, slots=True, kw_only=True)
class NotQueried:
    """A part of a provider that could not be asked.

    Attributes:
        provider, kind, region: which part; an empty kind is every kind, an empty region every one.
        why: in a sentence.
    """

    provider: str
    kind: str
    region: str
    why: str

    @property
    def text(self) -> str:
        """The part and the reason, for people."""
        part = " ".join(filter(None, (self.provider, self.kind)))
        return f"{part}{f' in {self.region}' if self.region else ''} could not be asked: {self.why}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What a provider lists of ours, as far as it could be asked.

    Attributes:
        resources: what carries our marks, or is a machine named as one of ours.
        gaps: parts of which nothing is known.
        strangers: what looks like ours and is not provably so; it is told and never touched.
        unmarked: machines with neither our marks nor our names, as far as they are listed, as
            resources of the run that was asked about; never touched.
    """

    resources: tuple[Resource, ...] = ()
    gaps: tuple[NotQueried, ...] = ()
    strangers: tuple[str, ...] = ()
    unmarked: tuple[Resource, ...] = ()


@dataclass(kw_only=True)
class ListingDraft:
    """A listing while a provider is asked.

    Attributes:
        provider: who is asked.
        runs: marks by run, as far as anything said whose it is.
        resources: what is ours so far, by kind, region and id.
        strangers: sentences about what looks like ours and is not provably so, in order.
        gaps: parts of which nothing is known.
    """

    provider: str
    runs: dict[str, OwnershipTags] = field(default_factory=dict)
    resources: dict[tuple[str, str, str], Resource] = field(default_factory=dict)
    strangers: dict[str, None] = field(default_factory=dict)
    gaps: list[NotQueried] = field(default_factory=list)

    def add(self, resource: Resource) -> None:
        """Take a resource that is ours."""
        self.resources[resource.kind, resource.region, resource.id] = resource

    def leave(self, subject: str, where: str) -> None:
        """Note what is named as ours are and is not provably so: it is told and never touched."""
        text = (
            f"{subject} is named like one of ours, and nothing says whose it is; it is left alone. "
        )
        self.strangers[f"{text}End it {where} if it is yours."] = None

    def miss(self, why: str, *, kind: str = "", region: str = "") -> None:
        """Note a part that could not be asked; an empty kind or region is every one."""
        self.gaps.append(NotQueried(provider=self.provider, kind=kind, region=region, why=why))

    def owner_of_pool(self, run: str, carried: OwnershipTags | None) -> OwnershipTags | None:
        """Return whose a pool is whose name has a run: by marks of that run, else as is known.

        Args:
            run: in its name; empty: it is not named as ours are.
            carried: the marks that it has now.
        """
        is_of_run = carried is not None and run in ("", carried.run)
        marks = carried if is_of_run else self.runs.get(run)
        if marks is not None:
            self.runs[marks.run] = marks
        return marks

    @contextmanager
    def asking(self, kind: str = "", region: str = "") -> Iterator[None]:
        """Note the part that the block asks about where it cannot be asked, and go on."""
        try:
            yield
        except ProviderError as error:
            self.miss(error.problems[0], kind=kind, region=region)

    def join(self, part: "ListingDraft") -> None:
        """Take everything of another draft, as of a region."""
        self.resources |= part.resources
        self.strangers |= part.strangers
        self.gaps += part.gaps

    def listing(self, kinds: Collection[str]) -> Listing:
        """Return what was found of these kinds, and everything else that must be said."""
        return Listing(
            resources=tuple(owned for owned in self.resources.values() if owned.kind in kinds),
            gaps=tuple(self.gaps),
            strangers=tuple(self.strangers),
        )


@dataclass(kw_only=True)
class Cloud(ABC):
    """A provider that machines can be launched on.

    Attributes:
        name: as in offers.
        skew_s: by how much the provider's clock is ahead of ours, as its last answer said; 0.0
            where it did not say.
        lag_s: for how long its reads may not show what it has made.
        kinds: of what launches make, in the order of removal: machines first, tags last.
    """

    name: str = ""
    skew_s: float = 0.0
    lag_s: float = 0.0
    kinds: tuple[str, ...] = (MACHINE,)

    def note_clock(self, date: str) -> None:
        """Read the provider's clock in the Date header of an answer; another text changes nothing.

        A difference that the way of the answer explains counts as none.
        """
        try:
            ahead_s = (parsedate_to_datetime(date) - datetime.now(UTC)).total_seconds()
        except (TypeError, ValueError):
            return
        self.skew_s = ahead_s if abs(ahead_s) > LEAST_SKEW_S else 0.0

    @staticmethod
    @abstractmethod
    def resources_to_create(spec: LaunchSpec, target: Place) -> tuple[Creation, ...]:
        """Return the calls that make the run at the place, in order; pure, no network."""

    @staticmethod
    def external_terminators(spec: LaunchSpec, machine: Resource) -> tuple[Creation, ...]:
        """Return the calls that let a machine that was made end from outside; pure.

        They may be made twice: the second makes nothing more.
        """
        _ = spec, machine
        return ()

    @staticmethod
    @abstractmethod
    def termination_steps(spec: LaunchSpec) -> tuple[str, ...]:
        """Return what ends the run, in words: our calls, and what the machine does itself; pure."""

    @abstractmethod
    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Return the launch at places that the provider offers, and notes on quota; change nothing.

        Raises:
            ProviderError: it cannot be launched, or the provider cannot be asked.
        """

    @abstractmethod
    def account(self) -> str:
        """Return the id of the account that the credentials are of; empty: the provider has none.

        Raises:
            ProviderError: it cannot be asked.
        """

    def limits(self) -> tuple[str, ...]:
        """Return what the account may have, in sentences; change nothing.

        Raises:
            ProviderError: it cannot be asked.
        """
        return ()

    @abstractmethod
    def create(self, creation: Creation) -> Resource:
        """Make it with one call that is not repeated.

        Raises:
            NoCapacityError, QuotaError, ThrottledError, UncertainError, ProviderError: as those
                say; after all but UncertainError nothing was made.
        """

    def list_owned(
        self,
        regions: Regions,
        kinds: tuple[str, ...] | None = None,
        marks_by_run: MarksByRun = MappingProxyType({}),
    ) -> Listing:
        """Return what is ours, shown and not gone, of every run and owner; never raise.

        Each kind and region is asked on its own: what cannot be asked hides nothing else.

        Args:
            regions: only there, where listing is by region; None: everywhere.
            kinds: only these; None: every one in `kinds`.
            marks_by_run: for machines that only their name tells.
        """
        return self._list(regions, self.kinds if kinds is None else kinds, marks_by_run)

    @abstractmethod
    def _list(self, regions: Regions, kinds: tuple[str, ...], marks_by_run: MarksByRun) -> Listing:
        """Do what `list_owned` says."""

    @abstractmethod
    def look(self, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """Return what the provider answers about that id; tags that somebody removed do not matter.

        What carries the marks of another run is not-asked about: it is not touched.

        Raises:
            ProviderError: it could not be asked.
        """

    def self_termination_problem(self, machine: Resource) -> str:
        """Return why a machine's own act at its deadline would not end its bill; empty: none known.

        Raises:
            ProviderError: it could not be asked.
        """
        _ = machine
        return ""

    @abstractmethod
    def mark(self, resource: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Put marks with a later deadline on a machine; what had to be made for it is returned.

        What ends a machine from outside (`OUTSIDE`) comes later by as much.
        Asked twice it does no harm. The marks before may stay beside them: the latest deadline
        counts.

        Raises:
            ProviderError: refused, or no answer; it may be asked again.
        """

    @abstractmethod
    def destroy(self, resource: Resource) -> bool:
        """Ask for its end; True where the provider accepted, False where it knows no such id.

        Raises:
            ProviderError: refused, or no answer; it may be asked again.
        """


def in_regions(spec: "LaunchSpec", regions: Mapping[str, Iterable[str]]) -> tuple["Place", ...]:
    """Return the places of a launch in regions that have its type, by type, in their order."""
    return tuple(
        replace(target, region=region)
        for target in spec.places
        for region in regions.get(target.instance_type, ())
        if target.region in ("", region)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """What a provider's module is opened with.

    Attributes:
        environment: variables that hold credentials and endpoints; never printed.
        state: folder for what a provider must keep, such as known machines of `ssh`.
    """

    environment: Mapping[str, str] = field(repr=False, default_factory=lambda: MappingProxyType({}))
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a launch would do and cost, before anything is done.

    Attributes:
        spec: the launch.
        calls: the changing calls at the first place, in order.
        ends: what ends it, in words.
        total: the bill of all machines at the TTL; None for the user's own.
        most: the same when their bill ends at worst, which the cap is held against.
        notes: of quota, region and permissions, as the provider told them.
        warnings: what the user must know before saying yes.
        refusals: why it would be refused; empty: it may go ahead.
    """

    spec: LaunchSpec
    calls: tuple[Creation, ...]
    ends: tuple[str, ...]
    total: Quote | None
    most: Quote | None
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()


def pool_of(spec: LaunchSpec, title: str) -> NodePool:
    """Return the pool of a launch.

    Args:
        spec: the launch.
        title: of the provider.

    Raises:
        InputError: it has none.
    """
    if spec.pool is None:
        raise InputError(f"{title} makes node pools: name a cluster.")
    return spec.pool


@dataclass(kw_only=True)
class PoolCloud(Cloud):
    """The managed Kubernetes clusters of an account."""

    kinds: tuple[str, ...] = (POOL, NODE)

    def destroy(self, resource: Resource) -> bool:
        """Make one call by id; False where the provider knows no such id.

        A node ends with its pool, for that would replace it; the node itself is ended only where
        no pool of its run is there.
        """
        if resource.kind == POOL:
            return self._end_pool(resource)
        run = resource.marks.run
        listing = self.list_owned((resource.region,), (POOL,), {run: resource.marks})
        pools = [pool for pool in listing.resources if pool.marks.run == run]
        if listing.gaps:
            raise ProviderError(f"{resource.name} ends with its pool: {listing.gaps[0].why}")
        if pools:
            ended = [self._end_pool(pool) for pool in pools]
            return all(ended)
        return self._end_node(resource)

    @abstractmethod
    def _end_pool(self, pool: Resource) -> bool:
        """Ask for the end of a pool; False where the provider knows no such one."""

    @abstractmethod
    def _end_node(self, node: Resource) -> bool:
        """Ask for the end of a node that its pool has left behind."""
