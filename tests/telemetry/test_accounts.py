"""Slurm's accounts and CodeCarbon's runs: what each tells of GPUs lands in its slot, no more."""

import json
from pathlib import Path

import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.captures import assert_writable
from tests.telemetry.reading import read_source

HELD = "billing=8,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G,node=1"
USED = "cpu=00:30:00,gres/gpumem=20G,gres/gpuutil=120,mem=3G"


def _written(tmp_path: Path, text: str) -> dict[str, Profile]:
    file = tmp_path / "given"
    file.write_text(text, encoding="utf-8")
    profiles = read_source(str(file), Hints())
    assert_writable(profiles)
    return {one.job.name: one for one in profiles}


def _refused(tmp_path: Path, text: str) -> str:
    with pytest.raises(InputError) as caught:
        _written(tmp_path, text)
    return str(caught.value)


def _means(profile: Profile, slot: str) -> list[float | None]:
    return [gpu.metrics[slot].mean for gpu in profile.gpus]


def _account(columns: dict[str, tuple[str, str]]) -> str:
    return "\n".join(
        "|".join(cells) for cells in [list(columns), *zip(*columns.values(), strict=True)]
    )


@pytest.mark.parametrize(
    "columns",
    [
        {
            "JobID": ("7", "7.0"),
            "Start": ("2026-07-01T12:00:00",) * 2,
            "Elapsed": ("01:00:00",) * 2,
            "AllocTRES": (HELD, ""),
            "TRESUsageInTot": ("", USED),
        },
        {
            "Account": ("lab",) * 2,
            "AllocTRES": (HELD, ""),
            "ElapsedRaw": ("3600",) * 2,
            "JobIDRaw": ("7", "7.0"),
            "Start": ("2026-07-01T12:00:00",) * 2,
            "TRESUsageInTot": ("", USED),
        },
        {
            "ALLOCGRES": ("gpu:a100:2", ""),
            "jobid": ("7", "7.0"),
            "start": ("2026-07-01T12:00:00",) * 2,
            "elapsed": ("01:00:00",) * 2,
            "tresusageintot": ("", USED),
        },
    ],
    ids=["as asked for", "every column, by name", "an older Slurm, as typed"],
)
def test_columns_of_sacct_may_stand_in_any_order(
    tmp_path: Path, columns: dict[str, tuple[str, str]]
) -> None:
    """GPUs, utilisation and memory are found by the names of columns, older and folded, too."""
    (profile,) = _written(tmp_path, _account(columns)).values()
    assert _means(profile, "util.kernel_time") == pytest.approx([0.6, 0.6])
    assert _means(profile, "mem.used_gib") == pytest.approx([10.0, 10.0])
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(3600, rel=0.01)


@pytest.mark.parametrize(
    ("state", "runs", "ended"),
    [
        ("COMPLETED", 1.0, None),
        ("TIMEOUT", 1.0, None),
        ("NODE_FAIL", 1.0, None),
        ("CANCELLED by 1000", 1.0, None),
        ("OUT_OF_MEMORY", 1.0, "host-out-of-memory"),
        ("FAILED", 1.0, "failed"),
        ("RUNNING", None, None),
    ],
)
def test_a_job_that_is_over_is_one_run(
    tmp_path: Path, state: str, runs: float | None, ended: str | None
) -> None:
    """Its length is in the log, so it is priced per run, however it ended; a running one is not."""
    columns = {
        "Account": ("lab",) * 2,
        "AllocTRES": (HELD, ""),
        "ElapsedRaw": ("3600",) * 2,
        "JobID": ("7", "7.0"),
        "Start": ("2026-07-01T12:00:00",) * 2,
        "State": (state,) * 2,
        "TRESUsageInTot": ("", USED),
    }
    (profile,) = _written(tmp_path, _account(columns)).values()
    assert (profile.work and profile.work.total) == runs
    assert profile.job.ended == ended
    hours = profile.work and 1.0 / (profile.work.rate_per_s or 1.0) / 3600.0
    assert hours == (runs and pytest.approx(1.0, rel=0.01))


