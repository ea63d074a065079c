"""`gpucost mcp` in a process of its own, started as an agent starts it, on the fakes of providers.

`python -m tests.agent_server FOLDER ready|never ...`: machines are ready at once, or never; the
rest are the arguments of the command.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters, stdio_client

from gpucost.cli import run
from gpucost.machines import state
from providers.lifecycle.session import Clock, Patience
from providers.ssh.connection import Status
from tests.conftest import ROOT
from tests.gpucost.launching import prepare


@asynccontextmanager
async def served(folder: Path, *arguments: str, ready: str = "ready") -> AsyncIterator[Client]:
    """Yield a client of a server that works in `folder/root`; what it says is in folder/stderr."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    words = ["-m", "tests.agent_server", str(folder), ready, "mcp", "-q", *arguments]
    server = StdioServerParameters(
        command=sys.executable, args=words, env=environment, cwd=str(root)
    )
    with (folder / "stderr").open("a") as said:
        async with Client(stdio_client(server, errlog=said)) as client:
            yield client


async def told_to_end(folder: Path, number: signal.Signals) -> int:
    """Send a signal to the last server; return its process id once it has ended."""
    process = int((folder / "process").read_text("utf-8"))
    os.kill(process, number)
    with anyio.fail_after(120):
        while _lives(process):  # noqa: ASYNC110 - a process tells nobody of its end
            await anyio.sleep(0.05)
    return process


def _lives(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8")
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def main() -> None:
    """Serve until told to end."""
    folder, ready, *arguments = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it
    (Path(folder) / "process").write_text(str(os.getpid()), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        login: Any = prepare(patch, Path(folder))
        if ready == "never":
            login.status = lambda _: Status(state="pending")
            patch.setattr(state, "CLOCK", Clock())
            patch.setattr(state, "PATIENCE", Patience(pause_s=0.2))
        code = run(arguments)
    sys.exit(code)


if __name__ == "__main__":
    main()
