"""What agents may launch: a limit in dollars held across calls, servers and restarts.

Each launch takes two steps: a preview with a token, then just what it showed. It is written down
with its cap before anything is made. Until its run is proved to be gone it counts with that cap,
and from then on with what it was billed.
"""

import fcntl
import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from io import StringIO
from pathlib import Path

import msgspec

from gpucost.arguments.parameters import today
from gpucost.launch.choice import LaunchChoice, change, choose_option, choose_type, with_dearest
from gpucost.launch.options import LaunchOptions, check_machine, check_self_destroy
from gpucost.launch.provisioning import launch_confirmed, previewed
from gpucost.machines.state import open_cloud, open_journal
from gpucost.prices.cache import load_catalog
from gpucost.views.launch import preview_lines
from gpucost.views.output import Output
from planner.models.document import encode
from pricing.errors import GpucostError, InputError, RefusedError
from pricing.message import Message
from pricing.money import cents, cents_up, show
from providers.interface import OWN, Cloud, Preview
from providers.journal.ledger import bill_run

FILE = "agent-launches.jsonl"

Billed = Mapping[str, Decimal]
"""What runs that have ended were billed, in dollars; without those where it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCap:
    """A line of `agent-launches.jsonl`; the last one of a run counts.

    Attributes:
        run: its name.
        cap_usd: what it may cost; 0 where nothing was made for it.
    """

    run: str
    cap_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The dollars that all launches of agents from one state folder may come to.

    Attributes:
        usd: the limit; None: nothing may be launched.
        folder: of the journal.
    """

    usd: Decimal | None
    folder: Path

    def runs(self) -> frozenset[str]:
        """Return the ids of the runs that agents launched, or tried to."""
        with self._opened() as file:
            return frozenset(_caps(file, self.folder / FILE))

    def spent(self, billed: Billed) -> Decimal:
        """Return what all launches come to at most, in dollars."""
        with self._opened() as file:
            return _spent(_caps(file, self.folder / FILE), billed)

    def reserve(self, run: str, cap: Decimal, billed: Billed) -> None:
        """Write down that a run may cost as much as its cap.

        Raises:
            RefusedError: it would be more than what is left.
        """
        self.check(cap, billed, run)

    def check(self, cap: Decimal, billed: Billed, run: str = "") -> Decimal:
        """Return what is left in dollars, after a launch with this cap; with a run, reserve it.

        Raises:
            RefusedError: there is no budget, or it would be more than what is left.
        """
        if self.usd is None:
            raise RefusedError(Message("input.no-budget"))
        with self._opened() as file:
            remaining = self.usd - _spent(_caps(file, self.folder / FILE), billed)
            if cap > remaining:
                amounts = {"left": show(max(remaining, Decimal(0))), "budget": show(self.usd)}
                raise RefusedError(Message("input.over-budget", cap=show(cap), **amounts))
            if run:
                _write(file, run, cap)
        return remaining - cap

    def release(self, run: str) -> None:
        """Count a run with nothing: nothing was made for it."""
        with self._opened() as file:
            _write(file, run, Decimal(0))

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the file, with nobody else in it."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(self.folder / FILE, flags, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file
        finally:
            os.close(file)


def _write(file: int, run: str, cap: Decimal) -> None:
    os.write(file, f"{json.dumps(encode(AgentCap(run=run, cap_usd=cap)))}\n".encode())
    os.fsync(file)


def _caps(file: int, path: Path) -> dict[str, Decimal]:
    """Return the cap of each run that was written down."""
    os.lseek(file, 0, os.SEEK_SET)
    text = b"".join(iter(lambda: os.read(file, 1 << 16), b"")).decode("utf-8", "replace")
    caps = {}
    for number, line in enumerate(text.splitlines(), start=1):
        try:
            entry = json.loads(line)
            caps[str(entry["run"])] = Decimal(entry["cap_usd"])
        except (ValueError, KeyError, TypeError, InvalidOperation):
            raise RefusedError(Message("input.caps-damaged", path=str(path), line=number)) from None
    return caps


def _spent(caps: dict[str, Decimal], billed: Billed) -> Decimal:
    return sum((billed.get(run, cap) for run, cap in caps.items()), Decimal(0))


VALID_S = 600
"""A token is good for so long, and once."""
_MOST_TOKENS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLaunch:
    """What an agent asks to launch.

    Attributes:
        type: PROVIDER/TYPE; empty: an option of a plan.
        region: with a type; empty: the offer's, or chosen at launch.
        plan: the path of a plan.
        option: JOB/ID of the plan; empty: the recommended one.
        count: machines; None: as planned, or one.
        lease_s: their longest life.
        max_usd: the cap.
    """

    type: str
    region: str
    plan: str
    option: str
    count: int | None
    lease_s: Decimal
    max_usd: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPreview:
    """What an agent is told before a launch.

    Attributes:
        preview: what would be done and cost, a line each.
        worst_case_usd: the cap of the launch.
        budget_left_after_usd: what is left of the budget, should it come to that.
        confirm: the token that launches just that.
        next: what to do now, one sentence.
    """

    preview: tuple[str, ...]
    worst_case_usd: Decimal
    budget_left_after_usd: Decimal
    confirm: str
    next: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    request: AgentLaunch
    terms: str
    until: float


