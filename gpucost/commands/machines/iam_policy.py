"""`gpucost iam-policy`: the least permissions that gpucost needs at each provider."""

import click

from gpucost.views.output import Output, Table, common_options, print_json, print_table
from providers.registry import CLOUDS

_KNOWN = {one.name: one for provider in CLOUDS.values() for one in provider.permissions}


@click.command(name="iam-policy", epilog="Example: gpucost iam-policy --read-only")
@click.option(
    "--provider",
    type=click.Choice(tuple(_KNOWN)),
    default=next(iter(_KNOWN)),
    show_default=True,
    help="Whose; digitalocean-reaper is the token that machines end themselves with.",
)
@click.option("--read-only", is_flag=True, help="Only what refreshing prices and looking needs.")
@common_options
def command(provider: str, read_only: bool, output: Output) -> None:  # noqa: FBT001 - click's flag
    """Print what an identity must be allowed: an IAM policy, or the scopes of a token."""
    found = _KNOWN[provider].reading if read_only else _KNOWN[provider].launching
    if isinstance(found, tuple):
        print_table(Table(columns=("scope", "for"), rows=found), output)
    else:
        print_json(found)
