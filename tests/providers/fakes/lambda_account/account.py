"""A stateful Lambda: every request is held against the documented fields of the API (`form.py`).

`world` says how it misbehaves for as long as it is set, `faults` what goes wrong once,
`violations` which requests the API does not document.
"""

import json
import socket
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http import HTTPStatus
from typing import Any

from werkzeug.wrappers import Request, Response

from tests.providers.fakes.digitalocean import Fault, left_of
from tests.providers.fakes.lambda_account.form import violations
from tests.providers.fakes.openapi import Contract
from tests.providers.fakes.world import NEVER, World

Document = dict[str, Any]
Answer = tuple[int, Document]
OWNER = "lrn:account:5df3e3004a17e242"

REGIONS = ("us-east-1", "us-west-1", "us-south-1")
_KINDS = {
    "/instances": "machine",
    "/instance-operations": "machine",
    "/firewall-rulesets": "firewall",
    "/ssh-keys": "ssh-key",
    "/instance-types": "type",
    "/file-systems": "disk",
}


def instance_types() -> Document:
    """What is sold, as the API prints it."""
    sold = (
        ("gpu_1x_a10", "A10 (24 GB PCIe)", 129, 1, 30, 226, 1400),
        ("gpu_8x_h100_sxm5", "H100 (80 GB SXM5)", 2792, 8, 208, 1800, 22528),
        ("cpu_4x_general", "N/A", 20, 0, 4, 16, 512),
    )
    return {
        name: {
            "instance_type": {
                "name": name,
                "description": f"{gpus}x {described}",
                "gpu_description": described,
                "price_cents_per_hour": cents,
                "specs": {
                    "vcpus": vcpus,
                    "memory_gib": ram,
                    "storage_gib": disk,
                    "gpus": gpus,
                },
            },
            "regions_with_capacity_available": [
                {"name": one, "description": one} for one in REGIONS[:2]
            ],
        }
        for name, described, cents, gpus, vcpus, ram, disk in sold
    }


