"""What the tokens of a plan cost from APIs, by `genai-prices` (the extra `tokens`).

`pricing/data/token_prices.csv` is a second reading of the same prices: what it says else is told.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import cache
from importlib.metadata import version
from typing import Any

from planner.serving.search import ServingPlan, TokenOffer
from pricing.errors import InputError
from pricing.money import HOURS_PER_MONTH
from pricing.tables import read_csv

_PRECISION = re.compile(r"\b(?:fp|bf)(?:8|16)\b")
_WORDS = re.compile(r"[a-z]+|\d+(?:\.\d+)?v?")  # GLM-4.6V is another model than GLM-4.6
_LEFT_OUT = frozenset({"meta", "instruct", "chat", "it", "turbo", "instant", "v", "hf"})
_MILLION = Decimal(1_000_000)
_ROUTER = "huggingface_"  # sells "with no markup" (huggingface.co/docs/api-inference/pricing)


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


def _own_name(name: str) -> str:
    return name.rpartition("/")[2].lower()


def _name_parts(name: str) -> frozenset[str]:
    plain = _PRECISION.sub("", _own_name(name).replace("-1-", "-1."))
    return frozenset(_WORDS.findall(plain)) - _LEFT_OUT


@cache
def _second_readings() -> Mapping[tuple[str, str], tuple[Decimal, Decimal, str]]:
    """Return the second reading by provider and the model's own name: prices, and whose it is."""
    return {
        (row["provider"], _own_name(row["model"])): (
            Decimal(row["usd_per_million_input"]),
            Decimal(row["usd_per_million_output"]),
            row["source"].partition(":")[0],
        )
        for row in read_csv("token_prices.csv")
    }


def _prices(model: Any) -> Iterator[tuple[Decimal, Decimal]]:  # noqa: ANN401 - the library's
    """Yield the prices of a million tokens that are plain numbers today."""
    prices = model.prices[-1].prices if isinstance(model.prices, list) else model.prices
    into, out = prices.input_mtok, prices.output_mtok
    if isinstance(into, Decimal) and isinstance(out, Decimal) and out > 0:
        yield into, out


def _offer(plan: ServingPlan, provider: str, model: str, into: Decimal, out: Decimal) -> TokenOffer:
    month, even = _month(plan, into, out)
    seller = provider.removeprefix(_ROUTER).removesuffix("-ai")
    second = _second_readings().get((seller, _own_name(model)))
    second_month, second_even = _month(plan, *second[:2]) if second else (None, None)
    return TokenOffer(
        provider=provider,
        model=model,
        usd_per_million_input=into,
        usd_per_million_output=out,
        usd_per_month=month,
        break_even_rate=even,
        source=f"genai-prices {version('genai-prices')}",
        second_source=second[2] if second else None,
        second_usd_per_month=second_month,
        second_break_even_rate=second_even,
    )


def _month(plan: ServingPlan, into: Decimal, out: Decimal) -> tuple[Decimal, Decimal | None]:
    """Return a month of the plan's tokens, and the rate from which its cheapest copy costs less."""
    prompt, output = (Decimal(str(n)) for n in (plan.prompt_tokens, plan.output_tokens))
    request_usd = (prompt * into + output * out) / _MILLION
    month_s, cheapest = HOURS_PER_MONTH * 3600, plan.options[0]
    each_month = cheapest.usd_per_month / (cheapest.copies + cheapest.spare)
    even = each_month / (request_usd * month_s)
    month = request_usd * month_s * Decimal(str(plan.rate))
    return month, round(even, 3) if even <= cheapest.limit.rate else None
