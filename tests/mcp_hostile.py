"""Hostile calls to the tools for agents: `python -m tests.mcp_hostile N --seed S [--real]`."""

import argparse
import json
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from gpucost.agents.answers import MOST_ANSWER
from gpucost.agents.budget import Budget, BudgetGuard
from gpucost.agents.server import make_server
from gpucost.cli import run as gpucost
from gpucost.commands.mcp import COMMANDS
from tests.agent_server import served, told_to_end
from tests.gpucost.launching import prepare
from tests.providers.fakes.account import REAPER, TOKEN, a_digitalocean
from tests.providers.fakes.digitalocean import DigitalOcean, Fault

BUDGET = Decimal(200)
SIZE, PRICE = "gpu-h100x8-640gb", 35.28
LAUNCH = {"type": f"digitalocean/{SIZE}", "lease": "1h", "max_usd": "40"}
SECRETS = (TOKEN, REAPER)
NASTY = (
    "",
    "-",
    "--yes",
    "--option",
    "-o/tmp/x",
    "$(id)",
    "`id`",
    "a; rm -rf .",
    "a\nb",
    "a\0b",
    "a\r\nX: y",
    "../../etc/passwd",
    "/etc/passwd",
    "/proc/self/environ",
    "link/secret",
    "~root",
    "%00",
    "\u202egpj",
    "\ud7ff\u0000",
    "A" * 900,
    "A" * 5_000,
    "nan",
    "inf",
    "-1",
    "1e9",
    "0",
    "0.001",
    "99999999",
    "{}",
    "aws/p5.48xlarge",
    "digitalocean/none",
    "file:///etc/passwd",
    "http://127.0.0.1/",
    "- ",
    "*",
)
FIELDS = {
    "explain": ("code",),
    "prices": ("gpu", "region"),
    "quote": ("type", "duration"),
    "diagnose": ("sources",),
    "plan": ("sources", "save_as"),
    "down": ("run",),
    "provision": ("lease", "max_usd", "type", "plan", "option", "confirm", "count"),
    "no": ("x",),
}
STRANGE = (None, 5, -1, 1.5, True, [], {}, ["a"], {"a": {"b": []}}, [["x"]], 10**30)


