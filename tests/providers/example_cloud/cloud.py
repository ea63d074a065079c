"""Launches on the example: a resource is a JSON file in the folder of the account."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType

from pricing.errors import MissingCredentialsError, ProviderError
from providers.interface import (
    MACHINE,
    Connection,
    Creation,
    ExistenceCheck,
    JournaledResource,
    LaunchSpec,
    Listing,
    Place,
    Resource,
)
from providers.ownership_tags import OwnershipTags, read_text
from tests.providers.example_cloud import FOLDER


def connect(connection: Connection) -> "ExampleCloud":
    """The account.

    Raises:
        MissingCredentialsError: names the variable to set.
    """
    named = connection.environment.get(FOLDER)
    if not named:
        raise MissingCredentialsError(f"{FOLDER} is not set; it names the folder of the account.")
    return ExampleCloud(folder=Path(named))


@dataclass(kw_only=True)
class ExampleCloud:
    """An account.

    Attributes:
        folder: of its resources.
        name, skew_s, lag_s, kinds: as in `Cloud`.
    """

    folder: Path
    name: str = "example"
    skew_s: float = 0.0
    lag_s: float = 0.0
    kinds: tuple[str, ...] = (MACHINE,)

    def resources_to_create(self, spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """One call for each machine; its marks are in it."""
        return tuple(
            Creation(
                kind=MACHINE,
                name=name,
                region=place.region,
                call="POST /machines",
                arguments={"type": place.instance_type, "marks": spec.marks.text(":")},
            )
            for name in spec.machine_names
        )

    def external_terminators(self, spec: LaunchSpec, machine: Resource) -> tuple[Creation, ...]:
        """None."""
        _ = spec, machine
        return ()

    def termination_steps(self, spec: LaunchSpec) -> tuple[str, ...]:
        """Each machine, by id."""
        return tuple(f"DELETE /machines/{name}" for name in spec.machine_names)

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """There is room for everything."""
        return spec, ()

    def account(self) -> str:
        """The folder is the account."""
        return str(self.folder)

    def limits(self) -> tuple[str, ...]:
        """There are none."""
        return ()

    def create(self, creation: Creation) -> Resource:
        """Write the file of a resource; it is there at once, so nothing is uncertain."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = dict(creation.arguments, region=creation.region)
        made["at"] = datetime.now(UTC).replace(microsecond=0).isoformat()
        (self.folder / f"{creation.name}.json").write_text(json.dumps(made), encoding="utf-8")
        return self._read(self.folder / f"{creation.name}.json")

    def list_owned(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...] | None = None,
        known: Mapping[str, OwnershipTags] = MappingProxyType({}),
    ) -> Listing:
        """Every file; all of them carry marks."""
        _ = known
        found = (self._read(path) for path in sorted(self.folder.glob("*.json")))
        return Listing(
            resources=tuple(
                one
                for one in found
                if (regions is None or one.region in regions)
                and (kinds is None or one.kind in kinds)
            )
        )

    def look(self, kept: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """The file of that name."""
        path = self.folder / f"{kept.id}.json"
        if not path.is_file():
            return ExistenceCheck.gone("no such machine")
        found = self._read(path)
        if found.marks.run != marks.run:
            return ExistenceCheck.not_asked(f"it is of run {found.marks.run}")
        return ExistenceCheck.present(found)

    def self_termination_problem(self, machine: Resource) -> str:
        """What is removed is no longer billed."""
        _ = machine
        return ""

    def mark(self, one: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Write them into its file."""
        path = self.folder / f"{one.id}.json"
        told = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(told | {"marks": marks.text(":")}), encoding="utf-8")
        return ()

    def destroy(self, resource: Resource) -> bool:
        """Remove the file."""
        path = self.folder / f"{resource.id}.json"
        was = path.is_file()
        path.unlink(missing_ok=True)
        return was

    def _read(self, path: Path) -> Resource:
        told = json.loads(path.read_text(encoding="utf-8"))
        marks = read_text(told["marks"], ":")
        if marks is None:
            raise ProviderError(f"{path}: no marks of ours.")
        return Resource(
            kind=MACHINE,
            id=path.stem,
            name=path.stem,
            region=told["region"],
            marks=marks,
            created_at=datetime.fromisoformat(told["at"]),
            address="192.0.2.7",
            instance_type=told["type"],
        )


CLOUD = ExampleCloud
