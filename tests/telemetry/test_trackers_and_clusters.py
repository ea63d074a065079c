"""Trackers, OpenTelemetry, CloudWatch and Slurm: what each tells lands in its slot, no more."""

import base64
import gzip
import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.captures import assert_writable, path
from tests.telemetry.reading import read_source

START = 1782907200
RUN = path("trackers/mlflow_run")
EVENTS = path("trackers/events.out.tfevents")


def _read(source: str | Path, hints: Hints | None = None) -> dict[str, Profile]:
    profiles = read_source(str(source), hints or Hints())
    assert_writable(profiles)
    return {one.job.name: one for one in profiles}


def _written(tmp_path: Path, content: object) -> dict[str, Profile]:
    file = tmp_path / "given"
    file.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    return _read(file)


def _refused(tmp_path: Path, content: object) -> str:
    with pytest.raises(InputError) as caught:
        _written(tmp_path, content)
    return str(caught.value)


def _means(profile: Profile, slot: str) -> list[float | None]:
    return [gpu.metrics[slot].mean for gpu in profile.gpus]


def test_a_run_that_mlflow_wrote_is_one_source() -> None:
    """A folder of MLflow's file store: both GPUs, megabytes of 10^6, the host, the run's name."""
    (profile,) = _read(RUN).values()
    assert profile.job.name == "tiny-train"
    assert _means(profile, "util.kernel_time") == pytest.approx([0.625, 0.725])
    assert _means(profile, "mem.used_gib") == pytest.approx([2.0, 4.0], abs=1e-3)
    assert _means(profile, "power.board_w") == [200.0, 200.0]
    assert profile.host is not None
    assert profile.host.cpu_util is not None
    assert profile.host.cpu_util.mean == 0.25
    assert profile.host.ram_used_gib is not None
    assert profile.host.ram_used_gib.mean == pytest.approx(10.0, abs=1e-3)
    assert profile.window is not None
    assert profile.window.interval_s == 10.0
    (source,) = profile.provenance.sources
    assert (source.format, source.sha256 is None) == ("mlflow", False)


def test_runs_in_mlruns_are_jobs_of_their_own(tmp_path: Path) -> None:
    """`plan mlruns`: each run is a job; its files are not telemetry one by one."""
    for name in ("one", "two"):
        run = shutil.copytree(RUN, tmp_path / "mlruns" / "0" / name)
        meta = run / "meta.yaml"
        meta.write_text(meta.read_text().replace("tiny-train", name))
    assert sorted(_read(tmp_path)) == ["one", "two"]


def test_get_history_of_mlflow_is_read(tmp_path: Path) -> None:
    """Answers of the REST call, one a line; a multi-node run names its machines."""
    lines = [
        {
            "metrics": [
                {"key": f"system/{node}/gpu_0_{name}", "timestamp": (START + i) * 1000, "value": v}
                for i in range(4)
            ]
        }
        for node in ("n1", "n2")
        for name, v in (("utilization_percentage", 40.0), ("power_usage_watts", 90.0))
    ]
    (profile,) = _written(tmp_path, "\n".join(map(json.dumps, lines))).values()
    assert (profile.gpu_count, profile.hardware.nodes) == (2, 2)
    assert _means(profile, "util.kernel_time") == [0.4, 0.4]


def test_mlflow_without_gpus_is_refused(tmp_path: Path) -> None:
    """A run without system metrics is told how to log them."""
    said = _refused(
        tmp_path, {"metrics": [{"key": "loss", "timestamp": START * 1000, "value": 1.0}]}
    )
    assert "enable_system_metrics_logging" in said


