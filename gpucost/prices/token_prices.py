"""What the tokens of a plan cost from APIs, by `genai-prices` (the extra `tokens`)."""

import re
from collections.abc import Iterator
from decimal import Decimal
from importlib.metadata import version
from typing import Any

from planner.serving.search import ServingPlan, TokenOffer
from pricing.errors import InputError
from pricing.money import HOURS_PER_MONTH

_WORDS = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_LEFT_OUT = frozenset({"meta", "instruct", "chat", "it", "turbo", "instant", "v", "fp", "bf", "hf"})
_MILLION = Decimal(1_000_000)


def token_offers(plan: ServingPlan) -> tuple[TokenOffer, ...]:
    """Return what the plan's tokens cost from APIs of the same model, the cheapest first.

    None where no API sells the model.

    Raises:
        InputError: the extra is not installed.
    """
    try:
        from genai_prices import data_snapshot  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise InputError("--tokens needs the extra: pip install 'gpucost[tokens]'.") from error
    offers = (
        _offer(plan, provider.id, model.id, *price)
        for provider in data_snapshot.get_snapshot().providers
        for model in provider.models
        if _name_parts(model.id) == _name_parts(plan.model)
        for price in _prices(model)
    )
    return tuple(sorted(offers, key=lambda offer: (offer.usd_per_month, offer.provider)))


def _name_parts(name: str) -> frozenset[str]:
    name_parts = _WORDS.findall(name.rpartition("/")[2].lower().replace("-1-", "-1."))
    return frozenset(name_parts) - _LEFT_OUT - {"8", "16"}


def _prices(model: Any) -> Iterator[tuple[Decimal, Decimal]]:  # noqa: ANN401 - the library's
    """Yield the prices of a million tokens that are plain numbers today."""
    prices = model.prices[-1].prices if isinstance(model.prices, list) else model.prices
    into, out = prices.input_mtok, prices.output_mtok
    if isinstance(into, Decimal) and isinstance(out, Decimal) and out > 0:
        yield into, out


def _offer(plan: ServingPlan, provider: str, model: str, into: Decimal, out: Decimal) -> TokenOffer:
    prompt, output = (Decimal(str(n)) for n in (plan.prompt_tokens, plan.output_tokens))
    request_usd = (prompt * into + output * out) / _MILLION
    month_s, cheapest = HOURS_PER_MONTH * 3600, plan.options[0]
    each_month = cheapest.usd_per_month / (cheapest.copies + cheapest.spare)
    even = each_month / (request_usd * month_s)
    return TokenOffer(
        provider=provider,
        model=model,
        usd_per_million_input=into,
        usd_per_million_output=out,
        usd_per_month=request_usd * month_s * Decimal(str(plan.rate)),
        break_even_rate=round(even, 3) if even <= cheapest.limit.rate else None,
        source=f"genai-prices {version('genai-prices')}",
    )
