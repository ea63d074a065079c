"""`gpucost reap`: compare the providers with the journal, and remove what nobody wants."""

from collections.abc import Iterable
from dataclasses import astuple, fields

import click

from gpucost.machines.reaping import Judged, carry_out_all
from gpucost.machines.state import open_journal, sessions, this_owner
from gpucost.schemas.small_documents import ReapedRun
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from pricing.errors import (
    MissingCredentialsError,
    PartialError,
)
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import Verdict, judge

_COLUMNS = tuple(one.name for one in fields(ReapedRun))


@click.command(name="reap", epilog="Example: gpucost reap --dry-run")
@click.option("--all-owners", is_flag=True, help="Orphans of every owner's.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@output_options
def command(all_owners: bool, dry_run: bool, yes: bool, output: Output) -> None:  # noqa: FBT001 - click's flags
    """Remove orphans: intents without result, machines past their deadline, leftovers.

    Live machines inside their deadline stay, and so does what another owner's tag names unless
    --all-owners. An empty or unreadable journal does not matter: what carries our tags is found.
    What could not be asked is said (exit 6) and hinders nothing else.
    """
    with open_journal(go_on=output.say, mend=True) as journal:
        owner = this_owner()
        reached = sessions(journal, output)
        pairs: Judged = []
        doubts = [*journal.doubts]
        for session in reached.sessions:
            seen = survey(session)
            doubts += seen.doubts
            verdicts = judge(session, seen, owner, all_owners=all_owners)
            pairs += ((session, verdict) for verdict in verdicts)
        missed = reached.missed(journal.open_deployments())
        doubts += (one.text for one in missed)
        _show([verdict for _, verdict in pairs], reached.asked, output)
        for one in reached.unreached:
            output.say(f"note: {one.text}")
        troubles = [] if dry_run else carry_out_all(pairs, output, yes=yes)
    if not reached.asked:
        told = [one.text for one in missed] or ["no provider could be asked for orphans."]
        raise MissingCredentialsError(told)
    problems = [*(problem for one in troubles for problem in one.problems), *doubts]
    if problems:
        raise PartialError(dict.fromkeys(problems))


def _show(verdicts: list[Verdict], asked: Iterable[str], output: Output) -> None:
    rows = [_row(verdict) for verdict in verdicts]
    if output.format == "json":
        print_json(rows)
    elif rows:
        print_table(Table(columns=_COLUMNS, rows=tuple(map(astuple, rows))), output)
    elif asked:
        output.say(f"nothing of ours is at {', '.join(asked)}.")


def _row(verdict: Verdict) -> ReapedRun:
    return ReapedRun(
        run=verdict.marks.run,
        provider=verdict.provider,
        owner=verdict.marks.owner,
        deadline=f"{verdict.marks.deadline:%Y-%m-%d %H:%M}",
        resources=str(len(verdict.resources)),
        action=verdict.action,
        why=verdict.why,
    )
