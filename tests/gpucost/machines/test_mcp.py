"""`gpucost mcp`: what agents may read, and that they never spend more than they were given."""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from jsonschema import Draft202012Validator

from pricing.errors import RefusedError
from tests.conftest import ROOT

pytest.importorskip("mcp", reason="the package mcp is not installed: pip install 'gpucost[mcp]'")

from mcp import Client, StdioServerParameters, stdio_client

from gpucost.agents import server
from gpucost.agents.answers import MOST_ANSWER, shortened
from gpucost.agents.budget import Budget, BudgetGuard
from gpucost.agents.server import make_server
from gpucost.cli import run as gpucost
from tests.agent_server import served, told_to_end
from tests.gpucost.launching import Ready
from tests.mcp_hostile import BUDGET, LAUNCH, attack
from tests.providers.fakes.digitalocean import DigitalOcean

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


@pytest.fixture
def cloud(ocean: DigitalOcean, monkeypatch: pytest.MonkeyPatch, login: Ready) -> DigitalOcean:
    """A DigitalOcean that other processes of this machine reach, too."""
    assert login.delivered == []
    monkeypatch.setenv("GPUCOST_CACHE_DIR", os.environ["XDG_CACHE_HOME"])
    ocean.contract = None
    return ocean


@pytest.fixture
def watched(cloud: DigitalOcean) -> Iterator[DigitalOcean]:
    """The same; once all that is known was ended, nothing of a launch is there."""
    yield cloud
    assert gpucost(["down", "--all", "--yes", "-q"]) == 0
    things = cloud.estate.things
    assert [len(things[one]) for one in ("droplets", "ssh_keys", "firewalls")] == [0, 0, 0]


def _held(result: Any, tool: Any) -> Any:
    """The document of an answer, which its tool's schema allows."""
    assert not result.is_error, result.content[0].text
    Draft202012Validator.check_schema(tool.output_schema)
    assert tool.output_schema["type"] == "object"
    faults = list(Draft202012Validator(tool.output_schema).iter_errors(result.structured_content))
    assert faults == []
    return result.structured_content


def test_every_tool_answers_a_document_of_its_schema(watched: DigitalOcean, tmp_path: Path) -> None:
    """Eight tools of the real process: each has an output schema, and its answer holds to it."""
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "job.json").write_text(VISUAL_SEARCH, encoding="utf-8")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("explain", {"code": "data-loading"}),
        ("prices", {"gpu": "H100"}),
        ("quote", {"type": "aws/g6.xlarge/us-east-1", "duration": "90m"}),
        ("diagnose", {"sources": ["job.json"]}),
        ("plan", {"sources": ["job.json"]}),
    ]

    async def ask() -> None:
        async with served(tmp_path, "--budget", "200") as client:
            tools = {one.name: one for one in (await client.list_tools()).tools}
            for name, arguments in calls:
                told = _held(await client.call_tool(name, arguments), tools[name])
                assert len(json.dumps(told)) <= MOST_ANSWER
            seen = _held(await client.call_tool("provision", LAUNCH), tools["provision"])
            again = {**LAUNCH, "confirm": seen["confirm"]}
            made = _held(await client.call_tool("provision", again), tools["provision"])
            assert made["state"] == "ready"
            listed = _held(await client.call_tool("list", {}), tools["list"])
            assert [one["run"] for one in listed["runs"]] == [made["run"]]
            ended = _held(await client.call_tool("down", {"run": made["run"]}), tools["down"])
            assert ended["gone"] is True
            assert set(tools) == {*(name for name, _ in calls), "provision", "list", "down"}

    anyio.run(ask)
    assert watched.estate.things["droplets"] == {}
    assert (tmp_path / "stderr").read_text() == ""


