"""Real jobs with what a careful expert says: the plan keeps every condition of expected.csv.

The conditions stand there in words; here each case is a function of the plan and of what the
terminal shows at 100 columns. A row without its function fails.
"""

# ruff: noqa: D103 - the words of a condition stand in expected.csv
import csv
import io
import json
import os
import shlex
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from gpucost.cli import run
from pricing.catalog.catalog import load_catalog
from pricing.hardware import gpus

Json = dict[str, Any]
DAY = "2026-11-27"
"""Of the expert's answers: prices are those of that day."""


@dataclass(frozen=True)
class Ran:
    """What a plan said, and what it showed."""

    code: int
    plan: Json
    text: str

    @property
    def job(self) -> Json:
        """The only job."""
        (job,) = self.plan["jobs"]
        return job

    @property
    def option(self) -> Json | None:
        """The recommended option; None for o0."""
        return recommended(self.job)

    @property
    def first(self) -> Json:
        """The first finding."""
        return self.job["findings"][0]

    @property
    def share(self) -> float:
        """The recommended bill over today's."""
        today = self.job["baseline"]["cost"]["total"]
        return 1.0 if self.option is None else float(self.option["cost"]["mid"]) / float(today)

    @property
    def gib(self) -> float:
        """GPU memory of the recommended machines in all; infinite for o0."""
        if self.option is None:
            return float("inf")
        offer = self.option["offer"]
        return gpus()[offer["gpu"]].memory_gib * offer["gpu_count"] * self.option["count"]


def recommended(job: Json) -> Json | None:
    """The recommended option of a job."""
    return next((one for one in job["options"] if one["id"] == job["recommended"]), None)


def named(job: Json) -> set[str]:
    """Codes of what the recommended option, the smaller change and the first step do."""
    codes = set((recommended(job) or {}).get("actions", ()))
    smaller = [one for one in job["options"] if one["id"] == job["smallest_change"]]
    codes.update(code for one in smaller for code in one["actions"])
    return codes | set((job["answer"]["now"] or {}).get("actions", ()))


def asr_streaming(ran: Ran) -> Iterator[bool]:
    copies = (ran.option or {}).get("scaling", {}).get("by_hour", ())
    yield ran.share <= 0.7
    yield "scale-down" in (ran.option or {"actions": ()})["actions"]
    yield min(copies[10:16]) >= 10
    yield (ran.option or {})["scaling"]["latency_ms"] <= 300


def b200_fp4(ran: Ran) -> Iterator[bool]:
    yield ran.gib >= 120
    yield ran.option is None or (ran.share < 1 and ran.option["speed"]["low"] >= 1)
    yield ran.first["code"] == "memory-bandwidth-bound"


def b200_fp8(ran: Ran) -> Iterator[bool]:
    yield ran.option is not None
    yield ran.gib >= 1200
    yield ran.share <= 0.7


def ci_runner(ran: Ran) -> Iterator[bool]:
    yield ran.first["code"] != "unmeasured"
    yield "idle-shutdown" in named(ran.job)


def cp2k(ran: Ran) -> Iterator[bool]:
    full = ("V100", "A100", "H100", "H200", "GH200", "B200", "MI300X")
    yield ran.option is None or ran.option["offer"]["gpu"].startswith(full)


def crosscloud(ran: Ran) -> Iterator[bool]:
    yield bool({"local-cache", "data-near-gpu"} & named(ran.job))
    yield ran.option is None or ran.option["move"] is not None


def deadline(ran: Ran) -> Iterator[bool]:
    yield ran.option is not None
    option = ran.option or {}
    yield option["hours"]["high"] <= 60
    yield float(option["cost"]["high"]) <= 1500


def coupled(ran: Ran) -> Iterator[bool]:
    option = ran.option
    yield option is not None
    offer = (option or {})["offer"]
    yield (option or {})["count"] == 1
    yield offer["gpu_count"] == 8
    yield "H100" not in offer["gpu"] or (option or {})["speed"]["high"] <= 7.9
    yield ran.share <= 0.35


def egress(ran: Ran) -> Iterator[bool]:
    yield "egress" in ran.first["cause"]
    silent = [r for r in ran.job["rejected"] if "place that is not known" in r["detail"]]
    ours = [r for r in silent if r["offer"].startswith(("digitalocean/", "lambda/"))]
    yield not [r for r in ours if not r["offer"].endswith("-spot")]
    yield ran.share <= 0.5


