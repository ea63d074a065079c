"""`gpucost list`: what was launched, what it costs an hour and has cost so far."""

import click

from gpucost.launch.state import CLOCK, open_journal, sessions
from gpucost.views.output import Output, output_options
from gpucost.views.runs import show_list
from pricing.errors import GpucostError
from providers.lifecycle.reap import note_gone, unknown_runs


@click.command(name="list", epilog="Example: gpucost list --all")
@click.option("--all", "everything", is_flag=True, help="Ended runs, too.")
@click.option("--offline", is_flag=True, help="From the journal alone; no provider is asked.")
@output_options
def command(everything: bool, offline: bool, output: Output) -> None:  # noqa: FBT001 - click's flags
    """List launches with cost so far, burn rate and the predicted total.

    Providers whose credentials are there are asked what still exists.
    """
    with open_journal() as journal:
        if not offline and any(run.state != "ended" for run in journal.deployments()):
            found, skipped, _ = sessions(journal, output)
            wanted = {run.provider for run in journal.deployments() if run.state != "ended"}
            for session in (one for one in found if one.cloud.name in wanted):
                try:
                    there = session.cloud.ours(None)
                    note_gone(session, there)
                    for run in unknown_runs(session, there):
                        output.say(f"note: {run} is not in the journal: gpucost reap adopts it")
                except GpucostError as error:
                    output.say(f"note: {error.problems[0]}")
            for note in skipped:
                if note.partition(" ")[0] in wanted:
                    output.say(f"note: {note}")
        runs = [run for run in journal.deployments() if everything or run.state != "ended"]
        show_list(runs, output, CLOCK.at(0.0))
