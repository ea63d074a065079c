"""The server of the Model Context Protocol: each tool calls what a command of gpucost calls."""

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated

import anyio.to_thread
import click
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from gpucost.agents import inputs
from gpucost.agents.spending import AgentLaunch, Spending
from gpucost.arguments.parameters import DURATION
from gpucost.version import __version__
from planner.plan_document.encode import encode
from pricing.errors import GpucostError, InputError, RefusedError
from providers.redaction import redact

MOST_ANSWER = 20_000
"""Characters of an answer; what is longer is cut, and says so."""

Commands = Mapping[str, click.Command]
Text = Annotated[str, Field(max_length=1_000)]
Names = Annotated[list[Text], Field(max_length=100)]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(read_only_hint=True, open_world_hint=True)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_SPENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


@dataclass(frozen=True, slots=True)
class _Desk:
    """What all tools share: the commands, the only folder that is read, what may be spent."""

    commands: Commands
    root: Path
    spending: Spending
    one: threading.Lock

    async def do(self, work: Callable[[], str]) -> str:
        """Return an answer that is not too long; one call at a time, errors in sentences."""
        return await anyio.to_thread.run_sync(self._do, work)

    def _do(self, work: Callable[[], str]) -> str:
        try:
            with self.one:
                text = redact(work())
        except GpucostError as error:
            raise ToolError(_cut(redact("\n".join(error.problems)))) from None
        except click.ClickException as error:
            raise ToolError(_cut(redact(error.format_message()))) from None
        except OSError as error:
            raise ToolError(redact(f"{error.strerror or error}; nothing was answered")) from None
        except Exception as error:  # noqa: BLE001 - an agent gets a sentence, never a traceback
            raise ToolError(f"unexpected failure, a bug: {type(error).__name__}") from None
        return _cut(text)

    def command(self, name: str, *arguments: str) -> str:
        """Return what a command prints; what it says beside that stands below."""
        printed, said = StringIO(), StringIO()
        with redirect_stdout(printed), redirect_stderr(said):
            self.commands[name].main(
                [*arguments], prog_name=f"gpucost {name}", standalone_mode=False
            )
        notes = said.getvalue().strip()
        return printed.getvalue() + (f"\n{notes}\n" if notes else "")


def make_server(commands: Commands, root: Path, spending: Spending) -> MCPServer:
    """Return the server.

    Args:
        commands: of the command line, by name: explain, prices, quote, diagnose, plan, list, down.
        root: the folder below which files are read and plans are written.
        spending: previews and launches.
    """
    server = MCPServer(
        "gpucost",
        version=__version__,
        instructions="Measured GPU jobs in; the cheapest way to run them out. Start with diagnose "
        "or plan. Launches need two calls: a preview, then the same call with its token.",
        log_level="WARNING",
    )
    desk = _Desk(commands, root.resolve(), spending, threading.Lock())
    _add_reading(server, desk)
    _add_plan(server, desk)
    _add_machines(server, desk)
    if spending.budget.usd is not None:
        _add_provision(server, desk)
    return server


def _add_reading(server: MCPServer, desk: _Desk) -> None:
    async def explain(code: Text) -> str:
        """Explain a finding or an action of a plan by its code."""
        return await desk.do(lambda: desk.command("explain", inputs.word("code", code)))

    async def prices(
        gpu: Text = "", provider: Text = "", region: Text = "", gpus: Text = "", max_usd: Text = ""
    ) -> str:
        """List known prices by the hour, cheapest first, with the day of each."""
        asked = {"gpu": gpu, "provider": provider, "region": region, "gpus": gpus}
        return await desk.do(
            lambda: desk.command(
                "prices", "list", *_options({**asked, "max-price": max_usd}), "-f", "csv"
            )
        )

    async def quote(
        type: Text,  # noqa: A002 - the name that agents see
        duration: Text,
        count: Annotated[int, Field(ge=1, le=64)] = 1,
    ) -> str:
        """Price one use of PROVIDER/TYPE[/REGION], to the cent, such as for 90m."""
        asked = {"duration": duration, "count": str(count)}
        return await desk.do(
            lambda: desk.command("quote", inputs.word("type", type), *_options(asked), "-f", "json")
        )

    async def diagnose(sources: Names) -> str:
        """Say what measured jobs waste and why; sources are profiles or telemetry files."""
        return await desk.do(
            lambda: desk.command("diagnose", *inputs.sources(desk.root, sources), "-f", "json")
        )

    for tool in (explain, prices, quote, diagnose):
        server.add_tool(tool, annotations=_READS, structured_output=False)