def api_and_embeddings(ran: Ran) -> Iterator[bool]:
    fleet = ran.plan["fleet"]
    packed = set(ran.plan["recommended"]["packed"])
    taken = [one for one in [fleet, *fleet["alternatives"]] if one.get("placements")]
    offers = {
        (o.provider, o.instance_type): o for o in load_catalog(date.fromisoformat(DAY)).offers
    }
    together = [
        place
        for one in taken
        for place in one["placements"]
        if len(place["jobs"]) > 1 and set(place["jobs"]) <= packed
    ]
    yield bool(together)
    for place in together:
        host = offers[place["offer"]["provider"], place["offer"]["instance_type"]]
        if {"emb0", "emb1"} <= set(place["jobs"]):
            yield host.vcpus >= 6
            yield host.ram_gib >= 20


def trainers_and_notebooks(ran: Ran) -> Iterator[bool]:
    packed = set(ran.plan["recommended"]["packed"])
    for job in ran.plan["jobs"]:
        notebook = job["name"].startswith("nb")
        yield not notebook or job["findings"][0]["code"] != "unmeasured"
        yield not notebook or job["name"] in packed or "idle-shutdown" in named(job)
        yield notebook or job["name"] not in packed
        offer = (recommended(job) or {"offer": {"provider": "", "gpu_count": 1}})["offer"]
        single = offer["gpu_count"] == 1 and "SXM" in offer.get("gpu", "")
        yield not (single and offer["provider"] in {"hyperstack", "crusoe"})


def leave(ran: Ran) -> Iterator[bool]:
    yield ran.option is None


def germany(ran: Ran) -> Iterator[bool]:
    yield ran.option is not None
    region = (ran.option or {})["offer"]["region"]
    yield region in {"eu-central-1", "europe-west3", "germanywestcentral", "europe-central-1", "de"}
    yield ran.share <= 0.65
    yield (ran.option or {})["speed"]["mid"] >= 0.3


def idle_mi300x(ran: Ran) -> Iterator[bool]:
    yield ran.gib >= 64
    yield bool({"idle-shutdown", "share-gpu", "scale-down"} & named(ran.job))
    cost = (ran.option or {"cost": {"low": 1, "high": 1}})["cost"]
    yield float(cost["high"]) <= 3 * float(cost["low"])


def grpo(ran: Ran) -> Iterator[bool]:
    yield ran.first["code"] != "memory-pressure"
    said = " ".join(one["cause"] for one in ran.job["findings"])
    yield "rollout" in said
    yield ran.option is None or ran.option["offer"]["gpu_count"] * ran.option["count"] >= 8


def lora(ran: Ran) -> Iterator[bool]:
    yield bool({"larger-batch", "compile", "cuda-graphs"} & named(ran.job))


def misnamed(ran: Ran) -> Iterator[bool]:
    yield "egress_gib" in ran.text
    yield "egress_gib_per_month" in ran.text


def copies_over_numa(ran: Ran) -> Iterator[bool]:
    cures = {"pinned-memory", "async-copy", "gpu-preprocessing", "numa-binding"}
    yield bool(cures & named(ran.job))


def own_machine(ran: Ran) -> Iterator[bool]:
    yield ran.job["baseline"]["cost"]["total"] is None
    yield ran.option is None
    yield "--machine" in ran.text


def narrow_links(ran: Ran) -> Iterator[bool]:
    yield "gradient-accumulation" in named(ran.job)


def slow_rank(ran: Ran) -> Iterator[bool]:
    yield "rank 5" in ran.first["cause"].lower()
    yield "ds.py:20" in ran.first["cause"]
    step = (ran.job["answer"]["now"] or {}).get("actions", [])
    yield not {"gradient-accumulation", "nccl-tuning"} & set(step)


def sick_gpu(ran: Ran) -> Iterator[bool]:
    words = ("ECC", "remap", "link", "slow")
    yield any(word in ran.first["cause"] for word in words)
    yield ran.job["answer"]["now"] is not None


def missed_target(ran: Ran) -> Iterator[bool]:
    faster = ran.option is not None and ran.option["speed"]["mid"] >= 1.25
    yield faster or ran.job["answer"]["now"] is not None


def one_run(ran: Ran) -> Iterator[bool]:
    yield ran.option is None or float(ran.option["benefit"]["net_usd"]) > 0


def one_run_on_spot(ran: Ran) -> Iterator[bool]:
    today = float(ran.job["baseline"]["cost"]["total"])
    yield ran.option is None or float(ran.option["cost"]["high"]) < today


def unknown_chip(ran: Ran) -> Iterator[bool]:
    yield ran.code != 0
    yield "hardware.gpu" in ran.text
    yield "TPU v5e" in ran.text


def light_server(ran: Ran) -> Iterator[bool]:
    tight = [
        r for r in ran.job["rejected"] if r["reason"] == "memory" and "host" not in r["detail"]
    ]
    yield not [r for r in tight if "g6e." in r["offer"]]  # an L40S with 48 GB
    yield ran.share <= 0.45


