"""Reads what a server of language models measured: its /metrics pages, a benchmark, a profile."""

import re
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

from gpucost.api import read_telemetry
from planner.profile.kinds import JobKind
from planner.profile.model import Job, Profile, Window
from planner.profile.trials import Serving
from pricing.errors import InputError, UnreachableError
from pricing.hardware import matching
from telemetry.formats.capture import served_in
from telemetry.recording.recording import SERVING
from telemetry.serving_metrics import ServingTally, page_of

_MODEL = re.compile(r'model_name="([^"]+)"')
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
    tally = ServingTally()
    for number, text in enumerate(texts):
        tally.take(number * window_s / (len(texts) - 1), page_of(text))
    jobs = served_in({SERVING: [tally.as_json()]})
    if not jobs:
        raise InputError(f"{source}: its pages have no metrics of a server in common.")
    served, names = jobs[0], set(_MODEL.findall(texts[-1]))
    serving = served.serving or Serving()
    if len(names) == 1:
        serving = replace(serving, model=names.pop())
    job = Job(
        name="server",
        kind=JobKind.INFERENCE_ONLINE,
        framework=served.framework,
        serving=serving,
        requests_per_s=served.requests_per_s,
        latency_ms=served.latency_ms,
    )
    return Profile(job=job, window=Window(duration_s=window_s))
