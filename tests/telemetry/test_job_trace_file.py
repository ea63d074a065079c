"""Tables of jobs are read as schedulers and public traces write them."""

import pytest

from pricing.errors import InputError
from telemetry.job_trace_file import read_trace

SACCT = """JobID|Submit|Start|End|Elapsed|Timelimit|AllocTRES|State
101|2026-11-02T08:00:00|2026-11-02T08:10:00|2026-11-02T09:10:00|01:00:00|02:00:00|cpu=8,gres/gpu=2,gres/gpu:a100=2|COMPLETED
101.batch|2026-11-02T08:10:00|2026-11-02T08:10:00|2026-11-02T09:10:00|01:00:00||cpu=8,gres/gpu=2|COMPLETED
102|2026-11-02T08:00:30|2026-11-02T08:00:30|2026-11-03T08:00:30|1-00:00:00|UNLIMITED|cpu=4,mem=8G|COMPLETED
103|2026-11-02T08:01:00|Unknown|Unknown|00:00:00|01:00:00|gres/gpu=1|PENDING
104|2026-11-02T08:02:00|2026-11-02T08:12:00|2026-11-03T08:12:00|1-00:00:00|2-00:00:00|gres/gpu:h100=8|TIMEOUT
"""
PHILLY = (
    "timestamp,duration,num_gpus,cluster\n"
    "2017-10-09 07:01:55,66.0,1,a\n"
    "2017-10-09 06:13:03,2951.0,4,b\n"
)
HELIOS = (
    "job_id,user,gpu_num,submit_time,start_time,end_time,duration,state\n"
    "7,u,8,2020-04-01 00:00:10+08:00,2020-04-01 00:01:10+08:00,2020-04-01 00:11:10+08:00,600,OK\n"
)
TWO_TYPES = (
    "JobID|Submit|Elapsed|AllocTRES\n"
    "1|2026-11-02T08:00:00|00:01:00|gres/gpu:a100=4,gres/gpu:h100=2\n"
    "2|2026-11-02T08:00:01|00:02:00|gres/gpu:a100=3,gres/gpu=3\n"
)
OLD_GRES = "submit,elapsed,gres\n2026-11-02T08:00:00,10:00,gpu:a100:2\n"
EPOCH = "submitted;runtime;gpu_count\n1793491200000;12;2\n1793491260000;15;0.5\n"


def _jobs(text: str, **mapped: str) -> list[tuple[float, float, int]]:
    reading = read_trace("jobs.csv", text, mapped)
    return [(job.submit_s, job.duration_s, job.gpus) for job in reading.trace.jobs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (SACCT, [(0, 3600, 2), (120, 86_400, 8)]),
        (PHILLY, [(0, 2951, 4), (2932, 66, 1)]),
        (HELIOS, [(0, 600, 8)]),
        (EPOCH, [(0, 12, 2)]),
        (TWO_TYPES, [(0, 60, 6), (1, 120, 3)]),
        (OLD_GRES, [(0, 600, 2)]),
        ("\ufeff" + PHILLY.replace("\n", "\r\n"), [(0, 2951, 4), (2932, 66, 1)]),
    ],
    ids=["sacct", "philly", "helios", "milliseconds", "two types", "old gres", "windows"],
)
def test_a_form_is_read(text: str, expected: list[tuple[float, float, int]]) -> None:
    """Submission, seconds and whole GPUs are those of the file; steps and CPU jobs are left out."""
    assert _jobs(text) == expected


def test_what_is_left_out_is_counted() -> None:
    """Every row that is not replayed has its reason, and real waits and limits are kept."""
    reading = read_trace("jobs.txt", SACCT, {})
    assert dict(reading.dropped) == {
        "are steps of a job, not jobs": 1,
        "held no GPU": 1,
        "did not run": 1,
    }
    assert reading.rows == 5
    assert reading.waits_s == (600.0, 600.0)
    assert [job.limit_s for job in reading.trace.jobs] == [7200, 172_800]


def test_a_duration_that_cannot_be_read_is_told_apart() -> None:
    """A word in place of a length is not the same as a job that did not run."""
    text = "submit,duration,gpus\n0,60,1\n1,soon,1\n2,0,1\n"
    assert dict(read_trace("jobs.csv", text, {}).dropped) == {
        "have a duration that is neither seconds nor a time": 1,
        "did not run": 1,
    }


def test_a_column_is_named_by_hand() -> None:
    """--map gives a column its slot and the unit of its numbers."""
    text = "wann,wie lang,karten\n2026-01-01T00:00:00Z,1.5,2\n"
    mapped = {"wann": "submit", "wie lang": "duration:h", "karten": "gpus"}
    assert _jobs(text, **mapped) == [(0, 5400, 2)]


@pytest.mark.parametrize(
    ("text", "mapped", "said"),
    [
        ("a,b\n1,2\n", {}, "no column says submit or duration or gpus"),
        (PHILLY, {"nowhere": "submit"}, "no column 'nowhere'; there are timestamp"),
        (PHILLY, {"duration": "duration:years"}, "a unit one of ms, s, min, h, d"),
        (PHILLY, {"duration": "length"}, "a slot is one of submit, start"),
        ("timestamp,duration,num_gpus\n2017-10-09,0,1\n", {}, "none of 1 rows is a job"),
        ("", {}, "its columns are none"),
    ],
)
def test_what_cannot_be_read_is_said(text: str, mapped: dict[str, str], said: str) -> None:
    """A missing, unknown or misnamed column is named, with what to type."""
    with pytest.raises(InputError, match=r"jobs\.csv|--map") as refused:
        read_trace("jobs.csv", text, mapped)
    assert said in str(refused.value)
