"""A provider in memory, whose calls fail as a test asks."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from pricing.errors import ProviderError
from providers.interface import (
    MACHINE,
    Cloud,
    Connection,
    Creation,
    ExistenceCheck,
    JournaledResource,
    LaunchSpec,
    Listing,
    NotQueried,
    Place,
    Resource,
)
from providers.ownership_tags import OwnershipTags, read_text
from providers.provider import Provider
from providers.registry import ROWS

PROVIDER = "memory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An error of the next call that it fits.

    Attributes:
        call: create, list_owned, look, mark, destroy or account.
        error: what is raised.
        kind: only for this kind of resource; empty: any.
        after: the work is done all the same.
        region: only there; empty: anywhere.
        times: how often.
    """

    call: str
    error: ProviderError
    kind: str = ""
    after: bool = False
    region: str = ""
    times: int = 1


@dataclass(kw_only=True)
class MemoryCloud(Cloud):
    """The provider.

    Attributes:
        name: as in offers.
        regions: where it has machines, in its order.
        things: what exists, by kind and id.
        faults: what goes wrong next, first come first served.
        calls: what was asked for: "create machine gpucost-k3f9xw2m-1".
        boot_looks: looks at a machine until it runs.
        hidden: ids that no read shows, as if it lagged behind.
        account_id: whose it is.
    """

    name: str = PROVIDER
    lag_s: float = 60.0
    kinds: tuple[str, ...] = (MACHINE, "key")
    account_id: str = "memory"
    regions: tuple[str, ...] = ("here", "there")
    things: dict[tuple[str, str], Resource] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    boot_looks: int = 2
    hidden: set[str] = field(default_factory=set)
    _looked: dict[str, int] = field(default_factory=dict)
    _created: int = 0

    @staticmethod
    def resources_to_create(spec: LaunchSpec, target: Place) -> tuple[Creation, ...]:
        """Return a key, then the machines."""
        arguments = {"marks": spec.marks.text(":"), "type": target.instance_type}
        names = (("key", spec.marks.name("key")), *((MACHINE, n) for n in spec.machine_names))
        return tuple(
            Creation(
                kind=kind,
                name=name,
                region=target.region,
                call=f"make {kind}",
                arguments=arguments,
            )
            for kind, name in names
        )

    @staticmethod
    def termination_steps(spec: LaunchSpec) -> tuple[str, ...]:
        """Return that only our own calls end it."""
        return (f"remove {spec.count} machines and the key",)

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Return each place, in every region where it names none."""
        places = tuple(
            replace(target, region=region)
            for target in spec.places
            for region in ((target.region,) if target.region else self.regions)
        )
        return replace(spec, places=places), ()

    def account(self) -> str:
        """Return the id of the account."""
        self._raise("account")
        return self.account_id

    def create(self, creation: Creation) -> Resource:
        """Make it."""
        self.calls.append(f"create {creation.kind} {creation.name}")
        fault = self._fault("create", creation.kind, creation.region)
        if fault is not None and not fault.after:
            raise fault.error
        self._created += 1
        marks = read_text(str(creation.arguments["marks"]), ":")
        if marks is None:
            raise ProviderError(f"{creation.name} carries no marks.")
        is_machine = creation.kind == MACHINE
        resource = Resource(
            kind=creation.kind,
            id=f"{creation.kind}-{self._created}",
            name=creation.name,
            region=creation.region,
            marks=marks,
            state="starting" if is_machine else "running",
            created_at=datetime.now(UTC).replace(microsecond=0) if is_machine else None,
            instance_type=str(creation.arguments["type"]) if is_machine else "",
        )
        self.things[resource.kind, resource.id] = resource
        if fault is not None:
            raise fault.error
        return resource

    def _list(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...],
        marks_by_run: Mapping[str, OwnershipTags],
    ) -> Listing:
        """Return everything that is shown there."""
        _ = marks_by_run
        resources: list[Resource] = []
        gaps: list[NotQueried] = []
        for kind in kinds:
            try:
                self._raise("list_owned", kind)
            except ProviderError as error:
                why = error.problems[0]
                gaps.append(NotQueried(provider=self.name, kind=kind, region="", why=why))
                continue
            resources += (
                resource
                for resource in self.things.values()
                if resource.kind == kind and (regions is None or resource.region in regions)
            )
        shown = tuple(resource for resource in resources if resource.id not in self.hidden)
        return Listing(resources=shown, gaps=tuple(gaps))

    def look(self, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """Return the resource; a machine runs after some looks."""
        self._raise("look", entry.kind)
        resource = self.things.get((entry.kind, entry.id))
        if resource is None or entry.id in self.hidden:
            return ExistenceCheck.not_shown("no such id")
        if resource.marks.run != marks.run:
            return ExistenceCheck.not_asked(f"it is of run {resource.marks.run}")
        self._looked[entry.id] = self._looked.get(entry.id, 0) + 1
        if resource.is_machine and self._looked[entry.id] >= self.boot_looks:
            resource = replace(resource, state="running", address="192.0.2.1")
            self.things[entry.kind, entry.id] = resource
        return ExistenceCheck.present(resource)

    def mark(self, resource: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Put them on it."""
        self.calls.append(f"mark {resource.name}")
        self._raise("mark", resource.kind)
        key = (resource.kind, resource.id)
        self.things[key] = replace(self.things[key], marks=marks)
        return ()

    def destroy(self, resource: Resource) -> bool:
        """Remove it."""
        self.calls.append(f"destroy {resource.kind} {resource.name}")
        fault = self._fault("destroy", resource.kind, resource.region)
        was = (resource.kind, resource.id) in self.things
        if fault is None or fault.after:
            self.things.pop((resource.kind, resource.id), None)
        if fault is not None:
            raise fault.error
        return was

    def _raise(self, call: str, kind: str = "") -> None:
        fault = self._fault(call, kind, "")
        if fault is not None:
            raise fault.error

    def _fault(self, call: str, kind: str, region: str) -> Fault | None:
        for target, fault in enumerate(self.faults):
            fits = (fault.call == call, fault.kind in ("", kind), fault.region in ("", region))
            if all(fits):
                remaining = [replace(fault, times=fault.times - 1)] if fault.times > 1 else []
                self.faults[target : target + 1] = remaining
                return fault
        return None


def connect(connection: Connection) -> MemoryCloud:
    """Return an empty provider; it needs no credentials."""
    _ = connection
    return MemoryCloud()


CLOUD = MemoryCloud
ROWS[PROVIDER] = Provider(name=PROVIDER, title=PROVIDER, cloud=__name__, offered=False)
