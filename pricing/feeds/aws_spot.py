"""Reads AWS' public table of spot prices, `spot.js`: the price of Linux machines by region.

Form: `callback({"config": {"rate": "perhr", "currencies": ["USD"], "regions": [{"region",
"instanceTypes": [{"sizes": [{"size", "valueColumns": [{"name": "linux", "prices": {"USD":
"0.1"}}]}]}]}]}})`, as public readers take it (ligoj/plugin-prov-aws, and others). It carries no
date: its day is that on which the server changed it last.
"""

from collections import Counter
from collections.abc import Iterator, Mapping

from pricing.errors import InputError
from pricing.feeds.feeds import FEEDS, parsed
from pricing.refresh.feed_rows import FeedPage, FeedRow, of_known_machine, to_reading
from pricing.refresh.reading import FeedReading, FeedRequest, Question, required
from pricing.tables import members, objects

_OPEN, _CLOSE = b"callback(", b")"


def read(request: FeedRequest) -> FeedReading:
    """Return one reading: spot prices of Linux machines, all regions."""
    question = Question(name="spot.js")
    answer = required(request.answers.get(question), question)
    data = answer.path.read_bytes().strip()
    if data.startswith(_OPEN):
        data = data.rstrip(b";\n ")
        if not data.endswith(_CLOSE):
            raise InputError("spot.js: cannot be read: it was cut short.")
        data = data[len(_OPEN) : -len(_CLOSE)]
    config = parsed(data, "spot.js")["config"]
    if config["rate"] != "perhr" or "USD" not in config["currencies"]:
        raise InputError("spot.js: not prices per hour in US dollars.")
    day = request.as_of or answer.modified or request.today
    of = FeedPage(provider="aws", source="AWS spot prices (spot.js)", day=day, confidence="medium")
    return FeedReading(readings=(to_reading(of, list(_lines(config, of.left_out))),))


def _lines(config: Mapping[str, object], left_out: Counter[str]) -> Iterator[FeedRow]:
    for region in objects(config["regions"]):
        where = str(region["region"])
        for group in objects(region["instanceTypes"]):
            for size in objects(group["sizes"]):
                yield from _line(FEEDS["aws-spot"].regions.get(where, where), size, left_out)


def _line(region: str, size: Mapping[str, object], left_out: Counter[str]) -> Iterator[FeedRow]:
    for column in objects(size["valueColumns"]):
        price = str(members(column["prices"]).get("USD", ""))
        if column["name"] != "linux" or price.startswith("N/A"):
            continue
        line = of_known_machine(
            "aws", str(size["size"]), region=region, usd_per_hour=price, purchase="spot"
        )
        if line is None:
            left_out["a type without a GPU, or not in the list of machines"] += 1
        else:
            yield line
