"""The metrics pages of inference servers, read in threads beside the measurement."""

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from urllib.parse import urlsplit, urlunsplit

from pricing.errors import InputError
from pricing.tables import Json
from telemetry.serving_metrics import ServingTally, page_of

_EVERY_S = 1.0
_PATIENCE_S = 2.0
_LAST_S = 1.0  # what a last answer may take, once the measurement is over
_TOLD_S = 30.0  # what a kill may lose of it
_MOST_BYTES = 16 << 20
_PATH = "/metrics"


def metrics_address(text: str) -> str:
    """Return the address of a metrics page: `/metrics` where only a server is named.

    Raises:
        InputError: it is not an address of HTTP.
    """
    parts = urlsplit(text if "://" in text else f"http://{text}")
    try:
        port = parts.port
    except ValueError:
        port = -1
    if parts.scheme not in {"http", "https"} or not parts.hostname or port == -1:
        raise InputError(
            f"--metrics {_without_secrets(text)}: not an address; give the server's metrics page, "
            "such as http://localhost:8000/metrics."
        )
    path = parts.path if parts.path.strip("/") else _PATH
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _without_secrets(address: str) -> str:
    """Return an address without user, password and query, which may be secrets."""
    return address.rpartition("@")[2].partition("?")[0]


class ServingThread:
    """Reads the pages of servers until it is stopped; a server that hangs holds nothing up.

    Args:
        addresses: of the pages.
        interval_s: seconds between two readings of a page, at least one.
    """

    def __init__(self, addresses: Sequence[str], interval_s: float) -> None:
        self._end, pause_s = threading.Event(), max(_EVERY_S, interval_s)
        self._pages = [_PageThread(address, pause_s, self._end) for address in addresses]
        self._told: list[Json] = []
        self._told_s = float("-inf")

    @property
    def notes(self) -> list[str]:
        """What a reader of the profile should know: which servers have told nothing, and why."""
        return [note for page in self._pages if (note := page.shortcoming())]

    def readings(self) -> list[Json]:
        """Return the tallies, one a server; the same ones for some seconds, as each is written."""
        now_s = time.monotonic()
        if now_s - self._told_s >= _TOLD_S or self._end.is_set():
            self._told_s = now_s
            self._told = [page.tally() for page in self._pages]
        return self._told

    def end(self) -> None:
        """Read each page a last time, where it answers at once, and stop."""
        self._end.set()
        until_s = time.monotonic() + _LAST_S
        for page in self._pages:
            page.join(max(0.0, until_s - time.monotonic()))


class _PageThread(threading.Thread):
    """Reads one page."""

    def __init__(self, address: str, interval_s: float, end: threading.Event) -> None:
        super().__init__(name="metrics", daemon=True)
        self._address, self._interval_s, self._end = address, interval_s, end
        self._lock = threading.Lock()
        self._tally = ServingTally()
        self._problem = "it was not asked"
        # One clock: pages keep their distance where the system's time is set meanwhile.
        self._offset_s = time.time() - time.monotonic()
        # Straight to the server: a proxy is not between a machine and what runs on it.
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        self.start()

    def run(self) -> None:
        """Read until the end, and once more."""
        self._take()
        while not self._end.wait(self._interval_s):
            self._take()
        self._take()

    def tally(self) -> Json:
        """Return what was told until now."""
        with self._lock:
            return self._tally.as_json()

    def shortcoming(self) -> str | None:
        """Return what the server did not tell, None where it told twice or more."""
        where = _without_secrets(self._address)
        with self._lock:
            pages = self._tally.pages
        if not pages:
            return f"{where}: {self._problem}, so what it serves is unknown."
        if pages == 1:
            return f"{where}: it answered once only, so what it serves is unknown; measure longer."
        return None

    def _take(self) -> None:
        try:
            with self._opener.open(self._address, timeout=_PATIENCE_S) as answer:
                text = answer.read(_MOST_BYTES).decode("utf-8", "replace")
            page = page_of(text)
        except urllib.error.HTTPError as error:
            self._problem = f"it answers {error.code} {error.reason}"
            return
        except (OSError, http.client.HTTPException) as error:
            self._problem = f"no answer ({getattr(error, 'reason', None) or error})"
            return
        except ValueError:
            self._problem = "what it answers is not in the text format of Prometheus"
            return
        if page.server is None:
            self._problem = "nothing on that page is a metric of vLLM, SGLang, Triton or TGI"
            return
        with self._lock:
            self._tally.take(time.monotonic() + self._offset_s, page)
