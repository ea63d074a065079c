"""Twenty jobs of published numbers get the verdict of their source, and no advice that harms."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path

import pytest

from planner.choice.option import Option
from planner.choice.requirements import Requirements
from planner.pipeline import draft_plan
from planner.plan.draft import JobDraft, PlanDraft
from planner.profile.codec import parse_profiles
from planner.signals.thresholds import NODE_NETWORK_GBPS
from pricing.catalog.catalog import load_catalog
from pricing.money import cents
from tests.pricing.factories import ASKED_ON

CATALOG = load_catalog(ASKED_ON)
HARD = Path(__file__).parents[2] / "examples" / "hard"
Harm = Callable[[Option, JobDraft], bool]


def less_memory(option: Option, job: JobDraft) -> bool:
    """Less memory than today, where what is held is not a need."""
    today = job.baseline.offer
    return today is not None and option.offer.gpu_memory_gib < 0.99 * today.gpu_memory_gib


def less_in_all(option: Option, job: JobDraft) -> bool:
    """Less memory over all GPUs than today, for a model that is split over them."""
    today = job.baseline.offer
    room = option.offer.gpu_memory_gib * option.offer.gpu_count * option.count
    return today is not None and room < 0.99 * today.gpu_memory_gib * today.gpu_count


def fewer_cores(option: Option, job: JobDraft) -> bool:
    """Fewer host cores than the job keeps busy."""
    host, cores = job.profile.host, option.offer.vcpus
    busy = host.cpu_util.mean if host and host.cpu_util else None
    needed = (busy or 0.0) * (job.profile.hardware.cpu_cores or 0.0)
    return cores is not None and cores * option.count < needed


def slow_network(option: Option, _: JobDraft) -> bool:
    """Several machines over a network slower than exchange needs; an unknown one is to be asked."""
    gbps = option.offer.network_gbps
    is_sure = not option.speed.weak
    return option.count > 1 and (is_sure if gbps is None else gbps < NODE_NETWORK_GBPS)


def no_encoder(option: Option, _: JobDraft) -> bool:
    """A GPU for data centres without NVENC."""
    return re.match(r"[ABH][123]00", option.offer.gpu) is not None


def slow_fp64(option: Option, _: JobDraft) -> bool:
    """A GPU whose double precision is a 32nd or a 64th of its single precision."""
    return re.fullmatch(r"T4G?|L4|A10G?|A40|L40S?|(RTX|Quadro).*", option.offer.gpu) is not None


def outside_eu(option: Option, _: JobDraft) -> bool:
    """A region that is not in the EU, or is not known."""
    known = (
        "west-europe|westeurope|northeurope|francecentral|germany|sweden|italy|spain|poland|ams3"
    )
    eu = rf"(eu-|europe-|fr-|nl-|pl-|fi|se-|de-|no-|FIN|{known}|norway|belgium|austria|denmark)"
    return re.match(eu, option.offer.region, re.IGNORECASE) is None


def other_host(option: Option, job: JobDraft) -> bool:
    """Another CPU architecture than the job's."""
    today = job.baseline.offer
    return today is not None and option.offer.cpu_architecture != today.cpu_architecture


