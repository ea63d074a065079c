"""One offer: a machine with GPUs at a provider, in a region, at a dated price."""

from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from functools import cache
from itertools import compress
from operator import not_
from types import MappingProxyType

from msgspec import Struct

from pricing.catalog import price_age
from pricing.catalog.price_age import SeenPrice, read_date
from pricing.catalog.sizes import rental_of, sizes
from pricing.errors import InputError
from pricing.hardware import Gpu, gpus, unlisted
from pricing.message import Message
from pricing.money import plain, usd
from pricing.tables import DATA, from_row, names, read_csv

PURCHASES = ("on_demand", "spot", "reserved_180d", "reserved_1y", "reserved_3y")
BOUGHT = ("on_demand", "spot")
"""Ways of buying that a launch, or a tool that launches, can use; terms are bought by hand."""

TERMS_H = MappingProxyType(
    {
        "reserved_180d": Decimal(180 * 24),
        "reserved_1y": Decimal(365 * 24),
        "reserved_3y": Decimal(3 * 365 * 24),
    }
)
"""Hours that each kind of commitment is paid for, used or not."""

EVERYWHERE = "*"
"""The region of a price that is the same in every region of the provider."""
ANY_REGION = "any"
"""What people read in its place."""


class Offer(Struct, frozen=True, kw_only=True):
    """A dated price of one machine.

    Attributes:
        provider: such as "digitalocean".
        region: the provider's name for it, "*" where one price holds everywhere.
        instance_type: the provider's size, shape or slug.
        gpu: canonical GPU name; a model without a hardware row keeps the source's name.
        gpu_count: GPUs in the machine; below 1 it is a slice of one GPU.
        gpu_memory_gib: of each GPU, of the slice where gpu_count < 1.
        vcpus: threads of the host. None: unknown, as in every field below.
        ram_gib: host memory.
        local_disk_gib: boot and scratch disks that come with the machine.
        interconnect: between its GPUs: single, pcie, nvlink-bridge, nvlink, xgmi.
        network_gbps: between machines of it, Gbit/s: of their fabric where they have one, else of
            the public network.
        purchase: one of PURCHASES.
        usd_per_hour: for the whole machine with all its GPUs (sources that print a price per GPU
            are kept as machines of one GPU).
        source: where the price was read.
        as_of: day of the reading; of a partial date the first day it may mean.
        as_of_text: the date as the source prints it.
        dated: whether as_of is a full date.
        valid_from: day from which the price is known to hold.
        valid_until: last day on which it holds.
        confidence: high, medium or low.
        notes: what the source adds.
        current: False for a price that a later one has replaced.
        withdrawn: the provider's answer of `valid_from` no longer lists it; the price is its last.
        host: "provider", or "community" for machines of third parties.
        boot_disk_gib: included boot disk.
        scratch_disk_gib: included disk that is lost with the machine.
        included_transfer_gib: outbound transfer that a full month of the machine includes.
        contract_only: not sold by self-service.
    """

    provider: str
    region: str
    instance_type: str
    gpu: str
    gpu_count: float
    gpu_memory_gib: float
    purchase: str
    usd_per_hour: Decimal
    source: str
    as_of: date
    as_of_text: str = ""
    dated: bool = True
    vcpus: float | None = None
    ram_gib: float | None = None
    local_disk_gib: float | None = None
    interconnect: str | None = None
    network_gbps: float | None = None
    valid_from: date | None = None
    valid_until: date | None = None
    confidence: str = "medium"
    notes: str = ""
    current: bool = True
    withdrawn: bool = False
    host: str = "provider"
    boot_disk_gib: float | None = None
    scratch_disk_gib: float | None = None
    included_transfer_gib: float | None = None
    contract_only: bool = False

    def __post_init__(self) -> None:
        price = self.usd_per_hour
        holds = (
            type(price) is Decimal and price.is_finite() and price > 0,
            self.gpu_count > 0,
            self.gpu_memory_gib > 0,
            self.purchase in PURCHASES,
            self.valid_until is None or self.valid_until >= self.starts,
        )
        if not all(holds):
            problems = compress(self._problems(), map(not_, holds))
            raise InputError(f"{self.name}: {problem}" for problem in problems)

    def _problems(self) -> tuple[str, ...]:
        """Return what would be wrong with it, a sentence for each check."""
        return (
            f"usd_per_hour is {self.usd_per_hour!r}; a price is a Decimal above 0",
            f"gpu_count is {self.gpu_count}; it must be above 0",
            f"gpu_memory_gib is {self.gpu_memory_gib}; it must be above 0",
            f"purchase is {self.purchase!r}; one of {', '.join(PURCHASES)}",
            f"valid_until {self.valid_until} lies before its start {self.starts}",
        )

    @property
    def name(self) -> str:
        """Provider and size: "digitalocean/gpu-h100x8-640gb"."""
        return f"{self.provider}/{self.instance_type}"

    @property
    def sale(self) -> tuple[str, str, str, str]:
        """What tells apart what is sold: provider, size, region, way of buying."""
        return self.provider, self.instance_type, self.region, self.purchase

    @property
    def place(self) -> str:
        """The name with its region, unless one price holds everywhere."""
        return self.name if self.region == EVERYWHERE else f"{self.name}/{self.region}"

    @property
    def usd_per_gpu_hour(self) -> Decimal:
        """The price of one of its GPUs."""
        return self.usd_per_hour / Decimal(str(self.gpu_count))

    @property
    def region_text(self) -> str:
        """The region for people: "any" where one price holds in all of the provider's."""
        return ANY_REGION if self.region == EVERYWHERE else self.region

    @property
    def starts(self) -> date:
        """First day on which the price holds: valid_from, else the day it was read."""
        return self.as_of if self.valid_from is None else self.valid_from

    @property
    def date_text(self) -> str:
        """The date of the price as the source prints it."""
        return self.as_of_text or self.as_of.isoformat()

    @property
    def is_community(self) -> bool:
        """Whether a third party owns the machine."""
        return self.host == "community"

    @property
    def by_hand_at(self) -> str | None:
        """Where a person rents it, as its name is not the provider's; None where it is."""
        how = rental_of(self.provider, self.instance_type)
        if how is None or how.own_name:
            return None
        site, _, tool = how.page.partition(", or its tool ")
        return Message("rent.site-or-tool", site=site, tool=tool) if tool else site

    @property
    def minimum_gpus(self) -> int:
        """Fewest GPUs that can be ordered of it."""
        how = rental_of(self.provider, self.instance_type)
        return 1 if how is None or how.minimum_gpus is None else how.minimum_gpus

    @property
    def gpu_access(self) -> str:
        """How a program reaches the GPU: "passthrough", "bare-metal", "virtual" or "network"."""
        if self.gpu_count < 1:
            return "virtual"
        how = rental_of(self.provider, self.instance_type)
        return "passthrough" if how is None else how.gpu_access

    def not_for_rent_reason(self, day: date) -> Message | None:
        """Return why it cannot be rented as it is written here; None where it can.

        What only its seller can complete ("ask the seller: ...") is listed, never recommended.

        Args:
            day: on which it would be rented.
        """
        how = rental_of(self.provider, self.instance_type)
        if how is not None and how.end_of_sale is not None and how.end_of_sale <= day:
            return Message("rent.retired", day=str(how.end_of_sale))
        if self.gpu_access == "network":
            return Message("rent.network")
        if self.contract_only:
            return Message("rent.contract")
        if how is not None and how.ask:
            return Message(f"rent.{how.ask}")
        if how is not None and None in (self.vcpus, self.ram_gib):
            return Message("rent.host-unpublished")
        return None

    @property
    def card(self) -> Gpu:
        """The model of its GPUs; of one that the hardware table lacks name and memory alone."""
        return gpus().get(self.gpu) or unlisted(self.gpu, self.gpu_memory_gib)

    @property
    def vendor(self) -> str | None:
        """Maker of the GPU; None where the hardware table has no such model."""
        return self.card.vendor if self.card.is_listed else None

    @property
    def cpu_architecture(self) -> str:
        """Of the host: "arm64" for the GPUs that are sold on Arm hosts only, else "x86_64"."""
        return self.card.host_architecture

    def holds_on(self, day: date) -> bool:
        """Return whether the price is known to hold on that day (another may take its place)."""
        return self.starts <= day and (self.valid_until is None or day <= self.valid_until)

    def age_days(self, day: date) -> int | None:
        """Return for how many days the price has been known, 0 or more; None: on no stated day."""
        return max(0, (day - self.as_of).days) if self.dated else None

    def age(self, day: date) -> price_age.Age:
        """Return whether the price is fresh, ageing or old; one read on no stated day is old."""
        days = self.age_days(day)
        return "old" if days is None else price_age.age_of(days)

    def moved(self, day: date) -> price_age.PriceRange:
        """Return between which factors the price lies on a day, over what was read.

        A price that starts after `day`, or was read on it, has not moved.
        """
        sellers = price_age.sellers_of(self.provider, self.purchase)
        return price_age.moved_in(sellers, (day - self.as_of).days)

    def is_stale(self, day: date) -> bool:
        """Return whether the price is old."""
        return self.age(day) == "old"

    def warnings(self, day: date) -> tuple[str, ...]:
        """Return what a reader must know of the price on that day: age, later start, withdrawal."""
        warnings: list[str] = []
        if self.withdrawn:
            warnings.append(
                Message(
                    "price.withdrawn",
                    offer=self.place,
                    provider=self.provider,
                    day=str(self.starts),
                )
            )
        if day < self.starts:
            warnings.append(
                Message("price.later", offer=self.place, day=str(day), then=str(self.starts))
            )
        if not self.dated:
            warnings.append(Message("price.undated", offer=self.place, date=repr(self.date_text)))
        elif self.is_stale(day):
            days, read = (day - self.as_of).days, str(self.as_of)
            warnings.append(Message("price.old", offer=self.place, days=days, day=read))
        return tuple(warnings)


