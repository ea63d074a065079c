"""Asks a server of Prometheus's HTTP API for GPU metrics over time, in parts that are kept."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from planner.telemetry.parsing.prometheus_metrics import IDENTITY_METRIC, METRICS
from pricing.errors import InputError, ProviderError, UnreachableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import urllib3

SCHEMES = ("prometheus+http", "prometheus+https")
USER, PASSWORD, TOKEN = (f"GPUCOST_PROMETHEUS_{name}" for name in ("USER", "PASSWORD", "TOKEN"))
_POINTS = 480  # of a series in one answer: 8 hours at a point a minute; servers allow 11,000
_TRIES, _WAIT_S, _TIMEOUT_S = 5, 0.5, 120.0
_AGAIN = (429, 500, 502, 503, 504)
_MATCHER = re.compile(r"([A-Za-z_]\w*)(=~|!~|!=|=)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveQuery:
    """What is asked for.

    Attributes:
        url: the server, `http://HOST[:PORT][/PATH]`.
        start_s: first instant, seconds since 1970, a multiple of `step_s`.
        end_s: last instant, likewise.
        step_s: time between points.
        matchers: selectors of series, as PromQL writes them in braces.
        headers: who asks.
    """

    url: str
    start_s: int
    end_s: int
    step_s: int
    matchers: tuple[str, ...] = ()
    headers: Mapping[str, str] | None = None

    @property
    def name(self) -> str:
        """The server, as provenance names it."""
        return urlsplit(self.url).netloc

    @property
    def digest(self) -> str:
        """A name for what is asked for, whenever that was and whoever asks."""
        told = (self.url, self.step_s, *self.matchers)
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]

    def parts(self) -> Iterator[tuple[int, int]]:
        """Yield the first and last instant of each part, which do not depend on `start_s`."""
        length_s = _POINTS * self.step_s
        begin = self.start_s
        while begin <= self.end_s:
            behind = (begin // length_s + 1) * length_s
            yield begin, min(behind - self.step_s, self.end_s)
            begin = behind


def server_of(source: str) -> str:
    """Return the address of the server behind a SOURCE.

    Raises:
        InputError: the address has a user or a password in it, or no host.
    """
    try:
        parts = urlsplit(source.removeprefix("prometheus+"))
        named, secret = parts.hostname, parts.username or parts.password
    except ValueError:
        named, secret = None, None
    if secret is not None:
        raise InputError(
            f"prometheus+...: an address with a user or password ends up in logs. Set {USER} and "
            f"{PASSWORD}, or {TOKEN}, and give the address without."
        )
    if not named or parts.query or parts.fragment:
        raise InputError(f"{source}: not an address. Give prometheus+http://HOST:9090.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def matcher(text: str) -> str:
    """Return a selector in PromQL's form: LABEL=VALUE, also with != =~ !~.

    Raises:
        InputError: it has another form.
    """
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise InputError(
            f"--match {text}: not LABEL=VALUE. Write --match cluster=a or --match pod=~train.*"
        )
    return f"{found[1]}{found[2]}{json.dumps(found[3].strip(chr(34)), ensure_ascii=False)}"


def answers(
    query: LiveQuery, kept: Path, say: Callable[[str], None]
) -> Iterator[dict[str, object]]:
    """Yield the server's answers, by metric and time; those that are kept are not asked again.

    Args:
        query: what is asked for.
        kept: a folder for what has come: a part a file.
        say: told what is asked.

    Raises:
        UnreachableError: the server does not answer.
        ProviderError: it answers with an error.
        InputError: it knows no GPU metric.
    """
    import urllib3  # noqa: PLC0415 - only where a server is asked

    retries = urllib3.Retry(
        total=_TRIES,
        backoff_factor=_WAIT_S,
        status_forcelist=_AGAIN,
        raise_on_status=False,
        redirect=False,
    )
    with urllib3.PoolManager(retries=retries, timeout=_TIMEOUT_S) as pool:
        names = _names(query, pool)
        if not names:
            raise InputError(
                f"{query.name}: no GPU metric that gpucost knows between those times (DCGM_FI_*, "
                "nvidia_smi_*). Check --since and --match, and that it scrapes an exporter."
            )
        parts = list(query.parts())
        kept.mkdir(parents=True, exist_ok=True)
        for number, name in enumerate(names, start=1):
            say(f"{query.name}: {name}, {number} of {len(names)}, in {len(parts)} parts")
            for begin, end in parts:
                yield _part(query, pool, kept / f"{name}-{begin}-{end}.json.gz", (name, begin, end))


def _part(
    query: LiveQuery, pool: urllib3.PoolManager, file: Path, asked: tuple[str, int, int]
) -> dict[str, object]:
    name, begin, end = asked
    if file.is_file():
        try:
            known: dict[str, object] = json.loads(gzip.decompress(file.read_bytes()))
        except (OSError, ValueError, EOFError):
            file.unlink()
        else:
            return known
    selector = name + ("{" + ",".join(query.matchers) + "}" if query.matchers else "")
    fields = {"query": selector, "start": str(begin), "end": str(end), "step": str(query.step_s)}
    body = _asked(query, pool, "query_range", fields)
    part = file.with_suffix(".part")
    part.write_bytes(gzip.compress(body, mtime=0))
    part.replace(file)
    answer: dict[str, object] = json.loads(body)
    return answer


def _names(query: LiveQuery, pool: urllib3.PoolManager) -> list[str]:
    fields = {"start": str(query.start_s), "end": str(query.end_s)}
    body = json.loads(_asked(query, pool, "label/__name__/values", fields))
    known = {*METRICS, IDENTITY_METRIC}
    names = body.get("data") if isinstance(body, dict) else None
    return sorted(n for n in names or () if isinstance(n, str) and n.lower() in known)


def _asked(query: LiveQuery, pool: urllib3.PoolManager, path: str, fields: dict[str, str]) -> bytes:
    import urllib3  # noqa: PLC0415 - only where a server is asked

    url = f"{query.url}/api/v1/{path}"
    try:
        answer = pool.request("GET", url, fields=fields, headers=dict(query.headers or {}))
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        raise UnreachableError(
            f"{query.name}: no answer from {url} ({type(reason).__name__}). Check the address; "
            "what has come so far is kept, and the same command goes on from there."
        ) from None
    if answer.status in {401, 403}:
        raise ProviderError(
            f"{query.name}: refuses the request ({answer.status}). Set {TOKEN}, or {USER} and "
            f"{PASSWORD}."
        )
    said = _error(answer.data)
    if answer.status != 200 or said is not None:  # noqa: PLR2004 - HTTP's OK
        raise ProviderError(
            f"{query.name}: answered {answer.status} to {path}: {said or 'no data'}."
        )
    return bytes(answer.data)


def _error(body: bytes) -> str | None:
    try:
        answer = json.loads(body)
    except ValueError:
        return "not JSON, so this is not Prometheus's HTTP API"
    if isinstance(answer, dict) and answer.get("status") == "success":
        return None
    said = answer.get("error") if isinstance(answer, dict) else None
    return str(said or "no reason given")[:200]
