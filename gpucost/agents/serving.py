"""Serves over standard input and output until it ends, or a signal does: calls in the main thread.

A signal interrupts what the main thread does, as in every command: a launch says what it left, and
the journal knows it. So the server itself runs in another thread.
"""

import asyncio
import os
import queue
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

import anyio
from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import CallToolResult

from pricing.errors import LaunchInterruptedError

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
        made: Future[CallToolResult] = Future()
        self._calls.put((call, made))
        return await asyncio.wrap_future(made)

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


def _work(call: _Call, made: "Future[CallToolResult]") -> None:
    if not made.set_running_or_notify_cancel():
        return
    try:
        found = call()
    except KeyboardInterrupt:
        _tell(made, ToolError("interrupted: the server was told to end; nothing was changed."))
        raise
    except ToolError as error:
        _tell(made, error)
        if isinstance(error.__context__, LaunchInterruptedError):
            raise KeyboardInterrupt from error
    except BaseException as error:  # noqa: BLE001 - the caller is told, and the server goes on
        _tell(made, error)
    else:
        with suppress(InvalidStateError):
            made.set_result(found)


def _tell(made: "Future[CallToolResult]", error: BaseException) -> None:
    with suppress(InvalidStateError):
        made.set_exception(error)
