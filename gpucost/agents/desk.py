"""Works off the calls of tools one after another; errors become sentences, messages progress."""

import asyncio
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import click
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult, TextContent

from gpucost.agents.answers import MOST_ANSWER
from gpucost.agents.spending import Spending
from pricing.errors import GpucostError
from providers.redaction import redact

Commands = Mapping[str, click.Command]
Work = Callable[[], "ToolAnswer"]
Runner = Callable[[Callable[[], CallToolResult]], Awaitable[CallToolResult]]

BEAT_S = 2.0
"""A call that takes longer tells that it is at work so often: clients end what is silent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolAnswer:
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
class Desk:
    """What all tools share.

    Attributes:
        commands: of the command line.
        root: the only folder that is read.
        spending: what may be spent.
        runner: where a call is worked off.
    """

    commands: Commands
    root: Path
    spending: Spending
    runner: Runner
    _one: threading.Lock = field(default_factory=threading.Lock)

    async def do(self, work: Work, context: Context[Any, Any], doing: str) -> CallToolResult:
        """Return an answer that is not too long; while it is made, tell how far it is."""
        told, refused, found = _Progress(context, doing), None, None
        async with anyio.create_task_group() as group:
            group.start_soon(told.beat)
            try:
                found = await self.runner(lambda: self._done(work, told))
            except ToolError as error:  # a group would raise it within another one
                refused = error
            told.end()
            group.cancel_scope.cancel()
        if found is None:
            raise refused or ToolError("nothing was answered")
        return found

    def _done(self, work: Work, told: "_Progress") -> CallToolResult:
        try:
            with self._one, told.listening():
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
        texts = [_cut(redact(one)) for one in (text, answer.notes) if one]
        blocks = [TextContent(type="text", text=one) for one in texts]
        return CallToolResult(content=[*blocks], structured_content=document)

    def command(self, name: str, *arguments: str) -> tuple[str, str]:
        """Return what a command prints, and what it says beside that."""
        printed, said = StringIO(), _SaidLines(_listener.get())
        with redirect_stdout(printed), redirect_stderr(said):
            self.commands[name].main(
                [*arguments], prog_name=f"gpucost {name}", standalone_mode=False
            )
        return printed.getvalue(), said.getvalue().strip()


async def in_a_thread(work: Callable[[], CallToolResult]) -> CallToolResult:
    """Return what the work makes, in a thread of its own: for servers without a process."""
    return await anyio.to_thread.run_sync(work)


@contextmanager
def heard() -> Iterator[StringIO]:
    """Tell what is said in the block on standard error as progress; yield it, too."""
    said = _SaidLines(_listener.get())
    with redirect_stderr(said):
        yield said


_listener: ContextVar[Callable[[str], None]] = ContextVar("_listener")


class _SaidLines(StringIO):
    """What is said, each whole line told at once."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell, self._rest = tell, ""

    def write(self, text: str) -> int:
        """Keep it, and tell the lines that it ends."""
        *whole, self._rest = (self._rest + text).split("\n")
        for line in filter(str.strip, whole):
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

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Tell what is said in the block, in whatever thread it is."""
        token = _listener.set(self._say)
        try:
            yield
        finally:
            _listener.reset(token)

    def _say(self, line: str) -> None:
        self._doing = redact(line)[:200]
        with suppress(RuntimeError):  # the server has ended; the work goes on
            asyncio.run_coroutine_threadsafe(self._report(self._doing), self._loop)

    async def _report(self, words: str) -> None:
        if self._over:
            return
        seconds = round(time.monotonic() - self._began, 3)
        self._last_s = max(seconds, self._last_s + 0.001)  # it must grow
        with suppress(Exception):  # a client that has gone is told nothing
            await self._context.report_progress(self._last_s, None, words)


def _cut(text: str) -> str:
    if len(text) <= MOST_ANSWER:
        return text
    return f"{text[:MOST_ANSWER]}\n... cut here: {len(text)} characters. Ask for less.\n"
