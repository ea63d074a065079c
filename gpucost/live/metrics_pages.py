"""Reads what a server of language models measured: its /metrics pages, a benchmark, a profile."""

import time
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from io import BytesIO
from pathlib import Path

from gpucost.api import read_telemetry
from planner.profile.model import Profile
from planner.profile.trials import Serving
from pricing.errors import InputError, UnreachableError
from pricing.hardware import matching
from telemetry import sources as telemetry
from telemetry.readers.hints import Hints
from telemetry.serving_metrics import page_of

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
    profile = _scraped(sources[0], window, pages) if pages else read_telemetry(list(sources))
    hardware, job = profile.hardware, profile.job
    if gpu is not None:
        hardware = replace(hardware, gpu=matching(gpu)[0].name, gpu_count=tp)
    elif hardware.gpu is None:
        raise InputError("say which GPU the copy runs on: --gpu H100-SXM-80GB.")
    if model:
        job = replace(job, serving=replace(job.serving or Serving(), model=model))
    if params:
        job = replace(job, parameters=params)
    return replace(profile, job=job, hardware=hardware)


def _page(source: str) -> str | None:
    """Return the text of a /metrics page; None of another kind of file."""
    if source.startswith(("http://", "https://")):
        return _fetch(source)
    try:
        text = Path(source).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return None  # the reader of telemetry says why
    return text if page_of(text).server is not None else None


def _fetch(url: str) -> str:
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
    profiles = telemetry.read_telemetry(["-"], hints, BytesIO("\n".join(texts).encode()))
    if len(profiles) != 1:
        raise InputError(f"{source}: its pages are of {len(profiles)} servers: give those of one.")
    return profiles[0]
