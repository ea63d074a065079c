"""Logs of several machines: two nodes are never one, and one node is never two."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.profile.model import Column, Profile, Source
from pricing.errors import InputError
from telemetry.profiling.machines import LoggedRows, machines_of
from telemetry.readers.hints import Hints
from telemetry.recording.recording import GPU, TIME, GpuIdentity, Recording
from telemetry.sources import read_telemetry

Drawn = tuple[str, bool, int, int, list[int]]
HEADER = "timestamp, index, utilization.gpu [%], power.draw [W]\n"


def _log(
    file: Path, load: int, *, header: str = HEADER, minute: int = 0, row: str = "{i}, {u} %, {u} W"
) -> str:
    lines = (
        f"2026/11/01 10:{minute:02d}:{second:02d}.0{index}0, {row.format(i=index, u=load + index)}"
        for second in range(30)
        for index in range(2)
    )
    file.write_text(header + "\n".join(lines) + "\n", encoding="utf-8")
    return str(file)


def _read(*paths: str) -> Profile:
    (profile,) = read_telemetry(paths, Hints(name="job"))
    return profile


def _loads(profile: Profile) -> list[float | None]:
    return [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus]


def test_two_logs_without_uuid_are_two_machines(tmp_path: Path) -> None:
    """A busy node and an idle one stay four GPUs with their own load, whatever the order."""
    busy, idle = _log(tmp_path / "a.csv", 55), _log(tmp_path / "b.csv", 2)
    for paths in ((busy, idle), (idle, busy)):
        profile = _read(*paths)
        assert (profile.gpu_count, profile.hardware.nodes) == (4, 2)
        assert _loads(profile) == pytest.approx([0.55, 0.56, 0.02, 0.03])
        assert profile.hardware.machine is None
        assert any("2 machines" in note for note in profile.provenance.notes)


def test_a_uuid_in_one_log_does_not_swallow_the_other(tmp_path: Path) -> None:
    """A log with uuids and one without, of the same columns and time, are two machines."""
    header = HEADER.replace("index", "index, uuid")
    known = _log(tmp_path / "a.csv", 55, header=header, row="{i}, GPU-a{i}, {u} %, {u} W")
    profile = _read(known, _log(tmp_path / "b.csv", 2))
    assert sorted(_loads(profile), key=float) == pytest.approx([0.02, 0.03, 0.55, 0.56])


@pytest.mark.parametrize(
    ("header", "row", "minute"),
    [
        (HEADER, "{i}, {u} %, {u} W", 1),
        ("timestamp, index, memory.used [MiB]\n", "{i}, {u} MiB", 0),
        ("timestamp, gpu_id, gpu_util, gpu_power_w\n", "{i}, {u}, {u}", 0),
    ],
    ids=["rotated", "other columns", "another tool"],
)
def test_logs_that_complement_each_other_are_one_machine(
    header: str, row: str, minute: int, tmp_path: Path
) -> None:
    """Other times, other readings, or another tool's names are of the same GPUs."""
    one = _log(tmp_path / "a.csv", 50)
    other = _log(tmp_path / "b.csv", 60, header=header, row=row, minute=minute)
    assert _read(one, other).gpu_count == 2


def test_a_copied_log_counts_once(tmp_path: Path) -> None:
    """A copy that goes on for longer is the same machine's log."""
    whole = Path(_log(tmp_path / "a.csv", 50))
    lines = whole.read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "b.csv").write_text("".join(lines[:40]), encoding="utf-8")
    assert _read(str(whole), str(tmp_path / "b.csv")).gpus == _read(str(whole)).gpus


def test_a_log_that_may_be_of_either_machine_is_refused(tmp_path: Path) -> None:
    """Readings that fit two machines are not given to one of them in silence."""
    paths = [_log(tmp_path / "a.csv", 55), _log(tmp_path / "b.csv", 2)]
    memory = "timestamp, index, memory.used [MiB]\n"
    paths.append(_log(tmp_path / "c.csv", 3, header=memory, row="{i}, {u} MiB"))
    with pytest.raises(InputError, match=r"c\.csv: names no uuid and no host.*a\.csv or of b\.csv"):
        _read(*paths)


