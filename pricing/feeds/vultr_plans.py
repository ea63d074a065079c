"""Reads Vultr's public plans: virtual machines with GPUs or slices of them, and bare metal.

Form: www.vultr.com/api (`GET /v2/plans`, `GET /v2/plans-metal`, no account), and its reader and
recorded answers in gpuhunt (`providers/vultr.py`, `tests/providers/test_vultr.py` at 3584151).
`gpu_type` is "NVIDIA_A100", `gpu_vram_gb` the memory of all GPUs or of the slice; of bare metal
the name alone tells the GPUs, as in "vbm-112c-2048gb-8-h100-gpu".
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from pricing.errors import InputError
from pricing.feeds.feeds import digits, document, number
from pricing.hardware import find
from pricing.refresh.feed_rows import FeedRow
from pricing.refresh.reading import FeedRequest, Question
from pricing.tables import elements

_PLANS = (
    Question(name="plans.json", path="plans?type=all&per_page=500"),
    Question(name="plans-metal.json", path="plans-metal?per_page=500"),
)
_METAL = re.compile(r"vbm-\d+c-\d+gb-(?:(\d+)-)?([a-z0-9]+)-gpu")
_CARDS: Mapping[str, str] = MappingProxyType({"a100": "A100-PCIe-80GB"})
"""What Vultr's virtual machines call an A100 has 80 GB; the form of the card is not told."""

_METAL_CARDS: Mapping[str, str] = MappingProxyType(
    {"a100": "A100-SXM-80GB", "l40": "L40S"}  # gpuhunt, BARE_METAL_GPU_DETAILS
)
_MIB_PER_GIB = 1024
_LEAST_SHARE = 0.92  # of a GPU's memory: below it is a slice, as in `pricing.hardware.has_memory`


def rows(request: FeedRequest, left_out: Counter[str]) -> Iterator[FeedRow]:
    """Yield the prices on demand, each region; preemptible prices of bare metal as spot.

    Raises:
        InputError: more plans follow than one page holds.
    """
    for question in _PLANS[:1] if len(request.answers.files) == 1 else _PLANS:
        answer = document(request, question)
        if ((answer.get("meta") or {}).get("links") or {}).get("next"):
            raise InputError(f"{question.name}: more plans follow; nothing of it was kept.")
        for plan in (*answer.get("plans", ()), *answer.get("plans_metal", ())):
            yield from _lines(plan, left_out)


def _lines(plan: Mapping[str, object], left_out: Counter[str]) -> Iterator[FeedRow]:
    name = str(plan["id"])
    if "gpu" not in name and not plan.get("gpu_type"):
        return
    machine = _virtual(plan) if plan.get("gpu_type") else _metal(name)
    if machine is None:
        left_out["a plan whose GPU is not known"] += 1
        return
    gpu, count, memory_gib = machine
    prices = (("on_demand", "hourly_cost"), ("spot", "hourly_cost_preemptible"))
    for region in elements(plan["locations"]):
        for purchase, key in prices:
            price = digits(plan.get(key))
            if purchase == "spot" and price in ("", "0", digits(plan.get("hourly_cost"))):
                continue
            yield FeedRow(
                instance_type=name,
                region=str(region),
                gpu=gpu,
                gpu_count=count,
                memory_gib=memory_gib,
                vcpus=digits(plan.get("vcpu_count") or plan.get("cpu_threads")),
                ram_gib=_gib(plan.get("ram")),
                disk_gib=digits(plan.get("disk")),
                usd_per_hour=price,
                purchase=purchase,
            )


def _virtual(plan: Mapping[str, object]) -> tuple[str, str, tuple[float, ...]] | None:
    """Return GPU, count and memory; below one GPU the count is the share of its memory."""
    model = str(plan["gpu_type"]).partition("_")[2]
    total = number(plan.get("gpu_vram_gb"))
    if not model or not total:
        return None
    gpu = find(_CARDS.get(model.lower(), model))
    if gpu is None:
        return model, "1", (total,)
    share = total / gpu.memory_gib
    if share < _LEAST_SHARE:
        return gpu.name, f"{share:.4g}", (total,)
    count = max(1, round(share))
    return gpu.name, str(count), (total / count,)


def _metal(name: str) -> tuple[str, str, tuple[float, ...]] | None:
    match = _METAL.fullmatch(name)
    gpu = None if match is None else find(_METAL_CARDS.get(match[2], match[2]))
    if match is None or gpu is None:
        return None
    return gpu.name, match[1] or "1", (gpu.memory_gib,)


def _gib(mib: object) -> str:
    size = number(mib)
    return "" if size is None else f"{size / _MIB_PER_GIB:.12g}"
