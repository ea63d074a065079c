"""Scrapes as text: lines by series, at any size, in any blocks."""

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from planner.profile.codec import dump
from telemetry import source_file
from telemetry.formats.prometheus import Scrapes
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.telemetry.captures import path

GOOD = ("dcgm_renamed.prom", "dcgm_mig.prom", "nvidia_gpu_exporter.prom")
_LABELS = 'gpu="0",UUID="GPU-1",modelName="NVIDIA A100-SXM4-80GB",Hostname="a"'


def _scrapes(text: str, size: int = 1000) -> Scrapes:
    """Return what lines say that come in blocks of some lines."""
    found = Scrapes()
    lines = text.split("\n")
    for at in range(0, len(lines), size):
        found.read("\n".join(lines[at : at + size]))
    return found


def _plain(found: Scrapes) -> dict[object, tuple[list[float], list[float]]]:
    return {key: (list(one.values), list(one.times)) for key, one in found.columns.items()}


@pytest.mark.parametrize("file", GOOD)
def test_lines_say_what_the_library_reads(file: str) -> None:
    """Names, labels and values are those that prometheus_client's parser finds."""
    text = Path(path(file)).read_text(encoding="utf-8")
    wanted: dict[tuple[str, tuple[tuple[str, str], ...]], list[float]] = {}
    for family in text_string_to_metric_families(text):
        for one in family.samples:
            # The library adds `_total` to the name of a counter, which is not in the text.
            name = one.name if f"{one.name}{{" in text else one.name.removesuffix("_total")
            labels = tuple(sorted((key.lower(), value) for key, value in one.labels.items()))
            wanted.setdefault((name, labels), []).append(one.value)
    found = _scrapes(text)
    assert {key: list(one.values) for key, one in found.columns.items()} == wanted
    assert not found.dropped


TEXTS = {
    "plain": f"# TYPE A gauge\nA{{{_LABELS}}} 1\nB 2\nA{{{_LABELS}}} 3\nB 4.5e1\n",
    "timed": f"A{{{_LABELS}}} 1 1700000000000\nA{{{_LABELS}}} 2 1700000001000\n",
    "spaces": f"  A{{{_LABELS}}}   1 \nA{{{_LABELS}}}\t2\nA{{{_LABELS}}} 3\n",
    "escaped": 'A{x="a \\"b\\" {c} 1"} 1\nA{x="a \\"b\\" {c} 1"} 2\n',
    "odd": f"A{{{_LABELS}}} NaN\nA{{{_LABELS}}} +Inf\nA{{{_LABELS}}} 1_0\nA{{{_LABELS}}} ERROR\n",
    "cut": f"A{{{_LABELS}}} 1\nA{{{_LABELS[:20]}",
    "elided": 'A{gpu="0",...} 1\nA{gpu="0",...} 2\n',
}


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("size", [1, 2, 100])
def test_blocks_change_nothing(name: str, size: int) -> None:
    """A series that is known already is read as it was when it was new."""
    whole = _scrapes(TEXTS[name], 1000)
    found = _scrapes(TEXTS[name], size)
    assert str(_plain(found)) == str(_plain(whole))  # NaN is NaN
    assert (found.dropped, found.broken) == (whole.dropped, whole.broken)


READ = {
    "plain": (4, 0, [1.0, 3.0, 2.0, 45.0], []),
    "timed": (2, 0, [1.0, 2.0], [1.7e9, 1.7e9 + 1]),
    "spaces": (3, 0, [1.0, 2.0, 3.0], []),
    "escaped": (2, 0, [1.0, 2.0], []),
    "cut": (1, 1, [1.0], []),
    "elided": (2, 0, [1.0, 2.0], []),
}


@pytest.mark.parametrize("name", READ)
def test_each_line_is_a_point_or_is_counted(name: str) -> None:
    """Values and times are as written; a line without a plain value is counted."""
    found = _scrapes(TEXTS[name], 1000)
    points, dropped, values, times = READ[name]
    columns = sorted(found.columns.items())
    assert sum(len(one.values) for _, one in columns) == points
    assert sum(found.dropped.values()) == dropped
    assert [value for _, one in columns for value in one.values] == values
    assert [time for _, one in columns for time in one.times] == times
    assert found.timed == bool(times)


ENCODED = ("utf-8", "utf-8-sig", "utf-16", "utf-16-le")


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_large_file_is_the_same_profile(
    encoding: str, ending: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is read in parts makes the profile of one that was loaded, but for its hash."""
    text = "".join(
        f"# TYPE {name} gauge{ending}"
        + "".join(
            f'{name}{{gpu="{gpu}",UUID="GPU-{gpu}"}} {50 + gpu + turn % 7}{ending}'
            for gpu in range(2)
        )
        for turn in range(3000)
        for name in ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE")
    )
    file = tmp_path / "scrapes.prom"
    file.write_bytes(text.encode(encoding))
    hints = Hints(interval_s=15.0)
    small = dump(read_telemetry([str(file)], hints))
    monkeypatch.setattr(source_file, "LARGE_BYTES", 1)
    (profile,) = read_telemetry([str(file)], hints)
    (source,) = profile.provenance.sources
    assert source.sha256 is None
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(3000 * 15)
    same = [line for line in small.splitlines() if "sha256" not in line]
    assert [line for line in dump((profile,)).splitlines() if "sha256" not in line] == same


def test_a_declared_counter_is_read(tmp_path: Path) -> None:
    """Energy that the exporter declares a counter is the energy of the profile."""
    name = "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"
    file = tmp_path / "energy.prom"
    util = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1"} 90\n'
    file.write_text(
        "".join(
            f'# TYPE {name} counter\n{name}{{gpu="0",UUID="GPU-1"}} {turn * 1_500_000}\n{util}'
            for turn in range(100)
        ),
        encoding="utf-8",
    )
    (profile,) = read_telemetry([str(file)], Hints(interval_s=5.0))
    energy = profile.gpus[0].metrics["energy.total_j"].mean
    assert energy == pytest.approx(99 * 1500.0)
