"""Reads the bulk offer files of Amazon EC2: one large table a region.

Form: docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file-for-
services.html (five lines of heading, among them the day, then a table), and its readers in gpuhunt
(`providers/aws.py` at 3584151) and SkyPilot (`data_fetchers/fetch_aws.py`). The table prints how
many GPUs a type has and not which: that comes from the types that are known.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import partial
from pathlib import Path
from types import MappingProxyType

from pricing.errors import InputError
from pricing.feeds.feeds import check_end, table
from pricing.refresh.feed_rows import FeedPage, FeedRow, of_known_machine, to_reading
from pricing.refresh.reading import FeedReading, FeedRequest, PriceReading, Question, read_parts

REGIONS = ("us-east-1",)
"""Read unless others are asked for: a file has some hundred MB."""

_HEADING = 5
_DAY = "Publication Date"
_SOLD: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "TermType": ("OnDemand",),
        "Tenancy": ("Shared",),
        "Operating System": ("Linux",),
        "CapacityStatus": ("Used",),
        "Unit": ("Hrs",),
        "Pre Installed S/W": ("", "NA"),
        "MarketOption": ("OnDemand",),
    }
)
"""What a line must say to be a plain Linux machine on demand; as gpuhunt reads them."""

_COLUMNS = frozenset((*_SOLD, "Currency", "PricePerUnit", "Instance Type", "Region Code", "GPU"))


def read(request: FeedRequest) -> FeedReading:
    """Return one reading a region."""
    files = [path for path in request.answers.files if path.suffix == ".csv"]
    if request.answers.files and not files:
        raise InputError("no offer file of Amazon EC2: it is index.csv, or a folder of such files.")
    if files:
        return read_parts((str(path), partial(_reading, path, str(path))) for path in files)
    return read_parts((f"AWS {name}", _of(name, request)) for name in request.regions or REGIONS)


def _of(region: str, request: FeedRequest) -> Callable[[], PriceReading | None]:
    def read_one() -> PriceReading | None:
        request.say(f"AWS: reading the offer file of {region}, some hundred MB ...")
        name = f"{region}/index.csv"
        answer = request.answers.get(Question(name=name, path=name, changed_only=True))
        return None if answer is None else _reading(answer.path, name)

    return read_one


def _reading(path: Path, name: str) -> PriceReading:
    check_end(path, name)
    with path.open(newline="", encoding="utf-8", errors="replace") as file:
        heading_rows = csv.reader(next(file, "") for _ in range(_HEADING))
        heading = dict(row[:2] for row in heading_rows if row[1:])
        if _DAY not in heading:
            raise InputError(f"{name}: not an offer file of AWS, without {_DAY}.")
        of = FeedPage(
            provider="aws",
            source="AWS bulk offer file AmazonEC2",
            day=date.fromisoformat(heading[_DAY][:10]),
            confidence="high",
        )
        lines = _lines(table(_possible(file), name, _COLUMNS), of.left_out)
        return to_reading(of, list(lines))


def _possible(lines: Iterator[str]) -> Iterator[str]:
    """Yield the heading of the table, and lines that may pass: a fraction of a percent do."""
    yield next(lines, "")
    for line in lines:
        if '"OnDemand"' in line and '"Linux"' in line and '"Used"' in line:
            yield line


def _lines(rows: Iterator[Mapping[str, str]], left_out: Counter[str]) -> Iterator[FeedRow]:
    for row in rows:
        if not row["GPU"] or any(row[name] not in values for name, values in _SOLD.items()):
            continue
        line = of_known_machine(
            "aws",
            row["Instance Type"],
            region=row["Region Code"],
            usd_per_hour=row["PricePerUnit"],
            purchase="on_demand",
        )
        if row["Currency"] != "USD":
            left_out[f"a price in {row['Currency'][:8]}, not in US dollars"] += 1
        elif line is None:
            left_out["a type that is not in the list of machines"] += 1
        elif not _is_count(row["GPU"], line.gpu_count):
            left_out["another number of GPUs than the type is known with"] += 1
        else:
            yield line


def _is_count(printed: str, expected: str) -> bool:
    try:
        return float(printed) == float(expected) or float(expected) < 1
    except ValueError:
        return False
