"""`gpucost down`: end launches; done when each id of theirs is proved to be gone."""

import click

from gpucost.machines.confirm import confirm
from gpucost.machines.ending import end, find_runs, tell
from gpucost.machines.state import open_journal
from gpucost.views.output import Output, common_options
from pricing.errors import InputError, PartialError, ProviderError
from pricing.listing import counted


@click.command(name="down", epilog="Example: gpucost down k3f9xw2m")
@click.argument("runs", nargs=-1, metavar="ID...")
@click.option("--all", "everything", is_flag=True, help="Everything of this owner.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def command(runs: tuple[str, ...], everything: bool, yes: bool, output: Output) -> None:  # noqa: FBT001 - click's flags
    """End launches: machines by their id, then keys, firewalls and whatever else they have.

    With --all also what carries this owner's tag and is not in the journal; an unreadable journal
    is set aside first. Only providers that have a named run are asked; what could not be asked is
    said (exit 6) and keeps nothing else alive.
    """
    if bool(runs) == everything:
        raise InputError("end what? Give the ID of a run (gpucost list), or --all.")
    with open_journal(go_on=output.say, mend=everything) as journal:
        found = find_runs(journal, runs, output)
        targets = found.targets
        if targets:
            tell(targets, output)
            confirm(f"End {counted(len(targets), 'run')}?", yes=yes)
        troubles = [trouble for one in targets for trouble in end(one, journal, output)]
    problems = [problem for one in troubles for problem in one.problems]
    problems += (*found.doubts, *journal.doubts)
    if problems:
        raise (PartialError if found.was_asked else ProviderError)(dict.fromkeys(problems))
    if not targets:
        output.say("nothing is there to end.")
