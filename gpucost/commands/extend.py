"""`gpucost extend`: a later deadline for a launch, within a cap, proved by its machines."""

from decimal import Decimal

import click

from gpucost.arguments.parameters import DOLLARS, DURATION
from gpucost.launch.confirm import confirm
from gpucost.launch.ending import refuse_others
from gpucost.launch.state import CLOCK, open_journal, sessions, this_owner
from gpucost.views.output import Output, output_options
from gpucost.views.runs import show_run
from pricing.errors import InputError, ProviderError, RefusedError
from pricing.money import show
from providers.interface import Deployment
from providers.lifecycle.extend import Extension, extend, plan_extension
from providers.lifecycle.journal import Journal
from providers.lifecycle.session import Session
from providers.registry import CLOUDS
from templates.bootstrap_deadline import END_S


@click.command(name="extend", epilog="Example: gpucost extend k3f9xw2m 2h")
@click.argument("run", metavar="ID")
@click.argument("by", type=DURATION, metavar="TIME")
@click.option("--max-cost", type=DOLLARS, help="Cap in USD on the whole run, from its launch on.")
@click.option("--dry-run", is_flag=True, help="Only ask, and say what it would cost.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@output_options
def command(
    run: str,
    by: Decimal,
    max_cost: Decimal | None,
    dry_run: bool,  # noqa: FBT001 - click's flags
    yes: bool,  # noqa: FBT001 - the same
    output: Output,
) -> None:
    """Move the deadline of a launch TIME later, such as 2h; never earlier.

    Every machine must answer and prove that it ends itself, or nothing is changed (exit 5). The
    total to the end of the bill must be within --max-cost; without it within the cap that the
    launch was given, if it was given one. Afterwards each machine has said that it goes by the
    later deadline; exit 6: not all have.
    """
    if by < 1:
        raise InputError(f"{run}: by how much? Give a time of a second or more, such as 2h.")
    with open_journal() as journal:
        session, found = _known(journal, run, output)
        end = CLOUDS[found.provider].end.kind if found.self_destroy is not False else "none"
        with journal.working_on(run) as mine:
            if not mine:
                raise RefusedError(f"{run}: another gpucost is working on it; try again after it.")
            ends_itself = end != "none"
            asked = plan_extension(session, found, by, Decimal(END_S[end]), ends_itself=ends_itself)
            _tell(asked, max_cost, output)
            _hold_cap(asked, max_cost)
            if dry_run:
                return
            confirm(f"Let {run} end at {asked.until:%Y-%m-%d %H:%M} UTC?", yes=yes)
            extend(session, asked, max_cost)
        done = journal.deployment(run) or found
        show_run(done, journal.events(run), output, CLOCK.at(session.cloud.skew_s))


def _known(journal: Journal, run: str, output: Output) -> tuple[Session, Deployment]:
    """A session with the provider of a run of this owner.

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


def _tell(asked: Extension, max_cost: Decimal | None, output: Output) -> None:
    run, count = asked.run, len(asked.machines)
    before, after = run.marks.deadline, asked.until
    output.say(
        f"{run.marks.run}: {count} machines end at {after:%Y-%m-%d %H:%M:%S} UTC instead of "
        f"{before:%Y-%m-%d %H:%M:%S} UTC"
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


def _hold_cap(asked: Extension, max_cost: Decimal | None) -> None:
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