def parse_place(text: str) -> tuple[str, str, str | None]:
    """Return provider, type and region of `provider/type[/region]`.

    Raises:
        InputError: it has another form.
    """
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(parts):
        raise InputError(Message("price.no-offer", text=repr(text)))
    return parts[0], parts[1], parts[2] if len(parts) == 3 else None  # noqa: PLR2004


# fmt: off
COLUMNS = (
    "status", "region", "instance_type", "gpu", "gpu_count", "gpu_memory_gib", "vcpus", "ram_gib",
    "local_disk_gib", "interconnect", "network_gbps", "host", "purchase", "usd_per_hour", "as_of",
    "valid_from", "valid_until", "confidence", "source", "notes",
)
# fmt: on
"""The columns of `data/offers/<provider>.csv`."""

PUBLISHED = ("boot_disk_gib", "scratch_disk_gib", "included_transfer_gib")
"""Further columns of a row that was fetched; without them the table of sizes is asked."""

_price = cache(usd)  # many rows have the same one
_STATUSES = {"current": (True, False), "withdrawn": (False, True)}


@cache
def bundled_offers() -> tuple[Offer, ...]:
    """Return every bundled row, current and superseded, by provider and in file order.

    Raises:
        InputError: every row that is not an offer, with its file and line.
    """
    offers: list[Offer] = []
    problems: list[str] = []
    for name in names("offers/*.csv"):
        provider = name.removeprefix("offers/").removesuffix(".csv")
        try:
            offers += offers_from_file(provider, name)
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(problems)
    return tuple(offers)


