"""`gpucost import prometheus+http://...`: a server's metrics become the profiles of its jobs."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.gpucost.conftest import Call

END = "2026-11-20T12:00"
END_S = 1_795_176_000
METRICS = {"DCGM_FI_DEV_GPU_UTIL": 80.0, "DCGM_FI_DEV_POWER_USAGE": 300.0, "up": 1.0}


class FakePrometheus:
    """Two machines of two GPUs, three pods, an idle GPU; it answers as Prometheus's API does.

    Attributes:
        asked: path and fields of each request.
        headers: of the last request.
        break_after: how many range queries are answered before the server fails.
        status: what a failing server answers.
    """

    def __init__(self) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: dict[str, str] = {}
        self.break_after = 1 << 30
        self.status = 400
        self.error = "parse error: unexpected character"

    def answer(self, path: str, fields: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return the status and body for a request."""
        self.asked.append((path, fields))
        if path.endswith("/label/__name__/values"):
            return 200, {"status": "success", "data": sorted(METRICS)}
        self.break_after -= 1
        if self.break_after < 0:
            return self.status, {"status": "error", "error": self.error}
        name = fields["query"].split("{")[0]
        start, end, step = (int(fields[key]) for key in ("start", "end", "step"))
        result = [
            {
                "metric": {"__name__": name, **labels},
                "values": [[t, str(METRICS[name] + place)] for t in range(start, end + 1, step)],
            }
            for place, labels in enumerate(self._series())
        ]
        return 200, {"status": "success", "data": {"resultType": "matrix", "result": result}}

    @staticmethod
    def _series() -> Iterator[dict[str, str]]:
        pods = ["train-0", "train-0", "serve-0", ""]
        for place, pod in enumerate(pods):
            yield {
                "gpu": str(place % 2),
                **({"UUID": f"GPU-{place}"} if place else {}),  # one exporter gives none
                "modelName": "NVIDIA H100 80GB HBM3",
                "Hostname": f"node-{place // 2}",
                "pod": "dcgm-exporter-x1",
                "project": "p" if pod else "",
                **({"exported_pod": pod} if pod else {}),
            }


@pytest.fixture
def server() -> Iterator[tuple[FakePrometheus, str]]:
    """A fake server of metrics and its address as a SOURCE."""
    fake = FakePrometheus()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            fake.headers = dict(self.headers)
            fields = {key: values[0] for key, values in parse_qs(parts.query).items()}
            status, body = fake.answer(parts.path, fields)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, daemon=True).start()
    yield fake, f"prometheus+http://127.0.0.1:{http.server_port}"
    http.shutdown()
    http.server_close()


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Let these tests reach their own server; its addresses are of this machine."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache of these tests; nothing of the environment says who asks."""
    for name in ("USER", "PASSWORD", "TOKEN"):
        monkeypatch.delenv(f"GPUCOST_PROMETHEUS_{name}", raising=False)
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache" / "live"


def _profiles(folder: Path) -> dict[str, dict[str, Any]]:
    return {p.stem: json.loads(p.read_text(encoding="utf-8")) for p in sorted(folder.iterdir())}


def test_pods_become_jobs_with_their_machines(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path, cache: Path
) -> None:
    """A profile a pod, with its GPUs and machine; a GPU without one is told, and is in none."""
    fake, address = server
    target = f"{tmp_path / 'out'}/"
    done = call("import", address, "--until", END, "--since", "2d", "--match", "a=b", "-o", target)
    assert done.code == 0, done.err
    assert "1 GPUs carry no job label" in done.err
    found = _profiles(tmp_path / "out")
    assert {name: len(one["gpus"]) for name, one in found.items()} == {"serve-0": 1, "train-0": 2}
    train = found["train-0"]
    assert train["window"]["duration_s"] == pytest.approx(2 * 86400 + 60)
    assert train["gpus"][1]["metrics"]["util.kernel_time"]["mean"] == pytest.approx(0.81)
    assert train["hardware"]["machine"] != found["serve-0"]["hardware"]["machine"]
    ranges = [fields for path, fields in fake.asked if path.endswith("query_range")]
    assert {one["query"] for one in ranges} == {
        'DCGM_FI_DEV_GPU_UTIL{a="b"}',
        'DCGM_FI_DEV_POWER_USAGE{a="b"}',
    }
    assert max(int(one["end"]) - int(one["start"]) for one in ranges) < 8 * 3600
    assert max(int(one["end"]) for one in ranges) == END_S
    assert not list(cache.iterdir())


