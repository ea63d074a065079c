"""Reads the documents behind Oracle's cost estimator: shapes, and the products they are billed by.

Form: `shapes.json` and `products.json` of oracle.com/a/ocom/docs/cloudestimator2/data, as gpuhunt
reads them (`providers/oci.py` and its recorded excerpts at 3584151): a shape with GPUs is billed by
one product for each GPU; a price is one for all regions.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from types import MappingProxyType

from pricing.catalog.offer import EVERYWHERE
from pricing.feeds.feeds import digits, document, number
from pricing.hardware import find
from pricing.money import plain
from pricing.refresh.feed_rows import FeedRow, known_machine
from pricing.refresh.reading import FeedRequest, Question
from pricing.tables import members, objects

_SHAPES = Question(name="shapes.json", path="shapes.json")
_PRODUCTS = Question(name="products.json", path="products.json")
_OLDER: Mapping[str, str] = MappingProxyType({"GPU4": "A100", "GPU3": "V100", "GPU2": "P100"})
_HALF = Decimal("0.5")
_PREEMPTIBLE = (
    "half of on demand: docs.oracle.com/en-us/iaas/Content/Compute/Concepts/preemptible.htm"
)


def rows(request: FeedRequest, left_out: Counter[str]) -> Iterator[FeedRow]:
    """Yield the prices on demand, and preemptible as spot, one for all regions."""
    products = {str(item["partNumber"]): item for item in document(request, _PRODUCTS)["items"]}
    for shape in document(request, _SHAPES)["items"]:
        if shape.get("gpuQty"):
            yield from _lines(shape, products, left_out)


def _lines(
    shape: Mapping[str, object], products: Mapping[str, object], left_out: Counter[str]
) -> Iterator[FeedRow]:
    name = str(shape["name"])
    if shape.get("hidden") or shape.get("status") != "ACTIVE":
        left_out["a shape that is hidden or not active"] += 1
        return
    price = _price(shape, products)
    model = _model(name)
    if price is None or not model:
        left_out["a shape without a price per GPU and hour, or with a GPU that is not known"] += 1
        return
    memory = number(shape.get("gpuMemoryQty"))
    count = number(shape["gpuQty"]) or 1
    for purchase, amount, notes in (
        ("on_demand", price, ""),
        ("spot", price * _HALF, _PREEMPTIBLE),
    ):
        if purchase == "on_demand" or shape.get("allowPreemptible"):
            yield FeedRow(
                instance_type=name,
                region=EVERYWHERE,
                gpu=model,
                gpu_count=f"{count:.12g}",
                memory_gib=() if memory is None else (memory / count,),
                ram_gib=digits(shape.get("bundleMemoryQty")),
                usd_per_hour=plain(amount),
                purchase=purchase,
                notes=notes,
            )


def _price(shape: Mapping[str, object], products: Mapping[str, object]) -> Decimal | None:
    """Return USD an hour of all GPUs; None where the products do not say it in the known form."""
    total = Decimal(0)
    for part in objects(shape["products"]):
        kind, product = members(part["type"])["value"], products.get(str(part["partNumber"]))
        hourly = None if product is None else _hourly(members(product))
        if hourly is None or kind not in ("ocpu", "memory"):
            return None
        total += hourly * Decimal(str(shape["gpuQty"] if kind == "ocpu" else part["qty"]))
    return total


def _hourly(product: Mapping[str, object]) -> Decimal | None:
    """Return the one pay-as-you-go price in US dollars."""
    if product.get("billingModel") != "UCM" or product.get("pricetype") != "HOUR":
        return None
    prices = [
        price
        for localization in objects(product["currencyCodeLocalizations"])
        if localization["currencyCode"] == "USD"
        for price in objects(localization["prices"])
    ]
    if len(prices) != 1 or prices[0]["model"] != "PAY_AS_YOU_GO":
        return None
    value = prices[0]["value"]
    return Decimal(value) if isinstance(value, Decimal | int) else None


def _model(name: str) -> str:
    """Return the GPU that a shape's name tells: "BM.GPU.H100.8", "VM.GPU3.1"."""
    machine = known_machine("oci", name)
    if machine is not None:
        return machine.gpu
    parts = re.split(r"[.-]", name.upper())
    older = next((_OLDER[part] for part in parts if part in _OLDER), "")
    if older or "GPU" not in parts[:-1]:
        return older
    model = parts[parts.index("GPU") + 1]
    return model if find(model) else ""
