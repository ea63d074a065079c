"""Files of the same GPUs are one job: how a series is split into files never changes its bill."""

import json
import random
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.profile.codec import dump
from planner.profile.model import Profile
from pricing.catalog.catalog import Catalog, load_catalog
from pricing.errors import InputError
from telemetry.folder import FolderReadOptions, Skipped
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry

DAY = date(2026, 11, 21)
BEGIN = datetime(2026, 11, 1, 10, tzinfo=UTC)
MODEL = "NVIDIA A100-SXM4-80GB"
COLUMNS = ("utilization.gpu [%]", "memory.used [MiB]", "power.draw [W]")


@cache
def _catalog() -> Catalog:
    return load_catalog(DAY)


def _read(*paths: Path | str) -> tuple[tuple[Profile, ...], list[str]]:
    joined: list[str] = []
    options = FolderReadOptions(jobs_by="file", on_join=joined.append)
    return read_telemetry([str(path) for path in paths], Hints(), options=options), joined


def _bill(*paths: Path | str) -> Decimal:
    """Return what the jobs cost a month today."""
    profiles, _ = _read(*paths)
    plan = draft_plan(profiles, _catalog(), Requirements(), as_of=DAY)
    return sum((job.baseline.cost or Decimal(0) for job in plan.jobs), Decimal(0))


Row = tuple[int, int, tuple[str, ...]]


def _rows(seconds: range, gpus: int = 2, load: int = 20) -> list[Row]:
    """Return rows of a log: second, GPU, readings."""
    return [
        (s, gpu, (f"{load + (s // 10 + gpu) % 7} %", f"{11000 + gpu} MiB", f"{200 + gpu} W"))
        for s in seconds
        for gpu in range(gpus)
    ]


def _log(
    file: Path,
    rows: list[Row],
    *,
    uuid: str | None = "GPU-a",
    columns: tuple[int, ...] = (0, 1, 2),
    model: str = MODEL,
) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    named = ["uuid"] if uuid else []
    lines = [", ".join(["timestamp", "index", *named, "name", *(COLUMNS[c] for c in columns)])]
    for second, gpu, readings in rows:
        when = (BEGIN + timedelta(seconds=second)).strftime("%Y/%m/%d %H:%M:%S.000")
        identity = [f"{uuid}-{gpu}"] if uuid else []
        lines.append(", ".join([when, str(gpu), *identity, model, *(readings[c] for c in columns)]))
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("uuid", ["GPU-a", None], ids=["uuid", "no uuid"])
def test_rotated_logs_of_a_host_are_one_job(uuid: str | None, tmp_path: Path) -> None:
    """gpu.log, gpu.log.1 and gpu.log.2 cost what one log of the whole time costs."""
    whole = _bill(_log(tmp_path / "whole" / "gpu.log", _rows(range(0, 900, 10)), uuid=uuid))
    for number, begin in enumerate((600, 300, 0)):
        ending = f".{number}" if number else ""
        _log(
            tmp_path / "rotated" / f"gpu.log{ending}",
            _rows(range(begin, begin + 300, 10)),
            uuid=uuid,
        )
    profiles, joined = _read(tmp_path / "rotated")
    assert (len(profiles), profiles[0].gpu_count) == (1, 2)
    assert "gpu.log.1" in joined[0]
    assert _bill(tmp_path / "rotated") == whole > 0