def test_the_same_question_gives_the_same_bytes(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """Two imports of one window write the same files."""
    _, address = server
    for name in ("a", "b"):
        done = call("import", address, "--until", END, "-o", f"{tmp_path / name}/")
        assert done.code == 0, done.err
    for file in (tmp_path / "a").iterdir():
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_what_has_come_is_not_asked_again(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """A server that fails midway is exit 5; the same command goes on from there."""
    fake, address = server
    arguments = ("import", address, "--until", END, "--since", "3d", "-o", f"{tmp_path / 'out'}/")
    fake.break_after = 7
    failed = call(*arguments)
    assert failed.code == 5
    assert "parse error" in failed.err
    assert not (tmp_path / "out").exists()
    before = len([1 for path, _ in fake.asked if path.endswith("query_range")])
    fake.break_after = 1 << 30
    assert call(*arguments).code == 0
    asked = [json.dumps(fields) for path, fields in fake.asked if path.endswith("query_range")]
    assert before == 8
    assert len(asked) - len(set(asked)) == 1  # the one that failed
    whole = call(*arguments[:-1], f"{tmp_path / 'again'}/")
    assert whole.code == 0
    assert _profiles(tmp_path / "again") == _profiles(tmp_path / "out")


def test_another_label_may_name_the_job(
    call: Call, server: tuple[FakePrometheus, str], tmp_path: Path
) -> None:
    """`--job-label` takes the place of the pod's; series without it are of no job."""
    _, address = server
    out = f"{tmp_path / 'out'}/"
    done = call("import", address, "--until", END, "--job-label", "project", "-o", out)
    assert done.code == 0, done.err
    assert {name: len(p["gpus"]) for name, p in _profiles(tmp_path / "out").items()} == {"p": 3}


WHO = {
    "Bearer t0p": {"TOKEN": "t0p"},
    "Basic dTpw": {"USER": "u", "PASSWORD": "p"},
    None: {},
}


@pytest.mark.parametrize("header", WHO)
def test_who_asks_comes_from_the_environment(
    header: str | None,
    call: Call,
    server: tuple[FakePrometheus, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A token or a user with a password are sent; they are in no file and on no screen."""
    fake, address = server
    for name, text in WHO[header].items():
        monkeypatch.setenv(f"GPUCOST_PROMETHEUS_{name}", text)
    done = call("import", address, "--until", END, "-o", f"{tmp_path / 'out'}/")
    assert done.code == 0, done.err
    assert fake.headers.get("Authorization") == header
    assert "t0p" not in done.err + done.out
    assert not any(b"t0p" in file.read_bytes() for file in (tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("prometheus+http://u:secret@h:9",), "GPUCOST_PROMETHEUS_PASSWORD"),
        (("prometheus+http://",), "not an address"),
        (("ADDRESS", "--match", "nothing"), "LABEL=VALUE"),
        (("ADDRESS", "ADDRESS"), "imported alone"),
        (("ADDRESS", "--job", "nobody"), "serve-0, train-0"),
        (("ADDRESS", "--name", "x"), "cannot share"),
        (("ADDRESS", "--since", "10s"), "--since"),
    ],
)
def test_wrong_questions_are_refused(
    arguments: tuple[str, ...],
    says: str,
    call: Call,
    server: tuple[FakePrometheus, str],
) -> None:
    """What cannot be asked or told apart is exit 2; a password is never repeated."""
    words = [server[1] if word == "ADDRESS" else word for word in arguments]
    done = call("import", *words, "--until", END, "-o", "out/")
    assert done.code == 2
    assert says in done.err
    assert "secret" not in done.err


@pytest.mark.parametrize(
    ("status", "says"), [(401, "GPUCOST_PROMETHEUS_TOKEN"), (422, "answered 422")]
)
def test_a_server_that_refuses_is_exit_5(
    status: int, says: str, call: Call, server: tuple[FakePrometheus, str]
) -> None:
    """Its own words are passed on, or what to set."""
    fake, address = server
    fake.break_after, fake.status = 0, status
    done = call("import", address, "--until", END)
    assert done.code == 5
    assert says in done.err
