"""A server of metrics as Prometheus's HTTP API has it, in worlds where it fails."""

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

METRICS = {"DCGM_FI_DEV_GPU_UTIL": 80.0, "DCGM_FI_DEV_POWER_USAGE": 300.0, "up": 1.0}
PODS = (("train-0", "a"), ("train-0", "a"), ("serve-0", "b"), ("", ""))

# What goes wrong with a range query, by the name of a world. Each happens to the third and fourth
# answer of a metric only, unless its name says "always".
WORLDS = (
    "busy",  # 429 with Retry-After
    "failing",  # 503
    "restarting",  # the connection ends before an answer
    "cut",  # the connection ends within an answer
    "cut-json",  # a proxy ends the answer early and says that this is all
    "partial",  # VictoriaMetrics: a part of its storage did not answer
)


class FakePrometheus:
    """Two machines of two GPUs, three pods, an idle GPU.

    Attributes:
        asked: path and fields of each request.
        headers: of the last request.
        break_after: how many range queries are answered before the server fails.
        status: what a failing server answers.
        world: what goes wrong, one of WORLDS, also with `always-` before it.
        spaced: whether JSON is written with spaces.
        series: labels of each series of a metric.
        kube: label sets of kube_pod_labels.
        odd: what stands in place of some values: text by number of the point.
        noted: whether recording rules noted the metrics, too.
        warnings: what is said beside the data.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: dict[str, str] = {}
        self.break_after = 1 << 30
        self.status = 400
        self.error = "parse error: unexpected character"
        self.world = ""
        self.spaced = False
        self.series = list(_series())
        self.kube: list[dict[str, str]] = []
        self.odd: dict[int, str] = {}
        self.warnings: list[str] = []
        self.noted = False
        self.shift_s = 0.0
        self._lock = threading.Lock()
        self._tries: Counter[str] = Counter()

    @property
    def ranges(self) -> list[dict[str, str]]:
        """Fields of each range query."""
        return [fields for path, fields in self.asked if path.endswith("query_range")]

    def answer(self, path: str, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the status and body for a request."""
        with self._lock:
            self.asked.append((path, fields))
            if path.endswith("query_range"):
                self.break_after -= 1
        if path.endswith("/label/__name__/values"):
            noted = [f"gpucost:{name}:5m" for name in METRICS] if self.noted else []
            return 200, {"status": "success", "data": sorted([*METRICS, *noted])}
        if path.endswith("/series"):
            named = [{"__name__": "kube_pod_labels", **labels} for labels in self.kube]
            return 200, {"status": "success", "data": named}
        if self.break_after < 0:
            return self.status, {"status": "error", "error": self.error}
        name = fields["query"].removeprefix("last_over_time(").split("{")[0].split("[")[0]
        start, end, step = (int(fields[key]) for key in ("start", "end", "step"))
        metric = name.removeprefix("gpucost:").removesuffix(":5m")
        result = [
            {
                "metric": {"__name__": name, **labels},
                "values": [
                    [t + self.shift_s, self.odd.get(t // step % 100, str(METRICS[metric] + place))]
                    for t in range(start, end + 1, step)
                ],
            }
            for place, labels in enumerate(self.series)
        ]
        body: dict[str, Any] = {"status": "success"}
        if self.warnings:
            body["warnings"] = self.warnings
        return 200, {**body, "data": {"resultType": "matrix", "result": result}}

    def fault(self, path: str, fields: dict[str, str]) -> str | None:
        """Return what goes wrong with this try, None where nothing does."""
        if not self.world or not path.endswith("query_range"):
            return None
        with self._lock:
            self._tries[json.dumps(fields)] += 1
            tries, parts = self._tries[json.dumps(fields)], len(self._tries)
        if self.world.startswith("always-"):
            return self.world.removeprefix("always-")
        return self.world if parts in {3, 4} and tries == 1 else None


def _series() -> Iterator[dict[str, str]]:
    for place, (pod, space) in enumerate(PODS):
        yield {
            "gpu": str(place % 2),
            **({"UUID": f"GPU-{place}"} if place else {}),  # one exporter gives none
            "modelName": "NVIDIA H100 80GB HBM3",
            "Hostname": f"node-{place // 2}",
            "pod": "dcgm-exporter-x1",
            "namespace": "monitoring",
            "project": "p" if pod else "",
            **({"exported_pod": pod, "exported_namespace": space} if pod else {}),
        }


@contextmanager
def serving(fake: FakePrometheus) -> Iterator[str]:
    """Yield the address of a fake as a SOURCE, while it answers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            fake.headers = dict(self.headers)
            fields = {key: values[0] for key, values in parse_qs(parts.query).items()}
            fault = fake.fault(parts.path, fields)
            status, body = fake.answer(parts.path, fields)
            if fault == "partial":
                body["isPartial"] = True
            gap = (", ", ": ") if fake.spaced else (",", ":")
            data = json.dumps(body, separators=gap).encode()
            if fault == "restarting":
                self.close_connection = True
                return
            if fault in {"busy", "failing"}:
                status, data = (429, b"slow down") if fault == "busy" else (503, b"not ready")
            self.send_response(status)
            if fault == "busy":
                self.send_header("Retry-After", "0")
            if fault == "cut-json":
                data = data[: len(data) // 2]
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2] if fault == "cut" else data)
            self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"prometheus+http://127.0.0.1:{http.server_port}"
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