@dataclass(kw_only=True)
class Lambda:
    """The fake.

    Attributes:
        token: the API key of the account.
        others: more keys of it.
        types: what GET /instance-types answers.
        things: by list and id, as the API prints them.
        world: how it misbehaves.
        faults: what goes wrong next, first come first served; paths as the API's, with /api/v1.
        requests: "METHOD path" of everything that came.
        contract: its OpenAPI document, which exchanges are held against, too; None: unchecked.
        violations: what in a request the API does not document.
        limit: instances that may be; None: any number.
        closed: regions without capacity, whatever the list of types says.
        boot_reads: reads of an instance until it is active.
        user_data: what each instance was given, by id.
        bills: instance -> [made, ended or None].
        lost: answers that each world has lost.
    """

    token: str
    others: tuple[str, ...] = ()
    types: Document = field(default_factory=instance_types)
    things: dict[str, dict[str, Document]] = field(default_factory=dict)
    world: World = field(default_factory=World)
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    contract: Contract | None = None
    violations: list[str] = field(default_factory=list)
    limit: int | None = None
    closed: set[str] = field(default_factory=set)
    boot_reads: int = 2
    user_data: dict[str, str] = field(default_factory=dict)
    bills: dict[str, list[datetime | None]] = field(default_factory=dict)
    lost: Counter[World] = field(default_factory=Counter)
    _reads: Counter[str] = field(default_factory=Counter)
    _ending: Counter[str] = field(default_factory=Counter)
    _born: dict[str, datetime] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _made: int = 0

    def __post_init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Empty the account."""
        self.things = {
            "/instances": {},
            "/firewall-rulesets": {},
            "/ssh-keys": {},
            "/file-systems": {},
        }
        for table in (self.bills, self.user_data, self.lost, self._reads, self._ending, self._born):
            table.clear()

    def __call__(self, environ: Document, start_response: Any) -> Any:
        """Answer a request: the WSGI entry."""
        request = Request(environ)
        with self._lock:
            self.requests.append(f"{request.method} {request.path}")
            if self.world.latency_s:
                time.sleep(self.world.latency_s)
            fault = self._next_fault(request) or self._denied(request)
            answer = self._answer(request, fault)
            response = Response(json.dumps(answer[1]), answer[0], content_type="application/json")
            if fault is not None:
                response.headers.extend(fault.headers)
            response.headers["Date"] = format_datetime(self.world.now(), usegmt=True)
            if fault is None and self.contract is not None:
                self.violations += filter(None, [self.contract.violation(request, response)])
            drop = self._loses(request) if fault is None else fault.drop
        if drop:
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
        path = request.path.removeprefix("/api/v1")
        kind = next((k for begin, k in _KINDS.items() if path.startswith(begin)), "account")
        body = request.get_json() if request.is_json and request.data else {}
        region = str(body.get("region_name") or body.get("region") or "")
        denied = self.world.refuses(kind, region, changes=request.method != "GET")
        return None if denied is None else Fault(status=denied.status)

    def _loses(self, request: Request) -> bool:
        """Whether the world cuts off the answer, once a machine was asked for."""
        changes = request.method != "GET"
        if not self.bills or not self.world.loses(self.lost[self.world], changes=changes):
            return False
        self.lost[self.world] += 1
        return True

    def _answer(self, request: Request, fault: Fault | None) -> Answer:
        if fault is None:
            return self._work(request)
        if fault.after or fault.drop:
            self._work(request)
        if fault.body is not None:
            return fault.status or HTTPStatus.OK, json.loads(fault.body)
        return _error(fault.status or HTTPStatus.BAD_GATEWAY, "global/internal-error", "failed")

    def _work(self, request: Request) -> Answer:
        bearers = [f"Bearer {token}" for token in (self.token, *self.others)]
        if request.headers.get("Authorization") not in bearers:
            return _error(401, "global/invalid-api-key", "API key was invalid.")
        path, method = request.path.removeprefix("/api/v1"), request.method
        body: Document = request.get_json() if request.data else {}
        wrong = list(violations(path, body)) if method == "POST" else []
        if wrong:
            self.violations += [f"{method} {path}: {one}" for one in wrong]
            return _error(400, "global/invalid-parameters", "; ".join(wrong))
        if path == "/audit-events":
            owner = "lrn:account:another" if self.world.elsewhere else OWNER
            return HTTPStatus.OK, {"data": [_event(owner)], "page_token": None}
        if path == "/instance-types":
            return HTTPStatus.OK, {"data": self.types}
        if path == "/images":
            return HTTPStatus.OK, {"data": [_image(region) for region in REGIONS]}
        if path == "/firewall-rulesets/global":
            told = {"id": "global", "name": "Global Firewall Rules", "rules": []}
            return HTTPStatus.OK, {"data": told}
        if method == "POST":
            return self._change(path, body)
        return self._find(method, path)

    def _change(self, path: str, body: Document) -> Answer:
        calls = {
            "/instance-operations/launch": self._launch,
            "/instance-operations/terminate": self._terminate,
            "/ssh-keys": self._make_key,
            "/firewall-rulesets": self._make_firewall,
        }
        if path in calls:
            return calls[path](body)
        id_ = path.removeprefix("/instances/")
        if id_ not in self.things["/instances"]:
            return _unknown()
        self.things["/instances"][id_] |= body
        return HTTPStatus.OK, {"data": self.things["/instances"][id_]}

    def _launch(self, body: Document) -> Answer:
        known = {one["name"] for one in self.things["/ssh-keys"].values()}
        if not set(body["ssh_key_names"]) <= known:
            return _error(400, "global/object-does-not-exist", "SSH key not found.")
        images = [_image(region) for region in REGIONS] if "image" in body else []
        if images and not any(body["image"].items() <= image.items() for image in images):
            return _error(400, "global/object-does-not-exist", "Image not found.")
        walls = self.things["/firewall-rulesets"]
        for one in body.get("firewall_rulesets", ()):
            if one["id"] not in walls or walls[one["id"]]["region"]["name"] != body["region_name"]:
                return _error(400, "global/object-does-not-exist", "Firewall ruleset not found.")
        sold = self.types.get(body["instance_type_name"])
        rooms = [] if sold is None else sold["regions_with_capacity_available"]
        open_ = {one["name"] for one in rooms} - self.closed
        if body["region_name"] not in open_:
            code = "instance-operations/launch/insufficient-capacity"
            return _error(400, code, "Not enough capacity to fulfill launch request.")
        if self.limit is not None and len(self.things["/instances"]) >= self.limit:
            return _error(400, "global/quota-exceeded", "Quota exceeded.")
        id_ = self._new_id()
        self.things["/instances"][id_] = instance(id_, self._made, body, sold["instance_type"])
        self.user_data[id_] = body.get("user_data", "")
        self.bills[id_] = [self.world.now().replace(microsecond=0), None]
        return HTTPStatus.OK, {"data": {"instance_ids": [id_]}}

    def _terminate(self, body: Document) -> Answer:
        ids = body["instance_ids"]
        self._fade()
        if any(self._is_hidden(one) for one in ids):
            return _unknown()
        for one in ids:
            self.things["/instances"][one]["status"] = "terminating"
            self.bills[one][1] = self.bills[one][1] or self.world.now()
        ended = [self.things["/instances"][one] for one in ids]
        return HTTPStatus.OK, {"data": {"terminated_instances": ended}}

    def _is_hidden(self, id_: str) -> bool:
        return self.world.elsewhere or id_ not in self.things["/instances"]

    def end_itself(self, id_: str, at: datetime) -> None:
        """An instance has ended by a call of its own at that time."""
        self.things["/instances"][id_]["status"] = "terminating"
        self.bills[id_][1] = at + timedelta(seconds=self.world.skew_s)

    def _make_key(self, body: Document) -> Answer:
        if any(one["name"] == body["name"] for one in self.things["/ssh-keys"].values()):
            return _error(400, "global/duplicate", "An SSH key with that name exists.")
        made = {"id": self._new_id(), **body}
        self.things["/ssh-keys"][made["id"]] = made
        return HTTPStatus.OK, {"data": made}

    def _make_firewall(self, body: Document) -> Answer:
        made = {
            **body,
            "id": self._new_id(),
            "region": {"name": body["region"], "description": body["region"]},
            "created": f"{self.world.now():%Y-%m-%dT%H:%M:%SZ}",
            "instance_ids": [],
        }
        self.things["/firewall-rulesets"][made["id"]] = made
        return HTTPStatus.OK, {"data": made}

    def _new_id(self) -> str:
        self._made += 1
        id_ = f"1a2b3c4d5e6f7a8b9c0d1e2f{self._made:08x}"
        self._born[id_] = datetime.now(UTC)
        return id_

    def _age_s(self, id_: str) -> float:
        born = self._born.get(id_)
        return NEVER if born is None else (datetime.now(UTC) - born).total_seconds()

    def _find(self, method: str, path: str) -> Answer:
        kind, _, id_ = path.rpartition("/") if path not in self.things else (path, "", "")
        if kind not in self.things:
            return _unknown()
        self._fade()
        table = {} if self.world.elsewhere else self.things[kind]
        if not id_:
            shown = [key for key in table if self._age_s(key) >= self.world.list_lag_s]
            return HTTPStatus.OK, {
                "data": self.world.listed([self._told(kind, key) for key in shown])
            }
        if method == "DELETE":
            return self._remove(kind, id_)
        if kind == "/ssh-keys" or id_ not in table or self._age_s(id_) < self.world.read_lag_s:
            return _unknown()
        self._reads[id_] += 1
        if self._reads[id_] >= self.boot_reads and table[id_].get("status") == "booting":
            table[id_]["status"] = "active"
        return HTTPStatus.OK, {"data": self._told(kind, id_)}

    def _told(self, kind: str, id_: str) -> Document:
        thing = self.things[kind][id_]
        if kind == "/instances" and self._age_s(id_) < self.world.tag_lag_s:
            return {name: value for name, value in thing.items() if name != "tags"}
        return thing

    def _fade(self) -> None:
        """What was terminated is shown for a second or two more requests, and then no more."""
        for id_, (_, ended) in self.bills.items():
            late_s = -1.0 if ended is None else (self.world.now() - ended).total_seconds()
            self._ending[id_] += late_s >= 0
            least_s = 0.0 if self._ending[id_] > 2 else 1.0
            if late_s >= max(least_s, self.world.end_lag_s):
                self.things["/instances"].pop(id_, None)

    def _remove(self, kind: str, id_: str) -> Answer:
        if self.world.elsewhere or id_ not in self.things[kind] or kind == "/instances":
            # The call for keys documents no 404.
            return _error(400, "global/invalid-parameters", "no") if "key" in kind else _unknown()
        held = (one.get("firewall_rulesets", ()) for one in self.things["/instances"].values())
        if any(one["id"] == id_ for several in held for one in several):
            return _error(409, "firewall-rulesets/firewall-ruleset-in-use", "It is in use.")
        del self.things[kind][id_]
        return HTTPStatus.OK, {"data": {}}


def instance(id_: str, number: int, body: Document, sold: Document) -> Document:
    """An instance as the API prints it, before it runs."""
    actions = ("migrate", "rebuild", "restart", "cold_reboot", "terminate")
    return {
        "id": id_,
        "name": body.get("name", ""),
        "ip": f"203.0.113.{number % 250 + 1}",
        "private_ip": f"10.19.0.{number % 250 + 1}",
        "status": "booting",
        "ssh_key_names": body["ssh_key_names"],
        "file_system_names": [],
        "region": {"name": body["region_name"], "description": body["region_name"]},
        "instance_type": sold,
        "hostname": f"203-0-113-{number % 250 + 1}.cloud.lambda.ai",
        "actions": {name: {"available": True} for name in actions},
        "tags": body.get("tags", []),
        "firewall_rulesets": body.get("firewall_rulesets", []),
    }


def _image(region: str) -> Document:
    """The one image that there is, in a region."""
    return {
        "id": f"43336648-096d-4cba-9aa2-{REGIONS.index(region):012}",
        "created_time": "2026-01-02T03:04:05Z",
        "updated_time": "2026-01-02T03:04:05Z",
        "name": "lambda-stack-24.04",
        "description": "Lambda Stack",
        "family": "lambda-stack-24-04",
        "version": "24.04",
        "architecture": "x86_64",
        "region": {"name": region, "description": region},
    }


def _event(owner: str) -> Document:
    """An entry of the audit log."""
    return {
        "service_name": "cloud",
        "resource_name": "api_key",
        "action": "created",
        "catalog_version": "2025-09-06",
        "event_id": "0123456789abcdef0123456789abcdef",
        "event_time": "2025-09-15T10:30:45.123456Z",
        "actor_lrn": None,
        "resource_lrns": ["lrn:cloud:api_key:ffeeddccbbaa99887766554433221100"],
        "resource_owner_lrn": owner,
        "request_api_key_lrn": None,
        "additional_details": {},
    }


def _error(status: int, code: str, message: str) -> Answer:
    return status, {"error": {"code": code, "message": message, "suggestion": ""}}


def _unknown() -> Answer:
    return _error(404, "global/object-does-not-exist", "Specified object does not exist.")
