"""What a provider is: the facts that the rest of gpucost asks, in one value of its folder.

Nothing here or in the modules that fill it imports an SDK: commands that only ask which providers
there are stay fast.
"""

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from pricing.errors import InputError
from pricing.message import Message
from pricing.tables import JsonObject

if TYPE_CHECKING:
    from pricing.refresh.reading import PriceReading

Kind = Literal["poweroff", "api", "cluster", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A variable of the environment that the provider's modules read.

    Attributes:
        name: such as "DIGITALOCEAN_TOKEN".
        use: for what, in a few words.
        secret: whether its value is hidden everywhere; then `redaction.VARIABLES` has it, too.
    """

    name: str
    use: str
    secret: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfEnd:
    """How a machine ends itself at its deadline, so that it is billed no longer.

    Attributes:
        kind: `poweroff` where the provider terminates what powers off, `api` where only a call to
            the provider ends the bill, `cluster` where something in it ends a pool, `none` where
            there is nothing to end.
        token: variable with the token of that call; it is handed to the machine.
        reach: what else that token can end, for people.
        id_url: where a machine reads its own id; empty: it is handed over with the token.
        url: where a machine is read with that token, and ended by DELETE, before its id; its
            scheme and host may be replaced.
        post: path of a POST there that ends machines by their `instance_ids`; empty: DELETE does.
        endpoint: variable that replaces scheme and host.
        outside: what can end a machine from outside, as a role that the user names; empty: nothing.
        outside_s: most seconds by which that comes later than the machine's own end.
        lacks: why no machine there can end its own bill, for people; empty: it can.
    """

    kind: Kind
    token: str = ""
    reach: str = ""
    id_url: str = ""
    url: str = ""
    post: str = ""
    endpoint: str = ""
    outside: str = ""
    outside_s: int = 0
    lacks: str = ""

    def url_with(self, environment: Mapping[str, str], path: str = "") -> str:
        """Return the address of `url`, or of another path, at the endpoint that is named."""
        replacement = environment.get(self.endpoint, "").strip().rstrip("/")
        scheme, _, address = self.url.partition("://")
        host, slash, own_path = address.partition("/")
        return f"{replacement or f'{scheme}://{host}'}{path or slash + own_path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Provider:
    """A provider that machines can be launched on.

    Attributes:
        name: as in offers.
        title: for people.
        cloud: module with `connect(connection) -> Cloud` and its class as `CLOUD`; the SDK is
            imported when it connects.
        prices: module with `fetch(request) -> PriceReading`; empty: it tells no live prices.
        scan: module with `scan(request) -> ScanDraft`; empty: what runs there is not shown.
        offered: whether options of a plan can be launched there.
        user: who logs in to its machines over SSH.
        end: how its machines end themselves.
        notices: where a spot machine reads that it is taken back, of its metadata service; empty:
            nowhere. `token_url`: a PUT there gets a token; `token_life`: header of that call;
            `token_header`: of the other calls, before the token; `taken_url`: answers 404 until it
            is taken back, then with the time; `at_risk_url`: the same of a machine that may be.
        page: where to rent by hand.
        variables: of the environment that matter, for `gpucost doctor`.
        asked_with: variables of which one must be set before `gpucost doctor` asks the provider.
        pools_of: provider whose machines are the nodes of its pools; empty: it makes no pools.
        is_used: whether something of ours may be there, by the environment and the folder of the
            state; it is asked only then, or where the journal has an open run there.
        address: of its API, an https address; empty: it has none.
        endpoint: variable that replaces that address.
        is_named: whether sentences name it as asked where the journal has no open run there.
        joins_plainly: whether its fast network has to be set up by the user.
        not_in_total: parts of a bill that a preview cannot know, in a sentence; empty: none.
    """

    name: str
    title: str
    cloud: str
    prices: str = ""
    scan: str = ""
    offered: bool = True
    user: str = "root"
    end: SelfEnd = SelfEnd(kind="none")
    notices: Mapping[str, str] = field(default_factory=dict)
    page: str = ""
    variables: tuple[Variable, ...] = ()
    asked_with: tuple[str, ...] = ()
    joins_plainly: bool = False
    not_in_total: str = ""
    pools_of: str = ""
    is_used: Callable[[Mapping[str, str], Path], bool] = field(default=lambda *_: True, repr=False)
    is_named: bool = True
    address: str = ""
    endpoint: str = ""

    @property
    def by_machine(self) -> bool:
        """Whether machines do it, which can be asked about it over SSH."""
        return self.end.kind in ("poweroff", "api")


def check_form(variable: str, provider: str, reach: str, token: str) -> None:
    """Refuse what cannot be a token for machines to end themselves with, before it goes anywhere.

    Raises:
        InputError: it is empty, or holds blanks, quotes, control characters, letters beyond ASCII.
    """
    if not token:
        details = {"variable": variable, "provider": provider, "reach": reach}
        raise InputError(Message("access.no-end-token", **details))
    if not token.isascii() or not token.isprintable() or set(token) & set(" \"'\\"):
        raise InputError(Message("access.odd-token", variable=variable))


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is asked of a fetcher.

    Attributes:
        now: the time of the reading, aware.
        environment: variables that hold credentials and endpoints; never printed.
        regions: only these; empty: the fetcher's own default.
        instance_types: only these, where a provider can be asked for fewer; empty: all.
    """

    now: datetime
    environment: Mapping[str, str] = field(repr=False)
    regions: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()


class Fetch(Protocol):
    """Reads a provider's live prices.

    Raises:
        MissingCredentialsError: names the variable to set.
        InputError: an endpoint, a file or a region that was asked for cannot be used.
        ProviderError: the provider failed; nothing of its answer is kept.
    """

    def __call__(self, request: Request) -> "PriceReading":
        """Return everything that the provider says it sells."""


Scopes = list[list[str]]
"""Rows of a scope, and what it is for."""


@cache
def permissions() -> Mapping[str, Any]:
    """Return what an identity must be allowed, by name: an IAM policy, or `Scopes` of a token.

    At AWS: read always, make only with our tags, change only what has them; the role of --end-role
    ends instances with our tag and node groups with our name, and nothing else; the service-linked
    role is what EC2 makes at the first spot request of an account. Scopes are rows of a scope and
    what it is for: docs.digitalocean.com/reference/api/scopes, edited 2025-08-28, and for
    Kubernetes the OpenAPI document, read 2026-11-22.
    """
    text = files("providers").joinpath("permissions.json").read_text(encoding="utf-8")
    documents: dict[str, Any] = json.loads(text)
    return documents


def reading(allowed: JsonObject | Scopes) -> JsonObject | Scopes:
    """Return what of it refreshing prices and looking needs; all, where it is not told apart."""
    if isinstance(allowed, list):
        return [row for row in allowed if row[0].endswith(":read")] or allowed
    statements = allowed.get("Statement", [])
    reads = [statement for statement in statements if statement["Sid"] == "Read"]  # type: ignore[union-attr,index,call-overload]
    return {**allowed, "Statement": reads} if reads else allowed


ANSWER_S = 90.0
"""How long regions may take together; what one needs with one repetition ends before that."""

_Answer = TypeVar("_Answer")


def in_each(
    names: Iterable[str], asks: Callable[[str], _Answer], *, answer_s: float = ANSWER_S
) -> Mapping[str, _Answer | None]:
    """Return each region's or provider's answer, in the order of the names; None: it is silent.

    Args:
        names: of those that are asked at once.
        asks: one of them; what it raises is raised here.
        answer_s: how long to wait for all of them; who is silent then is not waited for.
    """
    all_names = tuple(dict.fromkeys(names))
    if len(all_names) <= 1:
        return {name: asks(name) for name in all_names}
    answers: dict[str, _Answer] = {}
    errors: list[Exception] = []

    def ask(name: str) -> None:
        try:
            answers[name] = asks(name)
        except Exception as error:  # noqa: BLE001 - raised again by who waits
            errors.append(error)

    until_s = time.perf_counter() + answer_s
    # A process does not wait for the end of these; there are as many as regions, some forty.
    threads = [threading.Thread(target=ask, args=(name,), daemon=True) for name in all_names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, until_s - time.perf_counter()))
    if errors:
        raise errors[0]
    return {name: answers.get(name) for name in all_names}
