"""A table of a warehouse as SOURCE: who connects comes from the environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from pricing.errors import InputError
from telemetry.lake.place import PASSWORD, USER, place_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints


def read_warehouse(sources: Sequence[str], hints: Hints) -> tuple[Profile, ...]:
    """Return the profiles of a table that an engine counts where it lies.

    Raises:
        InputError: there is another SOURCE beside it, or it names no table of readings.
        UnreachableError: the engine does not answer.
    """
    if len(sources) != 1:
        raise InputError("a table of a warehouse is imported alone; give one SOURCE.")
    from telemetry.lake.profiles import profiles_of_place  # noqa: PLC0415 - pandas comes in

    place = place_of(sources[0])
    if place is None:
        raise InputError(f"{sources[0]}: not a table.")
    who = {name: os.environ.get(name) for name in (USER, PASSWORD)}
    return profiles_of_place(place, who, hints)
