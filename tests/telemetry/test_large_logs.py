"""Logs read in blocks: the profile of the whole, whatever lies between the rows."""

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from planner.profile.codec import dump
from pricing.errors import InputError
from telemetry import source_file
from telemetry.profiling.window import durations
from telemetry.readers import devices
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Payload
from telemetry.sources import read_telemetry
from tests.telemetry.reading import read_source

UUIDS = [f"GPU-1b0f0c1e-0000-4000-8000-00000000000{i}" for i in range(3)]
HEADER = (
    "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], "
    "power.draw [W], power.limit [W], temperature.gpu, clocks_event_reasons.active"
)


def _rows(seconds: int = 60, gpus: int = 2) -> list[str]:
    draw = np.random.default_rng(7)
    return [
        f"2026/11/01 10:{s // 60:02d}:{s % 60:02d}.{g:03d}, {g}, {UUIDS[g]}, NVIDIA H100, "
        f"{0 if s < 9 else draw.integers(1, 101)} %, {draw.integers(1000, 80000)} MiB, 81559 MiB, "
        f"{draw.uniform(80, 690):.2f} W, 700.00 W, {draw.integers(30, 80)}, "
        f"0x000000000000000{draw.integers(0, 8)}"
        for s in range(seconds)
        for g in range(gpus)
    ]


def _log(rows: list[str], header: str = HEADER, end: str = "\n") -> str:
    return "\n".join((header, *rows)) + end


def _swap(rows: list[str], place: int, *more: str) -> list[str]:
    return [*rows[:place], *more, *rows[place + 1 :]]


def _cells(rows: list[str], before: str, after: str, every: int = 5) -> list[str]:
    return [r.replace(before, after) if i % every == 0 else r for i, r in enumerate(rows)]


ROWS = _rows()
PLAIN = {
    "plain": _log(ROWS),
    "zeros of one GPU": _log(
        [re.sub(r"\d+ MiB, 81559|[\d.]+ W", "0", r) if f", 0, {UUIDS[0]}" in r else r for r in ROWS]
    ),
    "windows line ends": _log(ROWS).replace("\n", "\r\n"),
    "no units": _log([r.replace(" %", "").replace(" MiB", "").replace(" W", "") for r in ROWS]),
    "without uuid": _log(
        [r.replace(f"{u}, ", "") for r in ROWS for u in UUIDS if u in r],
        HEADER.replace("uuid, ", ""),
    ),
    "blanked uuids": _log(
        [re.sub(r"GPU-[-\w]+", "GPU-00000000-0000-0000-0000-000000000000", r) for r in ROWS]
    ),
    "placeholders": _log(_cells(ROWS, " 700.00 W", " [N/A]")),
    "a column of placeholders": _log(_cells(ROWS, " 700.00 W", " [N/A]", 1)),
    "MIG": _log(
        [f"{r}, Enabled" for r in _cells(ROWS, "0 %", "[N/A]", 1)],
        HEADER + ", mig.mode.current",
    ),
    "header repeated": _log(_swap(ROWS, 50, HEADER, ROWS[50])),
    "short and long rows": _log(_swap(_swap(ROWS, 70, ROWS[70][:30]), 40, ROWS[40] + ", 1", "x")),
    "blank lines": _log(_swap(ROWS, 33, "", "  ", ROWS[33])),
    "cut in the last cell": _log(ROWS, end="")[:-9],
    "cut inside a unit": _log(
        [r.rsplit(",", 3)[0] for r in ROWS], HEADER.rsplit(",", 3)[0], end=""
    )[:-4],
    "no last newline": _log(ROWS, end=""),
    "rows out of order": _log([*ROWS[60:], *ROWS[:60]]),
    "rows twice": _log([*ROWS[:60], *ROWS[40:]]),
    "spikes": _log(_cells(ROWS, " 700.00 W", " 90.00 W", 7)),
    "too much of everything": _log(
        [r.replace(" %", "0 %") if i % 9 == 0 else r for i, r in enumerate(ROWS)]
    ),
    "bad times": _log(_cells(_cells(ROWS, "2026/11/01", "2026/13/01", 11), " 10:", " 99:", 13)),
    "no time of one GPU": _log([r.replace("2026/", "") if UUIDS[1] in r else r for r in ROWS]),
    "days of one digit": _log(ROWS[:1] + _cells(ROWS[1:], "2026/11/01", "2026/11/1", 17)),
    "a gap": _log([*ROWS[:60], *ROWS[100:]]),
    "other numbers": _log(_cells(_cells(ROWS, " 700.00", " 7e2", 7), " 700.00", " 700.0625", 5)),
    "seconds only": _log([r[:19] + r[23:] for r in ROWS]),
    "clock set back": _log([r.replace(" 10:00:4", " 09:00:4") for r in ROWS]),
    "hosts": _log(
        [
            f"{r[:23]}, node-{i % 4 // 2}{re.sub('GPU-[-0-9a-f]+', '', r[23:])}"
            for i, r in enumerate(ROWS)
        ],
        HEADER.replace(" index", " hostname, index"),
    ),
    "epochs": _log(
        [f"{1782907200 + i // 2}.5{r[23:]}" for i, r in enumerate(ROWS)],
    ),
    "PCI addresses alone": _log(
        [f"{r[:23]}, 00000000:{17 + int(r[25])}:00.0{r[26 + len(UUIDS[0]) + 2 :]}" for r in ROWS],
        HEADER.replace("index, uuid", "pci.bus_id"),
    ),
    "a sick card": _log(
        [f"{r}, {i % 2}, {'No' if i else 'Yes'}, 8, 16" for i, r in enumerate(ROWS)],
        f"{HEADER}, ecc.errors.uncorrected.volatile.total, remapped_rows.failure, "
        "pcie.link.width.current, pcie.link.width.max",
    ),
    "one row": _log(ROWS[:1]),
    "own logger": "ts,gpu_id,gpu_util,gpu_mem_used_gb\n"
    + "".join(f"{1782907200 + s},0,{s % 7}.5,{s % 3}.125\n" for s in range(90)),
}
UNPLAIN = {
    "a summary at the end": _log([*ROWS, "Mean, , , , 50 %"]),
    "a whole row as summary": _log([*ROWS, ROWS[-1].replace(ROWS[-1].split(",")[0], "Mean")]),
    "some uuids blanked": _log(_cells(ROWS, UUIDS[1], "GPU-00000000-0000-0000-0000-000000000000")),
    "quotes": _log(_cells(ROWS, "NVIDIA H100", '"NVIDIA, H100"')),
    "two tables": _log([*ROWS[:60], "timestamp, index, utilization.gpu [%]", *ROWS[60:]]),
    "other units": _log(_cells(ROWS, "81559 MiB", "79 GiB")),
    "no device": _log(
        [r[:23] + r[25 + len(UUIDS[0]) + 2 :] for r in ROWS], HEADER.replace("index, uuid, ", "")
    ),
    "a host first": _log([f"node-a, {r}" for r in ROWS], f"host, {HEADER}"),
    "date lines": _log(_swap(ROWS, 50, "Sun Nov  1 10:00:25 UTC 2026", ROWS[50])),
}