@settings(
    max_examples=settings().max_examples // 3,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
@given(
    cuts=st.lists(st.integers(1, 59), max_size=4, unique=True),
    by_metric=st.booleans(),
    named=st.booleans(),
    shuffle=st.integers(0, 99),
)
def test_splitting_a_series_never_changes_its_bill(
    cuts: list[int],
    by_metric: bool,  # noqa: FBT001 - drawn
    named: bool,  # noqa: FBT001 - drawn
    shuffle: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Whatever the cuts by time or by metric, and the files' names: the same GPUs, one bill."""
    folder = tmp_path_factory.mktemp("split")
    uuid = "GPU-a" if named else None
    rows = _rows(range(0, 300, 10))
    whole = _bill(_log(folder / "whole.csv", rows, uuid=uuid))
    edges = [0, *sorted(cuts), len(rows)]
    parts = [rows[a:b] for a, b in pairwise(edges)]
    columns = [(0,), (1,), (2,)] if by_metric else [(0, 1, 2)]
    names = [f"{letter}.csv" for letter in "abcdefghijklmnopqrstuvwxyz"]
    random.Random(shuffle).shuffle(names)  # noqa: S311 - names of files
    paths = [
        _log(folder / "parts" / names.pop(), part, uuid=uuid, columns=kept)
        for part in parts
        for kept in columns
    ]
    assert _bill(*paths) == whole
    assert _bill(folder / "parts") == whole


def _series(metric: str, pod: int, value: Callable[[int], float]) -> dict[str, object]:
    labels = {"Hostname": f"node{pod // 8}", "UUID": f"GPU-{pod}", "gpu": str(pod % 8)}
    return {
        "metric": {"__name__": metric, "modelName": MODEL, "pod": f"train-{pod}", **labels},
        "values": [[int(BEGIN.timestamp()) + 30 * i, str(value(i))] for i in range(20)],
    }


def _answer(file: Path, result: list[dict[str, object]]) -> Path:
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    file.write_text(json.dumps(answer), encoding="utf-8")
    return file


def test_an_answer_for_each_metric_is_of_the_same_pods(tmp_path: Path) -> None:
    """Three answers of Prometheus, one per metric, are as many jobs as there are pods."""
    metrics = {
        "DCGM_FI_DEV_GPU_UTIL": lambda pod: [
            _series("DCGM_FI_DEV_GPU_UTIL", pod, lambda i: 20 + i)
        ],
        "DCGM_FI_DEV_FB_USED": lambda pod: [_series("DCGM_FI_DEV_FB_USED", pod, lambda _: 11000)],
        "DCGM_FI_PROF_SM_ACTIVE": lambda pod: [
            _series("DCGM_FI_PROF_SM_ACTIVE", pod, lambda _: 0.15)
        ],
    }
    every = [series for of in metrics.values() for pod in range(10) for series in of(pod)]
    whole = _answer(tmp_path / "all.json", every)
    paths = [
        _answer(tmp_path / f"{name}.json", [s for pod in range(10) for s in of(pod)])
        for name, of in metrics.items()
    ]
    profiles, _ = _read(*paths)
    assert len(profiles) == 10
    assert set(profiles[0].gpus[0].metrics) >= {"util.kernel_time", "mem.used_gib"}
    assert _bill(*paths) == _bill(whole) > 0


def _events(file: Path, busy: int, memory_mib: int, begin_s: int = 7) -> Path:
    lines = [
        {
            "_timestamp": BEGIN.timestamp() + s,
            "system.gpu.0.gpu": busy + (s // 10) % 7,
            "system.gpu.0.memoryAllocatedBytes": memory_mib << 20,
            "system.cpu": 96.0,
        }
        for s in range(begin_s, begin_s + 600, 15)
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def test_a_log_and_a_tracker_run_of_one_job_are_one_job(tmp_path: Path) -> None:
    """They overlap, and what both read agrees: one GPU, and the host's CPU from the run."""
    log = _log(tmp_path / "smi.csv", _rows(range(0, 600, 10), gpus=1))
    run = _events(tmp_path / "wandb" / "events.jsonl", 20, 11000)
    for paths in ((tmp_path,), (log, run)):
        (profile,), _ = _read(*paths)
        assert profile.hardware.gpu == MODEL
        assert profile.host is not None
        assert profile.host.cpu_util is not None
        assert _bill(*paths) == _bill(log)


def _export(
    file: Path, *, gpus: int = 1, keys: tuple[str, ...] = ("gpu",), zone_h: int = 0
) -> Path:
    """Write a tracker's table: no GPU id, a zone, and the readings that it took beside `_rows`."""
    readings = {"gpu": "22.5", "temp": "61", "powerWatts": "201"}
    names = [f"system.gpu.{gpu}.{key}" for gpu in range(gpus) for key in keys]
    lines = [",".join(["_timestamp", *names])] + [
        ",".join(
            [str(BEGIN.timestamp() - 3600 * zone_h + s), *[readings[key] for key in keys] * gpus]
        )
        for s in range(7, 600, 15)
    ]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.mark.parametrize("gpus", [1, 4])
@pytest.mark.parametrize(
    ("below", "keys", "zone_h"),
    [("wandb/", ("temp",), 0), ("", ("gpu",), 2), ("", ("temp",), -7), ("wandb/", ("temp",), 9)],
    ids=["nothing in common", "another zone", "both", "both, in another folder"],
)
def test_a_tracker_table_beside_the_only_log_of_its_time_is_of_its_job(
    gpus: int, below: str, keys: tuple[str, ...], zone_h: int, tmp_path: Path
) -> None:
    """Neither names a GPU or a host: as many GPUs, one begin and end but for a zone; said so."""
    log = _log(tmp_path / "smi.csv", _rows(range(0, 600, 10), gpus=gpus), uuid=None)
    alone = _bill(log)
    _export(tmp_path / below / "history.csv", gpus=gpus, keys=keys, zone_h=zone_h)
    profiles, joined = _read(tmp_path)
    assert [profile.gpu_count for profile in profiles] == [gpus]
    assert "joined as 1 job" in joined[-1]
    assert _bill(tmp_path) == alone > 0


def test_a_tracker_table_that_may_be_of_either_log_is_of_neither(tmp_path: Path) -> None:
    """Two logs of its time: it stays a job, and is not guessed into one of theirs."""
    for node, load in (("a", 20), ("b", 60)):
        _log(tmp_path / node / "smi.csv", _rows(range(0, 600, 10), gpus=1, load=load), uuid=None)
    _export(tmp_path / "wandb" / "history.csv", keys=("temp",), zone_h=2)
    assert len(_read(tmp_path)[0]) == 3


@pytest.mark.parametrize("named", [True, False], ids=["uuid", "index alone"])
@pytest.mark.parametrize("below", ["", "node{node}/"], ids=["one folder", "a folder a node"])
def test_logs_of_ranks_are_one_job(named: bool, below: str, tmp_path: Path) -> None:  # noqa: FBT001 - drawn
    """Names that differ in a rank's number alone: one job on the GPUs of all ranks."""
    for rank in range(16):
        file = tmp_path / below.format(node=rank // 8) / f"smi-rank{rank}.csv"
        rows = [(s, rank % 8, of) for s, _, of in _rows(range(0, 300, 10), gpus=1, load=40 + rank)]
        _log(file, rows, uuid=f"GPU-{rank}" if named else None)
    (profile,), _ = _read(tmp_path)
    assert profile.gpu_count == 16


def _gpustat(file: Path, load: int) -> Path:
    """Write what gpustat prints in a container: the host, and its only GPU as number 0."""
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        f"node7  {BEGIN + timedelta(seconds=s):%a %b %d %H:%M:%S %Y}  535.54\n"
        f"[0] {MODEL} | 51\u00b0C, {load + s // 10 % 7:3d} % | {11000 + load} / 81920 MB\n"
        for s in range(0, 300, 10)
    ]
    file.write_text("\n".join(lines), encoding="utf-8")
    return file


def test_containers_of_a_host_that_each_number_from_0_hold_a_gpu_each(tmp_path: Path) -> None:
    """Eight logs of GPU 0 of one host at one time, no copies: eight GPUs are billed."""
    for pod in range(8):
        _gpustat(tmp_path / f"train-{pod}.txt", 20 + 5 * pod)
    profiles, joined = _read(tmp_path)
    assert sum(profile.gpu_count or 0 for profile in profiles) == 8
    assert "8 logs read GPU 0 of node7 at one time" in joined[0]


def _run_folder(folder: Path, host: str, busy: int = 20) -> Path:
    """Write a W&B run in its usual layout, which names its host."""
    files = folder / "wandb" / f"run-20261101_100000-{host}" / "files"
    _events(files / "wandb-events.jsonl", busy, 11000)
    about = {"host": host, "gpu_nvidia": [{"name": MODEL, "memoryTotal": "85899345920"}]}
    (files / "wandb-metadata.json").write_text(json.dumps(about), encoding="utf-8")
    summary = {"_step": 4000, "_runtime": 600, "loss": 2.1}
    (files / "wandb-summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return files.parent


@pytest.mark.parametrize("below", ["", "logs", "logs/node7/smi"])
@pytest.mark.parametrize("jobs_by", ["file", "folder"])
def test_a_log_with_uuids_and_a_run_that_names_its_host_are_one_job(
    jobs_by: str, below: str, tmp_path: Path
) -> None:
    """However deep each lies: the hours, the readings and the number of GPUs are the same."""
    log = _log(tmp_path / below / "smi.csv", _rows(range(0, 600, 10), gpus=1))
    run = _run_folder(tmp_path, "node7")
    options = FolderReadOptions(jobs_by=jobs_by)  # type: ignore[arg-type]
    for paths in ((tmp_path,), (run, log)):
        skipped: list[Skipped] = []
        named = [str(path) for path in paths]
        (profile,) = read_telemetry(named, Hints(), skipped=skipped, options=options)
        assert (len(profile.gpus), profile.hardware.gpu_count) == (1, 1)
        assert profile.host is not None
        assert all(skip.expected for skip in skipped)


def test_a_log_that_may_be_of_either_of_two_hosts_is_of_neither(tmp_path: Path) -> None:
    """Two runs on two hosts read alike: which of them the log is of is not known."""
    _log(tmp_path / "smi.csv", _rows(range(0, 600, 10), gpus=1))
    for host in ("node7", "node8"):
        _run_folder(tmp_path, host)
    assert len(_read(tmp_path)[0]) == 3


def test_a_run_on_another_host_than_the_logs_is_a_job_of_its_own(tmp_path: Path) -> None:
    """Its GPU is three times as busy."""
    _log(tmp_path / "smi.csv", _rows(range(0, 600, 10), gpus=1))
    _run_folder(tmp_path, "node7", busy=60)
    assert len(_read(tmp_path)[0]) == 2


def _host_alone(file: Path, begin_s: int = 7) -> Path:
    """Write what a tracker recorded of a host without a look at its GPUs."""
    lines = _events(file, 20, 11000, begin_s).read_text(encoding="utf-8").splitlines()
    hosts = [
        {key: value for key, value in json.loads(line).items() if ".gpu." not in key}
        for line in lines
    ]
    file.write_text("".join(json.dumps(host) + "\n" for host in hosts), encoding="utf-8")
    return file


@pytest.mark.parametrize("jobs_by", ["file", "folder"])
def test_a_host_beside_the_only_gpus_of_its_time_is_theirs(jobs_by: str, tmp_path: Path) -> None:
    """A run that read no GPU gives its CPU to the only GPUs that were on; two such runs do not."""
    log = _log(tmp_path / "smi.csv", _rows(range(0, 600, 10), gpus=1))
    options = FolderReadOptions(jobs_by=jobs_by)  # type: ignore[arg-type]

    def jobs(*runs: Path) -> tuple[Profile, ...]:
        named = [str(path) for path in (log, *runs)]
        return read_telemetry(named, Hints(), options=options)

    first = _host_alone(tmp_path / "a" / "events.jsonl").parent
    (profile,) = jobs(first)
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    later = _host_alone(tmp_path / "c" / "events.jsonl", 90_000).parent
    assert sum(bool(job.gpus) and job.host is None for job in jobs(later)) == 1
    second = _host_alone(tmp_path / "b" / "events.jsonl").parent
    assert all(job.host is None for job in jobs(first, second) if job.gpus)


@pytest.mark.parametrize(
    ("busy", "memory_mib", "begin_s"),
    [(90, 11000, 7), (20, 70000, 7), (20, 11000, 90_000)],
    ids=["busier", "more memory", "another day"],
)
def test_a_run_of_another_job_is_not_joined(
    busy: int, memory_mib: int, begin_s: int, tmp_path: Path
) -> None:
    """Where the readings or the times are of another GPU, there are two jobs."""
    log = _log(tmp_path / "smi.csv", _rows(range(0, 600, 10), gpus=1))
    run = _events(tmp_path / "events.jsonl", busy, memory_mib, begin_s)
    assert len(_read(log, run)[0]) == 2


def _trainer_state(file: Path) -> Path:
    entry = {"train_runtime": 600.0, "step": 100, "train_samples_per_second": 8.0}
    file.write_text(json.dumps({"log_history": [entry]}), encoding="utf-8")
    return file


@pytest.mark.parametrize(("states", "jobs"), [(1, 1), (2, 3)])
def test_a_run_without_gpus_beside_the_only_log_is_its_job(
    states: int, jobs: int, tmp_path: Path
) -> None:
    """Its steps join the log's GPUs, billed once; of two such runs nobody knows whose it is."""
    log = _log(tmp_path / "smi.csv", _rows(range(0, 600, 10)))
    names = [f"trainer_state{n}.json" for n in range(states)]
    profiles, _ = _read(log, *(_trainer_state(tmp_path / name) for name in names))
    assert len(profiles) == jobs
    assert sum(profile.work is not None for profile in profiles) == states


@pytest.mark.parametrize(
    "text", ["  3%|x  | 36/1218 [43:12<23:53:11, 71.9s/it]", "hello", "rank0: all is well"]
)
def test_what_is_no_telemetry_beside_a_log_is_left_out_and_named(text: str, tmp_path: Path) -> None:
    """A launcher's or trainer's own log refuses no plan of the logs beside it; alone it does."""
    log, other = _log(tmp_path / "smi.csv", _rows(range(0, 600, 10))), tmp_path / "train.log"
    other.write_text(text + "\n", encoding="utf-8")
    profiles, told = _read(other, log)
    assert len(profiles) == 1
    assert any(f"left out: {other}" in line for line in map(str, told))
    with pytest.raises(InputError, match=r"train\.log"):
        _read(other)


def test_contradicting_readings_of_a_gpu_are_refused_and_both_named(tmp_path: Path) -> None:
    """One uuid, one time, 20 % and 90 %: one of the files is wrong."""
    first = _log(tmp_path / "a.csv", _rows(range(0, 300, 10)))
    second = _log(tmp_path / "b.csv", _rows(range(0, 300, 10), load=90))
    for paths in ((first, second), (tmp_path,)):
        with pytest.raises(InputError, match=r"a\.csv and .*b\.csv: contradict each other .*GPU-a"):
            _read(*paths)


def test_nodes_without_uuid_stay_jobs_of_their_own(tmp_path: Path) -> None:
    """Logs that overlap and differ are of two machines, which cost twice as much."""
    first = _log(tmp_path / "n1" / "gpu.log", _rows(range(0, 300, 10)), uuid=None)
    second = _log(tmp_path / "n2" / "gpu.log", _rows(range(0, 300, 10), load=80), uuid=None)
    assert _bill(first, second) == 2 * _bill(first)
    assert len(_read(first, second)[0]) == 2


def _profile(file: Path, name: str, day: int, uuid: str = "GPU-9", mean: float = 0.5) -> Path:
    metrics = {"util.kernel_time": {"mean": mean, "p95": 0.95, "max": 1.0}}
    document = {
        "schema": "gpucost.profile/v1",
        "job": {"name": name, "kind": "training"},
        "hardware": {"gpu": MODEL, "gpu_count": 1},
        "window": {"start": f"2026-11-{day:02d}T10:00:00Z", "duration_s": 3600},
        "gpus": [{"index": 0, "uuid": uuid, "metrics": metrics}],
    }
    file.write_text(json.dumps(document), encoding="utf-8")
    return file


def test_jobs_in_turns_on_a_gpu_pay_for_it_once(tmp_path: Path) -> None:
    """Two jobs of one GPU share its bill and are named; a copy of a profile is no job."""
    first = _profile(tmp_path / "a.json", "one", 1)
    second = _profile(tmp_path / "b.json", "two", 2)
    copy = _profile(tmp_path / "c.json", "one", 1)
    other = _profile(tmp_path / "d.json", "three", 2, uuid="GPU-8")
    alone = _bill(first)
    assert _read(first, second)[1] == ["one, two: on the same GPUs, which are billed once."]
    assert _bill(first, second) == _bill(first, copy) == alone > 0
    assert _bill(first, second, other) == 2 * alone
    with pytest.raises(InputError, match="contradict each other"):
        _read(first, _profile(tmp_path / "e.json", "one", 1, mean=0.9))


def test_a_log_beside_the_profile_made_of_it_counts_once(tmp_path: Path) -> None:
    """`plan profile.json smi.csv`: the profile is what the log says, finished."""
    log = _log(tmp_path / "smi.csv", _rows(range(0, 300, 10), gpus=1), uuid=None)
    finished = tmp_path / "profile.json"
    finished.write_text(dump(read_telemetry([str(log)], Hints())), encoding="utf-8")
    profiles, joined = _read(finished, log)
    assert len(profiles) == 1
    assert "was made from it" in joined[0]
    assert _bill(finished, log) == _bill(log) > 0


def test_a_file_and_a_folder_of_one_series_are_one_job(tmp_path: Path) -> None:
    """A log given by name goes on in a folder that was given, too."""
    first = _log(tmp_path / "new.csv", _rows(range(300, 600, 10)))
    _log(tmp_path / "old" / "gpu.csv", _rows(range(0, 300, 10)))
    assert len(_read(first, tmp_path / "old")[0]) == 1


@pytest.mark.parametrize("folders", ["n1/gpu.log n2/gpu.log", "n1.log n2.log"])
def test_rotated_logs_of_two_hosts_are_two_jobs(folders: str, tmp_path: Path) -> None:
    """Without any uuid, each part goes to the log that it was rotated from."""
    for name, load in zip(folders.split(), (20, 70), strict=True):
        _log(tmp_path / name, _rows(range(300, 600, 10), load=load), uuid=None)
        _log(tmp_path / f"{name}.1", _rows(range(0, 300, 10), load=load), uuid=None)
    profiles, joined = _read(tmp_path)
    assert (len(profiles), len(joined)) == (2, 2)


def test_two_idle_machines_are_not_copies_of_each_other(tmp_path: Path) -> None:
    """Nothing but zeros at the same seconds says nothing; the same bytes, or changes, do."""
    idle = [(s, 0, ("0 %", "0 MiB", "50 W")) for s in range(0, 300, 10)]
    first = _log(tmp_path / "n1.csv", idle, uuid=None)
    second = _log(tmp_path / "n2.csv", idle[:-1], uuid=None)
    assert len(_read(first, second)[0]) == 2
    busy = _log(tmp_path / "a.csv", _rows(range(0, 300, 10)), uuid=None)
    copied = _log(tmp_path / "b.csv", _rows(range(0, 290, 10)), uuid=None)
    assert len(_read(busy, copied)[0]) == 1


@pytest.mark.parametrize(
    ("model", "start", "jobs"),
    [("Tesla T4", 2024, 2), ("NVIDIA H100", 2024, 1), ("Tesla T4", 2026, 2)],
)
def test_other_models_are_another_job_though_given_together(
    model: str, start: int, jobs: int, tmp_path: Path
) -> None:
    """An H100 of 2026 and a T4 of 2024 are no job, for `import` as for `plan`."""
    header = "timestamp,index,name,utilization.gpu [%]\n"
    paths = []
    for name, year in (("NVIDIA H100", 2026), (model, start)):
        rows = (f"{year}/03/01 10:00:{s:02}.000, 0, {name}, {s} %\n" for s in range(60))
        file = tmp_path / f"{len(paths)}.csv"
        file.write_text(header + "".join(rows), encoding="utf-8")
        paths.append(str(file))
    assert len(read_telemetry(paths, Hints())) == jobs