def test_lightning_s_csv_logger_is_read_with_its_settings(tmp_path: Path) -> None:
    """Rows of losses lie between those of GPUs; hparams.yaml says workers and precision."""
    monitor = "DeviceStatsMonitor.on_train_batch_end/gpu_id: 0"
    lines = [f"{monitor}/utilization.gpu (%),{monitor}/memory.used (MB),epoch,step,train_loss"]
    for step in range(6):
        lines += [f"{30 + 4 * step}.0,4096.0,,{step},", f",,0,{step},0.5"]
    (tmp_path / "hparams.yaml").write_text("num_workers: 0\nprecision: bf16-mixed\n")
    (tmp_path / "metrics.csv").write_text("\n".join(lines) + "\n")
    (profile,) = _read(tmp_path).values()
    assert profile.mean("util.kernel_time") == pytest.approx(0.4, abs=1e-6)
    assert profile.mean("mem.used_gib") == 4.0
    assert profile.step is not None
    assert (profile.step.loader_workers, profile.job.precision) == (0, "amp-bf16")


def test_an_event_file_of_tensorboard_is_read() -> None:
    """Lightning's tags in a file that tensorboardX wrote: two GPUs, ten seconds apart."""
    (profile,) = _read(EVENTS).values()
    assert _means(profile, "util.kernel_time") == pytest.approx([0.525, 0.625])
    assert _means(profile, "mem.used_gib") == [2.0, 4.0]
    assert profile.window is not None
    assert profile.window.interval_s == 10.0
    (source,) = profile.provenance.sources
    assert source.dropped == {"point of a metric that is not used": 6}


@pytest.mark.parametrize("cut", [0.5, 0.9])
def test_a_cut_event_file_gives_what_is_left(cut: float, tmp_path: Path) -> None:
    """The writer was killed: whole events count, the cut one is counted as such."""
    data = Path(EVENTS).read_bytes()
    file = tmp_path / "events.out.tfevents.1"
    file.write_bytes(data[: int(len(data) * cut)])
    (profile,) = _read(file).values()
    dropped = profile.provenance.sources[0].dropped
    assert isinstance(dropped, dict)
    assert dropped["cut event"] == 1


def test_scalars_of_clearml_are_read(tmp_path: Path) -> None:
    """Percent, GiB and epoch milliseconds; a constant 100 % is unknown, and said so."""
    times = [(START + 30 * i) * 1000 for i in range(12)]

    def plot(values: list[float]) -> dict[str, object]:
        return {"name": "x", "x": times, "y": values}

    gpu = {
        "gpu_0_utilization": plot([40.0] * 6 + [60.0] * 6),
        "gpu_0_mem_used_gb": plot([4.0] * 12),
        "gpu_0_mem_free_gb": plot([20.0] * 12),
        "gpu_0_temperature": plot([60.0] * 12),
        "gpu_1_utilization": plot([100.0] * 12),
        "gpu_1_mem_used_gb": plot([8.0] * 12),
    }
    (profile,) = _written(tmp_path, {":monitor:gpu": gpu, "loss": {}}).values()
    first, second = profile.gpus
    assert first.metrics["util.kernel_time"].mean == 0.5
    assert first.metrics["mem.used_gib"].mean == 4.0
    assert profile.hardware.gpu_memory_gib == 24.0
    assert "util.kernel_time" not in second.metrics
    assert "taken for unknown" in " ".join(profile.provenance.notes)


def test_otlp_json_of_opentelemetrys_own_encoder_is_read() -> None:
    """`hw.gpu.*`: ratios, bytes, watts, joules; the pod and host are attributes of the resource."""
    (profile,) = _read(path("trackers/otlp.json")).values()
    assert profile.job.name == "train-0"
    assert (profile.hardware.gpu, profile.hardware.gpu_memory_gib) == ("NVIDIA L4", 23.0)
    assert profile.hardware.machine is not None
    (gpu,) = profile.gpus
    assert gpu.uuid == "GPU-11111111-aaaa-bbbb-cccc-000000000001"
    found = {slot: one.mean for slot, one in gpu.metrics.items()}
    assert found == pytest.approx(
        {
            "util.kernel_time": 0.6,
            "util.encoder": 0.1,
            "mem.used_gib": 2.0,
            "power.board_w": 62.0,
            "energy.total_j": 1260.0,
        }
    )


