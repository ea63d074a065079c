"""A server of metrics as SOURCE: what the command line says of it, and who asks."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from gpucost.files.writing import cache_folder
from pricing.errors import InputError, ProviderError, UnreachableError
from pricing.message import Message
from telemetry.lake import place as lake_place
from telemetry.readers.column_names import BITMASK, IDENTITY_METRIC, LABELS_METRIC, metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    import urllib3

    from planner.profile.model import Profile
    from telemetry.readers.hints import Hints
    from telemetry.stored_answers import RangeAnswer, StoredAnswers

    _Fields = Sequence[tuple[str, str]]
    _Ask = Callable[[str, _Fields], bytes]
    _Asked = tuple[str, int, int]  # a metric, the first and the last instant

SCHEMES = ("prometheus+http", "prometheus+https")
USER, PASSWORD, TOKEN = (f"GPUCOST_PROMETHEUS_{name}" for name in ("USER", "PASSWORD", "TOKEN"))
_POINTS = 480  # of a series in one answer: 8 hours at a point a minute; servers allow 11,000
_TRIES, _WAIT_S, _TIMEOUT_S = 5, 0.5, 120.0
_WAITS_S = (0.0, 0.5, 2.0, 5.0)  # before an answer is asked for, and again until it is whole
_AT_ONCE, _PODS = 2, 50
_SPECIAL = re.compile(r"[.+*?()|\[\]{}^$\\]")
_GOOD = b'{"status":"success",'
_AGAIN = (429, 500, 502, 503, 504)
_MATCHER = re.compile(r"([A-Za-z_]\w*)(=~|!~|!=|=)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _LiveQuery:
    """What is asked for.

    Attributes:
        url: the server, `http://HOST[:PORT][/PATH]`.
        start_s: first instant, seconds since 1970, a multiple of `step_s`.
        end_s: last instant, likewise.
        step_s: time between points.
        matchers: selectors of series, as PromQL writes them in braces.
        headers: who asks.
        recorded: whether what recording rules noted is asked for in place of what was scraped.
    """

    url: str
    start_s: int
    end_s: int
    step_s: int
    matchers: tuple[str, ...] = ()
    headers: Mapping[str, str] | None = None
    recorded: bool = False

    @property
    def name(self) -> str:
        """The server, as provenance names it."""
        return urlsplit(self.url).netloc

    @property
    def digest(self) -> str:
        """A name for what is asked for, whenever that was and whoever asks."""
        parts = (self.url, self.step_s, self.recorded, *self.matchers)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

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
        names = {"user": USER, "password": PASSWORD, "token": TOKEN}
        raise InputError(Message("input.address-secret", **names))
    if not named or parts.query or parts.fragment:
        raise InputError(f"{source}: not an address. Give prometheus+http://HOST:9090.")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"


def matcher(text: str) -> str:
    """Return a selector in PromQL's form: LABEL=VALUE, also with != =~ !~.

    Raises:
        InputError: it has another form.
    """
    match = _MATCHER.fullmatch(text)
    if match is None:
        raise InputError(Message("input.not-match", text=text))
    return f"{match[1]}{match[2]}{json.dumps(match[3].strip(chr(34)), ensure_ascii=False)}"


def ask_all(query: _LiveQuery, answers: StoredAnswers, say: Callable[[str], None]) -> None:
    """Ask for every metric that gpucost knows, part by part; stored parts are not asked for again.

    Args:
        query: what is asked for.
        answers: where the parts are stored.
        say: told what is asked.

    Raises:
        UnreachableError: the server does not answer.
        ProviderError: it answers with an error.
        InputError: it knows no GPU metric.
    """
    with _server(query) as ask:
        names = _names(query, ask)
        if not names and query.recorded:
            raise InputError(Message("input.no-recorded", server=query.name))
        if not names:
            raise InputError(Message("input.no-gpu-metric", server=query.name))
        parts = list(query.parts())
        todo = [(name, begin, end) for name in names for begin, end in parts]
        named: set[str] = set()
        for (name, begin, _), file, answer in _in_order(query, ask, answers, todo):
            if name not in named:
                named.add(name)
                number = f"{len(named)} of {len(names)}"
                say(f"{query.name}: {name}, {number}, in {len(parts)} parts")
            if answer is not None:
                answers.keep(file, answer)
                answers.take(file, metric_of(name) or name, begin)


def _in_order(
    query: _LiveQuery, ask: _Ask, answers: StoredAnswers, todo: Sequence[_Asked]
) -> Iterator[tuple[_Asked, Path, RangeAnswer | None]]:
    """Yield each part with its answer, None where it is stored; the next are asked meanwhile."""
    places = [answers.file(*part) for part in todo]
    ready = [
        answers.take(file, metric_of(part[0]) or part[0], part[1])
        for part, file in zip(todo, places, strict=True)
    ]
    waiting = deque(part for part, is_stored in zip(todo, ready, strict=True) if not is_stored)
    with ThreadPoolExecutor(_AT_ONCE) as threads:
        coming: deque[Future[RangeAnswer]] = deque()
        try:
            for part, file, is_stored in zip(todo, places, ready, strict=True):
                while waiting and len(coming) < _AT_ONCE:
                    coming.append(threads.submit(_part, query, ask, waiting.popleft()))
                yield part, file, None if is_stored else coming.popleft().result()
        finally:
            threads.shutdown(wait=True, cancel_futures=True)


def _part(query: _LiveQuery, ask: _Ask, part: _Asked) -> RangeAnswer:
    from telemetry.live import AnswerError, answer_of  # noqa: PLC0415 - pandas

    name, begin, end = part
    selector = name + ("{" + ",".join(query.matchers) + "}" if query.matchers else "")
    # The last point of each step alone: a bare name would repeat what a pod that has ended told
    # last for up to five minutes, and each server for a time of its own.
    latest = f"last_over_time({selector}[{query.step_s * 1000 - 1}ms])"
    fields = [("query", latest), ("start", str(begin)), ("end", str(end))]
    reason = ""
    for wait_s in _WAITS_S:
        time.sleep(wait_s)
        try:
            body = ask("query_range", [*fields, ("step", str(query.step_s))])
            return answer_of(body, begin, query.step_s)
        except AnswerError as error:
            reason = str(error)
    raise ProviderError(
        f"{query.name}: {name}: {reason}, {len(_WAITS_S)} times in a row. What has come so far is "
        "kept, and the same command goes on from there."
    )


def pod_labels(query: _LiveQuery, pods: Iterable[str]) -> list[dict[str, str]]:
    """Return the label sets of `kube_pod_labels` of some pods, names in lower case.

    A selector of the question leaves out series that carry its label with another value, and no
    others: kube-state-metrics has labels of its own.

    Raises:
        UnreachableError: the server does not answer.
        ProviderError: it answers with an error.
    """
    names = sorted(set(pods))
    label_sets: list[dict[str, str]] = []
    with _server(query) as ask:
        for start in range(0, len(names), _PODS):
            some = "|".join(_SPECIAL.sub(r"\\\g<0>", name) for name in names[start : start + _PODS])
            value = json.dumps(some, ensure_ascii=False)
            match = [f"{LABELS_METRIC}{{{label}=~{value}}}" for label in ("exported_pod", "pod")]
            fields = [("start", str(query.start_s)), ("end", str(query.end_s))]
            body = json.loads(ask("series", [*(("match[]", text) for text in match), *fields]))
            data = body.get("data") if isinstance(body, dict) else None
            label_sets += [
                {str(key).lower(): str(text) for key, text in item.items() if key != "__name__"}
                for item in data or ()
                if isinstance(item, dict)
            ]
    return [labels for labels in label_sets if all(_fits(labels, text) for text in query.matchers)]


def _fits(labels: Mapping[str, str], selector: str) -> bool:
    """Return whether a label set does not contradict a selector, as `matcher` writes it."""
    match = _MATCHER.fullmatch(selector)
    if match is None or match[1].lower() not in labels:
        return True
    text, value = labels[match[1].lower()], json.loads(match[3])
    try:
        same = re.fullmatch(value, text) is not None if "~" in match[2] else text == value
    except re.error:  # RE2 knows forms that Python does not
        return True
    return same is not match[2].startswith("!")


def _names(query: _LiveQuery, ask: _Ask) -> list[str]:
    fields = [("start", str(query.start_s)), ("end", str(query.end_s))]
    body = json.loads(ask("label/__name__/values", fields))
    readable = {*metrics(), IDENTITY_METRIC}
    listed = body.get("data") if isinstance(body, dict) else None
    names = [name for name in listed or () if isinstance(name, str)]
    if query.recorded:
        recorded = {name: metric_of(name) for name in names}
        return sorted(name for name, of in recorded.items() if of and of.lower() in readable)
    return sorted(name for name in names if name.lower() in readable)


@contextmanager
def _server(query: _LiveQuery) -> Iterator[_Ask]:
    """Yield what asks the server: a path of its API and fields, and its answer comes back."""
    import urllib3  # noqa: PLC0415 - only where a server is asked

    retries = urllib3.Retry(
        total=_TRIES,
        backoff_factor=_WAIT_S,
        status_forcelist=_AGAIN,
        raise_on_status=False,
        redirect=False,
    )
    with urllib3.PoolManager(retries=retries, timeout=_TIMEOUT_S, maxsize=_AT_ONCE) as pool:
        yield lambda path, fields: _request(query, pool, path, fields)


def _request(query: _LiveQuery, pool: urllib3.PoolManager, path: str, fields: _Fields) -> bytes:
    import urllib3  # noqa: PLC0415 - only where a server is asked

    url = f"{query.url}/api/v1/{path}"
    try:
        answer = pool.request("GET", url, fields=fields, headers=dict(query.headers or {}))
    except urllib3.exceptions.HTTPError as error:
        reason = getattr(error, "reason", None) or error
        kind = type(reason).__name__
        raise UnreachableError(
            Message("input.no-answer", server=query.name, url=url, kind=kind)
        ) from None
    if answer.status in {401, 403}:
        names = {"user": USER, "password": PASSWORD, "token": TOKEN}
        raise ProviderError(
            Message("input.request-refused", server=query.name, status=answer.status, **names)
        )
    problem = _error(answer.data)
    if answer.status != 200 or problem is not None:  # noqa: PLR2004 - HTTP's OK
        raise ProviderError(
            f"{query.name}: answered {answer.status} to {path}: {problem or 'no data'}."
        )
    return bytes(answer.data)


def _error(body: bytes) -> str | None:
    if body.startswith(_GOOD):  # not parsed twice: it may be of many megabytes
        return None
    try:
        answer = json.loads(body)
    except ValueError:
        return "not JSON, so this is not Prometheus's HTTP API"
    if isinstance(answer, dict) and answer.get("status") == "success":
        return None
    reason = answer.get("error") if isinstance(answer, dict) else None
    return str(reason or "no reason given")[:200]


STEP = "5m"  # Prometheus keeps a point for five minutes; a longer pace leaves holes
STEP_S = 300
_FAMILIES = ("dcgm_fi_", "nvidia_smi_")
_RECORDED = re.compile(rf"gpucost:([A-Za-z0-9_]+):{STEP}")
# Memory must fit at its worst; counters and sets of bits have no mean.
_MOST = ("mem.used_gib", "fraction.memory", "memory.reserved", "memory.total")
_LEAST = ("memory.free",)
_LAST = (BITMASK, "power.limit_w")
NOTE = (
    f"each point is what a recording rule noted for {STEP}: a mean, of memory the most. Peaks of "
    "load that are shorter are not seen."
)


def recording_rules() -> str:
    """Return the rules for DCGM and nvidia_gpu_exporter, as Prometheus and vmalert read them.

    A rule notes each known metric under `gpucost:METRIC:5m`, with all labels.
    """
    names = sorted(name for name in metrics() if name.startswith(_FAMILIES))
    rules = [*names, IDENTITY_METRIC]
    return "\n".join(
        (
            "# Written by gpucost import --recording-rules. With these, ask for the notes:",
            "# gpucost import prometheus+http://HOST:9090 --recorded --since 30d -o profiles/",
            "groups:",
            "  - name: gpucost",
            f"    interval: {STEP}",
            "    rules:",
            *(line for name in rules for line in _rule(name)),
            "",
        )
    )


def metric_of(recorded: str) -> str | None:
    """Return the metric that a rule's series is of; None for series of others."""
    match = _RECORDED.fullmatch(recorded)
    return None if match is None else match[1]