def test_runs_that_did_not_complete_are_counted_with_their_gpu_hours(tmp_path: Path) -> None:
    """Two of 2 GPUs for 36 h that ran out of time, one of 1 h that ran out of memory."""
    ends = (("TIMEOUT", "1-12:00:00"), ("OUT_OF_MEMORY", "01:00:00"), ("COMPLETED", "02:00:00"))
    rows = [
        f"{n}|j|{state}|2026-07-0{n}T12:00:00|{length}|{HELD}|{USED}"
        for n, (state, length) in enumerate((ends[0], *ends), start=1)
    ]
    head = "JobID|JobName|State|Start|Elapsed|AllocTRES|TRESUsageInTot"
    notes = _written(tmp_path, "\n".join([head, *rows]))["j-1"].provenance.notes
    said = "not completed: 2 TIMEOUT (144 GPU h), 1 OUT_OF_MEMORY (2 GPU h)"
    assert sum(said in str(note) for note in notes) == 1


def test_a_cut_line_of_an_account_is_no_job(tmp_path: Path) -> None:
    """A last line that ends before the job's number, and odd line ends, cost that line alone."""
    columns = {
        "Account": ("lab",) * 2,
        "AllocTRES": (HELD, ""),
        "ElapsedRaw": ("3600",) * 2,
        "JobIDRaw": ("7", "7.0"),
        "Start": ("2026-07-01T12:00:00",) * 2,
        "TRESUsageInTot": ("", USED),
    }
    (profile,) = _written(tmp_path, _account(columns) + "\r\nlab|gres").values()
    assert _means(profile, "util.kernel_time") == pytest.approx([0.6, 0.6])


def test_an_account_without_what_is_needed_is_told_what_to_ask_for(tmp_path: Path) -> None:
    """Columns of Slurm without the jobs or what they held are an account, and say what lacks."""
    said = _refused(tmp_path, "CPUTimeRAW|ReqMem|State\n100|4G|COMPLETED\n")
    assert "column JobID, AllocTRES is missing" in said


def _json_job(number: object, step: object) -> dict[str, object]:
    gpus = [
        {"type": "cpu", "name": "", "count": 8},
        {"type": "gres", "name": "gpu", "count": 2},
        {"type": "gres", "name": "gpu:a100", "count": 2},
    ]
    used = [
        {"type": "mem", "name": "", "count": 3 << 30},
        {"type": "gres", "name": "gpuutil", "count": 120},
        {"type": "gres", "name": "gpumem", "count": 20 << 30},
    ]
    return {
        "job_id": 7,
        "name": "tune",
        "account": "lab",
        "association": {"account": "lab"},
        "nodes": "gpu-3",
        "comment": {"administrator": ""},
        "time": {"start": number, "elapsed": 3600},
        "tres": {"allocated": gpus},
        "steps": [
            {"step": {"id": step}, "tres": {"requested": {"total": used}, "consumed": {}}},
        ],
    }


@pytest.mark.parametrize(
    ("start", "step"),
    [
        (1782907200, {"job_id": 7, "step_id": "batch"}),
        ({"set": True, "infinite": False, "number": 1782907200}, "7.batch"),
    ],
    ids=["23.02", "wrapped numbers"],
)
def test_sacct_json_is_what_sacct_is(tmp_path: Path, start: object, step: object) -> None:
    """The same job as JSON: what it held and used, times in UTC, its account as team."""
    answer = {"meta": {"Slurm": {"release": "23.02.8"}}, "jobs": [_json_job(start, step)]}
    (profile,) = _written(tmp_path, json.dumps(answer)).values()
    assert (profile.job.name, profile.job.team) == ("tune", "lab")
    assert _means(profile, "util.kernel_time") == pytest.approx([0.6, 0.6])
    assert _means(profile, "mem.used_gib") == pytest.approx([10.0, 10.0])
    assert profile.window is not None
    assert str(profile.window.start) == "2026-07-01 12:00:00+00:00"
    assert not any("zone" in note for note in profile.provenance.notes)


@pytest.mark.parametrize(
    "no_value", [2**32 - 2, 2**32 - 1, 2**64 - 2, {"set": True, "infinite": True, "number": 2**32}]
)
def test_a_length_that_slurm_does_not_state_is_no_length(tmp_path: Path, no_value: object) -> None:
    """NO_VAL and INFINITE, of 32 and 64 bits, are not 136 years: such a job is left out, said."""
    jobs = [_json_job(1782907200, "7.0"), _json_job(1782907200, "8.0") | {"job_id": 8}]
    jobs[1]["time"] = {"start": 1782907200, "elapsed": no_value}
    (profile,) = _written(tmp_path, json.dumps({"jobs": jobs})).values()
    assert profile.window is not None
    assert profile.window.duration_s == 3600
    assert "of which no Elapsed was given: 1" in " ".join(map(str, profile.provenance.notes))


