"""The command table, and the one place where errors and signals become messages and exit codes."""

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import FrameType

import click
from click.shell_completion import CompletionItem

from gpucost.version import __version__
from pricing.errors import GpucostError, InputError
from pricing.listing import grouped
from providers.redaction import redacted_output

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block when this process is told to end.

    What is ignored (`nohup`) or handled already stays so.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in signals:
        signal.signal(number, _interrupt)
    try:
        yield
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)


def _interrupt(number: int, _: FrameType | None) -> None:
    raise KeyboardInterrupt(signal.Signals(number).name)


INTERRUPTED = 130
_OWN_SIGNALS = ("profile", "run")
"""Commands that pass signals on to a job."""
_UNTIL_UNREAD = (*_OWN_SIGNALS, "loop", "reap", "top", "watch")
"""Commands that may go on for ever, and end where the reader of their output has gone."""

_TABLE = Path(__file__).with_name("arguments") / "commands.txt"
COMMANDS: Mapping[str, tuple[str, str]] = {
    name: (place, help_)
    for line in _TABLE.read_text(encoding="utf-8").splitlines()
    for name, place, help_ in [line.split(maxsplit=2)]
}
"""By name: `module:attribute`, one line of help."""

FIRST = ("plan", "profile", "prices", "report", "provision")
GROUPS = {
    "Understand": "diagnose explain top import capacity demo examples",
    "Price": "compare quote bill",
    "Run": "run list scan logs ssh extend down reap watch",
    "Prove": "verify loop diff accuracy",
    "Hand over": "export mcp schema serve",
    "Administer": "init doctor iam-policy completion help",
}
"""What `gpucost --help` names: five commands with what they do, the others by what they are for."""
MERGED = {
    "reconcile": ("bill",),
    "show": ("list",),
    "recipe": ("export", "--to", "recipe"),
    "fleet": ("diff",),
}
"""Earlier names, which stay callable, with how each is typed now."""
EVERY = "gpucost.every-command"  # of a context in which each command is listed with what it does

_Item = CompletionItem[str]


class _Commands(click.Group):
    """Loads a command's module when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        cmd_name = MERGED.get(cmd_name, (cmd_name,))[0]
        if cmd_name not in COMMANDS:
            return None
        command = load_command(cmd_name)
        from gpucost.arguments.settings import name_variables  # noqa: PLC0415 - not for --version

        name_variables(command)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[_Item]:
        """Return the commands, none of which is imported for that, and the options."""
        names = [n for n in COMMANDS if n.startswith(incomplete) and n != "watch"]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(_Item(name, help=COMMANDS[name][1]) for name in names), *options]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        args = [*MERGED.get(args[0], args[:1]), *_with_purchases(args[1:])]
        near = get_close_matches(args[0], COMMANDS, 1)
        if args[0] not in COMMANDS and near and not ctx.resilient_parsing:
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]!r}?", ctx)
        name, command, arguments = super().resolve_command(ctx, args)
        # Completion, and help, which is shown even where a settings file is broken.
        quiet = ctx.resilient_parsing or not {"-h", "--help", "--help-all"}.isdisjoint(arguments)
        if name is not None and command is not None and not quiet:
            from gpucost.arguments.settings import load_settings  # noqa: PLC0415 - not for --version

            ctx.default_map = {name: load_settings(command, COMMANDS)}
        return name, command, arguments

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        verbose = ctx.meta.get(EVERY, False)
        with formatter.section("Start here"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in FIRST])
        for heading, names in GROUPS.items() if verbose else ():
            with formatter.section(heading):
                formatter.write_dl([(name, COMMANDS[name][1]) for name in names.split()])
        if not verbose:
            with formatter.section("More (`gpucost help` says what each does)"):
                rows = [(heading, ", ".join(names.split())) for heading, names in GROUPS.items()]
                formatter.write_dl(rows)


_PURCHASES = {"--spot": "spot", "--on-demand": "on_demand"}
"""Words that stand for `--purchase`; those after `--` are the command's of a user."""


def _with_purchases(args: list[str]) -> list[str]:
    end = args.index("--") if "--" in args else len(args)
    long = [
        ["--purchase", _PURCHASES[word]] if word in _PURCHASES else [word] for word in args[:end]
    ]
    return [*chain.from_iterable(long), *args[end:]]


EPILOG = "Example: gpucost profile -- python train.py && gpucost plan --report report.md"


@click.group(
    cls=_Commands,
    help="Find out what your GPU jobs waste and the cheapest way to run them.",
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, message="gpucost %(version)s")
def cli() -> None:
    """Find out what GPU jobs waste and the cheapest way to run them."""


def load_command(name: str) -> click.Command:
    """Return a command of COMMANDS; its module is imported for that."""
    module, _, attribute = COMMANDS[name][0].partition(":")
    command: click.Command = getattr(
        import_module(f"gpucost.commands.{module}"), attribute or "command"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code; no traceback or secret is ever shown."""
    command = arguments[0] if arguments else ""
    signals = contextlib.nullcontext() if command in _OWN_SIGNALS else interruptible()
    with redacted_output(outlives_reader=command not in _UNTIL_UNREAD), signals:
        return _run(arguments)


def _run(arguments: Sequence[str]) -> int:
    try:
        result = cli.main(args=list(arguments), prog_name="gpucost", standalone_mode=False)
    except GpucostError as error:
        for problem in grouped(error.problems):
            _tell(problem)
        return error.exit_code
    except click.ClickException as error:
        with contextlib.suppress(OSError):
            error.show()
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        _tell("interrupted; nothing was changed.")
        return INTERRUPTED
    except SystemExit:
        return 0  # click leaves this way when the reader of a pipe has gone
    except OSError as error:
        _tell(f"{error.strerror or error}; the output is incomplete.")
        return InputError.exit_code
    except Exception as error:  # noqa: BLE001 - the last line of defence, without a traceback
        _tell(f"unexpected failure, a bug: {_where(error)}")
        return 1
    return result if isinstance(result, int) else 0


def _tell(problem: str) -> None:
    from gpucost.views.output import Output  # noqa: PLC0415 - not for --version

    Output.insist(f"gpucost: {problem}")


def _where(error: Exception) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    source_line = ""
    if trace is not None:
        source_line = f" at {Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}"
    return f"{type(error).__name__}: {error}{source_line}. Please report it with the command."