def _rule(name: str) -> tuple[str, str]:
    # DCGM writes its names in capitals, nvidia_gpu_exporter in small letters.
    metric = name.upper() if name.startswith("dcgm_") else name
    holds = metrics().get(name)
    target = holds.target if holds is not None else ""
    how = "avg_over_time"
    if target in _MOST:
        how = "max_over_time"
    elif target in _LEAST:
        how = "min_over_time"
    elif target in _LAST or target.startswith("counter.") or holds is None:
        how = "last_over_time"
    return (f"      - record: gpucost:{metric}:{STEP}", f"        expr: {how}({metric}[{STEP}])")


_HOUR_S, _STEP_S = 3600, 60


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """What the command line says of a server.

    Attributes:
        since_s: how far back, seconds.
        until: last instant; None is the last full hour.
        step_s: time between points; None is a minute, five where rules noted them.
        recorded: whether recording rules noted them.
        match: selectors, LABEL=VALUE.
    """

    since_s: int
    until: datetime | None
    step_s: int | None
    recorded: bool
    match: tuple[str, ...]


def is_server(source: str) -> bool:
    """Return whether a SOURCE is the address of a server of metrics."""
    return source.startswith(tuple(f"{scheme}://" for scheme in SCHEMES))


def read_live(
    source: str, options: LiveOptions, hints: Hints, say: Callable[[str], None]
) -> tuple[Profile, ...]:
    """Return the profiles that a server's metrics make; answers are kept until all have come.

    Raises:
        InputError: the address or an option is wrong.
        ProviderError: the server does not answer, or with an error.
    """
    from telemetry.live import pods_of, profiles_live  # noqa: PLC0415 - pandas
    from telemetry.stored_answers import StoredAnswers  # noqa: PLC0415 - numpy

    step_s = options.step_s or (STEP_S if options.recorded else _STEP_S)
    if options.step_s == 0 or options.since_s < step_s:
        raise InputError("--step must be 1s or more, and --since no shorter.")
    until = options.until or datetime.now(UTC)
    last_s = int(until.timestamp())
    if options.until is None:
        last_s -= last_s % _HOUR_S
    end_s = last_s - last_s % step_s
    start_s = end_s - options.since_s // step_s * step_s
    query = _LiveQuery(
        url=server_of(source),
        start_s=start_s,
        end_s=end_s,
        step_s=step_s,
        matchers=tuple(matcher(text) for text in options.match),
        headers=_headers(),
        recorded=options.recorded,
    )
    folder = cache_folder() / "live" / query.digest
    answers = StoredAnswers(folder=folder, step_s=query.step_s)
    ask_all(query, answers, say)
    answers.notes += [NOTE] if options.recorded else []
    labels = pod_labels(query, pods_of(answers))
    profiles = profiles_live((query.name, answers, labels), hints, say)
    shutil.rmtree(folder, ignore_errors=True)
    return profiles


def _headers() -> dict[str, str]:
    token, user = os.environ.get(TOKEN), os.environ.get(USER)
    if token:
        return {"Authorization": f"Bearer {token}"}
    if not user:
        return {}
    import urllib3  # noqa: PLC0415 - only where a server is asked

    pair = f"{user}:{os.environ.get(PASSWORD, '')}"
    return {"Authorization": urllib3.make_headers(basic_auth=pair)["authorization"]}


def read_warehouse(source: str, hints: Hints) -> tuple[Profile, ...]:
    """Return the profiles of a table that an engine counts where it lies.

    Raises:
        InputError: it names no table of readings.
        UnreachableError: the engine does not answer.
    """
    from telemetry.lake.profiles import profiles_of_place  # noqa: PLC0415 - pandas comes in

    table = lake_place.place_of(source)
    if table is None:
        raise InputError(f"{source}: not a table.")
    who = {name: os.environ.get(name) for name in (lake_place.USER, lake_place.PASSWORD)}
    return profiles_of_place(table, who, hints)