class BudgetGuard:
    """Previews and launches, one at a time.

    Args:
        budget: what may be spent.
        clock: seconds that only go up.
    """

    def __init__(self, budget: Budget, clock: Callable[[], float] = time.monotonic) -> None:
        self.budget = budget
        self._clock = clock
        self._tokens: dict[str, _Shown] = {}
        self._lock = threading.Lock()

    def preview(self, request: AgentLaunch) -> AgentPreview:
        """Return what a launch would do and cost, with the token that confirms just that.

        Raises:
            GpucostError: it would be refused.
        """
        with self._lock:
            _, launch = _previewed(request)
            remaining = self.budget.check(request.max_usd, bills())
            token = secrets.token_urlsafe(24)
            now = self._clock()
            valid = [(key, shown) for key, shown in self._tokens.items() if shown.until > now]
            self._tokens = dict(valid[-_MOST_TOKENS + 1 :])
            self._tokens[token] = _Shown(request=request, terms=_terms(launch), until=now + VALID_S)
        return AgentPreview(
            preview=tuple(preview_lines(launch)),
            worst_case_usd=cents_up(launch.spec.max_usd),
            budget_left_after_usd=cents(remaining),
            confirm=token,
            next=f"call again with the same arguments and confirm within {VALID_S} s; nothing "
            "was launched yet",
        )

    def launch(self, request: AgentLaunch, token: str) -> str:
        """Launch what the token was given for, and return the run as JSON.

        Raises:
            RefusedError: the token is unknown, used or too old; the launch is another one now, or
                more than what is left of the budget.
            GpucostError: as `gpucost provision`.
        """
        with self._lock:
            shown = self._tokens.pop(token, None)
            if shown is None or shown.until <= self._clock():
                raise RefusedError(Message("input.token-unknown"))
            if shown.request != request:
                raise RefusedError(Message("input.token-differs"))
            cloud, launch = _previewed(request)
            if _terms(launch) != shown.terms:
                raise RefusedError(Message("input.terms-changed"))
            return self._launched(cloud, launch)

    def _launched(self, cloud: Cloud, launch: Preview) -> str:
        run, printed = launch.spec.marks.run, StringIO()
        self.budget.reserve(run, launch.spec.max_usd, bills())
        try:
            with redirect_stdout(printed):
                launch_confirmed(cloud, launch.spec, Output(format="json"), wait=True)
        except GpucostError:
            with open_journal() as journal:
                is_known = journal.deployment(run) is not None
            if not is_known:  # the journal knows of a run before anything is made
                self.budget.release(run)
            raise
        return printed.getvalue()


def bills() -> dict[str, Decimal]:
    """Return what each run that has ended was billed, in dollars; without those not known.

    Raises:
        JournalError: the journal cannot be read.
    """
    with open_journal() as journal:
        runs = journal.deployments()
    ended = [(run, run.ended_at) for run in runs if run.state == "ended"]
    amounts = {run.marks.run: bill_run(run, at).usd for run, at in ended if at is not None}
    return {run: usd for run, usd in amounts.items() if usd is not None}


def _previewed(request: AgentLaunch) -> tuple[Cloud, Preview]:
    """Return the provider, and what a launch there would be now.

    Raises:
        GpucostError: it would be refused.
    """
    choice = _choice(request)
    options = LaunchOptions(ttl_s=request.lease_s, max_usd=request.max_usd)
    check_machine(choice, options)
    check_self_destroy(choice.provider, options)
    cloud = open_cloud(choice.provider)
    launch = previewed(cloud, choice, options)
    if launch.refusals:
        raise RefusedError(launch.refusals)
    if launch.most is None:
        raise RefusedError("what it costs at most is not known; nothing is launched.")
    return cloud, launch


def _choice(request: AgentLaunch) -> LaunchChoice:
    """Return what is to be launched, at its first place only: the one that is previewed."""
    if bool(request.type) == bool(request.plan):
        raise InputError(Message("input.no-launch"))
    catalog = load_catalog(today())
    if request.type:
        choice = choose_type(
            request.type, request.region or None, None, request.count or 1, catalog
        )
    else:
        planned = choose_option(request.plan, request.option or None, catalog)
        choice = change(planned, request.count, None, catalog)
    if choice.provider == OWN:
        raise InputError("a machine of your own is not rented; nothing is launched for it.")
    first = replace(choice, offers=choice.offers[:1], machines=choice.machines[:1])
    return with_dearest(first, catalog)


def _terms(launch: Preview) -> str:
    """Return a digest of what a confirmation is of: places, prices, number, life, cap, bill."""
    spec = launch.spec
    places = [
        (target.provider, target.text, target.region, repr(target.offer)) for target in spec.places
    ]
    max_cost = "" if launch.most is None else str(launch.most.exact)
    terms = (places, spec.count, str(spec.ttl_s), str(spec.max_usd), max_cost, spec.marks.plan)
    return hashlib.sha256(msgspec.json.encode(terms)).hexdigest()
