"""`gpucost init`: a first settings file for this folder."""

import sys
from decimal import Decimal

import click

from gpucost.arguments.first_settings import FirstSettings, ask, settings_text
from gpucost.arguments.parameters import DOLLARS, HOURS_A_MONTH, today
from gpucost.arguments.settings import PROJECT_FILE
from gpucost.files.writing import write_file
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, common_options
from pricing.errors import InputError


@click.command(name="init", epilog="Example: gpucost init --provider aws --region eu --yes")
@click.option("--provider", "providers", multiple=True, help="Look at only this one (repeatable).")
@click.option(
    "--region", "regions", multiple=True, help="Data stay there: a region, eu, us (repeatable)."
)
@click.option("--hours-per-month", type=HOURS_A_MONTH, help="Hours that a GPU is held a month.")
@click.option("--engineer-rate", type=DOLLARS, help="Dollars an hour of engineering.")
@click.option("--yes", is_flag=True, help="Ask nothing: what is not said keeps its default.")
@click.option("--force", is_flag=True, help="Write over the file that is there.")
@common_options
def command(
    *,
    providers: tuple[str, ...],
    regions: tuple[str, ...],
    hours_per_month: Decimal | None,
    engineer_rate: Decimal | None,
    yes: bool,
    force: bool,
    output: Output,
) -> None:
    """Write gpucost.toml, the defaults of this folder; asks for what was not said."""
    if PROJECT_FILE.exists() and not force:
        raise InputError(f"{PROJECT_FILE} is there already; edit it, or add --force to replace it.")
    said = FirstSettings(
        providers=providers,
        regions=regions,
        hours_per_month=hours_per_month,
        engineer_rate=engineer_rate,
    )
    asking = not yes and sys.stdin.isatty()
    if said.is_empty and not yes and not asking:
        raise InputError(
            "Nobody can be asked here, and nothing was said: add --provider, --region, "
            "--hours-per-month or --engineer-rate, or --yes for the defaults as comments."
        )
    catalog = load_catalog(today(), say=output.say)
    settings = said.checked(catalog)
    write_file(str(PROJECT_FILE), settings_text(ask(settings, catalog) if asking else settings))
    output.say(f"wrote {PROJECT_FILE}; `gpucost plan` and `gpucost prices` read it here.")
