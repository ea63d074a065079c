"""How a provider misbehaves around a launch: one value that every stand-in plays.

`fake.world = World(list_lag_s=60)`: from now on, until it is replaced. What is late is late by the
time of the stand-in, which `driven_time` moves without waiting.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeVar

Item = TypeVar("Item")
NEVER = math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """Calls that fail for ever.

    Attributes:
        kind: of resource, as in `providers.interface.Resource`; empty: every kind.
        region: only there, where the provider's calls are by region; empty: everywhere.
        calls: only reads, only calls that change something, or all.
        status: of the answer.
        code: of the answer, where the provider has codes.
    """

    kind: str = ""
    region: str = ""
    calls: Literal["read", "change", "all"] = "read"
    status: int = 403
    code: str = "UnauthorizedOperation"

    def fits(self, kind: str, region: str, *, changes: bool) -> bool:
        """Whether it is for a call."""
        which = self.calls == "all" or (self.calls == "change") == changes
        return which and self.kind in ("", kind) and self.region in ("", region)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What goes on at a provider; the plain one is instant, complete and honest.

    Attributes:
        list_lag_s: until lists show what was made.
        read_lag_s: until a read by id shows it; at AWS until its end by id finds it, too (its
            documented eventual consistency). A DELETE of a Droplet by its id always finds it.
        end_lag_s: for how long what was ended is still shown.
        tag_lag_s: until a machine's tags are shown and lists by tag find it; NEVER: tags are lost.
        page_size: most items of a page; None: as the provider has it.
        lost_page: this page of every list is missing: its items are told by no list.
        skew_s: by how much its clock is ahead of ours, in Date headers and creation times.
        denied: calls that fail for ever.
        lost_answers: so many answers are lost, one after the other, after the work was done;
            counted from the first call that makes a machine.
        lost_calls: which: reads, calls that change something, or both.
        lost_after_s: counted from the first machine that was asked for.
        latency_s: of every call.
        elsewhere: the credentials are of another account, an empty one.
        cut: no call arrives.
        doubled: a proxy sends each call that makes a machine, or every POST, twice.
    """

    list_lag_s: float = 0.0
    read_lag_s: float = 0.0
    end_lag_s: float = 0.0
    tag_lag_s: float = 0.0
    page_size: int | None = None
    lost_page: int | None = None
    skew_s: float = 0.0
    denied: tuple[Denied, ...] = ()
    lost_answers: int = 0
    lost_calls: Literal["read", "change", "all"] = "read"
    latency_s: float = 0.0
    elsewhere: bool = False
    cut: bool = False
    doubled: Literal["", "machines", "every"] = ""

    def now(self) -> datetime:
        """The provider's time."""
        return datetime.now(UTC) + timedelta(seconds=self.skew_s)

    def refuses(self, kind: str, region: str, *, changes: bool) -> Denied | None:
        """Why a call fails; None: it may go on."""
        return next((one for one in self.denied if one.fits(kind, region, changes=changes)), None)

    def loses(self, lost: int, *, changes: bool) -> bool:
        """Whether an answer is lost, after so many that were."""
        which = self.lost_calls == "all" or (self.lost_calls == "change") == changes
        return which and lost < self.lost_answers

    def listed(self, items: Sequence[Item]) -> list[Item]:
        """What a list tells of what it should: all but the lost page."""
        if self.lost_page is None:
            return list(items)
        size = self.page_size or 1
        first = (self.lost_page - 1) * size
        return [*items[:first], *items[first + size :]]
