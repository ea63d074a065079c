"""Says which files are of the same GPUs: by uuid, host and index, else by their readings.

By the readings, too, it finds the zone of a log whose times have none.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import IntEnum
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from planner.profile.join import Groups
from pricing.errors import InputError
from pricing.message import Message
from telemetry.profiling.machines import CommonRows, LoggedRows, contradict, host_name, model_name
from telemetry.recording.recording import GpuIdentity

# Two tools saw one GPU if their means over the same time differ by less than this share of the
# larger one plus this much: they sample at other moments.
_SAME_MEAN = 0.25
SAME_MEAN_PLUS = {"mem.used_gib": 1.0, "util.kernel_time": 0.05, "power.board_w": 25.0}
# Two rows of one tool about one GPU at one instant contradict each other beyond this share of the
# larger value, and two files do where at least half of the instants that they share do.
_SAME_VALUE, _MOST_ODD_INSTANTS = 0.1, 0.5
_SAME_MEMORY = 0.05
_GAPS = 3.0  # sampling intervals between the end of a log and the begin of the next
# What a rotation adds to a name: .1, -20261101, .gz.
_ROTATED = re.compile(r"\.\d{1,3}(?=\.|$)|[._-]\d{4}[\d:T_.-]{2,}|\.(gz|zst|bz2|xz)$")
_MS = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReadings:
    """One file of telemetry.

    Attributes:
        rows: its devices, times and readings.
        path: where it lies.
        folder: files of the same value were given together.
        bundle: files of the same value are of one job whatever they hold; None: that is decided by
            what they hold.
        absolute: whether its times count from 1970 UTC.
        local: whether they carry no zone, and none was given.
        is_run: whether it is one run of a tracker or of `gpucost profile`: a job of its own.
    """

    rows: LoggedRows
    path: Path
    folder: str
    bundle: Hashable | None
    absolute: bool
    local: bool = False
    is_run: bool = False

    @property
    def has_gpus(self) -> bool:
        """Whether it read any GPU."""
        return bool(self.rows.gpus)


def rotation_of(path: Path) -> tuple[Path, str]:
    """Return what the parts of a log that is rotated have in common: folder and name."""
    return path.parent, _ROTATED.sub("", path.name)


class _Match(IntEnum):
    DIFFERENT = -1
    UNRELATED = 0
    FOLLOWS = 1
    SAME = 2


def same_gpus(
    files: Sequence[FileReadings], say: Callable[[str], None] = lambda _: None
) -> list[list[int]]:
    """Return the places of the files that are of the same GPUs, group by group, in their order.

    Files that name their devices (uuid, or host and index) are compared by these names, where both
    name them so. Others are of the GPUs of another file where the indices and models fit and the
    times do not overlap (a log that was rotated), or do and the readings agree. A file without GPUs
    is of the only GPUs in its folder. Files of one bundle are, but for other models at other times.

    Args:
        files: what was read.
        say: called with a sentence where a name is of several GPUs.

    Raises:
        InputError: two files contradict each other about one GPU at one time, or a file may be of
            the GPUs of either of two others.
    """
    groups, bundles = Groups(len(files)), dict[Hashable, list[int]]()
    for i, file in enumerate(files):
        if file.bundle is not None:
            together = bundles.setdefault(file.bundle, [])
            together.append(i)
            groups.join(next(j for j in together if not _are_strangers(files[j], file)), i)
    common = CommonRows([file.rows for file in files])
    _by_name(files, groups, common, say)
    _by_job(files, groups)
    _across_marks(files, groups, common)
    problems = [*_contradictions(files, groups), *_by_readings(files, groups, common)]
    if problems:
        raise InputError(problems)
    _without_gpus(files, groups)
    return groups.all()


def _is_named(gpu: GpuIdentity) -> bool:
    return gpu.uuid is not None or (host_name(gpu) is not None and gpu.index is not None)


def _by_name(
    files: Sequence[FileReadings],
    groups: Groups,
    common: CommonRows,
    say: Callable[[str], None],
) -> None:
    """Put together files that name one device; a replaced one has its place, not its uuid.

    Where one tool read a place in every file at one time, and none is a copy, they are of several
    containers, each of which counts its GPUs from 0.
    """
    by_uuid: dict[str, int] = {}
    by_place: dict[tuple[str, int], list[tuple[int, bool]]] = defaultdict(list)
    for i, file in enumerate(files):
        for gpu in file.rows.gpus:
            if gpu.uuid is not None:
                groups.join(by_uuid.setdefault(gpu.uuid, i), i)
            host = host_name(gpu)
            if host is not None and gpu.index is not None:
                by_place[host, gpu.index].append((i, gpu.uuid is not None))
    for (host, index), readers in by_place.items():
        rows = [files[i].rows for i, has_uuid in readers if not has_uuid]
        pairs = [*combinations(rows, 2)] if len(rows) == len(readers) else []
        if pairs and all(contradict(*pair, common, of_place=True) for pair in pairs):
            say(Message("join.containers", gpu=index, host=host, n=len(readers)))
            continue
        for i, has_uuid in readers:
            latter = next((j for j, latter in readers if not (has_uuid and latter)), i)
            groups.join(latter, i)


def _by_job(files: Sequence[FileReadings], groups: Groups) -> None:
    """Put together files that name one job at different times: it went on, here or elsewhere."""
    by_job = defaultdict[tuple[str, str], list[int]](list)
    for i, file in enumerate(files):
        for job in () if file.is_run else file.rows.jobs:
            parts = by_job[file.folder, job]
            for j in parts:
                if not _at_one_time(files[j], file):
                    groups.join(j, i)
            parts.append(i)


def _contradictions(files: Sequence[FileReadings], groups: Groups) -> Iterator[str]:
    """Yield a sentence for two files that say different things of one named GPU at one time."""
    for members in groups.all():
        by_device: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for i in members:
            for number, gpu in enumerate(files[i].rows.gpus):
                if _is_named(gpu) and len(members) > 1:
                    device = gpu.uuid or f"{host_name(gpu)} index {gpu.index}"
                    by_device[f"{device}/{gpu.partition or ''}"].append((i, number))
        reported: set[tuple[int, int]] = set()
        for device, readers in by_device.items():
            for index, (i, number) in enumerate(readers):
                for j, latter in readers[:index]:
                    if (j, i) not in reported and (odd := _odd(files[j], latter, files[i], number)):
                        reported.add((j, i))
                        names = {"file": str(files[j].path), "latter": str(files[i].path)}
                        yield Message("join.contradict", gpu=device.rstrip("/"), **names, **odd)


def _odd(
    former: FileReadings, gpu: int, latter: FileReadings, latter_gpu: int
) -> dict[str, str | float] | None:
    """Return what two files say differently of one GPU at one instant; None where they agree."""
    kind, latter_kind = former.rows.kind, latter.rows.kind
    if kind.form != latter_kind.form or former.rows.shared_s(latter.rows) is None:
        return None
    slots = {slot for slot, _ in kind.columns & latter_kind.columns if slot}
    for slot in sorted(slots & former.rows.slots & latter.rows.slots):
        t_s, values = _of_gpu(former, slot, gpu)
        latter_t_s, latter_values = _of_gpu(latter, slot, latter_gpu)
        shared, at, latter_at = np.intersect1d(
            np.rint(t_s * _MS), np.rint(latter_t_s * _MS), return_indices=True
        )
        first, second = values[at], latter_values[latter_at]
        odd = np.abs(first - second) > _SAME_VALUE * np.maximum(np.abs(first), np.abs(second))
        if len(shared) and odd.mean() >= _MOST_ODD_INSTANTS:
            index = int(np.flatnonzero(odd)[0])
            when = datetime.fromtimestamp(shared[index] / _MS, UTC).strftime("%Y-%m-%d %H:%M:%S")
            readings = {"first": float(first[index]), "second": float(second[index])}
            return {"slot": slot, "when": when, **readings}
    return None


def _of_gpu(
    file: FileReadings, slot: str, gpu: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    numbers, t_s, values = file.rows.readings(slot)
    own = (numbers == gpu) & np.isfinite(values)
    return t_s[own], values[own]


def _across_marks(files: Sequence[FileReadings], groups: Groups, common: CommonRows) -> None:
    """Put together files of which one names its devices by place and one by uuid alone.

    Such names tell nothing of each other: a tracker writes the host, nvidia-smi the uuid. They are
    of the same GPUs where these are as many, and neither agrees with the readings of another file.
    """

    def by_uuid(gpu: GpuIdentity) -> bool:
        return gpu.uuid is not None and host_name(gpu) is None

    def by_place(gpu: GpuIdentity) -> bool:
        return gpu.uuid is None and _is_named(gpu)

    placed, marked = (
        [(i, f) for i, f in enumerate(files) if f.has_gpus and all(map(named, f.rows.gpus))]
        for named in (by_place, by_uuid)
    )
    pairs = {
        (groups.of(i), groups.of(j))
        for i, former in placed
        for j, latter in marked
        if len(former.rows.gpus) == len(latter.rows.gpus)
        if _match(former, latter, common) is _Match.SAME
    }
    for pair in _only_pairs(pairs):
        groups.join(*pair)


def _only_pairs(pairs: Collection[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs of which neither is in another one."""
    count = Counter(member for pair in pairs for member in pair)
    return [pair for pair in pairs if count[pair[0]] == count[pair[1]] == 1]


