"""What volume storage beside the machines' own disks costs."""

from decimal import Decimal

from pricing.billing import BYTES_PER_UNIT, BillingRule, ProviderRules
from pricing.lines import Charge, QuoteLine
from pricing.machine_time import SECONDS_PER_HOUR
from pricing.money import EXACT, HOURS_PER_MONTH, plain
from pricing.offer import Offer
from pricing.usage import Usage


def charge_storage(offer: Offer, usage: Usage, held: ProviderRules) -> Charge:
    """The disk line: quantity x monthly price x hours / 730, if storage was asked for."""
    if not usage.storage_bytes:
        return Charge((), ())
    price = held.volume
    if price is None:
        text = (
            f"disk: the price of volume storage at {offer.provider} is not known per GB "
            "and month; the storage is left out"
        )
        return Charge((), (text,))
    hours = _billed_hours(usage, held)
    quantity = EXACT.divide(Decimal(usage.storage_bytes), BYTES_PER_UNIT[price.per])
    monthly = EXACT.multiply(EXACT.multiply(quantity, price.amount), hours)
    line = QuoteLine(
        what="disk",
        usd=EXACT.divide(monthly, HOURS_PER_MONTH),
        formula="{0} {1} x {2} USD/{1}-month x {3} h / {4} h per month",
        numbers=(quantity, price.per, price.amount, hours, HOURS_PER_MONTH),
        rule=_text(price, held),
        source=price.source,
        as_of=price.as_of,
    )
    return Charge((line,), ())


def _billed_hours(usage: Usage, held: ProviderRules) -> Decimal:
    """Hours the storage is kept, up to whole steps where the provider counts in steps."""
    kept_s = Decimal(usage.duration_s)
    if usage.storage_h is not None:
        kept_s = Decimal(usage.storage_h) * SECONDS_PER_HOUR
    step_s = held.volume_granularity_s
    if step_s is not None:
        steps, rest = divmod(kept_s, step_s)
        kept_s = (steps + 1) * step_s if rest else kept_s
    return EXACT.divide(kept_s, SECONDS_PER_HOUR)


def _text(price: BillingRule, held: ProviderRules) -> str:
    step_s = held.volume_granularity_s
    step = "" if step_s is None else f", in steps of {plain(step_s)} s"
    return f"volume storage at {plain(price.amount)} {price.unit}{step}"
