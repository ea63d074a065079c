"""Turns the SOURCE arguments of a command into profiles: files, folders, servers, tables, bills."""

import glob
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from decimal import Decimal
from io import BytesIO
from pathlib import Path

from msgspec import structs

from gpucost.arguments.parameters import DEFAULT_PROFILE
from gpucost.files.writing import read_file
from gpucost.live.live_metrics import LiveOptions, is_server, read_live, read_warehouse
from planner.bills.bill import Bill
from planner.bills.formats import is_bill, read_bill
from planner.bills.leftovers import MachineSizes
from planner.bills.review import review, with_machines
from planner.models.interruption import Availability, parse_trace
from planner.profile.join import join_profiles
from planner.profile.model import Profile
from planner.profile.trials import Serving
from pricing.errors import InputError, UnreachableError
from pricing.hardware import matching
from pricing.message import Message
from telemetry.folder import FolderReadOptions, NothingToReadError, Skipped
from telemetry.lake.place import is_address
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Stream
from telemetry.sources import BY_FILE, read_telemetry

# More lines than this about files that nobody meant hide the ones that matter.
_MOST_LINES = 5
ProgressCallback = Callable[[int, int], None]
"""Is told how much is done, and of how much."""
_NOTHING_HERE = Message("input.nothing-here", file=DEFAULT_PROFILE)
NO_HINTS = Hints()
LAST_DAY = LiveOptions(since_s=86_400, until=None, step_s=None, recorded=False, match=())


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReading:
    """How sources are read.

    Attributes:
        folders: which files are of one job; each file of a folder by default.
        hints: what the sources do not say themselves.
        live: which part of a server's metrics is read.
        sizes: returns the GPUs of each machine on a bill; None: bills are refused.
        machine: PROVIDER/TYPE/REGION of jobs that do not say what they run on.
        on_price: takes what a bill says that the only job's machine costs an hour.
    """

    folders: FolderReadOptions = BY_FILE
    hints: Hints = NO_HINTS
    live: LiveOptions = LAST_DAY
    sizes: Callable[[], MachineSizes] | None = None
    machine: str | None = None
    on_price: Callable[[Decimal], None] = lambda _: None


def read_sources(
    paths: Sequence[str],
    say: Callable[[str], None] = lambda _: None,
    how: SourceReading | None = None,
) -> tuple[Profile, ...]:
    """Return the profiles of all sources, those of one run or of the same GPUs joined.

    Args:
        paths: as the command line gives them: files, folders, globs, servers, tables of a
            warehouse, `-`, bills; none is ./profile.json, or the telemetry that lies here.
        say: told what was read, joined, and left out of folders.
        how: what else the command line says.

    Raises:
        InputError: a source is missing, unreadable, or neither a profile nor telemetry; the
            problems of all sources together.
    """
    how = how or SourceReading()
    named = _named(paths)
    if not named:
        named = [DEFAULT_PROFILE if Path(DEFAULT_PROFILE).exists() else "."]
        how = replace(how, folders=replace(how.folders, deep=False))
    remote = [path for path in named if is_server(path) or is_address(path)]
    bills = [path for path in named if path not in remote and how.sizes and _is_bill(path)]
    folder_bills: list[str] = []
    files = [path for path in named if path not in remote and path not in bills]
    profiles = [profile for path in remote for profile in _remote(path, how, say)]
    if files or not (profiles or bills):
        skipped: list[Skipped] = []
        try:
            profiles += read_telemetry(files, how.hints, None, skipped, how.folders)
        except NothingToReadError as error:
            raise error if paths else InputError(_NOTHING_HERE) from error
        folder_bills = [skip.path for skip in skipped if how.sizes and _is_bill(skip.path)]
        tell_skipped([skip for skip in skipped if skip.path not in folder_bills], say)
    if not profiles:
        raise InputError(Message("input.bill-alone", names=[*bills, *folder_bills]))
    joined = join_profiles(profiles) if remote else tuple(profiles)
    return _billed(joined, bills, folder_bills, how, say)


def _billed(
    profiles: tuple[Profile, ...],
    bills: Sequence[str],
    folder_bills: Sequence[str],
    how: SourceReading,
    say: Callable[[str], None],
) -> tuple[Profile, ...]:
    """Return the profiles with what bills say of their machines.

    Of those that lie beside logs in a folder one that cannot be read ends no plan of the logs.
    """
    if how.sizes is None:
        return profiles
    bill_of = dict(zip(bills, _read_bills(bills), strict=True))
    for path in folder_bills:
        try:
            (bill_of[path],) = _read_bills([path])
        except InputError as error:
            say(f"warning: skipped {path}: {error.problems[0]}")
    if not bill_of:
        return profiles
    billed = review(tuple(bill_of.values()), how.sizes(), zone=UTC)
    placed, notes, price = with_machines(profiles, billed, how.machine)
    for note in notes:
        say(f"{', '.join(bill_of)}: {note}")
    if price is not None:
        how.on_price(price)
    return placed