def _span_ahead_s(former: FileReadings, latter: FileReadings) -> float | None:
    """Return the quarter hours by which two tools, maybe on the same GPUs, began and ended apart.

    None where they cannot be on the same, or began and ended apart by more than a zone.
    """
    spans = [file.rows.span_s for file in (former, latter) if file.absolute and file.rows.span_s]
    is_dated = len(spans) == 2  # noqa: PLR2004 - of both
    if (
        not is_dated
        or former.rows.kind.form == latter.rows.kind.form
        or not _fit_all(former, latter)
    ):
        return None
    (begin, end), (latter_begin, latter_end) = spans
    quarters = round((begin - latter_begin) / _QUARTER_S)
    ahead_s = quarters * _QUARTER_S
    shared_s = min(end - ahead_s, latter_end) - max(begin - ahead_s, latter_begin)
    is_one = (
        quarters == round((end - latter_end) / _QUARTER_S)
        and abs(quarters) <= _MOST_QUARTERS
        and shared_s >= max(end - begin, latter_end - latter_begin) / 2
        and not (former.is_run and latter.is_run)
        and _agree(former, latter, None) is not False
        and min(_agreements(_minutes_of_both(former, latter), quarters), default=1.0) >= _AGREE
    )
    return ahead_s if is_one else None


