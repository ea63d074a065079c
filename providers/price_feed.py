"""Where the documents of a public price feed come from: its server, or files that somebody has.

A server is believed only as far as one must: whole answers, of bounded size and time, unpacked or
not, from the host that was asked. Nothing of what it says is used before all of it has arrived.
"""

import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date
from email.utils import parsedate_to_datetime
from itertools import count
from pathlib import Path
from threading import Event
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from pricing.errors import InputError, ProviderError, UnreachableError
from pricing.refresh.reading import Answer, Feed, Question

if TYPE_CHECKING:  # urllib3 is imported when a server is asked
    from urllib3 import BaseHTTPResponse, PoolManager, Timeout

MIB = 2**20

_AGENT = "gpucost (prices update)"
_CHUNK = 2**16
_WAIT_S = 20.0
_RETRIES = 2
_PAUSE_S = 0.5
_TRY_AGAIN = (429, 500, 502, 503, 504)
_REDIRECTS = (301, 302, 303, 307, 308)
_MOST_REDIRECTS = 3
_NOT_MODIFIED = 304
_OK = 200
_PORTS = {"http": 80, "https": 443}

Validators = Mapping[str, Mapping[str, str]]
"""Address -> the headers that ask for it only where it has changed."""


@dataclass(slots=True, kw_only=True)
class FeedServer:
    """Answers of a feed's server.

    Attributes:
        feed: what is asked, with its limits.
        url: its address.
        folder: where documents are put.
        cached: what is known of documents that were read before.
        learnt: the same of documents that came now.
        pause_s: between tries, doubled each time.
        stop: set from outside: nothing more is asked.
    """

    feed: Feed
    url: str
    folder: Path
    cached: Validators = field(default_factory=lambda: MappingProxyType({}))
    learnt: dict[str, dict[str, str]] = field(default_factory=dict)
    pause_s: float = _PAUSE_S
    stop: Event = field(default_factory=Event)
    _until: float = 0.0
    _answered: bool = False
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise InputError(
                f"{self.feed.name}: {self.url!r:.80} is not an address; it begins with https://"
            )
        self._until = time.monotonic() + self.feed.most_s

    @property
    def files(self) -> tuple[Path, ...]:
        """None: a server answers."""
        return ()

    def get(self, question: Question) -> Answer | None:
        """Return the document; see `pricing.refresh.reading.Answers`."""
        url = self._address(question)
        headers = {"User-Agent": _AGENT, "Accept-Encoding": "gzip"}
        if question.body is not None:
            headers["Content-Type"] = "application/json"
        if question.changed_only:
            headers |= self.cached.get(url, {})
        with (
            connections(url) as pool,
            closing(self._open(pool, url, headers, question.body)) as response,
        ):
            if response.status == _NOT_MODIFIED:
                return None
            if response.status != _OK:
                raise self._failed(url, f"answered {response.status}")
            path = self._download(response, url)
        self._learn(url, response)
        return Answer(path=path, modified=_day(response))

    def _address(self, question: Question) -> str:
        """Return the address of a document.

        A whole address is taken on the feed's own server only.
        """
        path = question.path
        if question.publisher_url and self.url == self.feed.url:
            return question.publisher_url
        if urlsplit(path).scheme:
            self._check_host(self.url, path)
            return path
        return (self.url if not path or path.startswith("?") else f"{self.url.rstrip('/')}/") + path

    def _check_host(self, origin: str, url: str) -> None:
        if _origin(url) != _origin(origin) and not (self.feed.is_signed and url[:8] == "https://"):
            raise ProviderError(
                f"{self.feed.title}: {_host(origin)} refers to {_host(url)}, another host; "
                "nothing of it was read."
            )

    def _open(
        self, pool: "PoolManager", url: str, headers: Mapping[str, str], body: bytes | None
    ) -> "BaseHTTPResponse":
        """Return the answer, after redirects within the host; faults that pass are tried again."""
        from urllib3 import Retry, Timeout  # noqa: PLC0415 - only where a server is asked
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - the same

        retry = Retry(
            total=_RETRIES,
            redirect=False,
            status_forcelist=_TRY_AGAIN,
            allowed_methods=None,
            backoff_factor=self.pause_s,
            respect_retry_after_header=False,
            raise_on_status=False,
        )
        for _ in range(_MOST_REDIRECTS + 1):
            left_s = self._left_s(url)
            try:
                response = pool.request(
                    "GET" if body is None else "POST",
                    url,
                    body=body,
                    headers=headers,
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                    retries=retry,
                    timeout=Timeout(connect=min(_WAIT_S, left_s), read=min(_WAIT_S, left_s)),
                )
            except HTTPError as error:
                raise self._unread(url, _reason(error)) from None
            self._answered = True
            if response.status not in _REDIRECTS:
                return response
            response.close()
            target = urljoin(url, response.headers.get("Location", ""))
            self._check_host(url, target)
            url = target
        raise self._failed(url, "redirects in a circle")

    def _download(self, response: "BaseHTTPResponse", url: str) -> Path:
        """Return the whole document as a file; what is cut short or too large leaves none."""
        path = self.folder / f"{self.feed.name}-{next(self._numbers)}"
        size, max_bytes = 0, self.feed.most_mib * MIB
        packed = response.headers.get("Content-Encoding", "").lower()
        if packed not in ("", "identity", "gzip"):
            raise self._failed(url, f"answered packed as {packed[:20]!r}")
        with path.open("wb") as file:
            for piece in self._pieces(response, url, gzip=packed == "gzip"):
                size += len(piece)
                if size > max_bytes:
                    raise self._failed(url, f"is larger than {self.feed.most_mib} MiB")
                file.write(piece)
        return path

    def _pieces(self, response: "BaseHTTPResponse", url: str, *, gzip: bool) -> Iterator[bytes]:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - only where a server is asked

        unpack = zlib.decompressobj(16 + zlib.MAX_WBITS)
        try:
            for chunk in response.stream(_CHUNK, decode_content=False):
                self._left_s(url)
                yield from _unpacked(unpack, chunk) if gzip else (chunk,)
        except zlib.error:
            raise self._failed(url, "cannot be unpacked") from None
        except HTTPError as error:
            raise self._failed(url, f"was cut short ({_reason(error)})") from None
        if gzip and not unpack.eof:
            raise self._failed(url, "was cut short")

    def _left_s(self, url: str) -> float:
        left_s = self._until - time.monotonic()
        if left_s <= 0:
            raise self._failed(url, f"took longer than {self.feed.most_s} s")
        if self.stop.is_set():
            raise self._failed(url, "was interrupted")
        return left_s

    def _unread(self, url: str, why: str) -> ProviderError:
        if self._answered:
            return self._failed(url, f"cannot be read ({why})")
        return UnreachableError(
            f"{self.feed.title}: {_host(url)} cannot be reached ({why}); nothing of it was kept."
        )

    def _failed(self, url: str, why: str) -> ProviderError:
        address = f"{_host(url)}{urlsplit(url).path}"
        return ProviderError(f"{self.feed.title}: {address[:160]} {why}; nothing of it was kept.")

    def _learn(self, url: str, response: "BaseHTTPResponse") -> None:
        asks = (("ETag", "If-None-Match"), ("Last-Modified", "If-Modified-Since"))
        validators = {
            ask: value
            for header, ask in asks
            if (value := response.headers.get(header)) is not None
        }
        if validators:
            self.learnt[url] = validators


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedFiles:
    """Answers from a file or a folder of them.

    Attributes:
        feed: whose documents they are.
        path: the file, or the folder.
    """

    feed: Feed
    path: Path

    def __post_init__(self) -> None:
        if not self.path.exists():
            raise InputError(
                f"{self.path}: No such file or folder. --from {self.feed.name} takes "
                f"{self.feed.takes}, or an address."
            )

    @property
    def files(self) -> tuple[Path, ...]:
        """The file itself, or every file of the folder, by name."""
        if self.path.is_file():
            return (self.path,)
        return tuple(sorted(path for path in self.path.rglob("*") if path.is_file()))

    def get(self, question: Question) -> Answer | None:
        """Return the file of that name; a single file answers every question."""
        path = self.path if self.path.is_file() else self.path / question.name
        try:
            size = path.stat().st_size
        except OSError as error:
            raise InputError(f"{path}: cannot be read: {error.strerror}.") from error
        if size > self.feed.most_mib * MIB:
            raise InputError(f"{path}: larger than {self.feed.most_mib} MiB; the feed is not.")
        return Answer(path=path)