@dataclass
class Seen:
    """What the calls came to.

    Attributes:
        outcomes: how many calls of each kind were answered, and refused.
        most_at_risk_usd: the most that machines at the fake could ever come to.
        orphans: what was there once all that is known was ended.
        launched: machines that were there after a call.
        wrong: what must not be.
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    most_at_risk_usd: Decimal = Decimal(0)
    orphans: int = 0
    launched: set[int] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)


@dataclass
class Attack:
    """One attacker: a seed, a fake, a server, the tokens that it has seen."""

    draw: random.Random
    cloud: DigitalOcean
    root: Path
    seen: Seen = field(default_factory=Seen)
    tokens: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    clock: float = 0.0
    real: bool = False

    def client(self) -> AbstractAsyncContextManager[Client]:
        """A client of a server in this process, or in one of its own."""
        if self.real:
            return served(self.root.parent, "--budget", str(BUDGET))
        return Client(self.server())

    def server(self) -> Any:
        """A server as `gpucost mcp --budget 200` makes it, of the same state folder as before."""
        budget = Budget(usd=BUDGET, folder=self.root.parent / "state")
        return make_server(COMMANDS, self.root, BudgetGuard(budget, clock=lambda: self.clock))

    async def calls(self, client: Client, most: int) -> int:
        """Make calls, and look at the fake after each; return how many before the server died."""
        kinds: list[tuple[int, Callable[[Client], Coroutine[Any, Any, None]]]] = [
            (70, self.nonsense),
            (7, self.preview),
            (5, self.confirm),
            (2, self.stale),
            (5, self.forged),
            (2, self.twice),
            (2, self.dearer),
            (2, self.liar),
            (3, self.greedy),
            (4, self.end),
            (2 if self.real else 0, self.kill),
        ]
        weights, makers = zip(*kinds, strict=True)
        for made in range(1, most + 1):
            (make,) = self.draw.choices(makers, weights)
            await make(client)
            self.look()
            if make == self.kill:
                return made
        return most

    def look(self) -> None:
        """Hold what is at the fake against the budget: each machine for its hour, at its price."""
        there = self.cloud.estate.things["droplets"]
        self.seen.launched |= set(there)
        dearest = max(one["price_hourly"] for one in self.cloud.sizes if one["slug"] == SIZE)
        risk = len(there) * Decimal(str(max(dearest, PRICE)))
        self.seen.most_at_risk_usd = max(self.seen.most_at_risk_usd, risk)
        if risk > BUDGET:
            self.seen.wrong.append(f"at risk: {risk}")

    async def ask(
        self, client: Client, tool: str, arguments: dict[str, Any], kind: str
    ) -> str | None:
        """Return the answer of a tool, None where it refuses; either is a bounded sentence."""
        result = await client.call_tool(tool, arguments)
        text = "".join(getattr(one, "text", "") for one in result.content)
        self.seen.outcomes[f"{kind} {'refused' if result.is_error else 'answered'}"] += 1
        if "Traceback" in text or "a bug" in text or any(one in text for one in SECRETS):
            self.seen.wrong.append(f"{tool} {arguments!r:.200}: {text[:300]}")
        if len(text) > MOST_ANSWER + 10_000:
            self.seen.wrong.append(f"{tool}: {len(text)} characters")
        return None if result.is_error else text

    async def nonsense(self, client: Client) -> None:
        """A tool with names and values that no command should see."""
        tool = self.draw.choice(tuple(FIELDS))
        names = FIELDS[tool]
        arguments: dict[str, Any] = {name: self.draw.choice(NASTY) for name in names}
        if "sources" in arguments:
            arguments["sources"] = [self.draw.choice(NASTY) for _ in range(self.draw.randint(0, 3))]
        if self.draw.random() < 0.2:
            arguments[self.draw.choice(names)] = self.draw.choice(STRANGE)
        arguments.pop("count", None) if arguments.get("count") in NASTY else None
        await self.ask(client, tool, arguments, "nonsense")

    async def preview(self, client: Client) -> None:
        """A preview, whose token is kept."""
        wanted = {**LAUNCH, "max_usd": str(self.draw.randint(36, 60))}
        answer = await self.ask(client, "provision", wanted, "preview")
        if answer is not None:
            self.tokens.append((json.loads(answer)["confirm"], wanted))

    async def confirm(self, client: Client) -> None:
        """The last token, or one that was used: both stay in the hands of the attacker."""
        if self.tokens:
            token, wanted = self.draw.choice(self.tokens[-3:])
            await self.ask(client, "provision", {**wanted, "confirm": token}, "confirm")

    async def stale(self, client: Client) -> None:
        """A token that has become too old."""
        await self.preview(client)
        self.clock += 700
        await self.confirm(client)

    async def forged(self, client: Client) -> None:
        """A token of nobody, and a real one with other arguments."""
        forged = f"{self.draw.getrandbits(192):048x}"
        await self.ask(client, "provision", {**LAUNCH, "confirm": forged}, "forged")
        if self.tokens:
            token, wanted = self.tokens[-1]
            other = {**wanted, "lease": "100h", "max_usd": "150", "confirm": token}
            await self.ask(client, "provision", other, "forged")

    async def twice(self, client: Client) -> None:
        """The same token, and previews, at once."""
        await self.preview(client)
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(self.confirm, client)
            group.start_soon(self.preview, client)

    async def dearer(self, client: Client) -> None:
        """The price moves between preview and confirmation, by less than any other check minds."""
        await self.preview(client)
        before = len(self.cloud.estate.things["droplets"])
        size = next(one for one in self.cloud.sizes if one["slug"] == SIZE)
        size["price_hourly"] = PRICE + 0.1
        if self.tokens:
            token, wanted = self.tokens[-1]
            await self.ask(client, "provision", {**wanted, "confirm": token}, "dearer")
        size["price_hourly"] = PRICE
        if len(self.cloud.estate.things["droplets"]) > before:
            self.seen.wrong.append("launched at another price than shown")

    async def liar(self, client: Client) -> None:
        """The provider fails, or does the work and says that it failed."""
        after, status = self.draw.random() < 0.5, self.draw.choice((422, 429, 500))
        fault = Fault(path="/v2/droplets", method="POST", status=status, after=after)
        drop = Fault(path="/v2/droplets", method="POST", drop=True)
        await self.preview(client)
        self.cloud.faults.append(self.draw.choice((fault, drop)))
        await self.confirm(client)
        self.cloud.faults.clear()

    async def greedy(self, client: Client) -> None:
        """More than there is, in a way that is otherwise right."""
        more = self.draw.choice(
            ({"lease": "9h", "max_usd": "250"}, {"count": 9, "max_usd": "240"}, {"max_usd": "1.00"})
        )
        await self.ask(client, "provision", {**LAUNCH, **more}, "greedy")

    async def kill(self, client: Client) -> None:
        """The server is told to end, or killed, while a launch is under way."""
        await self.preview(client)
        number = self.draw.choice((signal.SIGTERM, signal.SIGINT, signal.SIGKILL))
        self.seen.outcomes[number.name] += 1

        async def launch() -> None:
            with suppress(MCPError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                await self.confirm(client)

        async with anyio.create_task_group() as group:
            group.start_soon(launch)
            await anyio.sleep(self.draw.uniform(0.0, 0.3))
            await told_to_end(self.root.parent, number)

    async def end(self, client: Client) -> None:
        """A run is ended; sometimes one that is not theirs."""
        runs = sorted(Budget(usd=None, folder=self.root.parent / "state").runs())
        run = self.draw.choice([*runs[-6:], "k3f9xw2m"])
        await self.ask(client, "down", {"run": run}, "end")


def attack(
    most: int, seed: int, folder: Path, patch: pytest.MonkeyPatch, *, real: bool = False
) -> Seen:
    """Make so many turns, the server restarted now and then; end what is known, and look."""
    prepare(patch, folder)
    patch.setenv("GPUCOST_DIGITALOCEAN_REAPER_TOKEN", REAPER)
    root = folder / "root"
    root.mkdir()
    (folder / "secret").write_text(TOKEN, encoding="utf-8")
    (root / "link").symlink_to(folder)
    with a_digitalocean(folder, patch) as cloud:
        cloud.contract = None
        size = next(one for one in cloud.sizes if one["slug"] == SIZE)
        size |= {"regions": ["nyc2"], "price_hourly": PRICE}
        draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
        attacker = Attack(draw=draw, cloud=cloud, root=root, real=real)

        async def servers() -> None:
            left = most
            while left > 0:
                async with attacker.client() as client:
                    left -= await attacker.calls(client, min(left, 100))

        anyio.run(servers)
        cloud.faults.clear()
        said = folder / "stderr"
        if said.exists() and "Traceback" in said.read_text("utf-8"):
            attacker.seen.wrong.append("a traceback")
        gpucost(["down", "--all", "--yes", "-q"])
        gpucost(["reap", "--yes", "-q"])
        things = cloud.estate.things
        attacker.seen.orphans = sum(
            len(things[one]) for one in ("droplets", "ssh_keys", "firewalls")
        )
    return attacker.seen


def main() -> None:
    """Attack, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("most", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--real", action="store_true", help="processes that are killed, too")
    asked = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUCOST_CACHE_DIR", f"{folder}/cache")
        seen = attack(asked.most, asked.seed, Path(folder), patch, real=asked.real)
    for kind, count in sorted(seen.outcomes.items()):
        print(f"{kind}: {count}")
    took_s = time.monotonic() - began
    print(f"{seen.outcomes.total()} calls in {took_s:.0f} s, {len(seen.launched)} machines")
    print(f"most at risk ${seen.most_at_risk_usd} of ${BUDGET}; orphans {seen.orphans}")
    print(f"wrong: {len(seen.wrong)}", *seen.wrong[:10], sep="\n")


if __name__ == "__main__":
    main()