def _by_readings(
    files: Sequence[FileReadings], groups: Groups, common: CommonRows
) -> Iterator[str]:
    """Put files that do not name their devices with those whose readings go with theirs."""
    with_gpus = [i for i, file in enumerate(files) if file.has_gpus]
    of_form = Counter(files[i].rows.kind.form for i in with_gpus)

    def logs_first(place: int) -> tuple[int, float]:  # a tracker is compared with each of them
        rows = files[place].rows
        return -of_form[rows.kind.form], rows.span_s[0] if rows.span_s else 0.0

    unnamed = {i for i in with_gpus if not all(map(_is_named, files[i].rows.gpus))}
    placed = [i for i in with_gpus if i not in unnamed]
    for i in sorted(unnamed, key=logs_first):
        matches: dict[int, _Match] = {}
        for j in placed:
            group, match = groups.of(j), _match(files[i], files[j], common)
            before = matches.get(group, _Match.UNRELATED)
            different = _Match.DIFFERENT in (match, before)
            matches[group] = _Match.DIFFERENT if different else max(match, before)
        best = max(matches.values(), default=_Match.UNRELATED)
        candidates = [group for group, match in matches.items() if match is best]
        if best <= _Match.UNRELATED:
            pass
        elif not _are_different(files, groups, candidates, common):
            for group in candidates:
                groups.join(group, i)
        elif best is _Match.SAME and files[i].bundle is None:
            rivals = [str(files[group].path) for group in candidates[:4]]
            yield Message("join.either-gpus", file=str(files[i].path), files=rivals)
        placed.append(i)


