"""`make live-test`: history in a real Prometheus and a real VictoriaMetrics becomes profiles.

promtool writes Prometheus's blocks; VictoriaMetrics imports the same text.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import urllib3

from tests.live.fleet import DAY_S, METRICS, Fleet
from tests.live.servers import Server, free_port, lacking, running

BEGIN_S = 1_792_368_000  # 2026-10-19, a midnight
FLEET = Fleet(gpus=40, begin_s=BEGIN_S)
HOURS = 2  # on both sides of a midnight, at which pods end and begin
# Between two midnights, in minutes of the day: the end of the first day, the begin of the second.
STRETCHES = ((0, range(DAY_S // 60 - HOURS * 60, DAY_S // 60)), (1, range(HOURS * 60)))
ASKED = ("--since", f"{2 * HOURS * 60 - 1}m", "--until", "2026-10-20T01:59")
CEILING_S = 300.0
KINDS = ("prometheus", "victoria-metrics")


@pytest.fixture(autouse=True)
def no_network() -> None:
    """Let these tests reach servers of this machine."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the history as text, and room for the servers' data."""
    if not os.environ.get("GPUCOST_LIVE"):
        pytest.skip("starts servers of metrics: make live-test")
    for why in filter(None, map(lacking, KINDS)):
        pytest.skip(why)
    folder = tmp_path_factory.mktemp("live")
    _write(folder / "history.txt")
    return folder


def _write(file: Path) -> None:
    with file.open("w", encoding="utf-8") as text:
        for name in METRICS:
            text.write(f"# TYPE {name} gauge\n")
            for day, minutes in STRETCHES:
                _, labels, values = next(
                    one for one in FLEET.readings(range(FLEET.gpus), day) if one[0] == name
                )
                for gpu in range(FLEET.gpus):
                    series = f"{name}{{{_braces(labels[gpu])}}}"
                    text.writelines(
                        f"{series} {values[gpu, minute]} {BEGIN_S + day * DAY_S + minute * 60}\n"
                        for minute in minutes
                    )
        text.write("# TYPE kube_pod_labels gauge\n")
        for day, minutes in STRETCHES:
            for labels_of_pod in FLEET.pods(day):
                instant = BEGIN_S + day * DAY_S + minutes.start * 60
                text.write(f"kube_pod_labels{{{_braces(labels_of_pod)}}} 1 {instant}\n")
        text.write("# EOF\n")


def _braces(labels: dict[str, str]) -> str:
    return ",".join(f'{key}="{value}"' for key, value in labels.items())


@pytest.fixture(scope="module")
def filled(data: Path) -> dict[str, Path]:
    """The data folder of each server, filled."""
    places = {kind: data / kind for kind in KINDS}
    blocks = places["prometheus"] / "data"
    blocks.mkdir(parents=True)
    create = ["promtool", "tsdb", "create-blocks-from", "openmetrics"]
    subprocess.run([*create, data / "history.txt", blocks], check=True, capture_output=True)
    with running("victoria-metrics", places["victoria-metrics"]) as server:
        lines = (data / "history.txt").read_text(encoding="utf-8").splitlines()
        # The same text but for times in milliseconds, as Prometheus's own form has them.
        plain = "".join(f"{line}000\n" for line in lines if not line.startswith("#"))
        server.post("/api/v1/import/prometheus", plain.encode())
    return places


@pytest.fixture(scope="module")
def port() -> int:
    """The port of every server, because their address stands in the profiles."""
    return free_port()


def _command(server: Server, out: Path, *more: str) -> list[str]:
    source = f"prometheus+{server.url}"
    return [sys.executable, "-m", "gpucost", "import", source, *ASKED, *more, "-o", f"{out}/"]


