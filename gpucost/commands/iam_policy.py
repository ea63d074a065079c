"""`gpucost iam-policy`: the least permissions that gpucost needs at AWS and DigitalOcean."""

import click

from gpucost.views.output import Output, Table, common_options, print_json, print_table
from providers.permissions import DIGITALOCEAN_SCOPES, REAPER_SCOPES, aws_policy

_SCOPES = {"digitalocean": DIGITALOCEAN_SCOPES, "digitalocean-reaper": REAPER_SCOPES}


@click.command(name="iam-policy", epilog="Example: gpucost iam-policy --read-only")
@click.option(
    "--provider",
    type=click.Choice(("aws", *_SCOPES)),
    default="aws",
    show_default=True,
    help="Whose; digitalocean-reaper is the token that machines end themselves with.",
)
@click.option("--read-only", is_flag=True, help="Only what refreshing prices and looking needs.")
@common_options
def command(provider: str, read_only: bool, output: Output) -> None:  # noqa: FBT001 - click's flag
    """Print the IAM policy for AWS, or the token scopes for DigitalOcean."""
    if provider == "aws":
        print_json(aws_policy(launches=not read_only))
        return
    scopes = [row for row in _SCOPES[provider] if not read_only or row[0].endswith(":read")]
    print_table(Table(columns=("scope", "for"), rows=tuple(scopes)), output)
