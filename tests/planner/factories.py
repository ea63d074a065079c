"""Profiles, offers and catalogs for tests, complete but for what a test is about."""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from msgspec.structs import replace

from planner.actions import Action
from planner.choice.baseline import Baseline
from planner.choice.context import JobContext
from planner.choice.requirements import Requirements
from planner.choice.workload import apply_requirements, choose_period
from planner.models.estimate import Estimate
from planner.pipeline import assess, draft_plan
from planner.plan.draft import PlanDraft
from planner.prediction.kernels import kernels_on, read_kernels
from planner.prediction.layout import Layout
from planner.prediction.predict import Predictions, Split
from planner.profile.model import (
    GpuReadings,
    Hardware,
    Host,
    Job,
    MonthlyUse,
    Profile,
    Statistics,
    Step,
    Work,
)
from planner.signals.finding import Finding
from pricing.catalog.catalog import Catalog
from pricing.catalog.offer import Offer
from pricing.hardware import Gpu
from tests.pricing.factories import ASKED_ON, an_offer

Reading = float | Statistics
MACHINES_ALONE: dict[str, Any] = {"boot_disk_bytes": 0, "public_address": False}
"""Bills of machine time and data, as most tests count them; tests of whole machines say so."""
PLAIN_JOB: dict[str, Any] = {"name": "job", "kind": "training", "precision": "amp-bf16"}
PLAIN_MACHINE: dict[str, Any] = {"gpu": "A100-SXM-80GB", "gpu_count": 1}
QUIET: dict[str, Reading] = {"util.kernel_time": 0.6, "mem.used_gib": Statistics(max=10.0)}


def kernel_speed_up(profile: Profile, target: Gpu, piece: str | None = None) -> Estimate:
    """How much faster one GPU, or such a slice of it, runs a profile's kernels."""
    return kernels_on(read_kernels(profile), target, piece)


def predict_from(
    profile: Profile,
    probes: tuple[Profile, ...],
    target: Layout,
    actions: tuple[Action, ...],
    parts: Split,
) -> Estimate:
    """The speed-up on a target with actions applied, where the time goes as said."""
    return Predictions(profile=profile, parts=parts, probes=probes).speed(target, actions)


def a_reading(value: Reading) -> Statistics:
    """A statistic; a plain number is its mean."""
    return value if isinstance(value, Statistics) else Statistics(mean=value)


def gpus(readings: Iterable[Mapping[str, Reading]]) -> tuple[GpuReadings, ...]:
    """GPUs with these metrics, in order."""
    return tuple(
        GpuReadings(index=i, metrics={name: a_reading(v) for name, v in sorted(one.items())})
        for i, one in enumerate(readings)
    )


def a_profile(
    metrics: Mapping[str, Reading] | None = None,
    *,
    each: Iterable[Mapping[str, Reading]] | None = None,
    host: Mapping[str, Reading] | None = None,
    hours: float | None = 100.0,
    **fields: Any,
) -> Profile:
    """A training job on one A100-SXM-80GB for 100 h a month, with what a test names changed.

    Args:
        metrics: readings of every GPU of the job.
        each: readings of the first, the second ... GPU, instead.
        host: readings of the host.
        hours: a month; None = not stated.
        fields: fields of Job, Hardware, Step or Work by their own names, or whole sections.
    """
    job = PLAIN_JOB | _of(Job, fields)
    machine = PLAIN_MACHINE | _of(Hardware, fields)
    rest = fields.keys() - {*_names(Job), *_names(Hardware), *_names(Step), *_names(Work)}
    shown = QUIET if metrics is None else metrics
    step, work = _of(Step, fields), _of(Work, fields)
    made: dict[str, Any] = {
        "job": Job(**job),
        "hardware": Hardware(**machine),
        "gpus": gpus([shown] * (machine["gpu_count"] or 1) if each is None else each),
        "host": Host(**{k: a_reading(v) for k, v in host.items()}) if host else None,
        "usage": None if hours is None else MonthlyUse(hours_per_month=hours),
        "step": Step(**step) if step else None,
        "work": Work(**work) if work else None,
    }
    return Profile(**made | {name: fields[name] for name in rest})


def _names(cls: Any) -> tuple[str, ...]:
    return tuple(cls.__struct_fields__)


def _of(cls: Any, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in _names(cls) if name in fields}


def a_catalog(*offers: Offer) -> Catalog:
    """These offers, seen from the day of the tests."""
    return Catalog(as_of=ASKED_ON, rows=offers)


def sold(type_: str, price: str = "1.00", gpu: str = "A100-SXM-80GB", **changes: Any) -> Offer:
    """An offer by size, price and GPU: 80 GiB of its own, a large host, unless said."""
    plain: dict[str, Any] = {"instance_type": type_, "gpu": gpu, "usd_per_hour": Decimal(price)}
    host = {"vcpus": 64.0, "ram_gib": 512.0}
    return an_offer(**{"gpu_memory_gib": 80, **host, **plain, **changes})


TODAY = sold("today", "2.00")
"""Where `running` jobs run: one A100-SXM-80GB at $2 an hour."""


def running(profile: Profile, offer: Offer = TODAY) -> Profile:
    """The profile, stated to run on an offer."""
    place = replace(
        profile.hardware,
        provider=offer.provider,
        instance_type=offer.instance_type,
        region=None if offer.region == "*" else offer.region,
        purchase=offer.purchase,
    )
    return replace(profile, hardware=place)


def plan(*profiles: Profile, offers: Iterable[Offer] = (TODAY,), **asked: Any) -> PlanDraft:
    """The plan of the jobs over these offers."""
    requirements = Requirements(**MACHINES_ALONE | asked)
    return draft_plan(profiles, a_catalog(*offers), requirements, as_of=ASKED_ON)


def a_case(profile: Profile, catalog: Catalog, **asked: Any) -> JobContext:
    """What the checks of one job need, made as the pipeline makes it."""
    requirements = Requirements(**MACHINES_ALONE | asked)
    profile = apply_requirements(profile, requirements)
    return assess(profile, catalog, requirements, choose_period((profile,), requirements))


def a_baseline(profile: Profile, offer: Offer = TODAY, **asked: Any) -> Baseline:
    """The baseline of a job that runs on an offer."""
    return a_case(running(profile, offer), a_catalog(offer), **asked).baseline


def codes(findings: Iterable[Finding]) -> list[str]:
    """The codes of findings, in order."""
    return [finding.code for finding in findings]
