"""Commands with sub-commands, one of which is meant where none is named; help under headings.

`gpucost prices --gpu H100` lists as it always did, and `gpucost prices --provider aws update` is
`gpucost prices update --provider aws`: a sub-command may stand anywhere among the options.
"""

from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import click
import msgspec

from gpucost.arguments.settings import long_options
from pricing.errors import InputError

OTHERS = "Options"
_ALL = "gpucost.all-options"


class _Listing(msgspec.Struct, frozen=True):
    """How a command lists its options; `foreign` is said of one of another sub-command."""

    groups: dict[str, str] = {}
    rare: str = ""
    foreign: str = "{flag} does not go with {command}; leave it out."


_SECTIONS = msgspec.toml.decode(
    files("gpucost.arguments").joinpath("help.toml").read_bytes(), type=dict[str, _Listing]
)


class GroupedCommand(click.Command):
    """List a command's options as a section of help.toml says; rare ones under `--help-all` alone.

    What no heading names comes last. A sub-command names its siblings' options by their owner, all
    at once.
    """

    def __init__(self, *args: Any, listed: str = "", **kwargs: Any) -> None:  # noqa: ANN401 - click's
        """Take a section of help.toml; without one all options stand in one list."""
        super().__init__(*args, **kwargs)
        listing = _SECTIONS.get(listed, _Listing())
        self.groups, self.foreign = listing.groups, listing.foreign
        self.rare = frozenset(listing.rare.split())
        if self.rare:
            self.params.append(_help_all(len(self.rare)))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return the arguments that are left.

        Raises:
            InputError: options of a sibling were given.
        """
        group = ctx.parent.command if ctx.parent else None
        if isinstance(group, DefaultGroup):
            own = long_options(self)
            foreign = {
                flag for command in group.commands.values() for flag in long_options(command)
            }
            flags = dict.fromkeys(_flags(args))
            wrong = [flag for flag in flags if flag in foreign and flag not in own]
            if wrong:
                name = group.full_name(ctx, self)
                raise InputError(
                    self.foreign.format(flag=f"--{flag}", command=name) for flag in wrong
                )
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading with its options, in the order in which they are declared."""
        heading_of = {
            flag: heading for heading, flags in self.groups.items() for flag in flags.split()
        }
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*self.groups, OTHERS)}
        rare = frozenset() if ctx.meta.get(_ALL) else self.rare
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None or not rare.isdisjoint(parameter.opts):
                continue
            if isinstance(parameter, click.Option):
                named = (heading_of[flag] for flag in parameter.opts if flag in heading_of)
                rows[next(named, OTHERS)].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


def _help_all(number: int) -> click.Option:
    return click.Option(
        ("--help-all",),
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=_help_with_all,
        help=f"Show this message with {number} rarer options, and exit.",
    )


def _help_with_all(context: click.Context, _: click.Parameter, shown: bool) -> None:  # noqa: FBT001 - click's
    if shown and not context.resilient_parsing:
        context.meta[_ALL] = True
        click.echo(context.get_help())
        context.exit()


def _flags(args: list[str]) -> Iterator[str]:
    for word in args:
        if word == "--":
            return
        if word.startswith("--"):
            yield word[2:].partition("=")[0]


class DefaultGroup(click.Group):
    """A group whose sub-command need not be named.

    Attributes:
        default_for: returns the sub-command that arguments without one mean.
    """

    command_class = GroupedCommand

    def __init__(
        self,
        *args: Any,  # noqa: ANN401 - click's
        default_for: Callable[[list[str]], str],
        **options: Any,  # noqa: ANN401 - click's
    ) -> None:
        super().__init__(*args, **options)
        self.default_for = default_for

    def full_name(self, ctx: click.Context, command: click.Command) -> str:
        """Return how the sub-command is called: without its name where that is what is meant."""
        path = ctx.parent.command_path if ctx.parent else self.name or ""
        return path if self.default_for([]) == command.name else f"{path} {command.name}"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the sub-command first, and hand the settings of the group down to it."""
        if ctx.default_map:
            ctx.default_map = dict.fromkeys(self.commands, ctx.default_map)
        return super().parse_args(ctx, self.in_order(args))

    def in_order(self, args: list[str]) -> list[str]:
        """Return the arguments with the sub-command first; help of the whole group has none."""
        named = next((word for word in args if word in self.commands), None)
        if named is not None:
            index = args.index(named)
            return [named, *args[:index], *args[index + 1 :]]
        wants_help = any(word in ("-h", "--help") for word in args)
        return args if wants_help else [self.default_for(args), *args]

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Return the usage of what is meant, and of the others."""
        default = self.commands[self.default_for([])]
        names = "|".join(name for name in self.commands if name != default.name)
        return [f"[{names}]", *default.collect_usage_pieces(ctx)]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options of what is meant, then all names; `gpucost help` adds the others'."""
        default = self.commands[self.default_for([])]
        default.format_options(ctx, formatter)
        for name, command in self.commands.items() if ctx.meta.get(_ALL) else ():
            shown = {flag for option in default.params for flag in option.opts}
            records = [
                record
                for option in command.params
                if shown.isdisjoint(option.opts) and (record := option.get_help_record(ctx))
            ]
            if records:
                with formatter.section(f"Options of {name}"):
                    formatter.write_dl(records)
        self.format_commands(ctx, formatter)
