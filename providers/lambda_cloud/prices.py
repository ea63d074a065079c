"""Live prices of Lambda: `GET /instance-types` lists every type, with capacity or without."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from pricing.catalog.offer import EVERYWHERE
from pricing.errors import ProviderError
from pricing.hardware import find
from pricing.money import plain
from pricing.refresh.feed_rows import known_machine
from pricing.refresh.reading import PriceReading, Row, new_row
from providers.lambda_cloud.access import VARIABLES, LambdaApi
from providers.lambda_cloud.inventory import PROVIDER
from providers.provider import Request

SOURCE = "Lambda GET /api/v1/instance-types"
_CENTS = Decimal(100)


def fetch(request: Request) -> PriceReading:
    """Return every type with a GPU; one price holds in every region."""
    api = LambdaApi(access=VARIABLES.read(request.environment))
    types = api.get("/instance-types", "reading the instance types")
    if not isinstance(types, Mapping):
        raise ProviderError("Lambda: the answer about instance types cannot be read.")
    notes: list[str] = []
    day = request.now.date()
    rows = tuple(_rows(types, day.isoformat(), notes))
    if not rows:
        raise ProviderError("Lambda: the answer lists no GPU type, so nothing was changed.")
    return PriceReading(
        provider=PROVIDER,
        source=SOURCE,
        read_on=day,
        rows=rows,
        purchases=("on_demand",),
        notes=tuple(notes),
    )


def _rows(types: Mapping[str, Any], day: str, notes: list[str]) -> Iterator[Row]:
    for name in sorted(types):
        described = types[name].get("instance_type") or {}
        specs = described.get("specs") or {}
        gpus = specs.get("gpus")
        if not gpus:
            continue  # a machine without a GPU
        hardware = _hardware(str(name), str(described.get("gpu_description", "")))
        if hardware is None:
            model_text = str(described.get("gpu_description"))
            notes.append(f"{name}: no GPU is known by {model_text!r:.60}, so it is left out")
            continue
        gpu, memory_gib = hardware
        yield new_row(
            region=EVERYWHERE,
            instance_type=str(name),
            gpu=gpu,
            gpu_count=str(gpus),
            gpu_memory_gib=memory_gib,
            vcpus=_text(specs.get("vcpus")),
            ram_gib=_text(specs.get("memory_gib")),
            local_disk_gib=_text(specs.get("storage_gib")),
            purchase="on_demand",
            usd_per_hour=_usd(described.get("price_cents_per_hour")),
            as_of=day,
            source=SOURCE,
        )


def _hardware(name: str, described: str) -> tuple[str, str] | None:
    """Return model and memory of a GPU: of a known type, else by its description."""
    machine = known_machine(PROVIDER, name)
    if machine is not None:
        return machine.gpu, f"{machine.gpu_memory_gib:.12g}"
    gpu = find(described.partition("(")[0].strip())
    return None if gpu is None else (gpu.name, f"{gpu.memory_gib:.12g}")


def _usd(cents: object) -> str:
    if not isinstance(cents, int | float) or isinstance(cents, bool):
        return "" if cents is None else str(cents)[:40]
    return plain(Decimal(str(cents)) / _CENTS)


def _text(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, int | float) else ""