def _add_plan(server: MCPServer, desk: _Desk) -> None:
    async def plan(sources: Names, save_as: Text = "plan.json", hours_per_month: Text = "") -> str:
        """Find the cheapest way to run measured jobs; the whole answer is saved as a plan."""

        def work() -> str:
            paths = inputs.sources(desk.root, sources)
            where = inputs.new_plan(desk.root, save_as)
            options = _options({"hours-per-month": hours_per_month})
            told = desk.command("plan", *paths, *options, "-o", where)
            return f"{told}\nThe whole plan: {where}\n"

        return await desk.do(work)

    server.add_tool(plan, annotations=_WRITES, structured_output=False)


def _add_machines(server: MCPServer, desk: _Desk) -> None:
    async def list_() -> str:
        """List what runs, with its cost so far."""
        return await desk.do(lambda: desk.command("list", "-f", "json"))

    async def down(run: Text) -> str:
        """End a run that was launched through these tools, and prove that it is gone."""

        def work() -> str:
            if run not in desk.spending.budget.runs():
                raise RefusedError(
                    f"{inputs.shown(run)}: not a run that was launched through these tools; only "
                    "those are ended here."
                )
            return desk.command("down", run, "--yes") or f"{run} is gone\n"

        return await desk.do(work)

    server.add_tool(list_, name="list", annotations=_ASKS, structured_output=False)
    server.add_tool(down, annotations=_SPENDS, structured_output=False)


def _add_provision(server: MCPServer, desk: _Desk) -> None:
    async def provision(  # noqa: PLR0913, PLR0917 - what an agent may say
        lease: Text,
        max_usd: Text,
        type: Text = "",  # noqa: A002 - the name that agents see
        region: Text = "",
        plan: Text = "",
        option: Text = "",
        count: Annotated[int | None, Field(ge=1, le=64)] = None,
        confirm: Text = "",
    ) -> str:
        """Launch machines that end themselves after the lease (such as 2h), at most for max_usd.

        Give type (PROVIDER/TYPE) or plan with option (JOB/ID). The first call launches nothing: it
        returns a preview and a token. The same call with confirm=token launches just that.
        """

        def work() -> str:
            asked = AgentLaunch(
                type=inputs.word("type", type) if type else "",
                region=inputs.word("region", region) if region else "",
                plan=inputs.sources(desk.root, [plan])[0] if plan else "",
                option=inputs.word("option", option) if option else "",
                count=count,
                lease_s=DURATION.convert(inputs.word("lease", lease), None, None),
                max_usd=inputs.dollars("max_usd", max_usd),
            )
            if region and not type:
                raise InputError("region goes with type; an option of a plan has its own.")
            if option and not plan:
                raise InputError("option goes with plan.")
            if confirm:
                return desk.spending.launch(asked, confirm)
            return json.dumps(encode(desk.spending.preview(asked)), indent=1, ensure_ascii=False)

        return await desk.do(work)

    server.add_tool(provision, annotations=_SPENDS, structured_output=False)


def _options(values: Mapping[str, str]) -> list[str]:
    """Return options of a command line; one that is empty is not given."""
    return [f"--{name}={inputs.word(name, value)}" for name, value in values.items() if value]


def _cut(text: str) -> str:
    if len(text) <= MOST_ANSWER:
        return text
    return f"{text[:MOST_ANSWER]}\n... cut here: {len(text)} characters. Ask for less.\n"
