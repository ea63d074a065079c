"""What happened: accounts whose machines, disks, addresses and commitments are drawn.

`World.rows` is what a provider meters of it, by hour, by day or as a whole. Each row says whether
nobody used what it is for (`planted`), and whether the bill can show it (`SHOWN`) or not (`HIDDEN`:
a machine that could have used it ran).
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

SHOWN, HIDDEN = "shown", "hidden"
START = datetime(2026, 11, 1, tzinfo=UTC)
DAYS = 14
END = START + timedelta(days=DAYS)
HOUR = timedelta(hours=1)
REGIONS = ("us-east-1", "eu-west-1", "ap-south-1")
# size -> dollars an hour; the last one has no GPU
SIZES = {
    "aws": {
        "p5.48xlarge": "55.04", "g4dn.xlarge": "0.526", "g5.xlarge": "1.006", "m5.large": "0.096",
    },
    "azure": {
        "Standard_NC24ads_A100_v4": "3.673", "Standard_NC4as_T4_v3": "0.526",
        "Standard_D4s_v5": "0.192",
    },
    "digitalocean": {"gpu-h100x1-80gb": "4.41", "s-1vcpu-1gb": "0.009"},
    # the last but one has a T4 attached, which its name does not say
    "gcp": {"a2-highgpu-1g": "3.67", "n1-standard-4": "0.54", "n1-standard-8": "0.38"},
}  # fmt: skip
GPUS = {
    "p5.48xlarge": 8, "g4dn.xlarge": 1, "g5.xlarge": 1, "gpu-h100x1-80gb": 1,
    "Standard_NC24ads_A100_v4": 1, "Standard_NC4as_T4_v3": 1,
    "a2-highgpu-1g": 1, "n1-standard-4": 1,
}  # fmt: skip
# what a machine's price is split into where its parts are billed
_PARTS = (("core", Decimal("0.25")), ("ram", Decimal("0.125")), ("gpu", Decimal("0.625")))
_TELL_IDLE = ("aws", "digitalocean")
"""Who says of an address that nothing uses it."""
# what is paid for all the time: kind, dollars an hour, how often, whether nobody uses it
_STEADY = (
    ("idle-address", "0.005", 0.4, SHOWN),
    ("database", "0.02", 0.3, ""),
    ("gateway", "0.045", 0.3, ""),
    ("address", "0.005", 0.5, ""),
    ("unused", "0.9", 0.3, SHOWN),
)
DISK_USD_PER_HOUR = Decimal("0.0111")


@dataclass(frozen=True, slots=True, kw_only=True)
class Metered:
    """One line of use, as the provider's meter has it.

    Attributes:
        kind: compute, disk, address, idle-address, unused, tax, credit, database, gateway.
        planted: SHOWN or HIDDEN where nobody used it, else empty.
        part: core, ram or gpu, where a machine is billed in parts.
        on_hours: the hours of the span in which it really ran.
    """

    kind: str
    account: str
    region: str
    resource: str
    usd: Decimal
    hours: int
    start: datetime
    end: datetime
    size: str = ""
    spot: bool = False
    planted: str = ""
    part: str = ""
    on_hours: tuple[datetime, ...] = field(default=(), repr=False)


@dataclass(slots=True)
class World:
    """Everything that was rented in two weeks, from one seed."""

    provider: str
    seed: int
    grain: str = "hour"
    places: tuple[str, ...] = REGIONS
    rows: list[Metered] = field(default_factory=list)
    _draw: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._draw = random.Random(f"{self.provider}-{self.seed}")  # noqa: S311 - not for secrets
        most = 1 if self.provider == "digitalocean" else 3  # an invoice is of one account
        for number in range(self._draw.randint(1, most)):
            self._account(f"{number:012d}")
        if self.provider != "digitalocean" and not any(row.kind == "compute" for row in self.rows):
            # without a machine it might be an export of disks only, which shows nothing
            self._machine("000000000000", "us-west-2", list(SIZES[self.provider])[-1])
        if not self.rows:
            self._machine("000000000000", self.places[0], next(iter(SIZES[self.provider])))
        if self.provider not in _TELL_IDLE:
            self.rows = [self._untold(row) for row in self.rows]

    def _account(self, account: str) -> None:
        for region in self.places:
            draw = self._draw
            sizes = [s for s in SIZES[self.provider] if draw.random() < 0.3]
            for size in sizes:
                self._machine(account, region, size)
            for number in range(draw.randint(0, 2)):
                name = f"vol-{account}-{region}-{number}"
                self._disk(account, region, name, machines=bool(sizes))
            for kind, usd, chance, planted in _STEADY:
                drawn = draw.random() < chance
                ours = sizes or kind != "address"
                if drawn and ours and (kind != "unused" or self.provider != "digitalocean"):
                    self._steady(kind, account, region, usd, planted=planted)
            for kind, usd in (("tax", "11.5"), ("credit", "-7")):
                if draw.random() < 0.3:
                    self._once(kind, account, region, usd)

    def _machine(self, account: str, region: str, size: str) -> None:
        """A machine that runs always, in working hours, or in single hours; it may end early."""
        ways = ("always",) if self.provider == "digitalocean" else ("always", "office", "some")
        way = self._draw.choice(ways)
        last = (
            END if self._draw.random() < 0.6 else START + timedelta(days=self._draw.randint(1, 6))
        )
        hours = [h for h in _hours(START, last) if self._runs(way, h)] or [START]
        price = Decimal(SIZES[self.provider][size])
        spot = self.provider == "aws" and self._draw.random() < 0.2
        name = f"i-{account}-{region}-{size}"
        self._spans("compute", account, region, name, price, hours, size=size, spot=spot)

    def _runs(self, way: str, hour: datetime) -> bool:
        if way == "office":
            return hour.weekday() < 5 and 9 <= hour.hour < 17
        return way == "always" or self._draw.random() < 0.4

    def _disk(self, account: str, region: str, name: str, *, machines: bool) -> None:
        """A disk that is kept all the time; used while a machine lives, or by nobody."""
        used = machines and self._draw.random() < 0.7
        here = [row for row in self.rows if (row.account, row.region) == (account, region)]
        ended = max((row.end for row in here if row.kind == "compute"), default=START)
        shown = ended == START or END - ended >= timedelta(days=7)
        hours = list(_hours(START, END))
        if self.grain == "whole":  # one row: shown only where nothing ran at all
            planted = SHOWN if ended == START else "" if used else HIDDEN
            self._spans("disk", account, region, name, DISK_USD_PER_HOUR, hours, planted=planted)
            return
        if not used:
            early, late = ([h for h in hours if (h >= ended) is after] for after in (False, True))
            self._spans("disk", account, region, name, DISK_USD_PER_HOUR, early, planted=HIDDEN)
            self._spans("disk", account, region, name, DISK_USD_PER_HOUR, late,
                        planted=SHOWN if shown else HIDDEN)  # fmt: skip
            return
        before, after = ([h for h in hours if (h >= ended) is late] for late in (False, True))
        self._spans("disk", account, region, name, DISK_USD_PER_HOUR, before)
        # kept for less than a pause after its machine ended: that is in use
        self._spans("disk", account, region, name, DISK_USD_PER_HOUR, after,
                    planted=SHOWN if shown else "")  # fmt: skip

    def _steady(self, kind: str, account: str, region: str, usd: str, *, planted: str = "") -> None:
        hours = list(_hours(START, END))
        name = f"{kind}-{region}"
        size = "a2-highgpu-1g" if (kind, self.provider) == ("unused", "gcp") else ""
        self._spans(kind, account, region, name, Decimal(usd), hours, size=size, planted=planted)

    def _untold(self, row: Metered) -> Metered:
        """An address is like a disk where the provider does not say whether it is used."""
        in_use = self.provider == "gcp" and row.kind == "address"  # its SKU says so
        if "address" not in row.kind or in_use:
            return row
        here = [one for one in self.rows if (one.account, one.region) == (row.account, row.region)]
        gateway = any(one.kind == "gateway" for one in here)
        ended = max((one.end for one in here if one.kind == "compute"), default=START)
        shown = not gateway and row.start >= ended
        shown = shown and (ended == START or END - ended >= timedelta(days=7))
        return replace(row, planted=SHOWN if shown else HIDDEN if row.planted else "")

    def _once(self, kind: str, account: str, region: str, usd: str) -> None:
        self.rows.append(Metered(kind=kind, account=account, region=region, resource="",
                                 usd=Decimal(usd), hours=0, start=START, end=END))  # fmt: skip

    def _spans(  # noqa: PLR0913, PLR0917 - what a meter knows
        self, kind: str, account: str, region: str, name: str, price: Decimal,
        hours: list[datetime], *, size: str = "", spot: bool = False, planted: str = "",
    ) -> None:  # fmt: skip
        """Meter hours as one row an hour, or one a day."""
        spans: dict[tuple[datetime, datetime], list[datetime]] = {}
        for hour in hours:
            day = hour.replace(hour=0)
            span = {
                "hour": (hour, hour + HOUR),
                "day": (day, day + timedelta(days=1)),
                "whole": (hours[0], hours[-1] + HOUR),
            }[self.grain]
            spans.setdefault(span, []).append(hour)
        for (start, end), on in spans.items():
            whole = Metered(
                kind=kind, account=account, region=region, resource=name, usd=price * len(on),
                hours=len(on), start=start, end=end, size=size, spot=spot, planted=planted,
                on_hours=tuple(on),
            )  # fmt: skip
            self.rows += self._parts(whole)

    def _parts(self, whole: Metered) -> list[Metered]:
        if self.provider != "gcp" or whole.kind not in ("compute", "unused"):
            return [whole]
        if whole.kind == "unused" or whole.size not in GPUS:
            return [replace(whole, part="core")]
        return [replace(whole, part=part, usd=whole.usd * share) for part, share in _PARTS]


def _hours(start: datetime, end: datetime) -> Iterator[datetime]:
    while start < end:
        yield start
        start += HOUR
