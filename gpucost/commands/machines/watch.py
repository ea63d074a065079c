"""`gpucost watch`: one look that ends what is due, and the schedule that takes it by itself."""

import json
import os
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import click

from gpucost.commands.machines import reap
from gpucost.files.user_folders import state_folder
from gpucost.machines.state import open_cloud
from gpucost.machines.watch_schedule import (
    MINUTES,
    install_timer,
    keep_environment,
    read_environment,
    schedule,
    uninstall_timer,
)
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from pricing.errors import InputError, MissingCredentialsError
from providers.redaction import VARIABLES
from providers.registry import launchable


@click.command(name="watch", epilog="Example: gpucost watch --install")
@click.option("--install", is_flag=True, help=f"Look every {MINUTES} minutes from now on.")
@click.option("--uninstall", is_flag=True, help="No more; the kept credentials are removed.")
@click.option(
    "--environment",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With the variables that --install kept in FILE.",
)
@output_options
@click.pass_context
def command(
    context: click.Context,
    install: bool,  # noqa: FBT001 - click's flags
    uninstall: bool,  # noqa: FBT001 - the same
    environment: Path | None,
    output: Output,
) -> None:
    """Look once: end what is past its deadline or left over, as `reap --yes`; say what was seen.

    --install has that done by a systemd user timer, or prints the line for cron. Credentials of
    this environment are kept for it in a file that only you can read (0600). With -q only what is
    changed or goes wrong is said.
    """
    if install and uninstall:
        raise InputError("--install and --uninstall: say one.")
    if install:
        _install(output)
    elif uninstall:
        _uninstall(output)
    else:
        if environment is not None:
            os.environ.update(read_environment(environment))
        _look(context, output)


def _look(context: click.Context, output: Output) -> None:
    """Reap, and print what it decided; with -q only what is not kept."""
    printed = StringIO()
    asked = {"quiet": output.quiet, "verbose": output.verbose, "no_color": not output.color}
    try:
        with redirect_stdout(printed):
            context.invoke(reap.command, yes=True, format_="json", **asked)
    finally:
        rows = json.loads(printed.getvalue() or "[]")
        _show([row for row in rows if row["action"] != "keep" or not output.quiet], output)


def _show(rows: list[dict[str, str]], output: Output) -> None:
    if output.format == "json":
        print_json(rows)
    elif rows:
        values = tuple(tuple(row.values()) for row in rows)
        print_table(Table(columns=tuple(rows[0]), rows=values), output)


def _install(output: Output) -> None:
    asked = _reachable()
    made = schedule(state_folder())
    kept = keep_environment(made.environment, os.environ)
    secrets = ", ".join(name for name in kept if name in VARIABLES)
    output.say(f"asked will be: {', '.join(asked)}")
    output.say(f"kept in {made.environment}, for you alone (0600): {secrets or 'no secret'}")
    if "AWS_SESSION_TOKEN" in kept:
        output.say("warning: AWS_SESSION_TOKEN expires; a profile (AWS_PROFILE) does not.")
    failure = install_timer(made)
    if failure:
        output.say(f"no systemd timer: {failure}. Put this line into `crontab -e`:")
        click.echo(made.cron_line)
        return
    output.say(f"a systemd timer looks every {MINUTES} minutes, while you are logged in.")
    output.say("`loginctl enable-linger` lets it go on after you log out.")


def _reachable() -> tuple[str, ...]:
    """Return the providers whose credentials are there.

    Raises:
        MissingCredentialsError: there are none, so that a look could see nothing.
    """
    found: list[str] = []
    problems: list[str] = []
    for provider in sorted(launchable()):
        try:
            open_cloud(provider)
            found.append(provider)
        except MissingCredentialsError as error:
            problems += error.problems
    if not found:
        raise MissingCredentialsError(("nothing is installed: a look could ask nobody.", *problems))
    return tuple(found)


def _uninstall(output: Output) -> None:
    for file in uninstall_timer(schedule(state_folder())):
        output.say(f"removed {file}")
    output.say("a line in your crontab is yours to remove: `crontab -e`.")
