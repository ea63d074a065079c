"""Reads RunPod's public GraphQL API: GPUs that are free now, by data centre and number.

Form: the queries of gpuhunt (`providers/runpod.py` at 3584151), which asks without an account:
`securePrice` and `communityPrice` are of one GPU; `lowestPrice.stockStatus` is null where none is
free. Prices are the same in all data centres; what is free is not.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

from pricing.catalog.offer import EVERYWHERE
from pricing.errors import ProviderError
from pricing.feeds.feeds import digits, document, number
from pricing.hardware import find
from pricing.money import plain
from pricing.refresh.feed_rows import FeedRow
from pricing.refresh.reading import FeedRequest, Question
from pricing.tables import members

COUNTS = (1, 2, 4, 8)
"""Numbers of GPUs that are asked for."""

_AT_ONCE = 6
_CENTRES = "query { dataCenters { id listed } }"
_GPUS = """query GpuTypes($input: GpuLowestPriceInput) {
  gpuTypes { id displayName memoryInGb securePrice communityPrice
    lowestPrice(input: $input) { minVcpu minMemory stockStatus } } }"""


def rows(request: FeedRequest, _: Counter[str]) -> list[FeedRow]:
    """Return the prices: secure by data centre, community for anywhere."""
    listed = _data(request, "data-centres", _CENTRES, {})["dataCenters"]
    centres = [str(row["id"]) for row in listed if row["listed"]]
    questions = [(centre, count) for centre in (*sorted(centres), "") for count in COUNTS]
    with ThreadPoolExecutor(max_workers=_AT_ONCE) as executor:
        answers = executor.map(lambda pair: _lines(request, *pair), questions)
        return [line for lines in answers for line in lines]


def _data(request: FeedRequest, name: str, query: str, variables: Mapping[str, object]) -> Any:  # noqa: ANN401
    """Return the data of an answer.

    Raises:
        ProviderError: the answer says that something is wrong.
    """
    body = json.dumps({"query": query, "variables": variables}).encode()
    answer = document(request, Question(name=f"{name}.json", body=body))
    if answer.get("errors") or not answer.get("data"):
        raise ProviderError(f"RunPod: the question was refused ({answer.get('errors')!r:.160}).")
    return answer["data"]


def _lines(request: FeedRequest, centre: str, count: int) -> list[FeedRow]:
    query_input = {"gpuCount": count, "secureCloud": bool(centre)}
    if centre:
        query_input["dataCenterId"] = centre  # type: ignore[assignment] # of JSON
    name = f"{centre or 'community'}-{count}"
    types = _data(request, name, _GPUS, {"input": query_input})["gpuTypes"]
    return [line for kind in types for line in _line(kind, centre, count)]


def _line(kind: Mapping[str, object], centre: str, count: int) -> Iterator[FeedRow]:
    lowest = members(kind.get("lowestPrice") or {})
    price = kind["securePrice" if centre else "communityPrice"]
    if not lowest.get("stockStatus") or not price:
        return
    memory = number(kind["memoryInGb"])
    yield FeedRow(
        instance_type=str(kind["id"]),
        region=centre or EVERYWHERE,
        gpu=str(kind["id"] if find(str(kind["id"])) else kind["displayName"]),
        gpu_count=str(count),
        memory_gib=() if memory is None else (memory,),
        vcpus=digits(lowest.get("minVcpu")),
        ram_gib=digits(lowest.get("minMemory")),
        usd_per_hour=_times(price, count),
        purchase="on_demand",
        community=not centre,
    )


def _times(price: object, count: int) -> str:
    if isinstance(price, Decimal | int) and not isinstance(price, bool):
        return plain(Decimal(price) * count)
    return digits(price)
