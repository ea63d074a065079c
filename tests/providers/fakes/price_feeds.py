"""A server of public price feeds on this machine, and what can be wrong with what it sends."""

import gzip
import time
import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256

from werkzeug.wrappers import Request, Response

ELSEWHERE = "http://198.51.100.7/stolen"
SLOW_S = 0.6
_BOMB_MIB = 70


@dataclass(slots=True, kw_only=True)
class PriceFeeds:
    """A WSGI application.

    Attributes:
        documents: path -> what is published there.
        faults: path -> redirect, bomb, short, error, moved, garbage or slow.
        asked: paths in the order in which they were asked for.
        sent: paths whose document was sent, not "not modified".
        address: of the server.
        modified: when every document changed last.
    """

    documents: dict[str, bytes]
    faults: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: list[str] = field(default_factory=list)
    address: str = ""
    modified: datetime = datetime(2026, 11, 20, 6, tzinfo=UTC)

    def __call__(self, environ: dict[str, object], start: object) -> Iterable[bytes]:
        """Answer a request."""
        request = Request(environ)  # type: ignore[arg-type] # WSGI's
        self.asked.append(request.path)
        answer = self._faulty(request) or self._document(request)
        return answer(environ, start)  # type: ignore[arg-type] # WSGI's

    def _document(self, request: Request) -> Response:
        data = self.documents.get(request.path)
        if data is None:
            return Response(status=404)
        tag = sha256(data).hexdigest()
        if request.headers.get("If-None-Match") == f'"{tag}"':
            return Response(status=304)
        self.sent.append(request.path)
        answer = Response(gzip.compress(data), headers={"Content-Encoding": "gzip"})
        answer.set_etag(tag)
        answer.last_modified = self.modified
        return answer

    def _faulty(self, request: Request) -> Response | None:
        kind = self.faults.get(request.path)
        if kind == "redirect":
            return Response(status=302, headers={"Location": ELSEWHERE})
        if kind == "moved":
            return Response(status=307, headers={"Location": f"/new{request.path}"})
        if kind == "slow":
            time.sleep(SLOW_S)
        if kind == "error":
            return Response(status=500)
        if kind == "garbage":
            return Response(b"\x00\xfe<html>" * 1000)
        if kind == "bomb":
            return Response(_bomb(), headers={"Content-Encoding": "gzip"})
        if kind == "short":
            whole = gzip.compress(self.documents[request.path])
            return Response(whole[: len(whole) // 2], headers={"Content-Encoding": "gzip"})
        return None


@cache
def _bomb() -> bytes:
    """Some 70 kB that unpack to 70 MiB of zeros."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    pieces = [packer.compress(bytes(2**20)) for _ in range(_BOMB_MIB)]
    return b"".join((*pieces, packer.flush()))