def _are_different(
    files: Sequence[FileReadings], groups: Groups, candidates: Sequence[int], common: CommonRows
) -> bool:
    """Return whether two of the groups are of different GPUs: named, or contradicting."""
    members = [[f for i, f in enumerate(files) if groups.of(i) == group] for group in candidates]
    return any(
        _match(former, latter, common) is _Match.DIFFERENT
        or all(_is_named(gpu) for file in (former, latter) for gpu in file.rows.gpus)
        for index, group in enumerate(members)
        for before in members[:index]
        for former in group
        for latter in before
        if former.has_gpus and latter.has_gpus
    )


def _match(former: FileReadings, latter: FileReadings, common: CommonRows) -> _Match:
    """Return whether two files, of which the first does not name its devices, are of one GPU."""
    if (former.is_run and latter.is_run) or not fit(former, latter):
        return _Match.UNRELATED
    kind, latter_kind = former.rows.kind, latter.rows.kind
    together = former.folder == latter.folder
    if not (former.absolute and latter.absolute):
        agree = together and kind.form != latter_kind.form and _agree(former, latter, None)
        return _Match.SAME if agree else _Match.UNRELATED
    shared_s = former.rows.shared_s(latter.rows)
    if shared_s is None:
        if (kind.form, kind.columns) != (latter_kind.form, latter_kind.columns):
            return _Match.UNRELATED
        if rotation_of(former.path) == rotation_of(latter.path):
            return _Match.SAME
        return _Match.FOLLOWS if together and _is_next(former, latter) else _Match.UNRELATED
    slots = kind.compared_by(latter_kind)
    if slots is not None:
        same_file = former.rows.source.sha256 == latter.rows.source.sha256
        tells = same_file or not former.rows.varying.isdisjoint(slots)
        is_copy = tells and common.is_copy(former.rows, latter.rows, slots)
        return _Match.SAME if is_copy else _Match.DIFFERENT
    agree = _agree(former, latter, shared_s)
    if agree is None and not together:
        return _Match.FOLLOWS if _span_ahead_s(former, latter) == 0 else _Match.UNRELATED
    return _Match.DIFFERENT if agree is False else _Match.SAME


def fit(former: FileReadings, latter: FileReadings) -> bool:
    """Return whether the indices, models and memory of two files can be of the same GPUs."""
    indices, latter_indices = former.rows.kind.indices, latter.rows.kind.indices
    single = len(former.rows.gpus) == len(latter.rows.gpus) == 1
    if not (
        indices <= latter_indices
        or latter_indices <= indices
        or (single and None in indices | latter_indices)
    ):
        return False
    models = _models(former), _models(latter)
    sizes = [{gpu.memory_gib for gpu in f.rows.gpus if gpu.memory_gib} for f in (former, latter)]
    same_size = any(abs(a - b) <= _SAME_MEMORY * max(a, b) for a in sizes[0] for b in sizes[1])
    return (bool(models[0] & models[1]) or not all(models)) and (same_size or not all(sizes))


def _are_strangers(former: FileReadings, latter: FileReadings) -> bool:
    """Return whether files that were given together name other models, and at another time."""
    models = _models(former), _models(latter)
    return all(models) and models[0].isdisjoint(models[1]) and not _at_one_time(former, latter)


def _models(file: FileReadings) -> set[str]:
    return {model_name(gpu.model) for gpu in file.rows.gpus if gpu.model}


