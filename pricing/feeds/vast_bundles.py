"""Reads Vast.ai's public list of machines that are free now, and tells the middle of their prices.

Form: docs.vast.ai, "search offers" (`POST /api/v0/bundles/`), and its reader in gpuhunt
(`providers/vastai.py` at 3584151). An offer is one machine of one owner and may be gone in a
minute: what is told for a model and a number of GPUs is the median of the verified ones, with least
and most beside it. `dph_base` is the machine without its disk.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from statistics import median
from typing import Any

from pricing.catalog.offer import EVERYWHERE
from pricing.feeds.feeds import document, number
from pricing.hardware import find
from pricing.money import plain
from pricing.refresh.feed_rows import FeedRow
from pricing.refresh.reading import FeedRequest, Question

FEWEST = 3
"""Fewer machines have no middle."""

_SEARCH = {
    "rentable": {"eq": True},
    "rented": {"eq": False},
    "order": [["score", "desc"]],
    "limit": 3000,
}
_MB_PER_GB = 1000
_MIB_PER_GIB = 1024


def rows(request: FeedRequest, left_out: Counter[str]) -> Iterator[FeedRow]:
    """Yield medians by model and number of GPUs, for anywhere."""
    question = Question(name="bundles.json", body=json.dumps(_SEARCH).encode())
    groups: dict[tuple[str, int], list[Mapping[str, Any]]] = {}
    for offer in document(request, question)["offers"]:
        why = next(_reasons(offer), "")
        if why:
            left_out[why] += 1
        else:
            groups.setdefault((str(offer["gpu_name"]), int(offer["num_gpus"])), []).append(offer)
    for key, offers in sorted(groups.items()):
        yield from _lines(key, offers, left_out)


def _reasons(offer: Mapping[str, Any]) -> Iterator[str]:
    if offer.get("verification", "verified") != "verified":
        yield "a machine that is not verified"
    if not isinstance(offer.get("dph_base"), Decimal | int) or not offer.get("num_gpus"):
        yield "no price, or no GPU"
    elif not offer["dph_base"] > 0:
        yield "a price of nothing"


def _lines(
    key: tuple[str, int], offers: list[Mapping[str, Any]], left_out: Counter[str]
) -> Iterator[FeedRow]:
    model, count = key
    if len(offers) < FEWEST:
        left_out[f"fewer than {FEWEST} machines of a kind"] += len(offers)
        return
    prices = sorted(Decimal(offer["dph_base"]) for offer in offers)
    memory = median(number(offer["gpu_ram"]) or 0 for offer in offers)
    gpu = find(model, memory_gib=memory / _MIB_PER_GIB)
    yield FeedRow(
        instance_type=f"{count}x_{gpu.name if gpu else model.replace(' ', '-')}_median",
        region=EVERYWHERE,
        gpu=model,
        gpu_count=str(count),
        memory_gib=(memory / _MIB_PER_GIB,),
        vcpus=_minimum(offers, "cpu_cores_effective", 1),
        ram_gib=_minimum(offers, "cpu_ram", _MB_PER_GB),
        usd_per_hour=plain(median(prices)),
        purchase="on_demand",
        community=True,
        notes=(
            f"median of {len(offers)} machines, {plain(prices[0])} to {plain(prices[-1])}, "
            "without disk; each is one owner's and may be gone"
        ),
    )


def _minimum(offers: list[Mapping[str, Any]], key: str, unit: int) -> str:
    """Return the least of a figure: what all of the machines have."""
    sizes = [size for offer in offers if (size := number(offer.get(key)))]
    return f"{min(sizes) / unit:.4g}" if len(sizes) == len(offers) else ""