def offers_from_file(provider: str, name: str) -> list[Offer]:
    """Return the offers of a file below `pricing/data` with the columns of COLUMNS, in file order.

    Raises:
        InputError: every row that is not an offer, with its file and line.
    """
    offers, problems = [], []
    for line, row in enumerate(read_csv(name), start=2):
        try:
            offers.append(offer_from_row(provider, row))
        except (InputError, ValueError) as error:
            problems.append(f"{DATA / name}:{line}: {error}")
    if problems:
        raise InputError(problems)
    return offers


def offer_from_row(provider: str, row: Mapping[str, str]) -> Offer:
    """Return the offer of one CSV row (see COLUMNS and PUBLISHED), joined with its published size.

    Raises:
        InputError: a price that is not money, or values that no offer can have.
        ValueError: a number or date that is none.
    """
    size = sizes().get((provider, row["instance_type"]))
    published = {name: getattr(size, name) for name in PUBLISHED if size and not row.get(name)}
    as_of, dated = read_date(row["as_of"])
    current, withdrawn = _STATUSES.get(row["status"], (False, False))
    return from_row(
        Offer,
        row,
        provider=provider,
        usd_per_hour=_price(row["usd_per_hour"]),
        as_of=as_of,
        as_of_text=row["as_of"],
        dated=dated,
        current=current,
        withdrawn=withdrawn,
        contract_only=size is not None and size.sold == "contract",
        **published,
    )


def row_from_offer(offer: Offer) -> dict[str, str]:
    """Return the CSV row of an offer, with PUBLISHED; `offer_from_row` reads it back."""
    status = "current" if offer.current else "withdrawn" if offer.withdrawn else "superseded"
    cells = {name: _cell(getattr(offer, name)) for name in (*COLUMNS[1:], *PUBLISHED)}
    return {**cells, "status": status, "as_of": offer.date_text}


def _cell(value: str | float | Decimal | date | None) -> str:
    if isinstance(value, Decimal):
        return plain(value)
    if isinstance(value, float | int):
        return f"{value:.12g}"
    return "" if value is None else str(value)


def read_from(offers: Iterable[Offer]) -> tuple[SeenPrice, ...]:
    """Return the readings that rows of the catalog are: the day of each, and its first known one.

    Undated rows are none; what was withdrawn was not read.
    """
    return tuple(
        SeenPrice(
            provider=offer.provider,
            region=offer.region,
            instance_type=offer.instance_type,
            gpu=offer.gpu,
            gpu_count=offer.gpu_count,
            purchase=offer.purchase,
            usd_per_hour=offer.usd_per_hour,
            seen_on=day,
            confidence=offer.confidence,
            source=offer.source,
            community=offer.is_community,
        )
        for offer in offers
        if offer.dated and not offer.withdrawn
        for day in sorted({offer.as_of, min(offer.starts, offer.as_of)})
    )
