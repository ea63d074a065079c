"""Names that a user gives against those of the catalog: what is unknown, and what may be meant."""

import difflib
from collections.abc import Iterable

from pricing.catalog.other_currencies import sold_elsewise

PROVIDER_FLAG = "--provider"
_LISTED = 25  # more names than these are not printed
_NEAR = 5


def unknown_names(flag: str, given: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return a sentence for each given name that nothing is called.

    It names the nearest known ones, or all of them where there are few.

    Args:
        flag: what the names were given with, such as `--provider`.
        given: by the user.
        known: of the catalog.
    """
    names = sorted(set(known))
    return [
        f"{flag} {name}: {elsewise}"
        if flag == PROVIDER_FLAG and (elsewise := sold_elsewise(name))
        else f"{flag} {name} is not in the catalog{_meant(name, names)}"
        for name in given
        if name not in names
    ]


def _meant(name: str, names: list[str]) -> str:
    """Return which known name was meant, if one is near, and what there is."""
    near = difflib.get_close_matches(name.lower(), names, _NEAR, 0.5)
    if len(names) <= _LISTED:
        near = near[:1]
    meant = f"; did you mean {' or '.join(near)}?" if near else "."
    return f"{meant} Known: {', '.join(names)}." if len(names) <= _LISTED else meant
