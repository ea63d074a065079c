"""The server of the Model Context Protocol: each tool calls what a command of gpucost calls.

Calls run in the main thread: a signal interrupts what the main thread does, as in every command, so
that a launch says what it left. The server itself runs in another thread.
"""

import asyncio
import json
import os
import queue
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import Future, InvalidStateError
from contextlib import (
    AbstractContextManager,
    contextmanager,
    redirect_stderr,
    redirect_stdout,
    suppress,
)
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import anyio
import anyio.to_thread
import click
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field

from gpucost.agents import answers
from gpucost.agents.budget import AgentLaunch, BudgetGuard
from gpucost.arguments.parameters import TYPES
from gpucost.files.plan_file import load_plan
from gpucost.schemas.documents import DOCUMENTS
from gpucost.version import __version__
from planner.models.document import encode
from pricing.errors import GpucostError, InputError, InterruptedByUserError, RefusedError
from pricing.message import Message, set_within
from providers.redaction import redact

LAST_WORDS_S = 1.0
"""For the answer of what was interrupted to leave; clients kill what takes much longer to end."""

_Call = Callable[[], CallToolResult]


class MainThread:
    """Works off calls in the main thread, for a server in another one."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[tuple[_Call, Future[CallToolResult]] | None]
        self._calls = queue.SimpleQueue()

    async def run(self, call: _Call) -> CallToolResult:
        """Return what a call makes, once its turn has come."""
        answer: Future[CallToolResult] = Future()
        self._calls.put((call, answer))
        return await asyncio.wrap_future(answer)

    def serve(self, server: MCPServer) -> bool:
        """Answer calls until the client ends the server; return whether a signal did."""
        thread = threading.Thread(target=self._serve, args=(server,), daemon=True)
        thread.start()
        try:
            while (todo := self._calls.get()) is not None:
                _work(*todo)
        except KeyboardInterrupt:
            thread.join(LAST_WORDS_S)
            return True
        return False

    def _serve(self, server: MCPServer) -> None:
        try:
            with suppress(Exception):  # the streams broke: there is nobody to tell
                anyio.run(server.run_stdio_async)
        finally:
            self._calls.put(None)


def leave(code: int) -> None:
    """End the process at once: a thread still waits for standard input, and would go on to."""
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(code)


def _work(call: _Call, answer: "Future[CallToolResult]") -> None:
    if not answer.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except KeyboardInterrupt:
        _tell(answer, ToolError("interrupted: the server was told to end; nothing was changed."))
        raise
    except ToolError as error:
        _tell(answer, error)
        if isinstance(error.__context__, InterruptedByUserError):
            raise KeyboardInterrupt from error
    except BaseException as error:  # noqa: BLE001 - the caller is told, and the server goes on
        _tell(answer, error)
    else:
        with suppress(InvalidStateError):
            answer.set_result(result)


def _tell(answer: "Future[CallToolResult]", error: BaseException) -> None:
    with suppress(InvalidStateError):
        answer.set_exception(error)


Commands = Mapping[str, click.Command]
Work = Callable[[], "_ToolAnswer"]
Runner = Callable[[Callable[[], CallToolResult]], Awaitable[CallToolResult]]

BEAT_S = 2.0
"""A call that takes longer tells that it is at work so often: clients end what is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolAnswer:
    """What a tool answers.

    Attributes:
        document: by the tool's output schema.
        text: for agents that read text alone; None: the document.
        notes: what the command said beside it.
    """

    document: dict[str, Any]
    text: str | None = None
    notes: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ToolServer:
    """What all tools share.

    Attributes:
        commands: of the command line.
        root: the only folder that is read.
        spending: what may be spent.
        runner: where a call is worked off.
    """

    commands: Commands
    root: Path
    spending: BudgetGuard
    runner: Runner
    _lock: threading.Lock = field(default_factory=threading.Lock)

    async def do(self, work: Work, context: Context[Any, Any], doing: str) -> CallToolResult:
        """Return an answer that is not too long; while it is made, tell how far it is."""
        progress, refused, result = _Progress(context, doing), None, None
        async with anyio.create_task_group() as group:
            group.start_soon(progress.beat)
            try:
                result = await self.runner(lambda: self._done(work, progress))
            except ToolError as error:  # a group would raise it within another one
                refused = error
            progress.end()
            group.cancel_scope.cancel()
        if result is None:
            raise refused or ToolError("nothing was answered")
        return result

    def _done(self, work: Work, progress: "_Progress") -> CallToolResult:
        try:
            with self._lock, progress.listening():
                answer = work()
        except GpucostError as error:
            raise ToolError(_cut(redact("\n".join(error.problems)))) from None
        except click.Abort:
            raise KeyboardInterrupt from None
        except click.ClickException as error:
            raise ToolError(_cut(redact(error.format_message()))) from None
        except OSError as error:
            raise ToolError(redact(f"{error.strerror or error}; nothing was answered")) from None
        except Exception as error:  # noqa: BLE001 - an agent gets a sentence, never a traceback
            raise ToolError(f"unexpected failure, a bug: {type(error).__name__}") from None
        document = json.loads(redact(json.dumps(answer.document, ensure_ascii=False)))
        text = json.dumps(document, ensure_ascii=False) if answer.text is None else answer.text
        texts = [_cut(redact(text)) for text in (text, answer.notes) if text]
        blocks = [TextContent(type="text", text=text) for text in texts]
        return CallToolResult(content=[*blocks], structured_content=document)

    def command(self, name: str, *arguments: str) -> tuple[str, str]:
        """Return what a command prints, and what it says beside that."""
        printed, messages = StringIO(), _SaidLines(_listener.get())
        with redirect_stdout(printed), redirect_stderr(messages):
            self.commands[name].main(
                [*arguments], prog_name=f"gpucost {name}", standalone_mode=False
            )
        return printed.getvalue(), messages.getvalue().strip()


