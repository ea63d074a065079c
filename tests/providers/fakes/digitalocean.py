"""A stateful DigitalOcean: pages, a queue of faults, every exchange checked against the contract.

Sizes are plain JSON under `sizes`, everything that can be made is kept in `estate`. Where the
OpenAPI document is at hand each request and response is validated, and `violations` says what was
wrong; without it `is_checked` is False. `world` says how it misbehaves for as long as it is set,
`faults` what goes wrong once.
"""

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

from werkzeug.wrappers import Request, Response

from tests.providers.fakes.estate import Answer, Estate, error, paged
from tests.providers.fakes.openapi import Contract
from tests.providers.fakes.world import World

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What goes wrong with the next answers that it fits.

    Attributes:
        path: of the requests it is for.
        page: only this page; None: any.
        status: answer this status instead.
        body: answer these bytes instead.
        headers: add these.
        delay_s: wait before the answer.
        change: change the document before it is sent; the work is done and told wrongly.
        times: how many requests it spoils.
        method: only for this method; empty: any.
        below: whether paths below `path` are meant, too.
        after: do the work before the status is answered.
        drop: do the work and cut the connection instead of answering.
        skip: how many requests that it fits come through before.
    """

    path: str = "/v2/sizes"
    page: int | None = None
    status: int | None = None
    body: bytes | None = None
    headers: tuple[tuple[str, str], ...] = ()
    delay_s: float = 0.0
    change: Callable[[Document], None] | None = None
    times: int = 1
    method: str = ""
    below: bool = False
    after: bool = False
    drop: bool = False
    skip: int = 0

    def fits(self, request: Request) -> bool:
        """Whether it is for this request."""
        here = request.path == self.path or (
            self.below and request.path.startswith(self.path.rstrip("/") + "/")
        )
        page = request.args.get("page", 1, int)
        return here and self.page in (None, page) and self.method in ("", request.method)


@dataclass(kw_only=True)
class DigitalOcean:
    """The fake.

    Attributes:
        token: of the account.
        others: tokens that may do nothing but read and end Droplets.
        sizes: what GET /v2/sizes lists, as the API prints it.
        contract: the OpenAPI document that exchanges are held against; None: unchecked.
        faults: what goes wrong next, first come first served.
        requests: "METHOD path?query" of everything that came.
        estate: what was made.
        violations: what in an exchange did not keep the contract.
        lost: answers that each world has lost.
    """

    token: str
    others: tuple[str, ...] = ()
    sizes: list[Document]
    contract: Contract | None = None
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    estate: Estate = field(default_factory=Estate)
    lost: Counter[World] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def world(self) -> World:
        """How the provider misbehaves."""
        return self.estate.world

    @world.setter
    def world(self, world: World) -> None:
        self.estate.world = world

    @property
    def is_checked(self) -> bool:
        """Whether exchanges are held against the OpenAPI document."""
        return self.contract is not None

    def __call__(self, environ: Document, start_response: Any) -> Any:
        """Answer a request: the WSGI entry."""
        request = Request(environ)
        with self._lock:
            self.requests.append(f"{request.method} {request.full_path.rstrip('?')}")
            if self.world.latency_s:
                time.sleep(self.world.latency_s)
            fault = self._next_fault(request) or self._denied(request)
            response = self._answer(request, fault)
            response.headers["Date"] = format_datetime(self.world.now(), usegmt=True)
            if fault is None:
                self._check(request, response)
                fault = self._loses(request)
        if fault is not None and fault.delay_s:
            time.sleep(fault.delay_s)
        if fault is not None and fault.drop:
            environ["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
        return response(environ, start_response)

    def _next_fault(self, request: Request) -> Fault | None:
        for place, fault in enumerate(self.faults):
            if fault.fits(request):
                self.faults[place : place + 1] = left_of(fault)
                return None if fault.skip else fault
        return None

    def _denied(self, request: Request) -> Fault | None:
        """What the world refuses for ever."""
        kind = next((k for path, k in _KINDS.items() if request.path.startswith(path)), "account")
        region = ""
        if request.method == "POST" and request.is_json:
            region = str((request.get_json() or {}).get("region", ""))
        denied = self.world.refuses(kind, region, changes=request.method != "GET")
        return None if denied is None else Fault(status=denied.status)

    def _loses(self, request: Request) -> Fault | None:
        """Whether the world cuts off the answer, once a machine was asked for."""
        changes = request.method != "GET"
        if not self.estate.bills or not self.world.loses(self.lost[self.world], changes=changes):
            return None
        self.lost[self.world] += 1
        return Fault(drop=True)

    def _answer(self, request: Request, fault: Fault | None) -> Response:
        if fault is not None and (fault.after or fault.drop):
            self._work(request)
        if fault is not None and fault.body is not None:
            return Response(fault.body, fault.status or HTTPStatus.OK, _JSON)
        if fault is not None and fault.status is not None:
            told = _error(fault.status)
            told.headers.extend(fault.headers)
            return told
        if fault is not None and fault.drop:
            return _error(HTTPStatus.BAD_GATEWAY)
        status, document = self._work(request)
        if document is None:
            return Response(status=status)
        document = json.loads(json.dumps(document))
        if fault is not None and fault.change is not None:
            fault.change(document)
        return Response(json.dumps(document), status, _JSON)

    def _work(self, request: Request) -> Answer:
        given = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if given not in (self.token, *self.others):
            return _told(HTTPStatus.UNAUTHORIZED)
        droplets = request.path.startswith("/v2/droplets") and request.method != "POST"
        if given in self.others and not droplets:
            return _told(HTTPStatus.FORBIDDEN)
        if request.path == "/v2/sizes":
            return HTTPStatus.OK, paged("sizes", self.sizes, request, World())
        if request.path.startswith("/v2/images/"):
            return _image(request.path.removeprefix("/v2/images/"))
        if request.path == _USE:
            return self.estate.watched(request)
        self.estate.clusters.settle()
        if request.path.startswith("/v2/kubernetes/"):
            return self.estate.clusters.answer(request, self.sizes)
        return self.estate.answer(request, self.sizes)

    def _check(self, request: Request, response: Response) -> None:
        is_cut_off = request.path == _USE and self.contract and not self.contract.has(_USE)
        if self.contract is not None and not is_cut_off:
            self.violations += filter(None, [self.contract.violation(request, response)])


def _image(slug: str) -> Answer:
    """A public image; one whose name begins with no- there is not."""
    if slug.startswith("no-"):
        return _told(HTTPStatus.NOT_FOUND)
    told = {"id": 1, "name": slug, "slug": slug, "type": "base", "public": True, "regions": []}
    return HTTPStatus.OK, {"image": told}


_KINDS = {
    "/v2/droplets": "machine",
    "/v2/account/keys": "ssh-key",
    "/v2/firewalls": "firewall",
    "/v2/tags": "tag",
    "/v2/volumes": "volume",
    "/v2/snapshots": "snapshot",
    "/v2/sizes": "size",
    "/v2/kubernetes": "pool",
    "/v2/reserved_ips": "address",
    "/v2/monitoring": "use",
}
"""Where each kind of resource is, as `World.denied` names it."""

_USE = "/v2/monitoring/metrics/droplet/cpu"
_JSON = {"Content-Type": "application/json"}


def left_of(fault: Fault) -> list[Fault]:
    """What is left of a fault once a request has met it."""
    if fault.skip:
        return [replace(fault, skip=fault.skip - 1)]
    return [replace(fault, times=fault.times - 1)] if fault.times > 1 else []


def _error(status: int) -> Response:
    return Response(json.dumps(_told(status)[1]), status, _JSON)


def _told(status: int) -> Answer:
    phrase = HTTPStatus(status).phrase
    return error(status, phrase.lower().replace(" ", "_"), phrase)
