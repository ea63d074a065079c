"""`gpucost profile --metrics URL`: a server's own figures, read over HTTP while it is measured."""

import json
import socket
import socketserver
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tests.gpucost.conftest import Call
from tests.gpucost.profiling.test_profile import FAST, GPUCOST

TOKENS, REQUESTS = 250.0, 5.0
ENOUGH = 3
PATIENCE_S = 60.0
# A job that ends once it is told to.
WAITS = "import pathlib, time\nwhile not pathlib.Path('done').exists(): time.sleep(0.05)"


class Served(Collector):
    """Between two readings of its page the server always does the same."""

    def __init__(self) -> None:
        self.read = 0
        self.often = threading.Event()

    def collect(self) -> Iterator[Metric]:
        """Count the reading and tell the page."""
        self.read += 1
        if self.read >= ENOUGH:
            self.often.set()
        yield CounterMetricFamily("vllm:generation_tokens", "-", value=1e6 + TOKENS * self.read)
        yield CounterMetricFamily("vllm:request_success", "-", value=REQUESTS * self.read)
        yield GaugeMetricFamily("vllm:num_requests_waiting", "-", value=4)
        yield GaugeMetricFamily("vllm:kv_cache_usage_perc", "-", value=0.97)


@pytest.fixture
def server() -> Iterator[tuple[Served, str]]:
    """A metrics page on this machine, and its address."""
    registry, page = CollectorRegistry(auto_describe=False), Served()
    registry.register(page)
    page.read = 0

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Answer as such servers do."""
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            if self.path == "/metrics":
                self.wfile.write(generate_latest(registry))

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Page) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.02,))
        thread.start()
        yield page, f"http://127.0.0.1:{http.server_address[1]}"
        http.shutdown()
        thread.join()


def test_requests_tokens_queue_and_cache_come_into_the_profile(
    server: tuple[Served, str], tmp_path: Path
) -> None:
    """They are those of the time between the first reading and the last; the finding uses them."""
    page, address = server
    target = tmp_path / "profile.json"
    words = [*FAST, "--no-metadata", "--metrics", address, "-o", str(target)]
    with subprocess.Popen(
        [GPUCOST, "profile", *words, "--", sys.executable, "-c", WAITS],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as ran:
        try:
            assert page.often.wait(PATIENCE_S)
        finally:
            (tmp_path / "done").touch()
            _, said = ran.communicate(timeout=PATIENCE_S)
    assert ran.returncode == 0, said
    profile = json.loads(target.read_text())
    job, work = profile["job"], profile["work"]
    assert (job["kind"], job["framework"]) == ("inference_online", "vllm")
    steps = work["done"] / TOKENS
    assert ENOUGH - 1 <= steps == round(steps) < page.read
    assert work["unit"] == "token"
    assert job["requests_per_s"] / work["rate_per_s"] == pytest.approx(REQUESTS / TOKENS)
    assert job["serving"]["requests_waiting"] == 4
    assert job["serving"]["kv_cache_fraction"] == pytest.approx(0.97)
    assert "memory-pressure" in said


def test_a_server_that_does_not_answer_is_named_and_the_rest_is_measured(
    tmp_path: Path, call: Call
) -> None:
    """No figure is made up; user and password of an address are kept nowhere."""
    address = "http://me:secret@127.0.0.1:1/metrics?token=secret"
    target = tmp_path / "profile.json"
    words = [*FAST, "--no-metadata", "--metrics", address, "-o", str(target)]
    ran = subprocess.run(
        [GPUCOST, "profile", *words, "--", "sleep", "0.3"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    profile = json.loads(target.read_text())
    assert profile["job"]["serving"] is None
    (note,) = (one for one in profile["provenance"]["notes"] if "127.0.0.1:1" in one)
    assert "no answer" in note
    assert "secret" not in target.read_text() + ran.stderr
    assert call("diagnose", str(target)).code == 0


@pytest.mark.parametrize("address", ["ftp://x/metrics", "http://", "localhost:port", "file:///x"])
def test_what_is_no_address_is_refused_before_anything_starts(address: str, call: Call) -> None:
    """Exit 2, and what one looks like."""
    ran = call("profile", "--no-gpu", "--metrics", address, "--", "touch", "started")
    assert ran.code == 2
    assert "http://localhost:8000/metrics" in ran.err
    assert not Path("started").exists()


def test_a_page_that_never_ends_holds_nothing_up(tmp_path: Path) -> None:
    """A server that takes the connection and says nothing: the job's end is not waited for."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        words = [*FAST, "--no-metadata", "--metrics", f"127.0.0.1:{silent.getsockname()[1]}"]
        ran = subprocess.run(
            [GPUCOST, "profile", *words, "--", "true"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
    assert ran.returncode == 0, ran.stderr
    assert "so what it serves is unknown" in ran.stderr