def test_a_long_call_tells_that_it_is_at_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Progress comes while a command works: what it says, and that it goes on; it only grows."""
    monkeypatch.setattr(server, "BEAT_S", 0.05)

    told: list[tuple[float, str | None]] = []

    @click.command()
    @click.argument("anything", nargs=-1)
    @click.option("-f")
    def slow(anything: tuple[str, ...], f: str) -> None:
        click.echo(f"reading {anything[0]}", err=True)
        until = time.monotonic() + 60
        while len(told) < 4 and time.monotonic() < until:
            time.sleep(0.05)
        click.echo(json.dumps({"code": anything[0], "text": [f]}))

    async def hear(seconds: float, _: float | None, words: str | None) -> None:
        told.append((seconds, words))

    async def ask() -> None:
        spending = BudgetGuard(Budget(usd=None, folder=tmp_path))
        async with Client(make_server({"explain": slow}, tmp_path, spending)) as client:
            result = await client.call_tool("explain", {"code": "idle"}, progress_callback=hear)
            assert result.structured_content == {"code": "idle", "text": ["json"]}

    anyio.run(ask)
    assert len(told) >= 4
    assert told[-1][1] == "reading idle"
    assert [seconds for seconds, _ in told] == sorted({seconds for seconds, _ in told})


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_is_ended_during_a_launch_leaves_no_orphan(
    number: signal.Signals, watched: DigitalOcean, tmp_path: Path
) -> None:
    """The run is written down before its machine is made, the agent is told, nothing is a trace."""
    answers: list[str] = []

    async def launch(client: Client, token: str) -> None:
        try:
            result = await client.call_tool("provision", {**LAUNCH, "confirm": token})
            answers.extend(getattr(one, "text", "") for one in result.content)
        except Exception as error:  # noqa: BLE001 - the connection is closed
            answers.append(str(error))

    async def ask() -> None:
        async with served(tmp_path, "--budget", "200", ready="never") as client:
            seen = await client.call_tool("provision", LAUNCH)
            token = seen.structured_content["confirm"]
            async with anyio.create_task_group() as group:
                group.start_soon(launch, client, token)
                with anyio.fail_after(120):
                    while not watched.estate.things["droplets"]:  # noqa: ASYNC110 - a fake
                        await anyio.sleep(0.05)
                await anyio.sleep(0.5)
                await told_to_end(tmp_path, number)

    anyio.run(ask)
    assert len(Budget(usd=None, folder=tmp_path / "state").runs()) == 1
    if number != signal.SIGKILL:
        assert "`gpucost down" in answers[0]
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def test_an_idle_server_ends_at_once(tmp_path: Path) -> None:
    """Told to end while nothing is done, it is gone, although its standard input is still open."""

    async def ask() -> None:
        async with served(tmp_path) as client:
            await client.list_tools()
            await told_to_end(tmp_path, signal.SIGTERM)

    anyio.run(ask)
    assert "Traceback" not in (tmp_path / "stderr").read_text()


def _reserve(folder: Path, name: str) -> int:
    """Reserve 7 dollars of 100 as often as they are given."""
    budget, given = Budget(usd=Decimal(100), folder=folder), 0
    for number in range(20):
        try:
            budget.reserve(f"{name}-{number}", Decimal(7), {})
        except RefusedError:
            continue
        given += 1
    return given


def test_processes_share_one_budget(tmp_path: Path) -> None:
    """Four processes that reserve at once get what there is, and not a dollar more."""
    with get_context("spawn").Pool(4) as pool:
        given = pool.starmap(_reserve, [(tmp_path, name) for name in "abcd"])
    assert sum(given) == 14  # 98 of 100
    assert Budget(usd=Decimal(100), folder=tmp_path).spent({}) == Decimal(98)


def test_two_servers_on_one_state_folder_share_its_budget(
    watched: DigitalOcean, tmp_path: Path
) -> None:
    """Both show a preview within the budget; only one of the launches is made."""

    async def ask() -> list[bool]:
        made = []
        arguments = ("--budget", "60")
        async with served(tmp_path, *arguments) as one, served(tmp_path, *arguments) as other:
            seen = [await client.call_tool("provision", LAUNCH) for client in (one, other)]
            tokens = [result.structured_content["confirm"] for result in seen]

            async def launch(client: Client, token: str) -> None:
                result = await client.call_tool("provision", {**LAUNCH, "confirm": token})
                made.append(not result.is_error)

            async with anyio.create_task_group() as group:
                for client, token in zip((one, other), tokens, strict=True):
                    group.start_soon(launch, client, token)
        return made

    assert sorted(anyio.run(ask)) == [False, True]
    assert len(watched.estate.things["droplets"]) == 1


def test_a_long_answer_is_shortened_and_says_so() -> None:
    """So many of a list as an answer holds; the rest is counted."""
    told = shortened({"runs": [{"run": "x" * 1000}] * 50, "asked": []}, "runs")
    assert len(json.dumps(told)) <= MOST_ANSWER
    assert len(told["runs"]) + told["left_out"] == 50
    assert told["left_out"] > 0
