"""Help of a command with many options: under headings, in the order of a table."""

from collections.abc import Mapping
from typing import Any

import click

OTHERS = "Options"


class GroupedCommand(click.Command):
    """List a command's options in groups; what no group names comes last."""

    def __init__(self, *args: Any, groups: Mapping[str, str], **kwargs: Any) -> None:  # noqa: ANN401 - click's
        """Take the headings, each with the long names of its options, as they are typed."""
        super().__init__(*args, **kwargs)
        self.groups = groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write each heading with its options, in the order in which they are declared."""
        heading_of = {
            flag: heading for heading, flags in self.groups.items() for flag in flags.split()
        }
        rows: dict[str, list[tuple[str, str]]] = {heading: [] for heading in (*self.groups, OTHERS)}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                named = (heading_of[flag] for flag in parameter.opts if flag in heading_of)
                rows[next(named, OTHERS)].append(record)
        for heading, records in rows.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)
