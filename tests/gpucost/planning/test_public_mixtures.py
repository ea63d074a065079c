"""Ten folders as public repositories hold them: what is joined, and priced how often.

Each was found and read on 2026-12-01; the rows are ours, in the form of theirs. By hand: an A10G of
a g5.xlarge that runs all month is $746.03, so what one GPU's files come to is that, however many.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from tests.gpucost.conftest import Call

BEGIN = datetime(2026, 11, 1, 10, tzinfo=UTC)
A_MONTH = Decimal("746.03")
SMI = "timestamp, index, name, utilization.gpu [%], memory.used [MiB]"
STT = "timestamp, power.draw [W], utilization.gpu [%], memory.used [MiB]"
CARBON = (
    "timestamp,project_name,run_id,duration,emissions,emissions_rate,gpu_energy,gpu_count,gpu_model"
)


@dataclass(frozen=True, kw_only=True)
class Mixture:
    """A folder of several files.

    Attributes:
        source: where such a folder is.
        files: their texts, by name.
        jobs: how many jobs they are.
        says: words of what is said about the files.
    """

    source: str
    files: dict[str, str]
    jobs: int = 1
    says: tuple[str, ...] = ()


def _rows(form: str, first: int = 0, last: int = 60) -> str:
    """Return a row every 10 s in a form of `str.format`: when (twice), load, memory, watts."""
    lines = []
    for place in range(first, last):
        when = BEGIN + timedelta(seconds=10 * place)
        load = 30 + place * 7 % 50
        values = {"when": f"{when:%Y/%m/%d %H:%M:%S}", "iso": f"{when:%Y-%m-%d %H:%M:%S}"}
        lines.append(form.format(**values, load=load, mib=9000 + load, watts=60 + 2 * load))
    return "\n".join(lines) + "\n"


def _smi(first: int = 0, last: int = 60, between: str = "") -> str:
    row = "{when}.000, 0, NVIDIA A10G, {load} %, {mib} MiB"
    return f"{SMI}\n" + _rows(f"{between}{row}", first, last)


def _stt(first: int, last: int) -> str:
    return f"{STT}\n" + _rows("{when}.000, {watts} W, {load} %, {mib} MiB", first, last)


def _watts(first: int) -> str:
    return "timestamp, power.draw [W]\n" + _rows("{when}.000, {watts} W", first, first + 60)


def _runs(count: int, energy_kwh: float = 0.002) -> str:
    rows = [
        f"2026-11-01T{10 + 2 * place}:00:00,train,run-{place},5400.0,0.1,0.01,"
        f"{energy_kwh * (1 + place % 3)},1.0,1 x NVIDIA A10G"
        for place in range(count)
    ]
    return "\n".join([CARBON, *rows]) + "\n"


AFTERBURNER = "00, 04-01-2026 14:34:33, Hardware monitoring log v1.6 \n"
LOSSES = "epoch,loss,type_loss,psnr_avr\n4,0.14465,0.09609,20.7429\n6,0.07691,0.04266,25.3790\n"
METADATA = json.dumps(
    {"gpu": "NVIDIA A10G", "gpu_count": 1, "gpu_nvidia": [{"name": "NVIDIA A10G"}]}
)

MIXTURES = {
    "a log, a part of it with its header on each row, and it cleaned": Mixture(
        source="AkshayRoyal/gpu-usage",
        files={
            "gpu_usage1.csv": _smi(),
            "gpu_usage.csv": _smi(20, 60, f"{SMI}\n"),
            "gpu_usage_cleaned.csv": "timestamp,index_gpu,name,gpu_utilization,gpu_memory_used\n"
            + _rows("{iso}, 0, NVIDIA A10G,{load},{mib}", 20),
        },
        says=("joined as 1 job: ", "gpu_usage1.csv"),
    ),
    "recordings of one test, numbered": Mixture(
        source="devyoongu/Qwen3-ASR, results",
        files={"stt_0331_50.csv": _stt(0, 60), "stt_0331_100.csv": _stt(200, 260)},
        says=("joined as 1 job: ",),
    ),
    "a log of GPU-Z and the table cut from it": Mixture(
        source="rleaderjoon/GPU_DashBoard",
        files={
            "GPU-Z Sensor Log.txt": "Date , GPU Clock [MHz] , GPU Load [%] , GPU Power [W] ,\n"
            + _rows("{iso} , 99.8 , {load} , {watts} ,", 10),
            "gpu_data.csv": "Count,Date,GPU Clock [MHz],GPU Load [%],GPU Power [W]\n"
            + _rows("0,{iso},99.8,{load},{watts}"),
        },
        says=("joined as 1 job: ",),
    ),
    "a log beside a run of W&B without its readings": Mixture(
        source="tkjunsei/OpenAD",
        files={
            "gpu_usage.csv": _smi(),
            "wandb/run-20261101_100000-a/files/config.yaml": "wandb_version: 1\nlr:\n  value: 1\n",
            "wandb/run-20261101_100000-a/files/wandb-metadata.json": METADATA,
        },
        says=("wandb-metadata.json", "config.yaml"),
    ),
    "CodeCarbon without a GPU beside a log": Mixture(
        source="KooSuYeon/codecarbonForJetson",
        files={"emissions.csv": _runs(1, 0.0), "gpu_log.csv": _smi()},
        says=("CodeCarbon measured no GPU in it",),
    ),
    "telemetry beside the losses of the training": Mixture(
        source="nazminarisbekovanazmi-ai/MDDAir",
        files={"gpu_telemetry.csv": _smi(), "training_log.csv": LOSSES},
        says=("training_log.csv: a training log",),
    ),
    "a log of Afterburner and its table": Mixture(
        source="AungMoonLord/Game-Benchmark-Driver-Performance-Evaluation-",
        files={
            "HardwareMonitoring.hml": AFTERBURNER,
            "HardwareMonitoring.csv": "Timestamp,GPU usage (%),Power (W)\n"
            + _rows("{iso},{load},{watts}"),
        },
        says=("HardwareMonitoring.hml: a log of MSI Afterburner",),
    ),
    "the watts of three programs": Mixture(
        source="PranavDani/Flame",
        files={
            "nvidia-smi.csv": _watts(0),
            "Results/a/a-smi.csv": _watts(1000),
            "Results/b/b-smi.csv": _watts(2000),
        },
        jobs=3,
    ),
    "two runs, each in the folder of its script": Mixture(
        source="TransistorTom/DeepLearningPH",
        files={"gpu_usage.log": _stt(0, 60), "SLURM_scripts/gpu_usage.log": _stt(9000, 9060)},
        jobs=2,
    ),
    "runs of CodeCarbon and all of them once more": Mixture(
        source="EronQorri/green-ml-bench, emissions",
        files={"emissions.csv": _runs(4), "emissions_all.csv": _runs(6)},
        says=("joined as 1 job: ",),
    ),
}


@pytest.mark.parametrize("name", MIXTURES)
def test_a_folder_is_priced_as_often_as_it_has_jobs(name: str, call: Call) -> None:
    """A GPU of several files is paid for once, and a line says what was joined or left out."""
    mixture = MIXTURES[name]
    for file, text in mixture.files.items():
        Path("runs", file).parent.mkdir(parents=True, exist_ok=True)
        Path("runs", file).write_text(text, encoding="utf-8")
    ran = call("plan", "runs", "--machine", "aws/g5.xlarge/us-east-1", "-f", "json")
    totals = [Decimal(job["baseline"]["cost"]["total"]) for job in ran.json["jobs"]]
    assert totals == [A_MONTH] * mixture.jobs
    for words in mixture.says:
        assert words in ran.err
