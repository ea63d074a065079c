"""The server of the Model Context Protocol: each tool calls what a command of gpucost calls."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, ToolAnnotations
from pydantic import Field

from gpucost.agents import inputs
from gpucost.agents.answers import planned, priced, shortened
from gpucost.agents.desk import Commands, Desk, Runner, ToolAnswer, heard, in_a_thread
from gpucost.agents.spending import AgentLaunch, Spending
from gpucost.arguments.parameters import DURATION
from gpucost.files.plan_file import load_plan
from gpucost.schemas.documents import DOCUMENTS
from gpucost.version import __version__
from planner.plan_document.encode import encode
from pricing.errors import InputError, RefusedError

Text = Annotated[str, Field(max_length=1_000)]
Names = Annotated[list[Text], Field(max_length=100)]
Call = Context[Any, Any]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(read_only_hint=True, open_world_hint=True)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_SPENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


def make_server(
    commands: Commands, root: Path, spending: Spending, runner: Runner = in_a_thread
) -> MCPServer:
    """Return the server.

    Args:
        commands: of the command line, by name: explain, prices, quote, diagnose, plan, list, down.
        root: the folder below which files are read and plans are written.
        spending: previews and launches.
        runner: where calls are worked off, one after another.
    """
    desk = Desk(commands=commands, root=root.resolve(), spending=spending, runner=runner)
    tools = [*_known(desk), _diagnose(desk), _plan(desk), *_machines(desk)]
    tools += [] if spending.budget.usd is None else [_provision(desk)]
    return MCPServer(
        "gpucost",
        version=__version__,
        instructions="Measured GPU jobs in; the cheapest way to run them out. Start with diagnose "
        "or plan. Launches need two calls: a preview, then the same call with its token.",
        log_level="WARNING",
        tools=tools,
    )


def _tool(
    work: Callable[..., Any], document: str, annotations: ToolAnnotations, name: str | None = None
) -> Tool:
    """Return a tool whose answers are documents of that name."""
    made = Tool.from_function(work, name, annotations=annotations, structured_output=False)
    made.fn_metadata.output_schema = {"type": "object", **DOCUMENTS[document].schema}
    return made


def _known(desk: Desk) -> list[Tool]:
    """Return the tools that look up what gpucost knows."""

    async def explain(code: Text, call: Call) -> CallToolResult:
        """Explain a finding or an action of a plan by its code."""

        def work() -> ToolAnswer:
            printed, notes = desk.command("explain", inputs.word("code", code), "-f", "json")
            return ToolAnswer(document=json.loads(printed), notes=notes)

        return await desk.do(work, call, "explaining")

    async def prices(  # noqa: PLR0913, PLR0917 - what an agent may say
        call: Call,
        gpu: Text = "",
        provider: Text = "",
        region: Text = "",
        gpus: Text = "",
        max_usd: Text = "",
    ) -> CallToolResult:
        """List known prices by the hour, cheapest first, with the day of each."""
        asked = {"gpu": gpu, "provider": provider, "region": region, "gpus": gpus}

        def work() -> ToolAnswer:
            options = _options({**asked, "max-price": max_usd})
            printed, notes = desk.command("prices", "list", *options, "-f", "json")
            return ToolAnswer(document=priced(json.loads(printed)), notes=notes)

        return await desk.do(work, call, "looking up prices")

    async def quote(
        type: Text,  # noqa: A002 - the name that agents see
        duration: Text,
        call: Call,
        count: Annotated[int, Field(ge=1, le=64)] = 1,
    ) -> CallToolResult:
        """Price one use of PROVIDER/TYPE[/REGION], to the cent, such as for 90m."""
        asked = {"duration": duration, "count": str(count)}

        def work() -> ToolAnswer:
            place = inputs.word("type", type)
            printed, notes = desk.command("quote", place, *_options(asked), "-f", "json")
            return ToolAnswer(document=json.loads(printed), notes=notes)

        return await desk.do(work, call, "pricing")

    rows = ((explain, "explanation"), (prices, "agent-prices"), (quote, "quote"))
    return [_tool(work, document, _READS) for work, document in rows]


def _diagnose(desk: Desk) -> Tool:
    async def diagnose(sources: Names, call: Call) -> CallToolResult:
        """Say what measured jobs waste and why; sources are profiles or telemetry files."""

        def work() -> ToolAnswer:
            paths = inputs.sources(desk.root, sources)
            printed, notes = desk.command("diagnose", *paths, "-f", "json")
            jobs = json.loads(printed)["jobs"]
            return ToolAnswer(document=shortened({"jobs": jobs}, "jobs"), notes=notes)

        return await desk.do(work, call, "reading what was measured")

    return _tool(diagnose, "agent-diagnosis", _READS)


def _plan(desk: Desk) -> Tool:
    async def plan(
        sources: Names, call: Call, save_as: Text = "plan.json", hours_per_month: Text = ""
    ) -> CallToolResult:
        """Find the cheapest way to run measured jobs; the whole answer is saved as a plan."""

        def work() -> ToolAnswer:
            paths = inputs.sources(desk.root, sources)
            where = inputs.new_plan(desk.root, save_as)
            options = _options({"hours-per-month": hours_per_month})
            screen, notes = desk.command("plan", *paths, *options, "-o", where)
            document = planned(load_plan(where), where)
            text = f"{screen}\n{notes}\nThe whole plan: {where}\n"
            return ToolAnswer(document=document, text=text)

        return await desk.do(work, call, "reading what was measured, and planning")

    return _tool(plan, "agent-plan", _WRITES)


def _machines(desk: Desk) -> list[Tool]:
    async def list_(call: Call) -> CallToolResult:
        """List what runs, with its cost so far."""

        def work() -> ToolAnswer:
            printed, notes = desk.command("list", "-f", "json")
            told = {key: one for key, one in json.loads(printed).items() if key != "schema"}
            return ToolAnswer(document=shortened(told, "runs"), notes=notes)

        return await desk.do(work, call, "asking the providers")

    async def down(run: Text, call: Call) -> CallToolResult:
        """End a run that was launched through these tools, and prove that it is gone."""

        def work() -> ToolAnswer:
            if run not in desk.spending.budget.runs():
                raise RefusedError(
                    f"{inputs.shown(run)}: not a run that was launched through these tools; only "
                    "those are ended here."
                )
            _, notes = desk.command("down", run, "--yes")
            return ToolAnswer(document={"run": run, "gone": True, "said": notes.splitlines()})

        return await desk.do(work, call, "ending it")

    listing = _tool(list_, "agent-runs", _ASKS, "list")
    return [listing, _tool(down, "agent-end", _SPENDS)]


def _provision(desk: Desk) -> Tool:
    async def provision(  # noqa: PLR0913, PLR0917 - what an agent may say
        lease: Text,
        max_usd: Text,
        call: Call,
        type: Text = "",  # noqa: A002 - the name that agents see
        region: Text = "",
        plan: Text = "",
        option: Text = "",
        count: Annotated[int | None, Field(ge=1, le=64)] = None,
        confirm: Text = "",
    ) -> CallToolResult:
        """Launch machines that end themselves after the lease (such as 2h), at most for max_usd.

        Give type (PROVIDER/TYPE) or plan with option (JOB/ID). The first call launches nothing: it
        returns a preview and a token. The same call with confirm=token launches just that.
        """

        def work() -> ToolAnswer:
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
            with heard() as said:
                if confirm:
                    launched = json.loads(desk.spending.launch(asked, confirm))
                    return ToolAnswer(document=launched, notes=said.getvalue().strip())
                return ToolAnswer(document=encode(desk.spending.preview(asked)))

        return await desk.do(work, call, "launching" if confirm else "asking the provider")

    return _tool(provision, "agent-provision", _SPENDS)


def _options(values: Mapping[str, str]) -> list[str]:
    """Return options of a command line; one that is empty is not given."""
    return [f"--{name}={inputs.word(name, value)}" for name, value in values.items() if value]
