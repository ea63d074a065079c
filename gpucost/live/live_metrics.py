"""A server of metrics as SOURCE: what the command line says of it, and who asks."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gpucost.files.writing import cache_folder
from gpucost.live.asking import (
    PASSWORD,
    SCHEMES,
    TOKEN,
    USER,
    LiveQuery,
    ask_all,
    matcher,
    pod_labels,
    server_of,
)
from gpucost.live.recording_rules import NOTE, STEP_S
from pricing.errors import InputError
from telemetry.lake import place as lake_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints

_HOUR_S, _STEP_S = 3600, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """What the command line says of a server.

    Attributes:
        since_s: how far back, seconds.
        until: last instant; None is the last full hour.
        step_s: time between points; None is a minute, five where rules noted them.
        recorded: whether recording rules noted them.
        match: selectors, LABEL=VALUE.
    """

    since_s: int
    until: datetime | None
    step_s: int | None
    recorded: bool
    match: tuple[str, ...]


def is_server(source: str) -> bool:
    """Return whether a SOURCE is the address of a server of metrics."""
    return source.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def read_live(
    source: str, options: LiveOptions, hints: Hints, say: Callable[[str], None]
) -> tuple[Profile, ...]:
    """Return the profiles that a server's metrics make; answers are kept until all have come.

    Raises:
        InputError: the address or an option is wrong.
        ProviderError: the server does not answer, or with an error.
    """
    from gpucost.live.stored_answers import StoredAnswers  # noqa: PLC0415 - numpy
    from telemetry.live import pods_of, profiles_live  # noqa: PLC0415 - pandas

    step_s = options.step_s or (STEP_S if options.recorded else _STEP_S)
    if options.step_s == 0 or options.since_s < step_s:
        raise InputError("--step must be 1s or more, and --since no shorter.")
    until = options.until or datetime.now(UTC)
    last_s = int(until.timestamp())
    if options.until is None:
        last_s -= last_s % _HOUR_S
    end_s = last_s - last_s % step_s
    start_s = end_s - options.since_s // step_s * step_s
    query = LiveQuery(
        url=server_of(source),
        start_s=start_s,
        end_s=end_s,
        step_s=step_s,
        matchers=tuple(matcher(text) for text in options.match),
        headers=_headers(),
        recorded=options.recorded,
    )
    folder = cache_folder() / "live" / query.digest
    answers = StoredAnswers(folder=folder, step_s=query.step_s)
    ask_all(query, answers, say)
    answers.notes += [NOTE] if options.recorded else []
    labels = pod_labels(query, pods_of(answers))
    profiles = profiles_live((query.name, answers, labels), hints, say)
    shutil.rmtree(folder, ignore_errors=True)
    return profiles


def _headers() -> dict[str, str]:
    token, user = os.environ.get(TOKEN), os.environ.get(USER)
    if token:
        return {"Authorization": f"Bearer {token}"}
    if not user:
        return {}
    import urllib3  # noqa: PLC0415 - only where a server is asked

    pair = f"{user}:{os.environ.get(PASSWORD, '')}"
    return {"Authorization": urllib3.make_headers(basic_auth=pair)["authorization"]}


def read_warehouse(source: str, hints: Hints) -> tuple[Profile, ...]:
    """Return the profiles of a table that an engine counts where it lies.

    Raises:
        InputError: it names no table of readings.
        UnreachableError: the engine does not answer.
    """
    from telemetry.lake.profiles import profiles_of_place  # noqa: PLC0415 - pandas comes in

    place = lake_place.place_of(source)
    if place is None:
        raise InputError(f"{source}: not a table.")
    who = {name: os.environ.get(name) for name in (lake_place.USER, lake_place.PASSWORD)}
    return profiles_of_place(place, who, hints)
