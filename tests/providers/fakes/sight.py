"""What moto's EC2 shows of a region in a world: what is too young, or lost, is hidden meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.providers.fakes.world import NEVER, World

_BY_ID = ("InstanceId", "GroupId", "KeyName", "VolumeId", "SpotInstanceRequestId", "SnapshotId")
_KINDS = {
    "Instance": "machine",
    "Volume": "volume",
    "Snapshot": "snapshot",
    "Address": "address",
    "SecurityGroup": "security-group",
    "KeyPair": "key-pair",
    "SpotInstanceRequest": "spot-request",
    "Schedule": "schedule",
    "Nodegroup": "pool",
    "Cluster": "pool",
    "Tag": "tag",
}
_ENDING = ("shutting-down", 32)


def kind_of(action: str) -> str:
    """The kind of resource that an action is about; empty: none."""
    fits = [word for word in _KINDS if word in action and "Type" not in action]
    return _KINDS[max(fits, key=len)] if fits else ""


def is_change(action: str) -> bool:
    """Whether an action changes something."""
    return not action.startswith(("Describe", "Get", "List"))


def by_id(form: dict[str, str]) -> bool:
    """Whether a call names what it is about by id."""
    return any(key.partition(".")[0] in _BY_ID for key in form)


@dataclass(kw_only=True)
class Sight:
    """When things of an account were first there, and what is shown of them.

    Attributes:
        born: region and id -> when it was made.
        ended: instance -> when its end was asked for.
    """

    born: dict[tuple[str, str], datetime] = field(default_factory=dict)
    ended: dict[str, datetime] = field(default_factory=dict)

    def note(self, region: str, backend: Any) -> None:
        """Take down what is new."""
        now = datetime.now(UTC)
        for table in things(backend):
            for thing in table.values():
                self.born.setdefault((region, _id(thing)), now)

    def _age_s(self, region: str, thing: Any) -> float:
        born = self.born.get((region, _id(thing)))
        return NEVER if born is None else (datetime.now(UTC) - born).total_seconds()

    @contextmanager
    def of(self, world: World, region: str, backend: Any, *, named: bool) -> Iterator[None]:
        """Hide what the world does not show, for one call.

        Args:
            world: what is shown when.
            region: of the backend.
            backend: moto's.
            named: whether the call names ids, or lists.
        """
        lag_s = world.read_lag_s if named else world.list_lag_s
        lag_s = NEVER if world.elsewhere else lag_s
        hidden: list[tuple[dict[str, Any], str, Any]] = []
        untagged: dict[str, dict[str, str]] = {}
        for table in things(backend):
            oldest = sorted(table, key=lambda place: -self._age_s(region, table[place]))
            shown = [p for p in oldest if self._age_s(region, table[p]) >= lag_s]
            kept = shown if named else world.listed(shown)
            for thing in table.values():
                late = self._age_s(region, thing) < world.tag_lag_s
                if late and _taken_off(backend.tags.get(_id(thing), {})):
                    untagged[_id(thing)] = backend.tags.pop(_id(thing))
            hidden += [(table, place, table.pop(place)) for place in oldest if place not in kept]
        ending = list(self._ending(world, backend))
        try:
            yield
        finally:
            for table, place, thing in hidden:
                table.setdefault(place, thing)
            for key, tags in untagged.items():
                backend.tags[key] = tags
            for instance, name, code in ending:
                instance._state.name, instance._state.code = name, code  # noqa: SLF001 - moto's

    def _ending(self, world: World, backend: Any) -> Iterator[tuple[Any, str, int]]:
        """Show what was ended a while ago as ending still; yields what to restore."""
        for reservation in backend.reservations.values():
            for one in reservation.instances:
                at = self.ended.get(one.id)
                state = one._state  # noqa: SLF001 - moto's
                if at is None or state.name != "terminated":
                    continue
                if (datetime.now(UTC) - at).total_seconds() < world.end_lag_s:
                    yield one, state.name, state.code
                    state.name, state.code = _ENDING


def _taken_off(tags: dict[str, str]) -> bool:
    """Whether tags may be late or lost: not those that AWS itself puts on nodes of EKS."""
    return bool(tags) and not any(key.startswith("eks:") for key in tags)


def things(backend: Any) -> Iterator[dict[str, Any]]:
    """The tables of moto in which a launch's things stand; a reservation is one instance."""
    yield from (backend.reservations, backend.key_pairs, backend.volumes)
    yield backend.spot_instance_requests
    yield from backend.groups.values()


def names(thing: Any) -> set[str]:
    """What a thing is called: its id, and its name."""
    return {_id(thing), str(getattr(thing, "name", "")), str(getattr(thing, "key_name", ""))}


def _id(thing: Any) -> str:
    """The id that a call about the thing names."""
    instances = getattr(thing, "instances", None)
    return str(instances[0].id if instances else thing.id)
