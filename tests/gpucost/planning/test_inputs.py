"""`gpucost plan ANYTHING`: what is given is recognised, joined, and priced once."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.gpucost.conftest import Call, Write

BEGIN = datetime(2026, 11, 1, 10, tzinfo=UTC)
BILLS = Path(__file__).resolve().parents[2] / "fixtures" / "bills"


def _log(file: Path, model: str = "NVIDIA A10G", gpus: int = 1) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    rows = ["timestamp, index, name, utilization.gpu [%], memory.used [MiB]"]
    for second in range(0, 600, 10):
        when = (BEGIN + timedelta(seconds=second)).strftime("%Y/%m/%d %H:%M:%S.000")
        busy = 30 + second // 10 % 7
        rows += [f"{when}, {gpu}, {model}, {busy} %, 9000 MiB" for gpu in range(gpus)]
    file.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return file


def _events(file: Path, **more: float) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {"_timestamp": BEGIN.timestamp() + s, "system.gpu.0.gpu": 33.0, "system.cpu": 96.0, **more}
        for s in range(0, 600, 15)
    ]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return file


def _today(plan: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (job["baseline"]["offer"]["instance_type"], job["baseline"]["cost"]["total"])
        for job in plan["jobs"]
    ]


def test_nothing_named_reads_what_lies_here(call: Call) -> None:
    """The log in this folder; without any, what to type."""
    empty = call("plan")
    assert empty.code == 2
    assert "gpucost plan LOG" in empty.err
    alone = call("plan", str(_log(Path("gpu.log"))), "-f", "json")
    here = call("plan", "-f", "json")
    assert (here.code, _today(here.json)) == (0, _today(alone.json))


def test_a_pattern_names_its_files(call: Call) -> None:
    """A pattern that the shell did not open is opened; one that fits nothing is said."""
    _log(Path("logs") / "gpu.log")
    shutil.copy("logs/gpu.log", "logs/gpu.log.1")
    ran = call("plan", "logs/gpu.log*", "-f", "json")
    assert (ran.code, len(ran.json["jobs"])) == (0, 1)
    assert "joined as 1 job: logs/gpu.log, logs/gpu.log.1" in ran.err
    chinese = call("plan", "logs/gpu.log*", "--lang", "zh")
    assert "合并为 1 个作业" in chinese.err
    assert "no file fits this pattern" in call("plan", "nowhere/*.log").err


@pytest.mark.parametrize(("silent", "said"), [(0, False), (4, False), (24, True)])
def test_a_gap_is_on_the_first_screen(silent: int, said: bool, call: Call) -> None:  # noqa: FBT001
    """220 of 600 s beyond three intervals change what shares are of; a few rows do not."""
    lines = _log(Path("gpu.log")).read_text(encoding="utf-8").splitlines()
    Path("gpu.log").write_text("\n".join(lines[:20] + lines[20 + silent :]) + "\n")
    ran = call("plan", "gpu.log", "--machine", "aws/g5.xlarge/us-east-1")
    assert ("4 of 10 min (37%) are not recorded" in " ".join((ran.out + ran.err).split())) is said


def test_a_tracker_run_says_its_gpu_in_its_metadata(call: Call) -> None:
    """wandb-metadata.json beside the events names the GPU, its memory and the cores."""
    _events(Path("run") / "files" / "wandb-events.jsonl")
    metadata = {
        "cpu_count_logical": 24,
        "gpu": "NVIDIA GeForce RTX 4090",
        "gpu_count": 1,
        "gpu_nvidia": [{"name": "NVIDIA GeForce RTX 4090", "memoryTotal": "25757220864"}],
    }
    (Path("run") / "files" / "wandb-metadata.json").write_text(json.dumps(metadata))
    ran = call("import", "run", "-o", "-")
    hardware = ran.json["hardware"]
    assert (hardware["gpu"], hardware["cpu_cores"]) == ("NVIDIA GeForce RTX 4090", 24)
    assert hardware["gpu_memory_gib"] == pytest.approx(23.99, abs=0.01)
    assert "4090" in str(_today(call("plan", "run", "-f", "json").json))


def test_a_csv_of_a_tracker_keeps_the_cpu(call: Call) -> None:
    """`system.cpu` of W&B's CSV is the host's CPU."""
    rows = ["_runtime,_timestamp,system.gpu.0.gpu,system.cpu"]
    rows += [f"{s},{BEGIN.timestamp() + s},33,96" for s in range(0, 600, 15)]
    Path("wandb.csv").write_text("\n".join(rows) + "\n")
    ran = call("import", "wandb.csv", "-o", "-")
    assert ran.json["host"]["cpu_util"]["mean"] == pytest.approx(0.96)


def test_a_run_without_a_gpu_does_not_refuse_the_folder(call: Call) -> None:
    """A CPU-only run of another day is left out, and said."""
    _log(Path("logs") / "gpu.log")
    lines = [{"_timestamp": BEGIN.timestamp() + 90_000 + s, "system.cpu": 50} for s in range(99)]
    Path("logs/cpu.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = call("plan", "logs", "-f", "json")
    assert (ran.code, len(ran.json["jobs"])) == (0, 1)
    assert "left out, as no GPU was read there: cpu. Of the same run? `gpucost import" in ran.err


def test_hints_fill_gaps_in_plan_as_in_import(call: Call) -> None:
    """The cure of a missing GPU works as printed; cores, CPU and kind reach the plan."""
    _events(Path("events.jsonl"))
    refused = call("plan", "events.jsonl")
    assert refused.code == 2
    assert "--machine TYPE" in refused.err
    ran = call("plan", "events.jsonl", "--machine", "g5.xlarge", "--kind", "training", "-f", "json")
    assert ran.code == 0, ran.err
    assert _today(ran.json)[0][0] == "g5.xlarge"
    assert ran.json["jobs"][0]["kind"] == "training"
    hints = ("--cores", "4", "--cpu", "96%", "--machine", "aws/g5.xlarge")
    profile = call("import", str(_log(Path("gpu.log"))), *hints, "-o", "-").json
    assert profile["hardware"]["cpu_cores"] == 4
    assert profile["hardware"]["instance_type"] == "g5.xlarge"
    assert profile["host"]["cpu_util"]["mean"] == pytest.approx(0.96)
    assert "write 96%" in call("plan", "gpu.log", "--cpu", "much").err


def test_a_bill_beside_a_log_gives_machine_hours_and_price(call: Call) -> None:
    """The only A10G billed is the job's: $480.12 for 730 h, and not a list price; the rest is told.

    The bill's line of g5.xlarge is 730 h and $480.12 (tests/fixtures/bills/README.md).
    """
    log, bill = _log(Path("gpu.log")), BILLS / "aws_cur_2.csv"
    ran = call("plan", str(log), str(bill), "--machine-only", "-f", "json")
    assert ran.code == 0, ran.err
    assert _today(ran.json) == [("g5.xlarge", "480.12")]
    (note,) = [n for n in ran.json["warnings"] if "the bill has" in n]
    assert "$24,864.60 of GPU machines" in note  # $24,384.48 of it is of other machines
    alone = call("plan", str(bill))
    assert alone.code == 2
    assert "gpucost bill" in alone.err


def test_a_damaged_bill_of_a_folder_ends_no_plan(call: Call) -> None:
    """It is named in a line and the good log is planned; given by name it is a mistake (exit 2)."""
    log = _log(Path("jobs/gpu.log"))
    bill = Path("jobs/bill.csv")
    head = "product,group_description,description,hours,start,end,USD,project_name,category"
    bill.write_text(f"{head}\nDroplets,,x,1,2026-11-01,2026-11-02,$much,p,\n", encoding="utf-8")
    ran = call("plan", "jobs", "--machine", "g5.xlarge", "-f", "json")
    assert ran.code == 0, ran.err
    assert len(ran.json["jobs"]) == 1
    assert "skipped jobs/bill.csv: bill.csv:2: '$much' is not an amount" in ran.err
    assert call("plan", str(log), str(bill), "--machine", "g5.xlarge").code == 2


@pytest.mark.parametrize(
    ("name", "begin"),
    [("p.json", '{"schema"'), ("p.md", "# GPU"), ("p.html", "<!doctype html>"), ("p.csv", "job,")],
)
def test_the_suffix_of_a_file_says_what_is_written(name: str, begin: str, call: Call) -> None:
    """`-o` and `--report` follow the suffix; another one is refused before any work is done."""
    log = str(_log(Path("gpu.log")))
    ran = call("plan", log, "-o", name)
    assert ran.code == 0, ran.err
    text = Path(name).read_text(encoding="utf-8")
    assert (
        text.replace("\n", "").replace(" ", "").lower().startswith(begin.replace(" ", "").lower())
    )
    if name.endswith((".md", ".html")):
        call("plan", log, "-q", "--report", f"r-{name}", "-o", "plan.json")
        assert Path(f"r-{name}").read_text(encoding="utf-8") == text
        call("report", "plan.json", "-o", f"again-{name}")
        assert Path(f"again-{name}").read_text(encoding="utf-8")[:200] == text[:200]
    refused = call("plan", log, "-o", "plan.xlsx")
    assert refused.code == 2
    assert ".html" in refused.err
    assert not Path("plan.xlsx").exists()
    call("plan", log, "-q", "-o", "plan.json")
    assert "contradicts" in call("report", "plan.json", "--style", "html", "-o", "x.md").err


@pytest.mark.parametrize(
    ("asked", "said", "not_said"),
    [
        ((), ("1 of 4x A10G", "1/4 of the machine (--whole-machine: all)", "730 h a month"), ()),
        (("--whole-machine", "--hours-per-month", "20"), (), ("1 of 4x", "1/4 of", "730 h")),
    ],
)
def test_the_first_screen_says_which_part_and_which_hours_are_paid(
    asked: tuple[str, ...], said: tuple[str, ...], not_said: tuple[str, ...], call: Call
) -> None:
    """One GPU of a machine of four, and hours that nobody gave: the dollars rest on both."""
    ran = call("plan", str(_log(Path("gpu.log"))), "--machine", "aws/g5.12xlarge", *asked)
    words = " ".join(ran.out.split())
    assert all(text in words for text in said)
    assert not any(text in words for text in not_said)


def test_one_scrape_of_a_fleet_asks_for_a_day_before_jobs_share(call: Call, write: Write) -> None:
    """Four quiet pods at one instant: each keeps its GPU, and the screen asks for a day."""
    rows = ["# TYPE DCGM_FI_DEV_GPU_UTIL gauge"]
    for pod in range(4):
        labels = f'gpu="{pod}",UUID="GPU-{pod}a",modelName="NVIDIA A100-SXM4-80GB",Hostname="n"'
        for name, reading in (("GPU_UTIL", 8), ("FB_USED", 9000), ("FB_FREE", 72000)):
            rows.append(f'DCGM_FI_DEV_{name}{{{labels},pod="pod-{pod}",namespace="ml"}} {reading}')
    ran = call("plan", write("scrape.prom", "\n".join(rows) + "\n"))
    assert ran.code == 0, ran.err
    assert "share today's GPUs" not in ran.out
    said = " ".join(ran.out.split())
    assert "too little was read of 4 jobs; a day of readings shows who can share" in said
