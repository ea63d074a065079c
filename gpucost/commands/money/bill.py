"""`gpucost bill`: the GPU dollars of an invoice, without a plan."""

from datetime import UTC

import click

from gpucost.files.bill_files import read_bills
from gpucost.files.sources import read_sources
from gpucost.prices.cache import load_catalog
from gpucost.views.invoice import print_review
from gpucost.views.output import Output, output_options, print_json
from planner.bills.leftovers import gpu_sizes
from planner.bills.review import Measured, review, review_document
from telemetry.readers.hints import Hints


@click.command(name="bill", epilog="Example: gpucost bill invoice.csv --tz Europe/Berlin")
@click.argument("paths", nargs=-1, required=True, metavar="INVOICE...")
@click.option("--tz", help="Zone of nights and weekends: Europe/Berlin or +08:00.  [default: UTC]")
@click.option(
    "--measured",
    "profiles",
    multiple=True,
    metavar="SOURCE",
    help="A profile of a machine on the invoice, which need not be measured; repeatable.",
)
@output_options
def command(
    paths: tuple[str, ...], tz: str | None, profiles: tuple[str, ...], output: Output
) -> None:
    """Show what an invoice says of GPUs: dollars by machine, nights, weekends, and leftovers.

    Leftovers are disks, addresses and commitments that nobody used, each with proof and lines.
    INVOICE is what `gpucost reconcile` reads; recognised by content, .gz is read as is.
    """
    zone = Hints(tz=tz).zone or UTC
    bills = read_bills(paths)
    sizes = gpu_sizes(load_catalog(say=output.say))
    found = review(bills, sizes, zone=zone, measured=_measured(profiles, output))
    document = review_document(bills, found, zone)
    if output.format == "json":
        print_json(document)
    else:
        print_review(document, output)


def _measured(profiles: tuple[str, ...], output: Output) -> Measured:
    """Return the machines that were profiled."""
    if not profiles:
        return frozenset()
    machines = (profile.hardware for profile in read_sources(profiles, output.say))
    return frozenset(
        (machine.provider.lower(), machine.instance_type.lower())
        for machine in machines
        if machine.provider and machine.instance_type
    )