async def in_a_thread(work: Callable[[], CallToolResult]) -> CallToolResult:
    """Return what the work makes, in a thread of its own: for servers without a process."""
    return await anyio.to_thread.run_sync(work)


@contextmanager
def heard() -> Iterator[StringIO]:
    """Tell what is said in the block on standard error as progress; yield it, too."""
    messages = _SaidLines(_listener.get())
    with redirect_stderr(messages):
        yield messages


_listener: ContextVar[Callable[[str], None]] = ContextVar("_listener")


class _SaidLines(StringIO):
    """What is said, each whole line told at once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell, self._rest = tell, ""

    def write(self, text: str) -> int:
        """Keep it, and tell the lines that it ends."""
        *lines, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, lines):
            self._tell(line)
        return super().write(text)


class _Progress:
    """Tells the client how far a call is: seconds since it began, and the last that was said."""

    def __init__(self, context: Context[Any, Any], doing: str) -> None:
        self._context, self._doing = context, doing
        self._began, self._last_s = time.monotonic(), 0.0
        self._loop, self._over = asyncio.get_running_loop(), False

    def end(self) -> None:
        """Tell nothing more: the answer is there."""
        self._over = True

    async def beat(self) -> None:
        """Tell it again and again."""
        while True:
            await anyio.sleep(BEAT_S)
            await self._report(self._doing)

    def listening(self) -> AbstractContextManager[None]:
        """Tell what is said in the block, in whatever thread it is."""
        return set_within(_listener, self._say)

    def _say(self, line: str) -> None:
        self._doing = redact(line)[:200]
        with suppress(RuntimeError):  # the server has ended; the work goes on
            asyncio.run_coroutine_threadsafe(self._report(self._doing), self._loop)

    async def _report(self, text: str) -> None:
        if self._over:
            return
        seconds = round(time.monotonic() - self._began, 3)
        self._last_s = max(seconds, self._last_s + 0.001)  # it must grow
        with suppress(Exception):  # a client that has gone is told nothing
            await self._context.report_progress(self._last_s, None, text)


def _cut(text: str) -> str:
    if len(text) <= answers.MOST_ANSWER:
        return text
    return f"{text[: answers.MOST_ANSWER]}\n... cut here: {len(text)} characters. Ask for less.\n"


Text = Annotated[str, Field(max_length=1_000)]
Names = Annotated[list[Text], Field(max_length=100)]
Call = Context[Any, Any]

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_ASKS = ToolAnnotations(read_only_hint=True, open_world_hint=True)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)
_SPENDS = ToolAnnotations(read_only_hint=False, destructive_hint=True, open_world_hint=True)


def make_server(
    commands: Commands, root: Path, spending: BudgetGuard, runner: Runner = in_a_thread
) -> MCPServer:
    """Return the server.

    Args:
        commands: of the command line, by name: explain, prices, quote, diagnose, plan, list, down.
        root: the folder below which files are read and plans are written.
        spending: previews and launches.
        runner: where calls are worked off, one after another.
    """
    desk = _ToolServer(commands=commands, root=root.resolve(), spending=spending, runner=runner)
    tools = [*_price_tools(desk), _diagnose(desk), _plan(desk), *_machines(desk)]
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
    tool = Tool.from_function(work, name, annotations=annotations, structured_output=False)
    tool.fn_metadata.output_schema = {"type": "object", **DOCUMENTS[document].schema}
    return tool


def _price_tools(desk: _ToolServer) -> list[Tool]:
    """Return the tools that look up what gpucost knows."""

    async def explain(code: Text, call: Call) -> CallToolResult:
        """Explain a finding or an action of a plan by its code."""

        def work() -> _ToolAnswer:
            printed, notes = desk.command("explain", answers.plain_word("code", code), "-f", "json")
            return _ToolAnswer(document=json.loads(printed), notes=notes)

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
        filters = {"gpu": gpu, "provider": provider, "region": region, "gpus": gpus}

        def work() -> _ToolAnswer:
            options = _options({**filters, "max-price": max_usd})
            printed, notes = desk.command("prices", "list", *options, "-f", "json")
            return _ToolAnswer(document=answers.priced(json.loads(printed)), notes=notes)

        return await desk.do(work, call, "looking up prices")

    async def quote(
        type: Text,  # noqa: A002 - the name that agents see
        duration: Text,
        call: Call,
        count: Annotated[int, Field(ge=1, le=64)] = 1,
    ) -> CallToolResult:
        """Price one use of PROVIDER/TYPE[/REGION], to the cent, such as for 90m."""
        terms = {"duration": duration, "count": str(count)}

        def work() -> _ToolAnswer:
            machine = answers.plain_word("type", type)
            printed, notes = desk.command("quote", machine, *_options(terms), "-f", "json")
            return _ToolAnswer(document=json.loads(printed), notes=notes)

        return await desk.do(work, call, "pricing")

    rows = ((explain, "explanation"), (prices, "agent-prices"), (quote, "quote"))
    return [_tool(work, document, _READS) for work, document in rows]


def _diagnose(desk: _ToolServer) -> Tool:
    async def diagnose(sources: Names, call: Call) -> CallToolResult:
        """Say what measured jobs waste and why; sources are profiles or telemetry files."""

        def work() -> _ToolAnswer:
            paths = answers.readable_paths(desk.root, sources)
            printed, notes = desk.command("diagnose", *paths, "-f", "json")
            jobs = json.loads(printed)["jobs"]
            return _ToolAnswer(document=answers.shortened({"jobs": jobs}, "jobs"), notes=notes)

        return await desk.do(work, call, "reading what was measured")

    return _tool(diagnose, "agent-diagnosis", _READS)


def _plan(desk: _ToolServer) -> Tool:
    async def plan(
        sources: Names, call: Call, save_as: Text = "plan.json", hours_per_month: Text = ""
    ) -> CallToolResult:
        """Find the cheapest way to run measured jobs; the whole answer is saved as a plan."""

        def work() -> _ToolAnswer:
            paths = answers.readable_paths(desk.root, sources)
            where = answers.new_plan(desk.root, save_as)
            options = _options({"hours-per-month": hours_per_month})
            screen, notes = desk.command("plan", *paths, *options, "-o", where)
            document = answers.planned(load_plan(where), where)
            text = f"{screen}\n{notes}\nThe whole plan: {where}\n"
            return _ToolAnswer(document=document, text=text)

        return await desk.do(work, call, "reading what was measured, and planning")

    return _tool(plan, "agent-plan", _WRITES)


def _machines(desk: _ToolServer) -> list[Tool]:
    async def list_(call: Call) -> CallToolResult:
        """List what runs, with its cost so far."""

        def work() -> _ToolAnswer:
            printed, notes = desk.command("list", "-f", "json")
            document = {key: value for key, value in json.loads(printed).items() if key != "schema"}
            return _ToolAnswer(document=answers.shortened(document, "runs"), notes=notes)

        return await desk.do(work, call, "asking the providers")

    async def down(run: Text, call: Call) -> CallToolResult:
        """End a run that was launched through these tools, and prove that it is gone."""

        def work() -> _ToolAnswer:
            if run not in desk.spending.budget.runs():
                raise RefusedError(Message("input.not-agents", run=answers.shown(run)))
            _, notes = desk.command("down", run, "--yes")
            return _ToolAnswer(document={"run": run, "gone": True, "said": notes.splitlines()})

        return await desk.do(work, call, "ending it")

    listing = _tool(list_, "agent-runs", _ASKS, "list")
    return [listing, _tool(down, "agent-end", _SPENDS)]


def _provision(desk: _ToolServer) -> Tool:
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

        def work() -> _ToolAnswer:
            launch = AgentLaunch(
                type=answers.plain_word("type", type) if type else "",
                region=answers.plain_word("region", region) if region else "",
                plan=answers.readable_paths(desk.root, [plan])[0] if plan else "",
                option=answers.plain_word("option", option) if option else "",
                count=count,
                lease_s=TYPES["duration"].convert(answers.plain_word("lease", lease), None, None),
                max_usd=answers.positive_dollars("max_usd", max_usd),
            )
            if region and not type:
                raise InputError("region goes with type; an option of a plan has its own.")
            if option and not plan:
                raise InputError("option goes with plan.")
            with heard() as messages:
                if confirm:
                    launched = json.loads(desk.spending.launch(launch, confirm))
                    return _ToolAnswer(document=launched, notes=messages.getvalue().strip())
                return _ToolAnswer(document=encode(desk.spending.preview(launch)))

        return await desk.do(work, call, "launching" if confirm else "asking the provider")

    return _tool(provision, "agent-provision", _SPENDS)


def _options(values: Mapping[str, str]) -> list[str]:
    """Return options of a command line; one that is empty is not given."""
    return [
        f"--{name}={answers.plain_word(name, value)}" for name, value in values.items() if value
    ]