def _import(server: Server, out: Path, cache: Path, *more: str) -> dict[str, bytes]:
    environment = {**os.environ, "GPUCOST_CACHE_DIR": str(cache)}
    done = subprocess.run(
        _command(server, out, *more), env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {file.name: file.read_bytes() for file in sorted(out.iterdir())}


@pytest.fixture(scope="module")
def imported(filled: dict[str, Path], port: int, data: Path) -> dict[str, list[dict[str, bytes]]]:
    """What two imports from each server wrote."""
    found: dict[str, list[dict[str, bytes]]] = {}
    for kind, folder in filled.items():
        with running(kind, folder, port) as server:
            found[kind] = [
                _import(server, data / f"out-{kind}-{turn}", data / f"cache-{turn}")
                for turn in range(2)
            ]
    return found


def test_an_import_repeats_to_the_byte(imported: dict[str, list[dict[str, bytes]]]) -> None:
    """The same question to the same server gives the same files."""
    for first, second in imported.values():
        assert first == second


def test_two_servers_give_the_same_profiles(imported: dict[str, list[dict[str, bytes]]]) -> None:
    """Prometheus and VictoriaMetrics with one history give the same bytes, though pods ended."""
    assert imported["prometheus"][0] == imported["victoria-metrics"][0]


@pytest.fixture(scope="module")
def profiles(imported: dict[str, list[dict[str, bytes]]]) -> dict[str, dict[str, Any]]:
    """The profiles by the job's name."""
    every = [json.loads(one) for one in imported["prometheus"][0].values()]
    return {one["job"]["name"]: one for one in every}


def _tenants() -> Iterator[tuple[int, int, str, str]]:
    for day, _ in STRETCHES:
        for gpu in range(FLEET.gpus):
            tenant = FLEET.tenant(gpu, day)
            if tenant is not None:
                yield day, gpu, tenant.job, tenant.team


def test_each_job_has_its_gpus_machine_and_team(profiles: dict[str, dict[str, Any]]) -> None:
    """Jobs are those of the pods' labels; each has the GPUs that it held and its team."""
    held: dict[str, set[int]] = {}
    teams: dict[str, str] = {}
    for _, gpu, job, team in _tenants():
        held.setdefault(job, set()).add(gpu)
        teams[job] = team
    assert {name: len(one["gpus"]) for name, one in profiles.items()} == {
        job: len(gpus) for job, gpus in held.items()
    }
    assert {name: one["job"]["team"] for name, one in profiles.items()} == teams
    for name, gpus in held.items():
        nodes = {gpu // 8 for gpu in gpus}
        assert (profiles[name]["hardware"]["machine"] is not None) == (len(nodes) == 1)


def test_figures_are_those_that_were_written(profiles: dict[str, dict[str, Any]]) -> None:
    """Counts, means and extremes of every metric of every job are the fleet's own."""
    wanted: dict[tuple[str, str], list[np.ndarray]] = {}
    for day, minutes in STRETCHES:
        for name, _, values in FLEET.readings(range(FLEET.gpus), day):
            for gpu in range(FLEET.gpus):
                tenant = FLEET.tenant(gpu, day)
                if tenant is not None:
                    part = values[gpu, minutes.start : minutes.stop]
                    wanted.setdefault((tenant.job, name), []).append(part)
    for (job, name), parts in wanted.items():
        raw = np.concatenate(parts)
        source = profiles[job]["provenance"]["sources"][0]
        column = next(one for one in source["columns"] if one["source"] == name)
        assert column["n"] == len(raw), (job, name)
        assert column["mean"] == pytest.approx(raw.mean(), rel=1e-6, abs=1e-6)
        assert (column["min"], column["max"]) == pytest.approx((raw.min(), raw.max()), rel=1e-6)


_COUNTED = {
    "prometheus": ("prometheus_http_requests_total{", 'handler="/api/v1/query_range"'),
    "victoria-metrics": ("vm_http_requests_total{", 'path="/api/v1/query_range"'),
}


def _ranges(kind: str, server: Server) -> int:
    """Return how many ranges were asked for; a page of counters may be a second old."""
    begin, part = _COUNTED[kind]
    seen: list[int] = []
    while len(seen) < 2 or seen[-1] != seen[-2]:
        time.sleep(1.5)
        page = urllib3.request("GET", f"{server.url}/metrics", timeout=60.0).data.decode()
        rows = [line for line in page.splitlines() if line.startswith(begin) and part in line]
        seen.append(sum(int(float(line.rsplit(" ", 1)[1])) for line in rows))
    return seen[-1]


@pytest.mark.parametrize("kind", KINDS)
def test_killed_and_run_again_goes_on(
    kind: str, filled: dict[str, Path], port: int, tmp_path: Path
) -> None:
    """After SIGKILL midway the same command asks for the rest alone and writes the same bytes."""
    step = ("--step", "15s")  # two or three parts a metric
    cache = tmp_path / "cache"
    environment = {**os.environ, "GPUCOST_CACHE_DIR": str(cache)}
    with running(kind, filled[kind], port) as server:
        whole = _import(server, tmp_path / "whole", tmp_path / "other", *step)
        asked = _ranges(kind, server)
        begun = subprocess.Popen(
            _command(server, tmp_path / "out", *step), env=environment, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + CEILING_S
        while begun.poll() is None and len(list(cache.rglob("*.part"))) < 3:
            assert time.monotonic() < end
        begun.send_signal(signal.SIGKILL)
        assert begun.wait() == -signal.SIGKILL
        assert not (tmp_path / "out").exists()
        kept = len(list(cache.rglob("*.part")))
        before = _ranges(kind, server)
        assert _import(server, tmp_path / "out", cache, *step) == whole
        assert _ranges(kind, server) - before == asked - kept
    assert kept >= 3