def test_otlp_traces_are_refused(tmp_path: Path) -> None:
    """A request without metrics is no measurement."""
    assert "without a gauge" in _refused(tmp_path, {"resourceMetrics": [{"scopeMetrics": []}]})


@mock_aws
def test_what_cloudwatch_answers_is_read(tmp_path: Path) -> None:
    """Answers that moto's CloudWatch gives to boto3: newest first, percent and MiB, two GPUs."""
    client = boto3.client("cloudwatch", "us-east-1")
    now = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(hours=1)
    metrics = {"nvidia_smi_utilization_gpu": 30.0, "nvidia_smi_memory_used": 2048.0}
    queries: list[Any] = []
    for metric, value in metrics.items():
        for index in ("0", "1"):
            dimensions = [{"Name": "index", "Value": index}]
            for i in range(5):
                datum = {
                    "MetricName": metric,
                    "Dimensions": dimensions,
                    "Timestamp": now + timedelta(minutes=i),
                    "Value": value * (1 + int(index)),
                }
                client.put_metric_data(Namespace="CWAgent", MetricData=[datum])
            stat = {
                "Metric": {"Namespace": "CWAgent", "MetricName": metric, "Dimensions": dimensions},
                "Period": 60,
                "Stat": "Average",
            }
            query = {
                "Id": f"m{len(queries)}",
                "MetricStat": stat,
                "Label": f"i-0abc1234def567890 {metric} {index}",
            }
            queries.append(query)
    answer = client.get_metric_data(
        MetricDataQueries=queries,
        StartTime=now - timedelta(minutes=5),
        EndTime=now + timedelta(minutes=30),
        ScanBy="TimestampDescending",
    )
    text = json.dumps(answer, default=lambda value: value.isoformat())
    (profile,) = _written(tmp_path, text).values()
    assert _means(profile, "util.kernel_time") == pytest.approx([0.3, 0.6])
    assert _means(profile, "mem.used_gib") == [2.0, 4.0]
    assert profile.hardware.machine is not None
    assert profile.window is not None
    assert profile.window.interval_s == 60.0
    assert "mean of a period" in " ".join(profile.provenance.notes)


def test_statistics_of_one_metric_are_read(tmp_path: Path) -> None:
    """`get-metric-statistics`: points in any order, one metric."""
    points = [
        {"Timestamp": f"2026-06-01T10:0{i}:00+00:00", "Average": 10.0 * i, "Unit": "Percent"}
        for i in (3, 1, 2)
    ]
    (profile,) = _written(
        tmp_path, {"Label": "nvidia_smi_utilization_gpu", "Datapoints": points}
    ).values()
    assert profile.mean("util.kernel_time") == pytest.approx(0.2)


JS1 = {
    "gpus": 2,
    "total_time": 7200,
    "nodes": {
        "node-7": {
            "gpu_utilization": {"0": 98.6, "1": 40.0},
            "gpu_used_memory": {"0": 4 * 2**30, "1": 2 * 2**30},
            "gpu_total_memory": {"0": 80 * 2**30, "1": 80 * 2**30},
            "cpus": 4,
            "total_time": 2880.0,  # CPU seconds: a tenth of 4 x 7200
        }
    },
}


def _packed(document: object) -> str:
    return "JS1:" + base64.b64encode(gzip.compress(json.dumps(document).encode())).decode()


@pytest.mark.parametrize("text", [_packed(JS1), json.dumps(JS1)], ids=["packed", "plain"])
def test_jobstats_is_a_measured_profile(text: str, tmp_path: Path) -> None:
    """Utilisation and memory of each GPU over the whole job, packed or not."""
    (profile,) = _written(tmp_path, text).values()
    assert _means(profile, "util.kernel_time") == pytest.approx([0.986, 0.4])
    assert _means(profile, "mem.used_gib") == [4.0, 2.0]
    assert profile.host.cpu_util is not None
    assert profile.host.cpu_util.mean == pytest.approx(0.1)
    assert profile.hardware.gpu_memory_gib == 80.0
    assert profile.window is not None
    assert profile.window.duration_s == 7200.0


