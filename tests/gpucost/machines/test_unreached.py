"""Before a provider is asked: whether anybody answers, also behind a proxy that never does."""

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
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


def said(monkeypatch: pytest.MonkeyPatch, **environment: str) -> list[str]:
    """What is said of DigitalOcean where a run of ours is open there."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(state, "_burning", lambda run: run.name)
    run = SimpleNamespace(provider="digitalocean", name="run-1 ($4.41 an hour)")
    journal: Any = SimpleNamespace(open_deployments=lambda: [run])
    sentences: list[str] = []
    output: Any = SimpleNamespace(say=sentences.append)
    state.tell_unreached(["digitalocean"], journal, output)
    return sentences


ENDPOINT = CLOUDS["digitalocean"].endpoint


def test_a_provider_that_never_answers_is_named(
    monkeypatch: pytest.MonkeyPatch, silent: str
) -> None:
    """With what may burn there; likewise where a proxy takes the connection and keeps silent."""
    for environment in ({ENDPOINT: silent}, {"HTTPS_PROXY": silent, ENDPOINT: ""}):
        why, burning = said(monkeypatch, **environment)
        assert why.startswith("digitalocean cannot be reached: ")
        assert burning == "by the last record run-1 ($4.41 an hour) may still be there."


def test_a_refused_connection_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody listens there."""
    why, _ = said(monkeypatch, **{ENDPOINT: "http://127.0.0.1:9"})
    assert "refused" in why


def test_any_answer_is_one(monkeypatch: pytest.MonkeyPatch, answering: str) -> None:
    """A 401 shows that somebody is there: nothing is said."""
    assert said(monkeypatch, **{ENDPOINT: answering}) == []
