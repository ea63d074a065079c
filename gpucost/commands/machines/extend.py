"""`gpucost extend`: a later deadline for a launch, within a cap, proved by its machines."""

from decimal import Decimal

import click

from gpucost.arguments.parameters import TYPES, options
from gpucost.machines.ending import refuse_others
from gpucost.machines.state import CLOCK, confirm, hold_budgets, open_journal, sessions, this_owner
from gpucost.views.output import Output, output_options
from gpucost.views.runs import show_run
from pricing.errors import InputError, ProviderError, RefusedError
from pricing.listing import counted
from pricing.message import Message
from pricing.money import show
from providers.interface import OUTSIDE, Deployment
from providers.journal.journal import Journal
from providers.lifecycle.extend import Extension, extend, plan_extension
from providers.lifecycle.session import Session
from providers.registry import CLOUDS
from templates.bootstrap_deadline import END_S


def end_of(run: Deployment) -> tuple[Decimal, bool]:
    """Return the most seconds from deadline to end of bill, and whether machines end themselves."""
    end = CLOUDS[run.provider].end
    kind = "none" if run.self_destroy is False else end.kind
    outside = any(
        resource.kind == OUTSIDE and resource.state == "made" for resource in run.resources
    )
    by_machine = kind != "none" and CLOUDS[run.provider].by_machine
    return Decimal(END_S[kind] + (end.outside_s if outside else 0)), by_machine


def session_of(journal: Journal, run: str, output: Output) -> tuple[Session, Deployment]:
    """Return a session with the provider of a run of this owner, and the run.

    Raises:
        InputError: the journal has no such run.
        RefusedError: it is another owner's.
        ProviderError: its provider cannot be asked.
    """
    deployment = journal.deployment(run)
    if deployment is None:
        raise InputError(Message("machine.unknown-run", run=run))
    refuse_others(deployment.marks, this_owner())
    reached = sessions(journal, output, (deployment.provider,))
    if not reached.sessions:
        raise ProviderError(
            [f"{provider.text} Nothing was changed." for provider in reached.unreached]
        )
    return reached.sessions[0], deployment


def tell(extension: Extension, max_cost: Decimal | None, output: Output) -> None:
    """Say when its machines would end, what the run would cost at most, and which cap holds."""
    run, count = extension.run, sum(machine.is_machine for machine in extension.machines)
    before, after = run.marks.deadline, extension.until
    output.say(
        f"{run.marks.run}: {counted(count, 'machine')} {'ends' if count == 1 else 'end'} at "
        f"{after:%Y-%m-%d %H:%M:%S} UTC instead of {before:%Y-%m-%d %H:%M:%S} UTC"
    )
    total = "unknown (no price is known)" if extension.usd is None else f"${show(extension.usd)}"
    output.say(f"  at most {total} by the end of the bill, in total")
    cap = _cap(extension, max_cost)
    output.say(f"  cap: {'none' if cap is None else f'${show(cap)}'}")
    from_outside = any(resource.kind == OUTSIDE for resource in extension.run.resources)
    if not extension.proofs and not from_outside and extension.run.self_destroy is False:
        output.say(Message("machine.kept-by-reap"))


def _cap(extension: Extension, max_cost: Decimal | None) -> Decimal | None:
    if max_cost is not None:
        return max_cost
    return None if extension.run.terms is None else extension.run.terms.max_usd


def hold_cap(extension: Extension, max_cost: Decimal | None) -> None:
    """Refuse what may cost more than was said that it may, or than a budget.toml allows.

    Raises:
        RefusedError: it does, or nobody knows.
    """
    cap, run = _cap(extension, max_cost), extension.run.marks.run
    owner, begins = extension.run.marks.owner, extension.run.started_at
    usd = extension.usd or Decimal(0)
    if refusals := tuple(hold_budgets(owner, begins, extension.until, usd, run)):
        raise RefusedError(refusals)
    if cap is None:
        return
    if extension.usd is None:
        raise RefusedError(Message("machine.no-price-no-cap", run=run))
    if extension.usd > cap:
        details = {"usd": show(extension.usd), "cap": show(cap)}
        raise RefusedError(Message("machine.over-cap", run=run, **details))


@click.command(name="extend", epilog="Example: gpucost extend k3f9xw2m 2h")
@click.argument("run", metavar="ID")
@click.argument("by", type=TYPES["duration"], metavar="TIME")
@options("max-cost.extend dry-run.extend yes")
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

    Every machine must respond and prove that it ends itself; otherwise nothing changes (exit 5).
    The total to the end of the bill must stay within --max-cost or, without it, within the cap of
    the launch, if it has one. Each machine then confirms the new deadline; exit 6: not all did.
    """
    if by < 1:
        raise InputError(f"{run}: TIME must be a second or more, e.g. 2h.")
    with open_journal() as journal:
        session, deployment = session_of(journal, run, output)
        end_s, ends_itself = end_of(deployment)
        with journal.working_on(run) as locked:
            if not locked:
                raise RefusedError(Message("machine.busy", run=run))
            extension = plan_extension(session, deployment, by, end_s, ends_itself=ends_itself)
            tell(extension, max_cost, output)
            hold_cap(extension, max_cost)
            if dry_run:
                return
            confirm(f"Let {run} end at {extension.until:%Y-%m-%d %H:%M} UTC?", yes=yes)
            extend(session, extension, max_cost)
        done = journal.deployment(run) or deployment
        show_run(done, journal.events(run), output, CLOCK.at(session.cloud.skew_s))
