"""Starts a real Prometheus or VictoriaMetrics on a folder, and writes history into it."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import urllib3

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

READY_S = 120.0
STALE = np.array([0x7FF0000000000002], dtype="<u8").view("<f8")[0]  # a series has ended
_SAMPLE = np.dtype(
    [("field", "<u2"), ("value_tag", "u1"), ("value", "<f8"), ("time_tag", "u1"), ("time", "u1", 6)]
)
PROGRAMS = {"prometheus": "prometheus", "victoria-metrics": "victoria-metrics"}


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers.

    Attributes:
        url: its address.
        process: its process.
    """

    url: str
    process: subprocess.Popen[bytes]

    def write(self, body: bytes) -> None:
        """Send what `remote_write` made."""
        headers = {
            "Content-Encoding": "snappy",
            "Content-Type": "application/x-protobuf",
            "X-Prometheus-Remote-Write-Version": "0.1.0",
        }
        self.post("/api/v1/write", body, headers)

    def post(self, path: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Post a body; raise where the server does not take it."""
        answer = urllib3.request(
            "POST",
            f"{self.url}{path}",
            body=body,
            headers=dict(headers or {}),
            timeout=600.0,
            retries=False,
        )
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {answer.data[:300]!r}")


def lacking(kind: str) -> str | None:
    """Return why a server cannot be started here, None where it can."""
    program = PROGRAMS[kind]
    return None if shutil.which(program) else f"{program} is not installed (apt-get install)"


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def running(kind: str, folder: Path, port: int | None = None) -> Iterator[Server]:
    """Yield a server on the data of a folder, and end it."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port() if port is None else port
    with (folder / "server.log").open("ab") as log:
        process = subprocess.Popen(_command(kind, folder, port), stdout=log, stderr=log)
    server = Server(f"http://127.0.0.1:{port}", process)
    try:
        _wait(server, "/-/ready" if kind == "prometheus" else "/health")
        yield server
    finally:
        process.terminate()
        try:
            process.wait(READY_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _command(kind: str, folder: Path, port: int) -> list[str]:
    address = f"127.0.0.1:{port}"
    if kind == "prometheus":
        config = folder / "prometheus.yml"
        config.write_text("global: {}\n", encoding="utf-8")
        return [
            PROGRAMS[kind],
            f"--config.file={config}",
            f"--storage.tsdb.path={folder / 'data'}",
            "--storage.tsdb.retention.time=100y",
            f"--web.listen-address={address}",
            "--web.enable-remote-write-receiver",
            "--log.level=warn",
        ]
    return [
        PROGRAMS[kind],
        f"-storageDataPath={folder / 'data'}",
        "-retentionPeriod=100y",
        f"-httpListenAddr={address}",
        "-loggerLevel=WARN",
    ]


def _wait(server: Server, path: str) -> None:
    end = time.monotonic() + READY_S
    while time.monotonic() < end:
        if server.process.poll() is not None:
            raise RuntimeError(f"the server ended with {server.process.returncode}")
        try:
            answer = urllib3.request("GET", server.url + path, retries=False, timeout=5.0)
        except urllib3.exceptions.HTTPError:
            time.sleep(0.1)
            continue
        if answer.status == 200:
            return
        time.sleep(0.1)
    raise RuntimeError("the server did not become ready")


def remote_write(
    series: Iterable[tuple[bytes, NDArray[np.int64], NDArray[np.float64]]],
) -> bytes:
    """Return a request of Prometheus's remote write, not compressed but in Snappy's form.

    Args:
        series: labels as `encoded_labels` makes them, times in milliseconds since 1970, values.
    """
    parts: list[bytes] = []
    for labels, times_ms, values in series:
        body = labels + _samples(times_ms, values)
        parts.append(b"\x0a" + _varint(len(body)) + body)
    data = b"".join(parts)
    return _varint(len(data)) + b"\xfc" + (len(data) - 1).to_bytes(4, "little") + data


def encoded_labels(labels: Mapping[str, str]) -> bytes:
    """Return labels as the fields of a TimeSeries, in the order of their names."""
    found = bytearray()
    for name, text in sorted(labels.items()):
        pair = b"".join(
            tag + _varint(len(part)) + part
            for tag, part in ((b"\x0a", name.encode()), (b"\x12", text.encode()))
        )
        found += b"\x0a" + _varint(len(pair)) + pair
    return bytes(found)


def _samples(times_ms: NDArray[np.int64], values: NDArray[np.float64]) -> bytes:
    rows = np.empty(len(times_ms), dtype=_SAMPLE)
    rows["field"] = 0x1012  # field 2 of 16 bytes
    rows["value_tag"], rows["value"], rows["time_tag"] = 0x09, values, 0x10
    for place in range(6):  # a varint of 6 bytes holds times from 1971 to 2109
        more = 0x80 if place < 5 else 0
        rows["time"][:, place] = ((times_ms >> (7 * place)) & 0x7F) | more
    return rows.tobytes()


def _varint(number: int) -> bytes:
    found = bytearray()
    while number >= 0x80:
        found.append((number & 0x7F) | 0x80)
        number >>= 7
    return bytes([*found, number])