@pytest.mark.parametrize("text", ["JS1:Short", "JS1:None", "JS1:AAAA", "JS1:!!"])
def test_jobstats_without_data_is_refused(text: str, tmp_path: Path) -> None:
    """Sentinels and damaged packs say that nothing was kept."""
    assert "kept nothing" in _refused(tmp_path, text)


SACCT = """\
JobID|JobName|Account|State|Start|End|Elapsed|AllocTRES|TRESUsageInTot|AdminComment
100|train|vision|COMPLETED|2026-06-01T10:00:00|x|1-02:00:00|billing=64,cpu=8,gres/gpu:a100=2,gres/gpu=2,mem=64G||
100.batch|batch|vision|COMPLETED|2026-06-01T10:00:00|x|1-02:00:00|cpu=8|cpu=01:00:00,gres/gpumem=20480M,gres/gpuutil=150|
101|train|vision|NODE_FAIL|2026-06-03T10:00:00|x|01:00:00|gres/gpu=1||
101.0|python|vision|FAILED|2026-06-03T10:00:00|x|01:00:00||gres/gpumem=0,gres/gpuutil=0|
101|train|vision|COMPLETED|2026-06-03T12:00:00|x|02:00:00|gres/gpu=1||
101.0|python|vision|COMPLETED|2026-06-03T12:00:00|x|02:00:00||gres/gpumem=8G,gres/gpuutil=50|
102|prepare|vision|COMPLETED|2026-06-03T12:00:00|x|02:00:00|cpu=8||
103|serve|web|TIMEOUT|2026-06-04T12:00:00|x|02:00:00|gres/gpu=2||{packed}
104|waiting|web|PENDING|Unknown|Unknown|00:00:00|gres/gpu=4||
"""


def test_hours_of_jobs_that_nobody_watched_are_told(tmp_path: Path) -> None:
    """How many GPU hours the figures leave out, beside those that were watched and without any."""
    head = "JobID|JobName|Start|Elapsed|AllocTRES|TRESUsageInTot\n"
    seen = "1|a|2026-06-01T12:00:00|10:00:00|gres/gpu=1|\n1.0|x||10:00:00||gres/gpuutil=50\n"
    unseen = (
        "2|b|2026-06-01T12:00:00|1-00:00:00|gres/gpu=4|\n"
        "3|c|2026-06-01T12:00:00|01:30:00|gres/gpu=1|\n"
    )
    said = "2 of {} jobs held GPUs for 97.5 of {} GPU hours and were not watched"
    notes = _written(tmp_path, head + seen + unseen)["a"].provenance.notes
    assert any(said.format(3, 107.5) in note for note in notes)
    with pytest.raises(InputError, match=said.format(2, 97.5)):
        _written(tmp_path, head + unseen)


def test_the_cpu_of_slurms_steps_and_the_gpu_of_jobstats_are_read(tmp_path: Path) -> None:
    """A batch step is one task, a step of 4 tasks has 4 means: 2 + 4 x 1 of 8 x 10 core-hours."""
    head = "JobID|JobName|Start|Elapsed|NTasks|AllocTRES|TRESUsageInAve|AdminComment\n"
    job = "1|a|2026-06-01T12:00:00|10:00:00||cpu=8,gres/gpu:a100=1||\n"
    batch = "1.batch|x||10:00:00|1||cpu=02:00:00,gres/gpuutil=50|\n"
    step = "1.0|x||10:00:00|{}||cpu=01:00:00,gres/gpuutil=0|\n"
    for tasks, mean in (("4", pytest.approx(6 / 80)), ("", None)):
        host = _written(tmp_path, head + job + batch + step.format(tasks))["a"].host
        assert (host and host.cpu_util and host.cpu_util.mean) == mean
    stored = f"2|b|2026-06-01T12:00:00|02:00:00||gres/gpu:a100=2||{_packed(JS1)}\n"
    assert _written(tmp_path, head + stored)["b"].hardware.gpu == "a100"


