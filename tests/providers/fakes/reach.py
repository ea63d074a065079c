"""The only machine within a test's reach; without the fakes, whose imports take seconds."""

import socket
from typing import Any

import pytest

CONNECT = socket.socket.connect
GETADDRINFO = socket.getaddrinfo


def reach_this_machine_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail a test on the first attempt to reach another machine."""

    def connect_here(self: socket.socket, address: Any) -> None:
        if isinstance(address, tuple) and address[0] != "127.0.0.1":
            pytest.fail(f"a command reached for {address}")
        CONNECT(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_here)
    monkeypatch.setattr(socket, "getaddrinfo", GETADDRINFO)
