"""`gpucost init` and `gpucost demo`: a first settings file, and a plan of a bundled job."""

import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import Decimal
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import click

from gpucost.api import make_plan
from gpucost.arguments.parameters import TYPES, options, today
from gpucost.arguments.settings import PROJECT_FILE
from gpucost.files.writing import read_file, write_file
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, common_options, output_options, print_json
from gpucost.views.plan import print_plan
from planner.choice.requirements import ENGINEER_USD_PER_HOUR, Requirements
from planner.profile.codec import parse_profiles
from pricing.catalog.catalog import Catalog, unknown_names
from pricing.catalog.catalog import load_catalog as load_bundled
from pricing.catalog.regions import known_regions
from pricing.errors import InputError
from pricing.listing import counted
from pricing.message import Message
from pricing.money import HOURS_PER_MONTH, plain

_HEAD = """\
# Defaults of gpucost in this folder. The command line and the environment win over them.
# A section names a command, a key one of its long options; `gpucost plan --help` shows them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class _FirstSettings:
    """What a first settings file says; empty or None: not said, so the built-in default holds.

    Attributes:
        providers: the only ones to be looked at.
        regions: where data may be.
        hours_per_month: hours that machines are held a month.
        engineer_rate: USD an hour of engineering.
    """

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    hours_per_month: Decimal | None = None
    engineer_rate: Decimal | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said."""
        return self == _FirstSettings()

    def checked(self, catalog: Catalog) -> "_FirstSettings":
        """Return it with names as the catalog writes them.

        Raises:
            InputError: names every provider and region that the catalog does not have.
        """
        regions = tuple(name.lower() for name in self.regions)
        problems = _unknown_providers(self.providers, catalog)
        problems += _unknown_regions(regions, catalog)
        if problems:
            raise InputError(problems)
        return replace(self, regions=regions)


def ask(settings: _FirstSettings, catalog: Catalog) -> _FirstSettings:
    """Return the settings with what was not said asked for, on standard error.

    A name that the catalog does not have is told and asked for again; an empty answer leaves the
    built-in default.
    """
    regions = _names(lambda names: _unknown_regions(names, catalog))
    providers = _names(lambda names: _unknown_providers(names, catalog))
    return _FirstSettings(
        providers=settings.providers or _prompt("Providers to use [all]", "", providers),
        regions=settings.regions
        or _prompt("Regions to keep the data in: eu, us ... [all]", "", regions),
        hours_per_month=settings.hours_per_month
        or _prompt(
            "Hours per month that a GPU is rented", HOURS_PER_MONTH, _typed("hours-a-month")
        ),
        engineer_rate=settings.engineer_rate
        or _prompt("Cost of an engineer hour in USD", ENGINEER_USD_PER_HOUR, _typed("dollars")),
    )


def settings_text(settings: _FirstSettings) -> str:
    """Return the TOML text; a key that was not said stands there as a comment."""
    names = (
        _line("provider", _listed(settings.providers), '["aws", "digitalocean"]'),
        _line("region", _listed(settings.regions), '["eu"]'),
    )
    amounts = (
        _line("hours-per-month", _amount(settings.hours_per_month), plain(HOURS_PER_MONTH)),
        _line("engineer-rate", _amount(settings.engineer_rate), plain(ENGINEER_USD_PER_HOUR)),
    )
    return "\n".join((_HEAD, "[plan]", *names, *amounts, "", "[prices]", *names, ""))


def _prompt(question: str, default: object, read: Callable[[str], Any]) -> Any:
    return click.prompt(
        question, default=default, value_proc=read, show_default=default != "", err=True
    )