def test_accounts_of_slurm_become_jobs(tmp_path: Path) -> None:
    """GPUs typed and untyped count once, percent is shared, 0 everywhere is unknown, requeues."""
    found = _written(tmp_path, SACCT.format(packed=_packed(JS1)))
    assert sorted(found) == ["serve", "train-100", "train-101"]
    first, again, serve = found["train-100"], found["train-101"], found["serve"]
    assert (first.gpu_count, first.hardware.gpu, first.job.team) == (2, "a100", "vision")
    assert _means(first, "util.kernel_time") == [0.75, 0.75]
    assert _means(first, "mem.used_gib") == [10.0, 10.0]
    assert first.window is not None
    assert first.window.duration_s == 26 * 3600
    assert _means(again, "util.kernel_time") == [0.5]
    assert again.window is not None
    assert again.window.duration_s == 2 * 3600
    assert _means(serve, "util.kernel_time") == pytest.approx([0.986, 0.4])
    assert {one.hardware.machine for one in (first, again)} == {None}
    dropped = first.provenance.sources[0].dropped
    assert isinstance(dropped, dict)
    assert dropped["job of which no use of its GPUs was collected"] == 1
    assert dropped["job without GPUs"] == 1
    assert dropped["job that never ran"] == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("JobID|JobName\n1|x\n", "AllocTRES is missing"),
        ("JobID|AllocTRES\n", "no row under the header"),
        ("JobID|AllocTRES|Elapsed\n1|gres/gpu:a100=1|10:02:11\n", "no Start was given: 1"),
        (
            "JobID|JobName|AllocTRES|Elapsed|Start\n1|x|gres/gpu=1|01:00:00|2026-06-01T10:00:00\n",
            "watched",
        ),
    ],
)
def test_accounts_that_measure_nothing_are_refused(text: str, says: str, tmp_path: Path) -> None:
    """What is missing is named, with the columns to ask for."""
    said = _refused(tmp_path, text)
    assert says in said
    assert "sacct -P -o" in said


def test_no_rate_is_told_of_a_job_of_which_only_its_end_is_known(tmp_path: Path) -> None:
    """It ran once: that is its period, and no rate of work."""
    head = "JobID|JobName|State|Start|Elapsed|AllocTRES|TRESUsageInTot\n"
    row = "1|a|COMPLETED|2026-06-01T12:00:00|10:00:00|gres/gpu=1|\n"
    job = _written(tmp_path, f"{head}{row}1.0|x|COMPLETED||10:00:00||gres/gpuutil=50\n")["a"]
    assert job.work is not None
    assert (job.work.unit, job.work.total, job.work.is_counted) == ("run", 1.0, False)
    assert not any("work rate" in note for note in job.provenance.notes)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("jupyter", "interactive"), ("sys/dashboard/sys/rstudio", "interactive"), ("vasp", "unknown")],
)
def test_a_session_at_a_scheduler_is_interactive_by_its_name(
    name: str, kind: str, tmp_path: Path
) -> None:
    """Nobody knows what a job does by its name alone, but that a session waits for a person."""
    head = "JobID|JobName|State|Start|Elapsed|AllocTRES|TRESUsageInTot\n"
    row = f"1|{name}|TIMEOUT|2026-06-01T12:00:00|2-00:00:00|gres/gpu=1|\n"
    step = "1.0|x|TIMEOUT||2-00:00:00||cpu=00:40:00,gres/gpuutil=1\n"
    job = _written(tmp_path, head + row + step)[name]
    assert job.job.kind == kind
