"""`gpucost watch`: one look that ends what is due, and the schedule that looks every ten minutes.

Neither a systemd timer nor cron has the environment of a shell, so what is needed of it
(credentials, endpoints, folders) is kept in a file for its owner alone, which
`gpucost watch --environment FILE` reads: no secret gets into a unit, a crontab or a command line,
and nothing of it is read by a shell.
"""

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

import click

from gpucost.arguments.parameters import options
from gpucost.commands.machines.ending import reap
from gpucost.files.writing import state_folder
from gpucost.machines.state import open_cloud
from gpucost.views.output import Output, Table, output_options, print_json, print_table
from pricing.errors import InputError, MissingCredentialsError, RefusedError
from providers.doks import ender_manifest
from providers.private_files import private_folder, read_private, write_private
from providers.redaction import VARIABLES
from providers.registry import CLOUDS, launchable

MINUTES = 10
FILE = "watch.json"
NAME = "gpucost-watch"
_PREFIXES = ("AWS_", "DIGITALOCEAN_", "GPUCOST_", "XDG_")
_NAMES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "SSH_AUTH_SOCK",
)
_CALL_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """What is run, and where that is written down.

    Attributes:
        program: the console script's full path.
        environment: file of the variables.
        units: folder of the user's systemd units.
        minutes: between two looks, a divisor of 60.
    """

    program: Path
    environment: Path
    units: Path
    minutes: int = MINUTES

    @property
    def words(self) -> tuple[str, ...]:
        """The command of each look."""
        return (str(self.program), "watch", "--quiet", "--environment", str(self.environment))

    @property
    def cron_line(self) -> str:
        """For `crontab -e`; cron turns a bare percent sign into a new line."""
        command = shlex.join(self.words).replace("%", "\\%")
        return f"*/{self.minutes} * * * * {command}"

    @property
    def service(self) -> str:
        """The unit of one look."""
        return (
            "[Unit]\n"
            "Description=gpucost: end machines past their deadline, and what a crash left\n"
            "\n"
            "[Service]\n"
            "Type=oneshot\n"
            f"ExecStart={' '.join(_unit_word(word) for word in self.words)}\n"
            "UMask=0077\n"
        )

    @property
    def timer(self) -> str:
        """The unit that starts it; a look that was missed in sleep is made up for."""
        return (
            "[Unit]\n"
            "Description=gpucost: look for machines past their deadline\n"
            "\n"
            "[Timer]\n"
            f"OnCalendar=*:0/{self.minutes}\n"
            "Persistent=true\n"
            "\n"
            "[Install]\n"
            "WantedBy=timers.target\n"
        )


def _unit_word(word: str) -> str:
    """Return a word of ExecStart, in which percent, dollar, quote and backslash have a meaning."""
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%").replace("$", "$$")
    return f'"{escaped}"'


def schedule(state: Path, minutes: int = MINUTES) -> Schedule:
    """Return the schedule of this installation and state folder.

    Raises:
        InputError: the program cannot be found, or a path cannot stand in one line.
    """
    named = Path(sys.argv[0])
    sibling = Path(sys.executable).with_name("gpucost")
    program = next((path for path in (named, sibling) if _is_program(path)), None)
    program = program or Path(shutil.which("gpucost") or "")
    if not _is_program(program):
        raise InputError("the program gpucost is not installed beside this Python; see README.md.")
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    plan = Schedule(
        program=program.absolute(),
        environment=(state / FILE).absolute(),
        units=home / "systemd" / "user",
        minutes=minutes,
    )
    odd = [word for word in plan.words if not word.isprintable()]
    if odd:
        raise InputError(f"{odd[0]!r} cannot stand in a crontab; move it to a plainer path.")
    return plan


def _is_program(path: Path) -> bool:
    return path.name == "gpucost" and path.is_file() and os.access(path, os.X_OK)


def _is_kept(name: str) -> bool:
    """Return whether a look needs the variable: credentials, endpoints, folders, proxies."""
    of_providers = {
        variable.name for provider in CLOUDS.values() for variable in provider.variables
    }
    return name.startswith(_PREFIXES) or name in _NAMES or name in of_providers


