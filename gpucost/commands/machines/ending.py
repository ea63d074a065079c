"""`gpucost down` and `gpucost reap`: end launches, and remove what nobody wants."""

from collections.abc import Iterable

import click
import msgspec

from gpucost.arguments.parameters import options
from gpucost.files.writing import state_folder
from gpucost.machines.ending import drop_leftover_keys, end, find_runs, tell
from gpucost.machines.state import confirm, open_journal, sessions, this_owner
from gpucost.schemas.small_documents import ReapedRun
from gpucost.views.output import (
    Output,
    Table,
    common_options,
    output_options,
    print_json,
    print_table,
)
from pricing import errors
from pricing.listing import counted
from pricing.message import Message
from providers.lifecycle.presence import survey
from providers.lifecycle.reap import Verdict, carry_out, judge
from providers.lifecycle.session import Session
from providers.ssh.connection import drop_key

Judged = list[tuple[Session, Verdict]]
"""What is to be done with each run, and the session in which it is done."""


def carry_out_all(pairs: Judged, output: Output, *, yes: bool) -> list[errors.GpucostError]:
    """Remove, adopt and close what was judged, once removals are confirmed; return what failed.

    Raises:
        InterruptedByUserError: interrupted meanwhile; a next `gpucost reap` goes on.
        RefusedError, InputError: not confirmed.
    """
    removed = [verdict for _, verdict in pairs if verdict.action == "remove"]
    if removed:
        things = sum(len(verdict.resources) for verdict in removed)
        confirm(f"Remove {counted(things, 'resource')} of {counted(len(removed), 'run')}?", yes=yes)
    troubles: list[errors.GpucostError] = []
    for session, verdict in pairs:
        try:
            carry_out(session, verdict)
            if verdict.action in ("remove", "close"):
                drop_key(state_folder(), verdict.marks.run)
        except KeyboardInterrupt as error:
            message = f"interrupted at {verdict.marks.run}; `gpucost reap` goes on."
            raise errors.InterruptedByUserError(message) from error
        except errors.GpucostError as error:
            troubles.append(error)
    if removed and not troubles:
        output.say(f"{counted(len(removed), 'run')} removed.")
    return troubles


@click.command(name="down", epilog="Example: gpucost down k3f9xw2m")
@click.argument("runs", nargs=-1, metavar="ID...")
@options("all.down yes")
@common_options
def down(runs: tuple[str, ...], everything: bool, yes: bool, output: Output) -> None:  # noqa: FBT001 - click's flags
    """End launches: their machines, then keys, firewalls and other resources.

    With --all, resources with this owner's tag that are not in the journal are ended, too; an
    unreadable journal is set aside first. Otherwise only the providers of the named runs are
    contacted. A provider that cannot be reached is reported (exit 6); the others are still ended.
    """
    if bool(runs) == everything:
        raise errors.InputError("no run given: name the ID of a run (gpucost list), or --all.")
    with open_journal(go_on=output.say, mend=everything) as journal:
        targets, doubts, was_asked = find_runs(journal, runs, output)
        if targets:
            tell(targets, output)
            confirm(f"End {counted(len(targets), 'run')}?", yes=yes)
        troubles = [trouble for item in targets for trouble in end(item, journal, output)]
    problems = [problem for item in troubles for problem in item.problems]
    problems += (*doubts, *journal.doubts)
    if problems:
        raise (errors.PartialError if was_asked else errors.ProviderError)(dict.fromkeys(problems))
    if not was_asked:
        raise errors.MissingCredentialsError(Message("machine.nobody-asked"))
    if not targets:
        output.say("nothing to end.")


_COLUMNS = ReapedRun.__struct_fields__


@click.command(name="reap", epilog="Example: gpucost reap --dry-run")
@options("all-owners dry-run yes every")
@output_options
@click.pass_context
def reap(
    context: click.Context,
    output: Output,
    *,
    all_owners: bool,
    dry_run: bool,
    yes: bool,
    every: str | None,
) -> None:
    """Remove orphans: launches without a result, machines past their deadline, leftovers.

    Machines within their deadline stay, and so do resources of other owners unless --all-owners is
    given. Resources are found by their tags, even without a readable journal. A provider that
    cannot be reached is reported (exit 6). With --every the credentials of this environment are
    stored in a file that only you can read (0600), for a systemd user timer or a line of cron.
    """
    if every is not None:
        group = context.find_root().command
        watch = group.get_command(context, "watch") if isinstance(group, click.Group) else None
        off = every == "off"
        looks = {"install": not off, "uninstall": off, "minutes": 0 if off else int(every[:-1])}
        context.invoke(watch or reap, environment=None, **looks, **output.options)
        return
    with open_journal(go_on=output.say, mend=True) as journal:
        owner = this_owner()
        reached = sessions(journal, output, must_ask=True)
        pairs: Judged = []
        doubts = [*journal.doubts]
        for session in reached.sessions:
            inventory = survey(session)
            doubts += inventory.doubts
            verdicts = judge(session, inventory, owner, all_owners=all_owners)
            pairs += ((session, verdict) for verdict in verdicts)
        missed = reached.missed(journal.open_deployments())
        doubts += (item.text for item in missed)
        _show([verdict for _, verdict in pairs], () if doubts else reached.queried, output)
        for item in reached.unreached:
            output.say(f"note: {item.text}")
        troubles = [] if dry_run else carry_out_all(pairs, output, yes=yes)
        if not dry_run:
            drop_leftover_keys(journal)
    if not reached.queried:
        texts = [item.text for item in missed]
        raise errors.MissingCredentialsError(texts or Message("machine.nobody-asked"))
    problems = [*(problem for item in troubles for problem in item.problems), *doubts]
    if problems:
        raise errors.PartialError(dict.fromkeys(problems))


def _show(verdicts: list[Verdict], providers: Iterable[str], output: Output) -> None:
    rows = [_row(verdict) for verdict in verdicts]
    if output.format == "json":
        print_json(rows)
    elif rows:
        print_table(Table(columns=_COLUMNS, rows=tuple(map(msgspec.structs.astuple, rows))), output)
    elif providers:
        output.say(f"you have no resources at {', '.join(providers)}.")


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