def _both_s(former: FileReadings, latter: FileReadings) -> tuple[float, float]:
    (first, last), (latter_first, latter_last) = (
        f.rows.span_s or (0.0, 0.0) for f in (former, latter)
    )
    return max(first, latter_first), min(last, latter_last)


def _is_next(former: FileReadings, latter: FileReadings) -> bool:
    """Return whether one log begins where the other ends."""
    begin, end = _both_s(former, latter)
    steps = [
        np.diff(np.unique(file.rows.readings(next(iter(sorted(file.rows.slots))))[1]))
        for file in (former, latter)
        if file.rows.slots
    ]
    intervals = [float(np.median(step)) for step in steps if len(step)]
    return bool(intervals) and begin - end <= _GAPS * max(intervals)


def _agree(
    former: FileReadings, latter: FileReadings, span_s: tuple[float, float] | None
) -> bool | None:
    """Return whether the readings that both have are of one GPU; None where they share none."""
    answers = []
    for slot in SAME_MEAN_PLUS:
        if slot not in former.rows.slots or slot not in latter.rows.slots:
            continue
        means = [_means(file.rows, slot, span_s) for file in (former, latter)]
        if len(means[0]) == len(means[1]) == 1:  # one of them may not number its only GPU
            means = [{0: next(iter(of_file.values()))} for of_file in means]
        common = means[0].keys() & means[1].keys()
        answers += [has_same_mean(slot, means[0][index], means[1][index]) for index in common]
    return all(answers) if answers else None


def has_same_mean(slot: str, first: float, second: float) -> bool:
    """Return whether means of two tools over the same time can be of one GPU."""
    tolerance = _SAME_MEAN * max(first, second) + SAME_MEAN_PLUS[slot]
    return abs(first - second) <= tolerance


def _means(rows: LoggedRows, slot: str, span_s: tuple[float, float] | None) -> dict[int, float]:
    numbers, t_s, values = rows.readings(slot)
    begin, end = span_s or (-np.inf, np.inf)
    inside = np.isfinite(values) & (t_s >= begin) & (t_s <= end)
    return {
        gpu.index or 0: float(values[own].mean())
        for number, gpu in enumerate(rows.gpus)
        if (own := inside & (numbers == number)).any()
    }


def _without_gpus(files: Sequence[FileReadings], groups: Groups) -> None:
    """Put what read no GPU with the only GPUs of its folder, else with the only ones of its time.

    Two such files of one time, in folders without GPUs, may each be of the GPUs: neither is.
    """
    with_gpus = [file for file in files if file.has_gpus]
    group_of = {id(file): groups.of(index) for index, file in enumerate(files)}
    joined = {group_of[id(file)] for file in with_gpus}
    runs = Counter(file.folder for file in files if file.is_run)
    far: list[tuple[int, set[int]]] = []
    for index, file in enumerate(files):
        if group_of[id(file)] in joined:
            continue
        of_time = [other for other in with_gpus if _at_one_time(file, other)]
        near = {group_of[id(other)] for other in with_gpus if other.folder == file.folder}
        if not near:
            dated = (o for o in of_time if file.absolute and o.absolute and not o.is_run)
            far.append((index, {group_of[id(other)] for other in dated}))
            continue
        is_lone = not file.is_run or runs[file.folder] == 1
        if is_lone and len(near) == 1 and near & {group_of[id(o)] for o in of_time}:
            groups.join(near.pop(), index)
    for index, candidates in far:
        own = groups.of(index)
        rivals = (files[other] for other, _ in far if groups.of(other) != own)
        if len(candidates) == 1 and not any(_at_one_time(files[index], rival) for rival in rivals):
            groups.join(candidates.pop(), index)


def _at_one_time(former: FileReadings, latter: FileReadings) -> bool:
    dated = former.absolute and latter.absolute and former.rows.span_s and latter.rows.span_s
    return not dated or _both_s(former, latter)[0] <= _both_s(former, latter)[1]