def late(option: Option, job: JobDraft) -> bool:
    """Slower than the latency target allows, at the slow end of the speed."""
    latency, target = job.profile.job.latency_ms, job.profile.job.latency_slo_ms
    worst = latency.p99 if latency else None
    same = option.offer.gpu == job.profile.hardware.gpu
    return bool(worst and target and not same and worst / option.speed.low > target)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What an expert would say of an example.

    Attributes:
        verdict: codes of which the first finding is one.
        leave: whether the job stays as it is; None where either may be right.
        first: kind of the first step where it stays.
        wanted: actions of which the findings name at least one.
        never: actions that no finding and no option names.
        harm: what no listed option may do.
        regions: asked for.
    """

    verdict: tuple[str, ...]
    leave: bool | None = None
    first: str | None = None
    wanted: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    harm: tuple[Harm, ...] = ()
    regions: tuple[str, ...] = ()


PICTURES = ("gpu-preprocessing",)
AMP = ("mixed-precision", "tf32")
LOADER = ("dataloader-workers", "offline-preprocessing", "dataloader-prefetch")
EXAMPLES = {
    "llm-35-mfu": Expected(
        verdict=("well-used",), never=(*PICTURES, *AMP), harm=(less_memory, other_host)
    ),
    "vllm-full-cache": Expected(
        verdict=("memory-pressure",),
        wanted=("kv-cache-room",),
        never=(*AMP, "dynamic-batching", "share-gpu", "smaller-gpu", "scale-down"),
        harm=(less_memory,),
    ),
    "rl-atari-ppo": Expected(
        verdict=("data-loading",),
        wanted=("gpu-environments",),  # the 16 environments fill the 16 cores
        never=(*PICTURES, *LOADER),
        harm=(fewer_cores,),
    ),
    "gnn-sampling": Expected(
        verdict=("host-bound", "data-loading"), wanted=("gpu-sampling",), never=PICTURES
    ),
    "cfd-fp64": Expected(
        verdict=("well-used",), never=(*AMP, *PICTURES, "larger-batch"), harm=(slow_fp64,)
    ),
    "nvenc-transcode": Expected(
        verdict=("well-used",), never=(*AMP, *LOADER, "share-gpu"), harm=(no_encoder, fewer_cores)
    ),
    "nccl-hang": Expected(
        verdict=("idle-held",), leave=True, first="end", wanted=("end-job",), never=PICTURES
    ),
    "two-nodes-efa": Expected(
        verdict=("well-used",), never=(*PICTURES, *AMP), harm=(slow_network, less_memory)
    ),
    "eu-transcripts": Expected(
        verdict=("well-used",), never=(*PICTURES, *LOADER), harm=(outside_eu,), regions=("eu",)
    ),
    "whisper-batch": Expected(verdict=("well-used",), never=(*PICTURES, *LOADER)),
    "gh200-service": Expected(verdict=("well-used",), never=AMP, harm=(other_host, less_memory)),
    "xgboost": Expected(
        verdict=("host-bound",),
        wanted=("device-data",),
        never=(*AMP, *LOADER, *PICTURES, "compile", "larger-batch", "gradient-checkpointing"),
    ),
    "jax-speech": Expected(
        verdict=("no-mixed-precision", "data-loading"),
        wanted=("dataloader-workers",),
        never=(*PICTURES, "compile", "tf32", "channels-last", "cuda-graphs", "pinned-memory"),
        harm=(less_memory,),
    ),
    "embeddings-low-load": Expected(
        verdict=("under-used-inference",), wanted=("share-gpu", "smaller-gpu"), harm=(late,)
    ),
    "hpo-stuck": Expected(
        verdict=("idle-held",), leave=True, first="end", wanted=("end-job",), never=AMP
    ),
    "kaggle-unet": Expected(
        verdict=("data-loading",), leave=True, wanted=("dataloader-workers",), harm=(fewer_cores,)
    ),
    "vit-jpeg": Expected(
        verdict=("data-loading",), wanted=PICTURES, never=("mixed-precision",), harm=(fewer_cores,)
    ),
    "dlrm-tables": Expected(
        verdict=("memory-bandwidth-bound", "well-used"),
        never=(*PICTURES, "channels-last", "tf32"),
        harm=(less_in_all,),
    ),
    "stable-diffusion": Expected(
        verdict=("under-used-inference",), wanted=("share-gpu", "smaller-gpu"), harm=(late,)
    ),
}
PODS = "pods-one-machine"


@cache
def planned(name: str, regions: tuple[str, ...] = ()) -> PlanDraft:
    """The plan of an example, a file or a folder, over the whole catalog."""
    folder = HARD / name
    files = sorted(folder.glob("*.json")) if folder.is_dir() else [HARD / f"{name}.json"]
    profiles = tuple(p for f in files for p in parse_profiles(f.read_bytes(), f.name))
    asked = Requirements(regions=regions)
    return draft_plan(profiles, CATALOG, asked, as_of=ASKED_ON)


def job_of(name: str) -> JobDraft:
    """The plan of a single example."""
    (job,) = planned(name, EXAMPLES[name].regions).jobs
    return job


def test_every_example_is_expected_and_told() -> None:
    """Twenty examples, each with what its source says, in the table of the README, too."""
    found = {f.stem for f in HARD.glob("*.json")} | {PODS}
    assert found == {*EXAMPLES, PODS}
    assert len(found) == 20
    readme = (HARD / "README.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in readme for name in found)


@pytest.mark.parametrize("path", sorted(HARD.rglob("*.json")), ids=lambda p: p.stem)
def test_an_example_says_what_is_published_and_what_is_not(path: Path) -> None:
    """A source with an address, and what was assumed beside it."""
    source, assumed = json.loads(path.read_text(encoding="utf-8"))["provenance"]["notes"]
    assert re.match(r"Source: .*\w\.(com|io|to|ai|org|network)", source)
    assert assumed.startswith("Assumed: ")


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_verdict_is_that_of_the_source(name: str) -> None:
    """The first finding is the cause that was published."""
    assert job_of(name).findings[0].code in EXAMPLES[name].verdict


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_advice_fits_the_cause(name: str) -> None:
    """What helps such a job is named, what does not belong to it is named nowhere."""
    job, expected = job_of(name), EXAMPLES[name]
    named = {code for finding in job.findings for code in finding.actions}
    done = {code for option in job.options for code in option.actions}
    assert not expected.wanted or named & set(expected.wanted)
    assert not (named | done) & (set(expected.never) - {"smaller-gpu", "share-gpu"})
    assert not named & set(expected.never)


@pytest.mark.parametrize("name", EXAMPLES)
def test_nothing_harmful_is_listed(name: str) -> None:
    """No option breaks what the job cannot do without."""
    job = job_of(name)
    for harm in EXAMPLES[name].harm:
        harmful = [f"{o.id} {o.offer.place}" for o in job.options if harm(o, job)]
        assert harmful == [], harm.__doc__


@pytest.mark.parametrize("name", [n for n, e in EXAMPLES.items() if e.leave is not None])
def test_what_is_left_is_left_with_a_word(name: str) -> None:
    """A job that does nothing is ended, one not worth the work stays, whatever is cheaper."""
    job, expected = job_of(name), EXAMPLES[name]
    assert (job.recommended == "o0") == expected.leave
    step = "end" if job.now and job.now.kind == "end" else "measure" if not job.now else "try"
    assert expected.first in {None, step}


@pytest.mark.parametrize("name", EXAMPLES)
def test_what_is_recommended_pays(name: str) -> None:
    """Every recommendation saves more than its work, and says that its figures were declared."""
    job = job_of(name)
    if job.choice is not None:
        assert job.choice.benefit.net_usd is not None
        assert job.choice.benefit.net_usd > 0
    assert "you entered" in job.confidence.diagnosis.why


def test_eight_pods_of_one_machine_are_billed_once() -> None:
    """200 hours of one p5.48xlarge, 100 GB of disk and an address: not eight times that."""
    plan = planned(PODS)
    costs = [job.baseline.cost for job in plan.jobs]
    assert cents(sum(cost for cost in costs if cost is not None)) == Decimal("11011.19")
    assert plan.fleet is not None
    assert cents(plan.fleet.cost_before) == Decimal("11011.19")
    assert plan.fleet.gpus_after < 8
    assert {job.findings[0].code for job in plan.jobs} == {"under-used-inference"}
