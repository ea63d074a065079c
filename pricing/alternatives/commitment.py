"""When a commitment pays: the use from which a term is cheaper than paying by the hour."""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from pricing.catalog.offer import EVERYWHERE, TERMS_H, Offer
from pricing.errors import InputError
from pricing.money import EXACT, quantity_text, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Commitment:
    """A reserved offer beside what the same GPUs cost by the hour.

    Attributes:
        reserved: the reserved offer.
        on_demand: the cheapest on-demand offer of the provider with the same GPU; None where it
            has none.
        term_h: hours that are paid for.
        term_usd: for one machine over the whole term.
    """

    reserved: Offer
    on_demand: Offer | None
    term_h: Decimal
    term_usd: Decimal

    @property
    def break_even_fraction(self) -> Decimal | None:
        """Share of the term's hours from which the commitment is the cheaper one.

        Reserved over on-demand price of a GPU-hour: the term is paid for every hour, on demand
        only for those used. Above 1 it never pays; None where there is nothing to compare.
        """
        if self.on_demand is None:
            return None
        return EXACT.divide(_usd_per_gpu_h(self.reserved), _usd_per_gpu_h(self.on_demand))


def commit(reserved: Offer, offers: Iterable[Offer]) -> Commitment:
    """Return the commitment of a reserved offer, compared with the offers of the same day.

    Machines of the same number of GPUs are compared where there are any, else the cheapest
    GPU-hour.

    Raises:
        InputError: the offer is not a commitment.
    """
    term_h = TERMS_H.get(reserved.purchase)
    if term_h is None:
        raise InputError(
            f"{reserved.place} is bought as {reserved.purchase}, which is not a commitment; "
            f"commitments are {', '.join(TERMS_H)}"
        )
    same = [
        offer
        for offer in offers
        if (offer.provider, offer.gpu, offer.purchase)
        == (reserved.provider, reserved.gpu, "on_demand")
        and not offer.is_community
        and (offer.region == reserved.region or EVERYWHERE in (offer.region, reserved.region))
    ]
    alike = [offer for offer in same if offer.gpu_count == reserved.gpu_count] or same
    return Commitment(
        reserved=reserved,
        on_demand=min(alike, key=lambda o: (_usd_per_gpu_h(o), o.place), default=None),
        term_h=term_h,
        term_usd=EXACT.multiply(reserved.usd_per_hour, term_h),
    )


def commitment_note(commitment: Commitment) -> str:
    """Return what a reader must know before committing, in one sentence."""
    said = (
        f"{commitment.reserved.place}: a commitment of {quantity_text(commitment.term_h)} h is "
        f"owed whole: {show(commitment.term_usd)} USD a machine"
    )
    fraction, other = commitment.break_even_fraction, commitment.on_demand
    if fraction is None or other is None:
        return f"{said}; no on-demand price of the same GPU is known to compare it with"
    if fraction > 1:
        return f"{said}; it never pays: {other.place} on demand is cheaper"
    percent = f"{100 * fraction:.1f}"
    return f"{said}; it pays from {percent} % of the hours on, against {other.place} on demand"


def _usd_per_gpu_h(offer: Offer) -> Decimal:
    return EXACT.divide(offer.usd_per_hour, Decimal(str(offer.gpu_count)))