def test_sacct_json_without_gpus_is_refused(tmp_path: Path) -> None:
    """A job that held no GPU, or no job at all, says what to ask for."""
    job = {**_json_job(1782907200, "7.0"), "tres": {"allocated": []}}
    assert "job without GPUs: 1" in _refused(tmp_path, json.dumps({"jobs": [job]}))
    assert "no job in it" in _refused(tmp_path, json.dumps({"meta": {"Slurm": {}}, "jobs": []}))


_HEADER = (
    "timestamp,project_name,run_id,duration,emissions,emissions_rate,gpu_power,gpu_energy,"
    "gpu_count,gpu_model,on_cloud"
)


def _runs(*rows: str) -> str:
    return "\n".join([_HEADER, *rows]) + "\n"


def test_runs_of_codecarbon_at_once_are_jobs(tmp_path: Path) -> None:
    """Energy over length and GPUs is power; a run written twice counts once, with its longest."""
    jobs = _written(
        tmp_path,
        _runs(
            "2026-07-01T13:00:00,bert,aaaaaaaa-1,1800.0,0,0,9,0.25,2,2 x NVIDIA A40,N",
            "2026-07-01T13:30:00,bert,aaaaaaaa-1,3600.0,0,0,9,0.5,2,2 x NVIDIA A40,N",
            "2026-07-01T14:20:00,bert,bbbbbbbb-2,3600.0,0,0,9,1e-1,2.0,2 x NVIDIA A40,N",
            "2026-07-01T16:00:00,eval,cccccccc-3,60.0,0,0,0,0.0,2,2 x NVIDIA A40,N",
        ),
    )
    assert sorted(jobs) == ["bert-aaaaaaaa", "bert-bbbbbbbb"]
    first = jobs["bert-aaaaaaaa"]
    assert _means(first, "power.board_w") == pytest.approx([250.0, 250.0])
    assert _means(jobs["bert-bbbbbbbb"], "power.board_w") == pytest.approx([50.0, 50.0])
    assert first.hardware.gpu == "NVIDIA A40"
    assert first.window is not None
    assert first.window.duration_s == pytest.approx(3600.0)
    (source,) = first.provenance.sources
    assert source.dropped == {
        "row of a run that is written again": 1,
        "run whose GPUs were not measured": 1,
    }


@pytest.mark.parametrize("late_s", [0, 1000])
def test_runs_of_codecarbon_in_turn_are_of_the_same_gpus(late_s: int, tmp_path: Path) -> None:
    """Of 900, 100 and 500 s one after the other: 1 GPU, at (900 x 100 + 600 x 300) / 1500 W.

    With the last one begun while the second ran, as many GPUs as runs at once: 2.
    """
    rows = []
    for name, end_s, length_s, watts in (
        ("train", 900, 900.0, 100),
        ("eval", 1000 + late_s, 100.0 + late_s, 300),
        ("train", 1600, 500.0, 300),
    ):
        when = f"2026-07-01T13:{end_s // 60:02}:{end_s % 60:02}"
        kwh = watts * length_s / 3.6e6
        rows.append(f"{when},{name},{end_s}-run,{length_s},0,0,9,{kwh!r},1,1 x NVIDIA A40,N")
    jobs = _written(tmp_path, _runs(*rows))
    assert sum(job.gpu_count or 0 for job in jobs.values()) == (2 if late_s else 1)
    if not late_s:
        (job,) = jobs.values()
        assert _means(job, "power.board_w") == pytest.approx([180.0], rel=0.02)
        assert any("3 runs of train+eval" in note for note in job.provenance.notes)


def test_codecarbon_without_a_gpu_is_refused(tmp_path: Path) -> None:
    """Energy 0 is a GPU that was not measured, not one that drew nothing."""
    said = _refused(
        tmp_path, _runs("2026-07-01T13:00:00,bert,a-1,3600.0,0,0,0.0,0.0,1,1 x Tesla T4,N")
    )
    assert "measured no GPU" in said