def _names(problems_of: Callable[[tuple[str, ...]], list[str]]) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of names that stand apart by blanks or commas."""

    def read(answer: str) -> tuple[str, ...]:
        names = tuple(dict.fromkeys(answer.lower().replace(",", " ").split()))
        problems = problems_of(names)
        if problems:
            raise click.UsageError(" ".join(problems))
        return names

    return read


def _typed(kind: str) -> Callable[[Any], Decimal]:
    return lambda answer: Decimal(TYPES[kind].convert(answer, None, None))


def _unknown_providers(names: Iterable[str], catalog: Catalog) -> list[str]:
    return unknown_names("--provider", names, (offer.provider for offer in catalog.offers))


def _unknown_regions(names: Iterable[str], catalog: Catalog) -> list[str]:
    return unknown_names("--region", names, known_regions(catalog.offers))


def _listed(names: tuple[str, ...]) -> str | None:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"[{quoted}]" if names else None


def _amount(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)


def _line(key: str, value: str | None, example: str) -> str:
    return f"# {key} = {example}" if value is None else f"{key} = {value}"


@click.command(name="init", epilog="Example: gpucost init --provider aws --region eu --yes")
@options("provider region hours-per-month engineer-rate.init yes.init force.init")
@common_options
def init(
    *,
    providers: tuple[str, ...],
    regions: tuple[str, ...],
    hours_per_month: Decimal | None,
    engineer_rate: Decimal | None,
    yes: bool,
    force: bool,
    output: Output,
) -> None:
    """Write gpucost.toml with the defaults for this folder; prompts for values not given."""
    if PROJECT_FILE.exists() and not force:
        raise InputError(f"{PROJECT_FILE} already exists; edit it, or add --force to replace it.")
    settings = _FirstSettings(
        providers=providers,
        regions=regions,
        hours_per_month=hours_per_month,
        engineer_rate=engineer_rate,
    )
    asking = not yes and sys.stdin.isatty()
    if settings.is_empty and not yes and not asking:
        raise InputError(Message("input.no-terminal"))
    catalog = load_catalog(today(), say=output.say)
    settings = settings.checked(catalog)
    write_file(str(PROJECT_FILE), settings_text(ask(settings, catalog) if asking else settings))
    output.say(f"wrote {PROJECT_FILE}; `gpucost plan` and `gpucost prices` read it here.")


EXAMPLE = "visual-search.json"
_TITLE = "# GPU cost report"


@click.command(name="demo", epilog="Example: gpucost demo")
@options("report.demo")
@output_options
def demo(report_path: str, output: Output) -> None:
    """Plan a bundled measured job and write report.md."""
    from templates.render import render_report  # noqa: PLC0415 - jinja2 only for reports

    data = resources.files("gpucost.examples").joinpath(EXAMPLE).read_bytes()
    day = today()
    jobs = parse_profiles(data, EXAMPLE)
    plan = make_plan(jobs, load_bundled(day), Requirements(), as_of=day)
    writable = _may_write(report_path)
    if writable:
        write_file(report_path, render_report(plan))
    if output.format == "json":
        print_json(plan)
    elif output.format == "md":
        click.echo(render_report(plan), nl=False)
    else:
        print_plan(plan, output)
    if writable:
        output.say(f"wrote {report_path}. For your own job: gpucost import LOG, then gpucost plan.")
    else:
        output.say(f"{report_path} is not a gpucost report and was left alone; see --report FILE.")


def _may_write(path: str) -> bool:
    """Return whether the file is ours to write: new, or an earlier report."""
    try:
        return path == "-" or Path(path).read_text(encoding="utf-8").startswith(_TITLE)
    except FileNotFoundError:
        return True
    except (OSError, UnicodeDecodeError):
        return False


@click.command(name="examples", epilog="Example: gpucost examples examples/")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@options("force")
@common_options
def examples(folder: Path, output: Output, *, force: bool) -> None:
    """Write the bundled examples into DIR: profiles, a fleet, a training script, API programs.

    The commands of the how-to guides work in the folder that holds DIR, if DIR is called examples.
    """
    files = {folder / name: text for name, text in _bundled(resources.files("gpucost.examples"))}
    changed = [path for path, text in files.items() if path.exists() and read_file(path) != text]
    if changed and not force:
        raise InputError(Message("input.example-differs", path=str(path)) for path in changed)
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(str(path), text)
    output.say(f"wrote {counted(len(files), 'file')} to {folder}")
    output.say(f"Try: gpucost plan {folder / EXAMPLE}")


def _bundled(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the path and text of each example; not what makes the folder a package."""
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir() and entry.name != "__pycache__":
            yield from _bundled(entry, f"{prefix}{entry.name}/")
        elif entry.is_file() and entry.name != "__init__.py":
            yield f"{prefix}{entry.name}", entry.read_text(encoding="utf-8")


@click.command(name="help", epilog="Example: gpucost help plan")
@click.argument("names", nargs=-1, metavar="[COMMAND]")
@click.pass_context
def help_(context: click.Context, names: tuple[str, ...]) -> None:
    """List every command with what it does, or show all options of one."""
    top = context.find_root()
    command = top.command
    if not names:
        top.meta["gpucost.every-command"] = True
        click.echo(top.get_help())
        return
    for name in names:
        subcommand = command.get_command(top, name) if isinstance(command, click.Group) else None
        if subcommand is None:
            raise click.UsageError(f"No such command {name!r}. `gpucost help` lists all.")
        top, command = click.Context(subcommand, info_name=name, parent=top), subcommand
    top.meta["gpucost.all-options"] = True
    click.echo(top.get_help())