LOGS = {**PLAIN, **UNPLAIN}


def _in_blocks(text: str, lines: int) -> Iterator[str]:
    parts = text.split("\n")
    for at in range(0, len(parts), lines):
        yield "\n".join(parts[at : at + lines]) + ("\n" if at + lines < len(parts) else "")


def _assert_blocks_change_nothing(text: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Assert that a log is the same profile, or refused alike, in blocks of any number of lines."""
    file = folder / "log.csv"
    file.write_text(text, encoding="utf-8", newline="", errors="replace")
    answers = []
    for lines in (100_000, 40, 7):
        with monkeypatch.context() as patch:
            patch.setattr(Payload, "blocks", lambda own, n=lines: _in_blocks(own.text, n))
            try:
                answers.append(dump(read_source(str(file), Hints(tz="Europe/Berlin"))))
            except InputError as error:
                answers.append(str(error))
    assert answers[1:] == answers[:1] * 2


@pytest.mark.parametrize("name", LOGS)
def test_blocks_change_nothing(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Statistics, figures, counts of rows left out and notes are the same, to the digit."""
    _assert_blocks_change_nothing(LOGS[name], monkeypatch, tmp_path)


@pytest.mark.parametrize(
    "name", ["plain", "hosts", "MIG", "zeros of one GPU", "rows twice", "spikes"]
)
def test_columns_kept_as_categories_are_the_same_profile(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What many rows are kept as has no part in any figure."""
    file = tmp_path / "log.csv"
    file.write_text(LOGS[name], encoding="utf-8")
    numbers = dump(read_source(str(file), Hints()))
    monkeypatch.setattr(devices, "_MANY_ROWS", 1)
    assert dump(read_source(str(file), Hints())) == numbers


LINE = st.one_of(
    st.sampled_from(ROWS),
    st.text(alphabet=" ,0123456789.%WMiB/:[]N-_+e\r", max_size=60),
    st.tuples(st.sampled_from(ROWS), st.integers(0, 120), st.text(max_size=3)).map(
        lambda drawn: drawn[0][: drawn[1]] + drawn[2] + drawn[0][drawn[1] + 1 :]
    ),
)


@settings(
    max_examples=settings().max_examples // 4,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(middle=st.lists(LINE, max_size=8), end=st.sampled_from(["", "\n", "\r\n"]))
def test_damaged_rows_are_counted_alike_in_blocks(
    middle: list[str],
    end: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever stands between good rows, blocks leave out the same and say the same."""
    text = _log([*ROWS[:30], *middle, *ROWS[30:60]], end="") + end
    _assert_blocks_change_nothing(text, monkeypatch, tmp_path_factory.mktemp("log"))


# fmt: off
ODD_CELLS = (
    "1_0 %", "4 W7", "1e3 W", "inf W", "nan", "+5 %", "5%", "5  %", "\uff15 %", "1,5", "0x10 W",
    "-3 W", "1e400 W", "1e31 W", ".5 %", "5. %", "5 %%", "[N/A]", "", "  ", "ERR!", "5\t%",
    "0.333333333 W", "412W / 700W", "99999999 MiB", "3e7 MiB", "12 GiB", "Active", "5\u00a0%",
)
ODD_TIMES = (
    "2026/11/01  10:00:05.1", "2026/ 1/05 10:00:00.100", "2026/11/01 10:00:0 .100", "infinity",
    "2026/11/01 10:00:05.1000", "2026/11/1  10:00:05.100", "1969/11/01 10:00:05.100", "epoch",
    "2026/11/01T10:00:05.100", "2026/11/01 10:00:05,100", "2026-11-01 10:00:05.100", "",
    " 2026/11/01 10:00:05.100", "2026/11/01 24:00:00.000", "2026/11/01 10:00:60.000",
    "2026/02/30 10:00:00.000", "12026/1/01 10:00:00.100", "2026/11/01 10:00:05.-10",
    "2026/11/01 +1:00:05.100", "9999/11/01 10:00:05.100", "2026/11/01 10:00:05.100Z",
)
# fmt: on


@settings(
    max_examples=settings().max_examples // 3,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    odd=st.lists(
        st.tuples(st.integers(0, 79), st.integers(0, 10), st.sampled_from(ODD_CELLS + ODD_TIMES)),
        min_size=1,
        max_size=6,
    )
)
def test_odd_cells_are_read_alike_in_blocks(
    odd: list[tuple[int, int, str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever a cell says, blocks make the same number or time of it, or none."""
    rows = [row.split(", ") for row in ROWS[:80]]
    for row, column, cell in odd:
        is_time = cell in ODD_TIMES
        rows[40 + row // 2 if is_time else row][0 if is_time else max(column, 1)] = cell
    text = _log([", ".join(row) for row in rows])
    _assert_blocks_change_nothing(text, monkeypatch, tmp_path_factory.mktemp("log"))


def test_a_large_log_is_not_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a size on a log is read from its file: no hash of it, everything else."""
    file = tmp_path / "log.csv"
    file.write_text(LOGS["plain"], encoding="utf-8")
    (exact,) = read_source(str(file), Hints())
    monkeypatch.setattr(source_file, "LARGE_BYTES", 0)
    for profiles in (read_source(str(file), Hints()), read_telemetry([str(file)], Hints())):
        (profile,) = profiles
        assert profile.provenance.sources[0].sha256 is None
        assert (profile.gpus, profile.phases) == (exact.gpus, exact.phases)


def _of_node(node: int) -> str:
    """A log of another machine: other uuids, the same times."""
    return _log([re.sub(r"0000000000(?=\d,)", f"00000000{node:02d}", row) for row in ROWS])


@pytest.mark.parametrize("nodes", [(1, 1), (1, 2)])
def test_large_logs_of_one_name_are_told_by_their_content(
    nodes: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same file in two folders counts once, two files of one name count both."""
    paths = [tmp_path / "x" / "a.csv", tmp_path / "y" / "a.csv"]
    for node, path in zip(nodes, paths, strict=True):
        path.parent.mkdir()
        path.write_text(_of_node(node), encoding="utf-8")
    (exact,) = read_telemetry([str(p) for p in paths], Hints())
    monkeypatch.setattr(source_file, "LARGE_BYTES", 0)
    for order in (paths, paths[::-1]):
        (found,) = read_telemetry([str(p) for p in order], Hints())
        assert found.gpus == exact.gpus
        assert len(found.provenance.sources) == len(set(nodes))


@given(
    st.lists(st.floats(0.01, 1000.0), min_size=1, max_size=80),
    st.integers(1, 80),
    st.floats(0.01, 100.0),
)
def test_how_long_samples_stood_is_the_same_both_ways(
    steps: list[float], place: int, pace: float
) -> None:
    """The way for regular times agrees with the definition, gaps and changes of pace included."""
    times = np.cumsum([0.0, *[pace] * place, *steps, *[pace * 3] * place])
    usual = _usual_by_definition(np.diff(times))
    expected = np.append(np.minimum(np.diff(times), 3.0 * usual), usual[-1])
    assert durations(times) == pytest.approx(expected, rel=1e-9)


def _usual_by_definition(steps: "np.ndarray[tuple[int], np.dtype[np.float64]]") -> np.ndarray:  # type: ignore[type-arg]
    """Return the greatest of the medians of 15 around, before and after each step."""
    found = []
    for i in range(len(steps)):
        windows = [steps[max(0, i - 7) : i + 8]]
        windows += [steps[i - 14 : i + 1]] if i >= 14 else []
        windows += [steps[i : i + 15]] if i + 15 <= len(steps) else []
        found.append(max(float(np.median(window)) for window in windows))
    return np.array(found)