def _unpacked(unpack: "zlib._Decompress", chunk: bytes) -> Iterator[bytes]:
    """Yield what a packed chunk holds, a piece of bounded size at a time."""
    while chunk and not unpack.eof:
        yield unpack.decompress(chunk, _CHUNK)
        chunk = unpack.unconsumed_tail


def connections(
    url: str, timeout: "Timeout | None" = None, ca_certs: str | None = None
) -> "PoolManager":
    """Return connections, through the proxy that the environment names."""
    from urllib3 import PoolManager, ProxyManager, make_headers  # noqa: PLC0415 - only to ask

    proxy = proxy_of(url)
    if not proxy:
        return PoolManager(timeout=timeout, ca_certs=ca_certs)
    user = unquote(urlsplit(proxy).netloc.rpartition("@")[0]) or None
    headers = make_headers(proxy_basic_auth=user)
    return ProxyManager(proxy, proxy_headers=headers, timeout=timeout, ca_certs=ca_certs)


def proxy_of(url: str) -> str:
    """Return the proxy that the environment names for an address; empty: none."""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - a plan asks nobody

    parts = urlsplit(url)
    proxy = "" if proxy_bypass(parts.netloc) else getproxies().get(parts.scheme, "")
    return f"http://{proxy}" if proxy and "://" not in proxy else proxy


def fault_of(url: str, longest_s: float) -> str:
    """Return why nobody answers at an address; empty where somebody does, whatever they say."""
    from urllib3 import Timeout  # noqa: PLC0415 - only to ask
    from urllib3.exceptions import HTTPError, SSLError  # noqa: PLC0415 - the same

    try:
        pool = connections(url, Timeout(longest_s))
        pool.request("HEAD", url, redirect=False, retries=False)
    except SSLError:  # somebody is there
        return ""
    except (HTTPError, ValueError) as error:
        return str(getattr(error, "original_error", error)).rpartition(": ")[2]
    return ""


def _origin(url: str) -> tuple[str, str, int]:
    try:
        parts = urlsplit(url)
        return parts.scheme, parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        return "", "", 0


def _host(url: str) -> str:
    return _origin(url)[1][:80] or "nowhere"


def _reason(error: Exception) -> str:
    return type(getattr(error, "reason", None) or error).__name__


def _day(response: "BaseHTTPResponse") -> date | None:
    try:
        return parsedate_to_datetime(response.headers.get("Last-Modified", "")).date()
    except ValueError:
        return None