def _remote(path: str, how: SourceReading, say: Callable[[str], None]) -> tuple[Profile, ...]:
    if is_address(path):
        return read_warehouse(path, how.hints)
    return read_live(path, how.live, how.hints, say)


def _named(paths: Sequence[str]) -> list[str]:
    """Return the paths, a pattern as the files that it fits (a shell that quotes leaves it)."""
    named = []
    for path in paths:
        is_pattern = glob.has_magic(path) and "://" not in path and not Path(path).exists()
        files = sorted(glob.glob(path, recursive=True)) if is_pattern else [path]  # noqa: PTH207
        if not files:
            raise InputError(f"{path}: no file fits this pattern. `ls` shows what lies here.")
        named += files
    return list(dict.fromkeys(named))


def _is_bill(path: str) -> bool:
    if path == "-" or not Path(path).is_file():
        return False
    try:
        with Stream(path) as stream:
            return is_bill(stream.head.decode("utf-8", "replace"))
    except InputError:
        return False


def _read_bills(paths: Sequence[str]) -> list[Bill]:
    payloads = []
    for path in paths:
        with Stream(path) as stream:
            payloads.append(stream.load())
    return [read_bill(payload.name, payload.text) for payload in payloads]


def tell_skipped(skipped: Sequence[Skipped], say: Callable[[str], None]) -> None:
    """Say what was left out of folders: a line each, what was to be expected in a few lines."""
    for file in (file for file in skipped if not file.expected):
        say(f"warning: {file}.")
    expected = [file for file in skipped if file.expected]
    shown = expected if len(expected) <= _MOST_LINES else expected[: _MOST_LINES - 1]
    for file in shown:
        say(f"{file}.")
    if hidden := expected[len(shown) :]:
        names = ", ".join(Path(file.path).name for file in hidden[:_MOST_LINES])
        more = ", ..." if len(hidden) > _MOST_LINES else ""
        say(f"skipped {len(hidden)} more that are not measurements: {names}{more}")


def read_trace(path: str) -> Availability:
    """Return the availability trace in a file.

    Raises:
        InputError: it cannot be read or has another form.
    """
    return parse_trace(read_file(path), path)


_TIMEOUT_S = 10.0
_TWICE = 2  # counters are differences


def measured_profile(  # noqa: PLR0913 - what is said of the copy beside its figures
    sources: Sequence[str],
    *,
    window: Decimal | None = None,
    gpu: str | None = None,
    tp: int = 1,
    model: str | None = None,
    params: float | None = None,
) -> Profile:
    """Return the profile of a server: of a file that `import` knows, or of its /metrics pages.

    Args:
        sources: files or URLs.
        window: seconds between two scrapes; None: not said.
        gpu: of the copy; None: the source says it.
        tp: its GPUs.
        model: its name, or the path of its config.json; None: the source says it.
        params: parameters of the model, likewise.

    Raises:
        InputError: a page is given alone, or pages without the time between them.
        UnreachableError: a server does not answer.
    """
    pages = [text for source in sources if (text := _page(source)) is not None]
    from gpucost.api import read_telemetry as read_single  # noqa: PLC0415 - of the planner, too

    profile = _scraped(sources[0], window, pages) if pages else read_single(list(sources))
    hardware, job = profile.hardware, profile.job
    if gpu is not None:
        hardware = structs.replace(hardware, gpu=matching(gpu)[0].name, gpu_count=tp)
    elif hardware.gpu is None:
        raise InputError("say which GPU the copy runs on: --gpu H100-SXM-80GB.")
    if model:
        job = structs.replace(job, serving=structs.replace(job.serving or Serving(), model=model))
    if params:
        job = structs.replace(job, parameters=params)
    return structs.replace(profile, job=job, hardware=hardware)


def _page(source: str) -> str | None:
    """Return the text of a /metrics page; None of another kind of file."""
    if source.startswith(("http://", "https://")):
        return _fetch(source)
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # the reader of telemetry says why
    from telemetry.serving_metrics import page_of  # noqa: PLC0415 - only for this

    return text if page_of(text).server is not None else None


def _fetch(url: str) -> str:
    import urllib.request  # noqa: PLC0415 - only where a server is asked

    try:
        with urllib.request.urlopen(url, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - http(s) alone
            text: str = answer.read().decode("utf-8", "replace")
    except OSError as error:
        raise UnreachableError(f"{url}: {error}.") from error
    return text


def _scraped(source: str, window: Decimal | None, texts: list[str]) -> Profile:
    if window is None:
        raise InputError("say how far apart the two scrapes of /metrics are: --window 10m.")
    window_s = float(window)
    if len(texts) < _TWICE and source.startswith("http"):
        time.sleep(window_s)
        texts.append(_fetch(source))
    if len(texts) < _TWICE:
        raise InputError(f"{source}: one scrape has no rates: give a second one, or its URL.")
    hints = Hints(name="server", format="prometheus-text", interval_s=window_s / (len(texts) - 1))
    profiles = read_telemetry(["-"], hints, BytesIO("\n".join(texts).encode()))
    if len(profiles) != 1:
        raise InputError(f"{source}: its pages are of {len(profiles)} servers: give those of one.")
    return profiles[0]
