"""Providers without credentials: they say which calls a launch would make, and can make none."""

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import cast

from pricing.errors import MissingCredentialsError
from providers.interface import Cloud, Creation, JournaledResource, LaunchSpec, Place, Resource
from providers.lifecycle.presence import Listing, Presence, Unasked
from providers.ownership_tags import OwnershipTags
from providers.registry import CLOUDS

_DRY = "a dry run asks nothing"


def offline(provider: str) -> Cloud:
    """Return a provider that answers what is pure."""
    kind = import_module(CLOUDS[provider].cloud).CLOUD
    return cast("Cloud", _Offline(provider, kind))


class _Offline:
    """The pure half of a provider's class; everything that would call out is refused."""

    def __init__(self, name: str, kind: type[Cloud]) -> None:
        self.name = name
        self.skew_s = self.lag_s = 0.0
        self.kinds: tuple[str, ...] = ()
        self._kind = kind

    def creations(self, spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """Return what the provider says."""
        return self._kind.creations(cast("Cloud", self), spec, place)

    def outside(self, spec: LaunchSpec, machine: Resource) -> tuple[Creation, ...]:
        """Return what the provider says."""
        return self._kind.outside(cast("Cloud", self), spec, machine)

    def ends(self, spec: LaunchSpec) -> tuple[str, ...]:
        """Return what the provider says."""
        return self._kind.ends(cast("Cloud", self), spec)

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Ask nothing."""
        return spec, ()

    def account(self) -> str:
        """Ask nothing."""
        return ""

    def limits(self) -> tuple[str, ...]:
        """Ask nothing."""
        return ()

    def create(self, creation: Creation) -> Resource:
        """Refuse."""
        raise MissingCredentialsError(f"{self.name}: a dry run makes no {creation.kind}.")

    def ours(
        self,
        regions: tuple[str, ...] | None,
        kinds: tuple[str, ...] | None = None,
        known: Mapping[str, OwnershipTags] = MappingProxyType({}),
    ) -> Listing:
        """Ask nothing, and claim nothing."""
        _ = regions, kinds, known
        return Listing(unasked=(Unasked(provider=self.name, kind="", region="", why=_DRY),))

    def look(self, kept: JournaledResource, marks: OwnershipTags) -> Presence:
        """Ask nothing."""
        _ = kept, marks
        return Presence(state="not-asked", why=_DRY)

    def end_fault(self, machine: Resource) -> str:
        """Ask nothing."""
        _ = machine
        return ""

    def mark(self, one: Resource, marks: OwnershipTags) -> tuple[Resource, ...]:
        """Refuse."""
        _ = marks
        raise MissingCredentialsError(f"{self.name}: a dry run marks no {one.kind}.")

    def destroy(self, resource: Resource) -> bool:
        """Refuse."""
        raise MissingCredentialsError(f"{self.name}: a dry run ends no {resource.kind}.")
