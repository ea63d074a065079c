"""`gpucost mcp`: what agents may read, and that they never spend more than they were given."""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.conftest import ROOT

pytest.importorskip("mcp", reason="the package mcp is not installed: pip install 'gpucost[mcp]'")

from mcp import Client, StdioServerParameters, stdio_client

from tests.mcp_hostile import BUDGET, attack

READING = {"explain", "prices", "quote", "diagnose", "list"}
VISUAL_SEARCH = (ROOT / "examples" / "visual-search.json").read_text(encoding="utf-8")


def _asked(folder: Path, *calls: tuple[str, dict[str, Any]], budget: str = "") -> tuple[Any, Any]:
    """The tools and the answers of `gpucost mcp`, started as an agent starts it."""
    folder.mkdir(exist_ok=True)
    (folder / "job.json").write_text(VISUAL_SEARCH, encoding="utf-8")
    names = ("HOME", "PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "TMPDIR")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    environment |= {"GPUCOST_STATE_DIR": str(folder / "state"), "PYTHONPATH": str(ROOT)}
    arguments = ["-m", "gpucost", "mcp", "-q", *(["--budget", budget] if budget else [])]
    server = StdioServerParameters(
        command=sys.executable, args=arguments, env=environment, cwd=str(folder)
    )

    async def ask() -> tuple[Any, Any]:
        with (folder / "stderr").open("w") as said:
            async with Client(stdio_client(server, errlog=said)) as client:
                tools = (await client.list_tools()).tools
                return tools, [await client.call_tool(*one) for one in calls]

    return anyio.run(ask)


def test_an_agent_reads_plans_and_is_refused(tmp_path: Path) -> None:
    """The real process answers over its standard streams; without a budget it launches nothing."""
    tools, (planned, outside, unknown) = _asked(
        tmp_path / "jobs",
        ("plan", {"sources": ["job.json"]}),
        ("diagnose", {"sources": ["../../etc/passwd"]}),
        ("provision", {"lease": "1h", "max_usd": "5", "type": "aws/g6.xlarge"}),
    )
    assert {one.name for one in tools if one.annotations.read_only_hint} == READING
    assert "provision" not in {one.name for one in tools}
    assert not planned.is_error
    assert "visual-search" in planned.content[0].text
    assert (tmp_path / "jobs" / "plan.json").is_file()
    assert outside.is_error
    assert unknown.is_error
    assert (tmp_path / "jobs" / "stderr").read_text() == ""


def test_hostile_calls_never_put_more_at_risk_than_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over budget, forged, twice, dearer, lied to: within the budget, and nothing is left over."""
    seen = attack(120, 1, tmp_path, monkeypatch)
    assert seen.wrong == []
    assert seen.launched
    assert seen.most_at_risk_usd <= BUDGET
    assert seen.orphans == 0
