"""`gpucost reconcile`: a plan against the bill."""

import click

from gpucost.arguments.parameters import chosen_options
from gpucost.files.bill_files import read_bills
from gpucost.files.plan_file import load_plan
from gpucost.views.bill import print_reconciliation
from gpucost.views.output import Output, output_options, print_json
from planner.bills.reconcile import reconcile, reconciliation_document
from planner.documents.selection import select


@click.command(
    name="reconcile",
    epilog="Example: gpucost reconcile plan.json invoice.csv --option train/o2",
)
@click.argument("plan_path", metavar="PLAN")
@click.argument("paths", nargs=-1, required=True, metavar="BILL...")
@chosen_options
@output_options
def command(plan_path: str, paths: tuple[str, ...], named: tuple[str, ...], output: Output) -> None:
    """Hold a plan against the bill, line by line.

    BILL is a FOCUS CSV, an AWS Cost and Usage Report, Azure's cost details, Google Cloud's billing
    export, or DigitalOcean's invoice (CSV, JSON) or billing insights; recognised by content, .gz is
    read as is.
    """
    plan = load_plan(plan_path)
    chosen, unknown = select(plan, named)
    bills = read_bills(paths)
    result = reconcile(chosen, bills, period=plan.period)
    document = reconciliation_document(plan, chosen, bills, result, unknown)
    if output.format == "json":
        print_json(document)
    else:
        print_reconciliation(document, output)
