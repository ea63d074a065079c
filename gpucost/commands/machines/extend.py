"""`gpucost extend`: a later deadline for a launch, within a cap, proved by its machines."""

from decimal import Decimal

import click

from gpucost.arguments.parameters import DOLLARS, DURATION
from gpucost.machines.confirm import confirm
from gpucost.machines.extending import end_of, hold_cap, session_of, tell
from gpucost.machines.state import CLOCK, open_journal
from gpucost.views.output import Output, output_options
from gpucost.views.runs import show_run
from pricing.errors import InputError, RefusedError
from providers.lifecycle.extend import extend, plan_extension


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
        session, found = session_of(journal, run, output)
        end_s, ends_itself = end_of(found)
        with journal.working_on(run) as mine:
            if not mine:
                raise RefusedError(f"{run}: another gpucost is working on it; try again after it.")
            asked = plan_extension(session, found, by, end_s, ends_itself=ends_itself)
            tell(asked, max_cost, output)
            hold_cap(asked, max_cost)
            if dry_run:
                return
            confirm(f"Let {run} end at {asked.until:%Y-%m-%d %H:%M} UTC?", yes=yes)
            extend(session, asked, max_cost)
        done = journal.deployment(run) or found
        show_run(done, journal.events(run), output, CLOCK.at(session.cloud.skew_s))
