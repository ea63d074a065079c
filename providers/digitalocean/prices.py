"""Live prices of DigitalOcean: `GET /v2/sizes`, all pages, GPU sizes only."""

import math
import struct
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TypeGuard

from pricing.catalog.offer import EVERYWHERE
from pricing.errors import ProviderError
from pricing.hardware import Gpu, find, has_memory
from pricing.money import plain
from pricing.refresh.reading import PriceReading, Row, new_row
from pricing.tables import elements, members
from providers.digitalocean.access import VARIABLES, DigitalOceanApi
from providers.provider import Request

PROVIDER = "digitalocean"
SOURCE = "DigitalOcean GET /v2/sizes"

_GIB_PER_TB = 1000  # the size sheet prints 15,000 GiB where the API says 15
_FLOAT_DIGITS = 9  # every 32-bit float is told by nine digits
_LARGEST_FLOAT = 3e38  # of 32 bits
_SPOT = "-spot"


def fetch(request: Request) -> PriceReading:
    """Return every GPU size that the account's answer lists, spot sizes included.

    Sizes sold by contract are not in the answer, so it says nothing about them. One answer covers
    all regions; `request.regions` makes no difference.
    """
    api = DigitalOceanApi(access=VARIABLES.read(request.environment))
    sizes = list(api.pages("/v2/sizes", "sizes", "reading sizes", is_whole=True))
    notes = [f"{_slug(size)}: {why}" for size in sizes for why in _left_out(size)]
    sold = [size for size in sizes if _has_gpu(size) and not any(_left_out(size))]
    day = request.now.date().isoformat()
    try:
        rows = [row for size in sold for row in _rows(size, day)]
    except (TypeError, ValueError, ArithmeticError) as error:
        raise ProviderError(f"DigitalOcean: reading sizes failed: {error}.") from None
    if not rows:
        raise ProviderError(
            "DigitalOcean: the answer lists no GPU size, so nothing was changed. A token that may "
            "read sizes of another team, or a restricted one, sees none."
        )
    return PriceReading(
        provider=PROVIDER,
        source=SOURCE,
        read_on=request.now.date(),
        rows=tuple(rows),
        purchases=("on_demand", "spot"),
        notes=tuple(notes),
    )


def _slug(size: Mapping[str, object]) -> str:
    return str(size.get("slug") or "a size without a name")[:80]


def _has_gpu(size: Mapping[str, object]) -> bool:
    return bool(size.get("gpu_info")) or _slug(size).startswith("gpu-")


def _left_out(size: Mapping[str, object]) -> Iterator[str]:
    if _has_gpu(size) and size.get("available") is False:
        yield "not available, so not sold now"


def _rows(size: Mapping[str, object], day: str) -> Iterator[Row]:
    """Yield a row for each region; "*" where the answer names none, with a note."""
    info = members(size.get("gpu_info") or {})
    count = info.get("count")
    gpu, memory_gib = _gpu(info, count)
    regions = elements(size.get("regions") or ())
    note = "" if regions else "no region in the answer: not creatable by this account at the time"
    for region in regions or (EVERYWHERE,):
        yield new_row(
            region=str(region),
            instance_type=str(size.get("slug") or ""),
            gpu=gpu,
            gpu_count=_text(count),
            gpu_memory_gib=memory_gib,
            vcpus=_text(size.get("vcpus")),
            ram_gib=_text(_scaled(size.get("memory"), 1 / 1024)),
            purchase="spot" if _slug(size).endswith(_SPOT) else "on_demand",
            usd_per_hour=price_text(size.get("price_hourly")),
            as_of=day,
            source=SOURCE,
            notes=note,
            included_transfer_gib=_text(_scaled(size.get("transfer"), _GIB_PER_TB)),
            **_disks(size),
        )


def _gpu(info: Mapping[str, object], count: object) -> tuple[str, str]:
    """Return the model's name and the memory of one GPU; as printed where the model is not known.

    `vram.amount` is the total of the machine in every known answer. It is divided, and only where
    the quotient is not a memory size of the model and the amount itself is one, it was meant for
    one GPU.
    """
    model = str(info.get("model") or "")
    vram = members(info.get("vram") or {})
    total = vram.get("amount")
    unit = str(vram.get("unit", "gib")).lower()
    if not _is_number(total) or not _is_number(count) or not count or unit not in ("gib", "gb"):
        gpu = _model(model, None)
        return model if gpu is None else gpu.name, ""
    per_gpu = total / count
    for memory_gib in (per_gpu, total):
        gpu = _model(model, memory_gib)
        if gpu is not None and has_memory(gpu, memory_gib):
            return gpu.name, f"{gpu.memory_gib:.12g}"
    gpu = _model(model, per_gpu)
    return model if gpu is None else gpu.name, f"{per_gpu:.12g}"


def _model(model: str, memory_gib: float | None) -> Gpu | None:
    """Return the GPU of a name such as nvidia_h100; without its RTX it is still found."""
    rtx = model.replace("nvidia_", "nvidia_rtx_", 1)
    return find(model, memory_gib=memory_gib) or find(rtx, memory_gib=memory_gib)


def _disks(size: Mapping[str, object]) -> dict[str, str]:
    """Return boot and scratch disks where the answer tells them apart, and both together."""
    amounts = {
        str(disk.get("type")): members(disk.get("size") or {}).get("amount")
        for disk in elements(size.get("disk_info") or ())
        if isinstance(disk, Mapping)
    }
    boot, scratch = amounts.get("boot", amounts.get("local")), amounts.get("scratch")
    sdk_errors = [amount for amount in (boot, scratch) if _is_number(amount)]
    return {
        "boot_disk_gib": _text(boot),
        "scratch_disk_gib": _text(scratch),
        "local_disk_gib": _text(sum(sdk_errors) if sdk_errors else size.get("disk")),
    }


def price_text(sdk_errors: object) -> str:
    """Return the digits of a price that came as a JSON number; "" where it is none.

    Some answers print 32-bit floats (0.00743999984115362); the shortest decimal of at most nine
    digits that is the same 32-bit float is the price (0.00744).
    """
    if not _is_number(sdk_errors):
        return "" if sdk_errors is None else str(sdk_errors)[:40]
    value = float(sdk_errors)
    if not math.isfinite(value):
        return str(value)
    if abs(value) < _LARGEST_FLOAT and f"{_narrow(value):.15g}" == f"{value:.15g}":
        shorter = (f"{value:.{digits}g}" for digits in range(1, _FLOAT_DIGITS + 1))
        text = next(text for text in shorter if _narrow(float(text)) == _narrow(value))
        return plain(Decimal(text))
    return plain(Decimal(str(sdk_errors)))


def _narrow(value: float) -> float:
    """Return the nearest 32-bit float."""
    narrow: float = struct.unpack("f", struct.pack("f", value))[0]
    return narrow


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _scaled(value: object, factor: float) -> float | None:
    return value * factor if _is_number(value) else None


def _text(value: object) -> str:
    return f"{value:.12g}" if _is_number(value) else ""
