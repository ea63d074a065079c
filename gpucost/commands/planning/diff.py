"""`gpucost diff`: what changed between two plans."""

import click

from gpucost.arguments.parameters import language_option
from gpucost.files.plan_file import load_plan
from gpucost.views.output import Output, output_options
from gpucost.views.plan_views.change import print_change
from planner.documents.plan_change import plan_change
from templates.language.translate import ENGLISH, use_language


@click.command(name="diff", epilog="Example: gpucost diff base.json plan.json")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@click.option(
    "--style",
    type=click.Choice(("github-comment",)),
    help="Print it as a comment on GitHub, which is found again and updated.",
)
@language_option
@output_options
def command(old: str, new: str, style: str | None, lang: str, output: Output) -> None:
    """Show what changed between two plans: price moves apart from use, new and gone waste.

    OLD and NEW are files of `gpucost plan -o`. What is compared is today's bill in each of them.
    """
    change = plan_change(load_plan(old), load_plan(new))
    if style is None:
        with use_language(lang if output.format in ("table", "md") else ENGLISH):
            print_change(change, output)
        return
    from templates.render import render_change  # noqa: PLC0415 - jinja2 only here

    click.echo(render_change(change, lang=lang), nl=False)
