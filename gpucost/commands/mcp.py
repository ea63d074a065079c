"""`gpucost mcp`: gpucost as tools of an agent, over standard input and output."""

from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path

import click

from gpucost.arguments.parameters import options
from gpucost.commands.machines.ending import down
from gpucost.commands.machines.runs import list_
from gpucost.commands.measuring import diagnose
from gpucost.commands.money import prices, quote
from gpucost.commands.planning import explain, plan
from gpucost.files.writing import state_folder
from gpucost.views.output import Output, common_options
from pricing.errors import InputError, InterruptedByUserError

COMMANDS: dict[str, click.Command] = {
    "explain": explain.command,
    "prices": prices.command,
    "quote": quote.command,
    "diagnose": diagnose.command,
    "plan": plan.command,
    "list": list_,
    "down": down,
}


@click.command(name="mcp", epilog="Example: gpucost mcp --budget 50")
@options("budget.mcp root", root={"type": click.Path(path_type=Path, exists=True, file_okay=False)})
@common_options
def command(budget: Decimal | None, root: Path, output: Output) -> None:
    """Give an AI agent tools (Model Context Protocol) until standard input ends.

    Without --budget nothing can be launched. The budget covers all launches by agents from this
    state folder, including those of earlier servers: a run counts with its cap until it is gone,
    then with its bill. Each launch takes two calls, a preview and its confirmation.
    """
    if find_spec("mcp") is None:
        raise InputError("the package mcp is not installed: pip install 'gpucost[mcp]'.")
    from gpucost.agents.budget import Budget, BudgetGuard  # noqa: PLC0415 - only with the package
    from gpucost.agents.server import MainThread, leave, make_server  # noqa: PLC0415 - the same

    output.say(f"serving over standard input and output; files below {root.resolve()}")
    spending = BudgetGuard(Budget(usd=budget, folder=state_folder()))
    main_thread = MainThread()
    if main_thread.serve(make_server(COMMANDS, root, spending, main_thread.run)):
        output.insist("gpucost: stopped. Launches are recorded: `gpucost list` shows them.")
        leave(InterruptedByUserError.exit_code)