def no_workers(ran: Ran) -> Iterator[bool]:
    yield "dataloader-workers" in named(ran.job)


Conditions = Callable[[Ran], Iterator[bool]]
CASES: dict[tuple[str, str], Conditions] = {
    ("asr-streaming.json", ""): asr_streaming,
    ("b200-fp4-serving.json", ""): b200_fp4,
    ("b200-fp8-8x.json", ""): b200_fp8,
    ("ci-runner.json", ""): ci_runner,
    ("cp2k-fp64.json", ""): cp2k,
    ("crosscloud-data.json", ""): crosscloud,
    ("deadline.json", "--deadline 60h --budget 1500"): deadline,
    ("do-8x1-coupled.json", ""): coupled,
    ("egress-serving.json", ""): egress,
    ("fleet-api+emb", "--consolidate"): api_and_embeddings,
    ("fleet-train+notebooks", "--consolidate"): trainers_and_notebooks,
    ("gb200-nvl.json", ""): leave,
    ("germany-only.json", "--region germany"): germany,
    ("gpt-oss-mi300x-idle.json", ""): idle_mi300x,
    ("grpo-8xh100.json", ""): grpo,
    ("lora-8b-h100.json", ""): lora,
    ("mi300x-8x-train.json", ""): leave,
    ("misnamed-field.json", ""): misnamed,
    ("numa.json", ""): copies_over_numa,
    ("own-8xa6000.json", ""): own_machine,
    ("pcie-x4.json", ""): narrow_links,
    ("rank-imbalance.json", ""): slow_rank,
    ("sick-gpu.csv", ""): sick_gpu,
    ("specdec-lowbatch.json", ""): missed_target,
    ("spot-ckpt.json", ""): one_run,
    ("spot-ckpt.json", "--purchase spot --provider aws"): one_run_on_spot,
    ("tpu-v5e.json", ""): unknown_chip,
    ("vllm8b-h100-light.json", ""): light_server,
    ("workers0.json", ""): no_workers,
}


def plan_of(case: Path, args: str, written: Path) -> Ran:
    """What `gpucost plan` says of a case, in both forms."""
    typed = ["plan", str(case), *shlex.split(args), "--as-of", DAY, "-o", str(written)]
    out, err = io.StringIO(), io.StringIO()
    wide = patch.dict(os.environ, COLUMNS="100")
    with wide, redirect_stdout(out), redirect_stderr(err):
        code = run(typed)
    plan = json.loads(written.read_text("utf-8")) if code == 0 else {}
    text = " ".join(f"{out.getvalue()} {err.getvalue()}".split())
    return Ran(code=code, plan=plan, text=text)


def test_every_case_has_its_conditions(shared: Path) -> None:
    """Each row of expected.csv, and nothing else."""
    with (shared / "cases/advice/expected.csv").open(encoding="utf-8") as file:
        rows = {(row["name"], row["args"] or "") for row in csv.DictReader(file)}
    assert rows == set(CASES)


@pytest.mark.parametrize(("name", "args"), CASES, ids=[" ".join(key).strip() for key in CASES])
def test_the_expert_agrees(shared: Path, tmp_path: Path, name: str, args: str) -> None:
    """What is wanted is there, nothing that is forbidden, and what holds for every case."""
    ran = plan_of(shared / "cases/advice" / name, args, tmp_path / "plan.json")
    kept = list(CASES[name, args](ran))
    assert kept
    assert all(kept), (kept, ran.text)
    _holds_for_every_case(ran)


def _holds_for_every_case(ran: Ran) -> None:
    """Only what can be rented, no dearer at its high end, slower only where that is said."""
    catalog = load_catalog(date.fromisoformat(DAY))
    offers = {(o.provider, o.instance_type, o.region, o.purchase): o for o in catalog.offers}
    for job in ran.plan.get("jobs", ()):
        option, today = recommended(job), job["baseline"]
        if option is None:
            continue
        offer = option["offer"]
        key = (offer["provider"], offer["instance_type"], offer["region"], offer["purchase"])
        row = offers.get(key) or offers[key[0], key[1], "*", key[3]]
        assert row.not_for_rent_reason(date.fromisoformat(DAY)) is None
        limits = [one["reason"] for one in today["breaks"]]
        assert limits or float(option["cost"]["high"]) < float(today["cost"]["total"])
        if option["hours"]["mid"] > 1.25 * today["hours"]["mid"]:
            assert "times as long" in ran.text
        fixed = ran.plan["period"] == "month" and len(ran.plan["jobs"]) == 1
        if fixed and option["hours"]["high"] > max(744.0, today["hours"]["mid"]):
            assert "h of a month" in ran.text
