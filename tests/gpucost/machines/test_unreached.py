"""Before a provider is asked: whether anybody answers, also behind a proxy that never does."""

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import pytest

from gpucost.machines import state
from providers.registry import CLOUDS

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Loopback is reached, and nothing else is."""


class _Unauthorized(BaseHTTPRequestHandler):
    def do_HEAD(self) -> None:
        self.send_error(401)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def silent() -> Iterator[str]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def answering() -> Iterator[str]:
    """A server that answers, though not to us."""
    with HTTPServer(("127.0.0.1", 0), _Unauthorized) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def said(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, proxy: str = ""
) -> tuple[list[str], dict[str, str]]:
    """What is said of DigitalOcean to what only looks; why it is not asked."""
    for name in ("https_proxy", "ALL_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", proxy)
    monkeypatch.setenv(CLOUDS["digitalocean"].endpoint, endpoint)
    monkeypatch.setattr(state, "_WAITED_S", 2.5)
    journal: Any = SimpleNamespace(open_deployments=list)
    sentences: list[str] = []
    output: Any = SimpleNamespace(say=sentences.append)
    silent = state.tell_unreached(["digitalocean", "doks"], journal, output, must_ask=False)
    return sentences, silent


def test_a_proxy_that_never_answers_is_named(monkeypatch: pytest.MonkeyPatch, silent: str) -> None:
    """By host and port alone: a password may stand before them."""
    (why,), unasked = said(monkeypatch, "", silent.replace("//", "//me:secret@"))
    way = f"api.digitalocean.com through the proxy {silent.removeprefix('http://')}: "
    assert why.startswith(f"digitalocean, doks cannot be reached at {way}")
    assert "Check HTTPS_PROXY and the network" in why
    assert set(unasked) == {"digitalocean", "doks"}


def test_any_answer_is_one(monkeypatch: pytest.MonkeyPatch, answering: str) -> None:
    """A 401 shows that somebody is there: nothing is said, and it is asked."""
    assert said(monkeypatch, answering) == ([], {})


def test_nobody_waits_for_who_is_looked_up_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """AWS looks for keys on the network, which takes seconds: others are looked for meanwhile."""
    looked = Event()
    monkeypatch.setattr(state, "fault_of", lambda *_: looked.set() or "")

    def one_by_one() -> Iterator[str]:
        yield "digitalocean"
        assert looked.wait(10)
        yield "aws"

    nobody: Any = SimpleNamespace(open_deployments=list)
    assert state.tell_unreached(one_by_one(), nobody, nobody, must_ask=True) == {}