def keep_environment(file: Path, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Write what a look needs of the environment, for its owner alone, and return the names.

    Raises:
        RefusedError: the file or its folder is somebody else's, or cannot be written.
    """
    values = {name: value for name, value in sorted(environment.items()) if _is_kept(name)}
    values["GPUCOST_STATE_DIR"] = str(file.parent)
    try:
        private_folder(file.parent)
        write_private(file, json.dumps(values, indent=1))
    except OSError as error:
        raise RefusedError(f"{file}: cannot be written: {error.strerror}.") from error
    return tuple(values)


def read_environment(file: Path) -> dict[str, str]:
    """Return the variables that `keep_environment` wrote.

    Raises:
        InputError: there is no such file, or it holds something else.
        NotOursError: others can read it.
    """
    try:
        values = json.loads(read_private(file))
    except FileNotFoundError as error:
        message = f"{file}: no such file; `gpucost watch --install` writes it."
        raise InputError(message) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{file}: cannot be read: {error}.") from error
    plain = isinstance(values, dict) and all(isinstance(value, str) for value in values.values())
    if not plain or not all(map(_is_kept, values)):
        raise InputError(f"{file}: not written by `gpucost watch --install`; run that again.")
    return dict(values)


def install_timer(plan: Schedule) -> str:
    """Write the units and start the timer; return why not, or nothing where it is active.

    Raises:
        RefusedError: the units cannot be written.
    """
    failure = _systemctl("show-environment")
    if failure:
        return failure
    try:
        plan.units.mkdir(parents=True, exist_ok=True)
        (plan.units / f"{NAME}.service").write_text(plan.service, encoding="utf-8")
        (plan.units / f"{NAME}.timer").write_text(plan.timer, encoding="utf-8")
    except OSError as error:
        raise RefusedError(f"{plan.units}: cannot be written: {error.strerror}.") from error
    steps = (("daemon-reload",), ("enable", "--now", f"{NAME}.timer"))
    failures = [failure for step in steps if (failure := _systemctl(*step))]
    return failures[0] if failures else _systemctl("is-active", "--quiet", f"{NAME}.timer")


def uninstall_timer(plan: Schedule) -> tuple[str, ...]:
    """Stop the timer and remove its units and the file of variables; return what was removed."""
    files = (plan.units / f"{NAME}.timer", plan.units / f"{NAME}.service", plan.environment)
    present = [file for file in files if os.path.lexists(file)]
    if plan.units / f"{NAME}.timer" in present:
        _systemctl("disable", "--now", f"{NAME}.timer")
    for file in present:
        file.unlink()
    if plan.units / f"{NAME}.timer" in present:
        _systemctl("daemon-reload")
    return tuple(str(file) for file in present)


def _systemctl(*arguments: str) -> str:
    """Run `systemctl --user`; empty where it went well, else why not."""
    command = ("systemctl", "--user", *arguments)
    try:
        done = subprocess.run(  # noqa: S603 - words of ours
            command, check=False, capture_output=True, text=True, timeout=_CALL_S
        )
    except FileNotFoundError:
        return "there is no systemd here"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{' '.join(command)}: {error}"
    if done.returncode == 0:
        return ""
    errors = " ".join(done.stderr.split()) or f"exit {done.returncode}"
    return f"{' '.join(command)}: {errors}"


@click.command(name="watch", epilog="Example: gpucost watch --install")
@options(
    "install uninstall minutes in-cluster environment",
    minutes={"default": MINUTES},
    environment={"type": click.Path(path_type=Path)},
)
@output_options
@click.pass_context
def command(
    context: click.Context,
    install: bool,  # noqa: FBT001 - click's flags
    uninstall: bool,  # noqa: FBT001 - the same
    in_cluster: bool,  # noqa: FBT001 - the same
    environment: Path | None,
    minutes: int,
    output: Output,
) -> None:
    """Look once for machines past their deadline and leftovers, and end them as `reap --yes` does.

    --install sets up a systemd user timer for this, or prints a line for cron. The credentials of
    this environment are stored in a file that only you can read (0600). With -q only changes and
    problems are printed.
    """
    if install + uninstall + in_cluster > 1:
        raise InputError("give one of --install, --uninstall and --in-cluster.")
    if in_cluster:
        click.echo(ender_manifest(), nl=False)
    elif install:
        _install(output, minutes)
    elif uninstall:
        _uninstall(output)
    else:
        if environment is not None:
            os.environ.update(read_environment(environment))
        _look(context, output)


def _look(context: click.Context, output: Output) -> None:
    """Reap, and print what it decided; with -q only what is not kept."""
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            context.invoke(reap, yes=True, **{**output.options, "format_": "json"})
    finally:
        rows = json.loads(printed.getvalue() or "[]")
        _show([row for row in rows if row["action"] != "keep" or not output.quiet], output)


def _show(rows: list[dict[str, str]], output: Output) -> None:
    if output.format == "json":
        print_json(rows)
    elif rows:
        values = tuple(tuple(row.values()) for row in rows)
        print_table(Table(columns=tuple(rows[0]), rows=values), output)


def _install(output: Output, minutes: int) -> None:
    providers = _reachable()
    plan = schedule(state_folder(), minutes)
    names = keep_environment(plan.environment, os.environ)
    secrets = ", ".join(name for name in names if name in VARIABLES)
    output.say(f"providers that will be checked: {', '.join(providers)}")
    output.say(
        f"stored in {plan.environment}, readable only by you (0600): {secrets or 'no secret'}"
    )
    if "AWS_SESSION_TOKEN" in names:
        output.say("warning: AWS_SESSION_TOKEN expires; a profile (AWS_PROFILE) does not.")
    failure = install_timer(plan)
    if failure:
        output.say(f"no systemd timer: {failure}. Put this line into `crontab -e`:")
        click.echo(plan.cron_line)
        return
    output.say(f"a systemd timer checks every {minutes} minutes while you are logged in.")
    output.say("`loginctl enable-linger` keeps it running after you log out.")


def _reachable() -> tuple[str, ...]:
    """Return the providers whose credentials are there.

    Raises:
        MissingCredentialsError: there are none, so that a look could see nothing.
    """
    reachable: list[str] = []
    problems: list[str] = []
    for provider in sorted(launchable()):
        try:
            open_cloud(provider)
            reachable.append(provider)
        except MissingCredentialsError as error:
            problems += error.problems
    if not reachable:
        raise MissingCredentialsError(
            ("not installed: no provider has credentials in this environment.", *problems)
        )
    return tuple(reachable)


def _uninstall(output: Output) -> None:
    for file in uninstall_timer(schedule(state_folder())):
        output.say(f"removed {file}")
    output.say("if you added a line to your crontab, remove it with `crontab -e`.")
