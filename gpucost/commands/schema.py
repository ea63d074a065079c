"""`gpucost schema`: the JSON Schema of a document that gpucost writes."""

import click

from gpucost.schemas.documents import DOCUMENTS
from gpucost.views.output import Output, Table, output_options, print_json, print_table

_FORMS = {"one": "an object", "list": "an array", "line": "an object a line"}


@click.command(name="schema", epilog="Example: gpucost schema plan")
@click.argument("name", required=False, type=click.Choice(tuple(DOCUMENTS)), metavar="[NAME]")
@output_options
def command(name: str | None, output: Output) -> None:
    """Print the JSON Schema (2020-12) of a document; without NAME list the documents.

    Fields have their meaning and unit. A schema is that of this version: later ones may add fields.
    """
    if name is not None:
        print_json(DOCUMENTS[name].schema)
        return
    rows = tuple((one.name, _FORMS[one.form], one.written) for one in DOCUMENTS.values())
    if output.format == "json":
        print_json([{"name": one, "form": form, "written": by} for one, form, by in rows])
    else:
        print_table(Table(columns=("name", "is", "written by"), rows=rows), output)