_QUARTER_S, _MOST_QUARTERS = 900.0, 56  # zones are up to 14 hours from UTC
_FEWEST_MIN = 20
_MOST_DATED = 8  # of one folder; more are not one job's
# The readings agree where they go up and down together, and at no other shift nearly as much.
_AGREE, _CLEARLY = 0.85, 0.2


def zones_of(files: Sequence[FileReadings]) -> Iterator[tuple[int, int, float]]:
    """Yield the place of a file without a zone, of one that tells it, and seconds ahead of UTC."""
    dated = [i for i, f in enumerate(files) if f.absolute and not f.local and f.has_gpus]
    local = [i for i, f in enumerate(files) if f.local and f.has_gpus]
    ahead_s = {(i, j): _span_ahead_s(files[i], files[j]) for i in local for j in dated}
    only = _only_pairs([pair for pair, span_ahead_s in ahead_s.items() if span_ahead_s is not None])
    for i in local:
        near = [j for j in dated if files[j].folder == files[i].folder]
        compared = near if len(near) <= _MOST_DATED else []
        shifts = [(j, s) for j in compared if (s := _ahead_s(files[i], files[j])) is not None]
        shifts = shifts or [(j, s) for k, j in only if k == i and (s := ahead_s[k, j])]
        if len({shift for _, shift in shifts}) == 1 and shifts[0][1]:
            yield i, *shifts[0]


def _ahead_s(local: FileReadings, dated: FileReadings) -> float | None:
    """Return how far the times of one file are ahead of the other's; None where it is not clear."""
    pairs = _minutes_of_both(local, dated) if _fit_all(local, dated) else []
    scores = {
        quarters: min(_agreements(pairs, quarters), default=-1.0)
        for quarters in range(-_MOST_QUARTERS, _MOST_QUARTERS + 1)
    }
    best, *rivals = sorted(scores, key=lambda quarters: -scores[quarters])
    clear = scores[best] >= _AGREE and scores[rivals[0]] <= scores[best] - _CLEARLY
    return best * _QUARTER_S if clear else None


def _fit_all(former: FileReadings, latter: FileReadings) -> bool:
    return len(former.rows.gpus) == len(latter.rows.gpus) and fit(former, latter)


def _minutes_of_both(
    former: FileReadings, latter: FileReadings
) -> list[tuple[str, pd.Series, pd.Series]]:
    """Return the slots that both read, and the mean of all GPUs in each minute."""
    slots = [slot for slot in SAME_MEAN_PLUS if slot in former.rows.slots & latter.rows.slots]
    return [(slot, _minutes(former, slot), _minutes(latter, slot)) for slot in slots]


def _minutes(file: FileReadings, slot: str) -> pd.Series:
    _, t_s, values = file.rows.readings(slot)
    finite = np.isfinite(values) & np.isfinite(t_s)
    return pd.Series(values[finite]).groupby((t_s[finite] // 60).astype(np.int64)).mean()


def _agreements(
    pairs: Sequence[tuple[str, pd.Series, pd.Series]], quarters_ahead: int
) -> Iterator[float]:
    """Yield how well readings go together, at most 1, if one clock is so far ahead.

    Those that are flat, or of too few minutes, tell nothing.
    """
    for slot, local, dated in pairs:
        moved = local.set_axis(local.index - int(quarters_ahead * _QUARTER_S) // 60)
        first, second = moved.align(dated, join="inner")
        few = len(first) < max(_FEWEST_MIN, min(len(local), len(dated)) / 2)
        if few or first.min() == first.max() or second.min() == second.max():
            continue
        same = has_same_mean(slot, float(first.mean()), float(second.mean()))
        yield float(np.corrcoef(first, second)[0, 1]) if same else -1.0


def offset(ahead_s: float) -> str:
    """Return the zone as `--tz` takes it."""
    hours, minutes = divmod(round(abs(ahead_s) / 60), 60)
    return f"{'-' if ahead_s < 0 else '+'}{hours:02d}:{minutes:02d}"