def test_logs_without_index_are_two_machines(tmp_path: Path) -> None:
    """Logs of one GPU each that name no device at all stay two."""
    header = "timestamp, utilization.gpu [%]\n"
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, load in zip(paths, (55, 2), strict=True):
        rows = "".join(f"2026/11/01 10:00:{s:02d}.000, {load} %\n" for s in range(30))
        path.write_text(header + rows, encoding="utf-8")
    assert _loads(_read(*map(str, paths))) == [0.55, 0.02]


def test_a_column_of_hosts_tells_machines_apart(tmp_path: Path) -> None:
    """Rows of two hosts in one log are of two machines; the names are not written out."""
    header = HEADER.replace("index", "hostname, index")
    path = tmp_path / "both.csv"
    rows = "".join(
        f"2026/11/01 10:00:{s:02d}.000, {host}, 0, {load} %, 90 W\n"
        for s in range(30)
        for host, load in (("node-secret-a", 55), ("node-secret-b", 2))
    )
    path.write_text(header + rows, encoding="utf-8")
    profile = _read(str(path))
    assert _loads(profile) == [0.55, 0.02]
    assert profile.hardware.nodes == 2
    assert "secret" not in str(profile)


LOGS = st.lists(
    st.tuples(
        st.sampled_from(["a", "b"]),  # columns
        st.booleans(),  # whether it names its devices
        st.integers(0, 3),  # first row
        st.integers(0, 6),  # rows
        st.lists(st.integers(0, 1), min_size=9, max_size=9),  # what is read at each time
    ),
    max_size=7,
)


@given(LOGS)
@settings(max_examples=4 * settings().max_examples)
def test_machines_are_told_as_by_comparing_each_log_with_each(logs: list[Drawn]) -> None:
    """Columns, times and rows say of each log which machines' logs contradict it."""
    places: list[int] = []
    either = False
    for i, (_, named, *_) in enumerate(logs):
        busy = {places[j] for j in range(i) if _contradict(logs[i], logs[j])}
        free = [place for place in range(len(set(places))) if place not in busy]
        either |= len(free) > 1 and not named
        places.append(free[0] if free else len(set(places)))
    told = [_logged(one) for one in logs]
    if either:
        with pytest.raises(InputError, match="may be of the machine of"):
            machines_of(told, [])
    else:
        assert machines_of(told, []) == places


def test_logs_without_a_common_row_are_not_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of eight machines and a copy of the last log, rows are compared of that pair alone."""
    compared = list[int]()
    original = np.intersect1d
    monkeypatch.setattr(
        np, "intersect1d", lambda *a, **k: (compared.append(1), original(*a, **k))[1]
    )
    paths = [_log(tmp_path / f"{n}.csv", 10 * n) for n in range(8)]
    profile = _read(*paths, _log(tmp_path / "copy.csv", 70))
    assert (profile.gpu_count, profile.hardware.nodes) == (16, 8)
    assert len(compared) <= 2  # once for the files, once for their job


def _rows_of(log: Drawn) -> list[tuple[int, int]]:
    _, _, first, count, read = log
    return [(t, read[t]) for t in range(first, first + count)]


def _contradict(one: Drawn, other: Drawn) -> bool:
    mine, theirs = _rows_of(one), _rows_of(other)
    if one[0] != other[0] or (one[1] and other[1]) or not mine or not theirs:
        return False
    begin, end = max(mine[0][0], theirs[0][0]), min(mine[-1][0], theirs[-1][0])
    touch = mine[-1][0] == theirs[0][0] or theirs[-1][0] == mine[0][0]
    if touch and not len(mine) == len(theirs) == 1:
        return False  # one log goes on where the other ends
    fewer = min(sum(begin <= t <= end for t, _ in rows) for rows in (mine, theirs))
    same = len(set(mine) & set(theirs))
    return begin <= end and not (fewer > 0 and same >= 0.5 * fewer)


def _logged(log: Drawn) -> LoggedRows:
    slot = "util.kernel_time"
    rows = [(float(t), "0", float(load)) for t, load in _rows_of(log)]
    source = Source(
        path="log.csv",
        sha256=None,
        format="nvidia-smi-csv",
        columns=(Column(source=log[0], slot=slot, scale=0.01, n=9),),
    )
    gpu = GpuIdentity(key="0", index=0, host="node" if log[1] else None)
    samples = pd.DataFrame(rows, columns=[TIME, GPU, slot])
    return LoggedRows(Recording(samples=samples, gpus=(gpu,), sources=(source,)))
