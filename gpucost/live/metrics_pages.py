"""Reads what a server of language models measured: its /metrics pages, a benchmark, a profile."""

import re
import time
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCopy:
    """What is said of the copy beside its figures.

    Attributes:
        sources: files or URLs.
        window_s: time between two scrapes; None: not said.
        gpu: of the copy; None: the source says it.
        tensor_parallel: its GPUs.
        model: its name, or the path of its config.json; None: the source says it.
        parameters: of the model, likewise.
    """

    sources: Sequence[str]
    window_s: float | None = None
    gpu: str | None = None
    tensor_parallel: int = 1
    model: str | None = None
    parameters: float | None = None


def measured_profile(copy: MeasuredCopy) -> Profile:
    """Return the profile of a server: of a file that `import` knows, or of its /metrics pages.

    Raises:
        InputError: a page is given alone, or pages without the time between them.
        UnreachableError: a server does not answer.
    """
    pages = [_page(source) for source in copy.sources]
    if all(page is None for page in pages):
        profile = read_telemetry(list(copy.sources))
    else:
        profile = _scraped(copy, [page for page in pages if page is not None])
    hardware, job = profile.hardware, profile.job
    if copy.gpu is not None:
        gpu = matching(copy.gpu)[0].name
        hardware = replace(hardware, gpu=gpu, gpu_count=copy.tensor_parallel)
    elif hardware.gpu is None:
        raise InputError("say which GPU the copy runs on: --gpu H100-SXM-80GB.")
    if copy.model:
        job = replace(job, serving=replace(job.serving or Serving(), model=copy.model))
    if copy.parameters:
        job = replace(job, parameters=copy.parameters)
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


def _scraped(copy: MeasuredCopy, texts: list[str]) -> Profile:
    source, window_s = copy.sources[0], copy.window_s
    if window_s is None:
        raise InputError("say how far apart the two scrapes of /metrics are: --window 10m.")
    if len(texts) < _TWICE and source.startswith("http"):
        time.sleep(window_s)
        texts.append(_fetch(source))
    if len(texts) < _TWICE:
        raise InputError(f"{source}: one scrape has no rates: give a second one, or its URL.")
    tally = ServingTally()
    for number, text in enumerate(texts):
        tally.take(number * window_s / (len(texts) - 1), page_of(text))
    told = served_in({SERVING: [tally.as_json()]})
    if not told:
        raise InputError(f"{source}: its pages have no metrics of a server in common.")
    served, names = told[0], set(_MODEL.findall(texts[-1]))
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
