"""Launches on the example: a resource is a JSON file in the folder of the account."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pricing.errors import MissingCredentialsError, ProviderError
from providers.interface import (
    MACHINE,
    Cloud,
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
class ExampleCloud(Cloud):
    """An account.

    Attributes:
        folder: of its resources.
        name, skew_s, lag_s, kinds: as in `Cloud`.
    """

    folder: Path
    name: str = "example"
    lag_s: float = 0.0
    kinds: tuple[str, ...] = (MACHINE,)

    @staticmethod
    def resources_to_create(spec: LaunchSpec, target: Place) -> tuple[Creation, ...]:
        """One call for each machine; its marks are in it."""
        return tuple(
            Creation(
                kind=MACHINE,
                name=name,
                region=target.region,
                call="POST /machines",
                arguments={"type": target.instance_type, "marks": spec.marks.text(":")},
            )
            for name in spec.machine_names
        )

    @staticmethod
    def termination_steps(spec: LaunchSpec) -> tuple[str, ...]:
        """Each machine, by id."""
        return tuple(f"DELETE /machines/{name}" for name in spec.machine_names)

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """There is room for everything."""
        return spec, ()

    def account(self) -> str:
        """The folder is the account."""
        return str(self.folder)

    def create(self, creation: Creation) -> Resource:
        """Write the file of a resource; it is there at once, so nothing is uncertain."""
        self.folder.mkdir(parents=True, exist_ok=True)
        made = dict(creation.arguments, region=creation.region)
        made["at"] = datetime.now(UTC).replace(microsecond=0).isoformat()
        (self.folder / f"{creation.name}.json").write_text(json.dumps(made), encoding="utf-8")
        return self._read(self.folder / f"{creation.name}.json")

    def _list(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...],
        marks_by_run: Mapping[str, OwnershipTags],
    ) -> Listing:
        """Every file; all of them carry marks."""
        _ = marks_by_run
        found = (self._read(path) for path in sorted(self.folder.glob("*.json")))
        return Listing(
            resources=tuple(
                one
                for one in found
                if (regions is None or one.region in regions)
                and (kinds is None or one.kind in kinds)
            )
        )

    def look(self, entry: JournaledResource, marks: OwnershipTags) -> ExistenceCheck:
        """The file of that name."""
        path = self.folder / f"{entry.id}.json"
        if not path.is_file():
            return ExistenceCheck.ended("no such machine")
        found = self._read(path)
        if found.marks.run != marks.run:
            return ExistenceCheck.not_asked(f"it is of run {found.marks.run}")
        return ExistenceCheck.present(found)

    def mark(self, resource: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Write them into its file."""
        path = self.folder / f"{resource.id}.json"
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
