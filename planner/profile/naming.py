"""Gives every job a name of its own, whatever the order of the inputs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from planner.profile.codec import dump
from planner.profile.model import Profile


def name_apart(profiles: Iterable[Profile]) -> tuple[Profile, ...]:
    """Return the profiles sorted by name; the second of a name is called `name-2`, and so on.

    Profiles of one name are told apart by their content, so the order of the inputs does not show.
    """
    several = tuple(profiles)
    taken = Counter(p.job.name for p in several)
    ordered = sorted(
        several, key=lambda p: (p.job.name, dump((p,)) if taken[p.job.name] > 1 else "")
    )
    seen: Counter[str] = Counter()
    named = []
    for profile in ordered:
        name = profile.job.name
        seen[name] += 1
        while seen[name] > 1 and f"{name}-{seen[name]}" in taken:
            seen[name] += 1
        named.append(_rename(profile, name if seen[name] == 1 else f"{name}-{seen[name]}"))
    return tuple(named)


def _rename(profile: Profile, name: str) -> Profile:
    if name == profile.job.name:
        return profile
    return replace(profile, job=replace(profile.job, name=name))
