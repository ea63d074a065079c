"""From a wish for a later deadline to one that may go ahead: whose run, what it costs, its cap."""

from decimal import Decimal

from gpucost.machines.ending import refuse_others
from gpucost.machines.state import sessions, this_owner
from gpucost.views.output import Output
from pricing.errors import InputError, ProviderError, RefusedError
from pricing.listing import counted
from pricing.money import show
from providers.interface import OUTSIDE, Deployment
from providers.journal.journal import Journal
from providers.lifecycle.extend import Extension
from providers.lifecycle.session import Session
from providers.registry import CLOUDS
from templates.bootstrap_deadline import END_S


def end_of(run: Deployment) -> tuple[Decimal, bool]:
    """Return the most seconds from deadline to end of bill, and whether machines end themselves."""
    end = CLOUDS[run.provider].end
    kind = "none" if run.self_destroy is False else end.kind
    outside = any(one.kind == OUTSIDE and one.state == "made" for one in run.resources)
    return Decimal(END_S[kind] + (end.outside_s if outside else 0)), kind != "none"


def session_of(journal: Journal, run: str, output: Output) -> tuple[Session, Deployment]:
    """Return a session with the provider of a run of this owner, and the run.

    Raises:
        InputError: the journal has no such run.
        RefusedError: it is another owner's.
        ProviderError: its provider cannot be asked.
    """
    found = journal.deployment(run)
    if found is None:
        raise InputError(
            f"{run}: the journal has no such run (gpucost list); `gpucost reap` finds "
            "and writes down what is at the providers."
        )
    refuse_others(found.marks, this_owner())
    reached = sessions(journal, output, (found.provider,))
    if not reached.sessions:
        raise ProviderError([f"{one.text} Nothing was changed." for one in reached.unreached])
    return reached.sessions[0], found


def tell(asked: Extension, max_cost: Decimal | None, output: Output) -> None:
    """Say when its machines would end, what the run would cost at most, and which cap holds."""
    run, count = asked.run, sum(one.is_machine for one in asked.machines)
    before, after = run.marks.deadline, asked.until
    output.say(
        f"{run.marks.run}: {counted(count, 'machine')} {'ends' if count == 1 else 'end'} at "
        f"{after:%Y-%m-%d %H:%M:%S} UTC instead of {before:%Y-%m-%d %H:%M:%S} UTC"
    )
    total = "unknown, for its price is" if asked.usd is None else f"${show(asked.usd)}"
    output.say(f"  at most {total} by the end of the bill, from its launch on")
    cap = _cap(asked, max_cost)
    output.say(f"  cap: {'none was named' if cap is None else f'${show(cap)}'}")
    if not asked.proofs:
        output.say(
            "note: its machines do not end themselves; `gpucost reap` does, past the deadline"
        )


def _cap(asked: Extension, max_cost: Decimal | None) -> Decimal | None:
    if max_cost is not None:
        return max_cost
    return None if asked.run.terms is None else asked.run.terms.max_usd


def hold_cap(asked: Extension, max_cost: Decimal | None) -> None:
    """Refuse what may cost more than was said that it may.

    Raises:
        RefusedError: it does, or nobody knows.
    """
    cap, run = _cap(asked, max_cost), asked.run.marks.run
    if cap is None:
        return
    if asked.usd is None:
        raise RefusedError(
            f"{run}: its price is unknown, so no cap can be held; nothing was changed."
        )
    if asked.usd > cap:
        raise RefusedError(
            f"{run} would cost up to ${show(asked.usd)} by the end of its bill, and its cap is "
            f"${show(cap)}: name a shorter time, or a higher --max-cost. Nothing was changed."
        )
