"""`gpucost completion`: shell completion."""

import click
from click.shell_completion import get_completion_class

_SHELLS = ("bash", "zsh", "fish")


@click.command(name="completion", epilog='Example: eval "$(gpucost completion bash)"')
@click.argument("shell", type=click.Choice(_SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script for a shell; evaluate it in the shell's start-up file.

    It completes commands and options, providers, GPUs, regions and machine types of the bundled
    catalog, codes of findings and actions, JOB/ID of the plan named or of ./plan.json, the runs of
    the journal, and files.
    """
    completion = get_completion_class(shell)
    if completion is None:
        raise click.UsageError(f"this click has no completion for {shell}.")
    click.echo(completion(ctx.find_root().command, {}, "gpucost", "_GPUCOST_COMPLETE").source())
