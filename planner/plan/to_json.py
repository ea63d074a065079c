"""Writes a plan as `gpucost.plan/v1`: money as strings, keys in a fixed order."""

import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from planner.actions import ACTIONS, action
from planner.actions.action import Range
from planner.actions.machine_settings import MachineSettings
from planner.baseline.tenancy import Tenancy
from planner.diagnosis.finding import Finding
from planner.fleet.consolidate import Fleet, Placement
from planner.models.estimate import Estimate
from planner.models.power import best_cap
from planner.options.machine_sizes import Shape
from planner.options.option import Move, Option
from planner.options.parallelism import Distribution
from planner.plan.advice_to_json import advice_json, benefit_json
from planner.plan.energy import Energy, energy_of, energy_today
from planner.plan.experiment import Proposal
from planner.plan.plan import SCHEMA, JobPlan, Plan
from planner.plan.recommendation import Recommended
from planner.profile.model import Profile
from planner.signals.condition import Evidence, Signals
from planner.signals.signals import SIGNALS, measure
from pricing.billing.quote import QuoteLine, offer_json
from pricing.catalog.offer import Offer
from pricing.hardware import find
from pricing.money import cents, plain

_Json = dict[str, Any]
_LEAST_UNITS = 1e-6  # less is no amount of work that has a price
_LARGE_UNITS = ((1_000_000, "1M "), (1_000, "1k "), (1, ""))


def to_json(plan: Plan) -> _Json:
    """Return the plan as JSON values."""
    return {
        "schema": SCHEMA,
        "as_of": plan.as_of.isoformat(),
        "currency": "USD",
        "objective": plan.objective,
        "period": plan.period,
        "catalog": {
            "offers": plan.offers,
            "newest": plan.newest.isoformat(),
            "oldest": plan.oldest.isoformat(),
        },
        "jobs": [_job(job, plan) for job in plan.jobs],
        "fleet": _fleet(plan.fleet) if plan.fleet else None,
        "roi": {
            "saves_usd": _usd(plan.roi.saves_usd),
            "effort_hours": _short(plan.roi.effort_hours),
            "payback_days": _short(plan.roi.payback_days),
        },
        "assumptions": list(plan.assumptions),
        "warnings": list(plan.warnings),
        "recommended": _recommended(plan.recommended),
        "actions": _titles(plan),
    }


def _titles(plan: Plan) -> dict[str, str]:
    """Return the title of every action code that the plan names."""
    codes = {code for job in plan.jobs for finding in job.findings for code in finding.actions}
    codes |= {code for job in plan.jobs for option in job.options for code in option.actions}
    return {code: ACTIONS[code].title for code in sorted(codes)}


def dump(plan: Plan) -> str:
    """Return the text of plan.json."""
    return json.dumps(to_json(plan), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _job(job: JobPlan, plan: Plan) -> _Json:
    signals = measure(job.profile)
    return {
        "name": job.name,
        "kind": job.profile.job.kind,
        "baseline": _baseline(job, plan),
        "findings": [finding_json(finding) for finding in job.findings],
        "remedies": remedies_json(signals, job.machine),
        "options": [_option(option, job, plan) for option in job.options],
        "rejected": [
            {"offer": r.offer, "reason": r.reason, "detail": r.detail} for r in job.rejected
        ],
        "recommended": job.recommended,
        **advice_json(job),
        "placement": _placement_of(job.name, plan),
        "shapes": [_shape(shape, plan) for shape in job.shapes],
        "probe": _probe(job.probe, plan) if job.probe else None,
    }


def _placement_of(name: str, plan: Plan) -> int | None:
    """Return the GPU that the job is recommended to share; None where it goes its own way."""
    if plan.fleet is None or name not in plan.recommended.packed_jobs:
        return None
    return next((one.id for one in plan.fleet.placements if name in one.jobs), None)


def _recommended(one: Recommended) -> _Json:
    fraction = float(one.saves / one.before) if one.before else 0.0
    return {
        "cost_before": _usd(one.before),
        "cost": {"low": _usd(one.low), "mid": _usd(one.mid), "high": _usd(one.high)},
        "saves": {"usd": _usd(one.saves), "fraction": round(fraction, 4)},
        "packed": sorted(one.packed_jobs),
        "unknown": list(one.unknown),
        "at_least": one.at_least,
    }


def _probe(probe: Proposal, plan: Plan) -> _Json:
    return {
        "option": probe.option,
        "what": probe.what,
        "offer": _offer(probe.offer, plan) if probe.offer else None,
        "count": probe.count,
        "minutes": probe.minutes,
        "usd": _usd(probe.usd),
        "factor_now": _short(probe.factor_now),
        "factor_after": _short(probe.factor_after),
    }


def _offer(offer: Offer, plan: Plan) -> _Json:
    return {**offer_json(offer), "stale": offer.is_stale(plan.as_of)}


def _shape(shape: Shape, plan: Plan) -> _Json:
    return {
        "offer": _offer(shape.offer, plan),
        "count": shape.count,
        "gpus": shape.gpus,
        "hours": _estimate(shape.hours),
        "cost": {
            "low": _usd(shape.cost_low),
            "mid": _usd(shape.cost),
            "high": _usd(shape.cost_high),
        },
        "efficiency": _estimate(shape.efficiency),
        "break_even_efficiency": _short(shape.break_even),
        "remark": shape.remark,
    }


def _baseline(job: JobPlan, plan: Plan) -> _Json:
    baseline = job.baseline
    bill = baseline.quote
    return {
        "assumed": baseline.assumed,
        "breaks": [{"reason": r.reason, "detail": r.detail} for r in baseline.broken],
        "offer": _offer(baseline.offer, plan) if baseline.offer else None,
        "count": baseline.count,
        "replicas": baseline.replicas,
        "share": _share(baseline.tenancy) if baseline.tenancy else None,
        "hours": _estimate(baseline.hours),
        "cost": {
            "total": _usd(baseline.cost),
            "lines": [_line(line) for line in bill.lines] if bill else [],
            "at_least": bill is not None and bill.at_least,
            "unknown": list(bill.unknown) if bill else [],
        },
        "cost_per_work": _cost_per_work(baseline.cost, job),
        "energy": _energy(energy_today(job.profile, baseline.hours, plan.site, baseline.replicas)),
        "power_cap": _power_cap(job.profile),
        "machine": machine_json(job.machine),
    }


def _share(tenancy: Tenancy) -> _Json:
    return {"held": tenancy.held, "of": tenancy.of, "beside": list(tenancy.beside)}


def _power_cap(profile: Profile) -> _Json | None:
    """Return the power limit that takes least energy at little loss; None where none saves."""
    power_w, gpu = profile.mean("power.board_w"), find(profile.hardware.gpu)
    limit_w = profile.mean("power.limit_w") or (gpu.tdp_w if gpu else None)
    cap = best_cap(power_w, limit_w) if power_w and limit_w else None
    if cap is None:
        return None
    return {
        "cap_w": _short(cap.cap_w),
        "slowdown": _estimate(cap.slowdown),
        "energy_fraction": _estimate(cap.energy),
    }


def finding_json(finding: Finding) -> _Json:
    """Return a finding as plan.json and the diagnosis carry it."""
    return {
        "code": finding.code,
        "severity": finding.severity,
        "confidence": finding.confidence,
        "cause": finding.cause,
        "evidence": _evidence(finding.evidence),
        "against": _evidence(finding.against),
        "actions": list(finding.actions),
        "waste_fraction": finding.waste_fraction,
        "waste_usd": _usd(finding.waste_usd),
    }


def remedies_json(signals: Signals, machine: MachineSettings) -> list[_Json]:
    """Return the actions on the job itself that apply to it, with what they would set and gain."""
    fitted = (action(code, signals) for code in machine.values)
    return [
        {
            "code": one.code,
            "class": one.kind,
            "acts_on": one.part,
            "effect": _range(one.gain),
            "rests_on": one.grade,
            "settings": dict(machine.values[one.code]),
        }
        for one in fitted
    ]


def _range(gain: Range | None) -> _Json | None:
    if gain is None:
        return None
    return dict(zip(("low", "mid", "high"), (round(speed, 3) for speed in gain), strict=True))


def machine_json(machine: MachineSettings) -> _Json:
    """Return what is set on each machine, as plan.json and recipes carry it."""
    return {
        "environment": dict(machine.environment),
        "launcher": machine.launcher,
        "checkpoint_every_s": _short(machine.checkpoint_every_s),
    }


def _evidence(readings: Iterable[Evidence]) -> list[_Json]:
    return [
        {"metric": e.metric, "value": e.value, "test": e.test, "name": SIGNALS[e.metric][1]}
        for e in readings
    ]


def _option(option: Option, job: JobPlan, plan: Plan) -> _Json:
    today = job.baseline.cost
    saves = today - option.cost if today is not None else None
    return {
        "id": option.id,
        "offer": _offer(option.offer, plan),
        "count": option.count,
        "provisionable": option.provisionable,
        "actions": list(option.actions),
        "settings": {code: dict(values) for code, values in option.machine.values.items()},
        "machine": machine_json(option.machine),
        "sharing": None,
        "distribution": _distribution(option.distribution) if option.distribution else None,
        "speed": _estimate(option.speed),
        "hours": _estimate(option.hours),
        "cost": {
            "low": _usd(option.cost_low),
            "mid": _usd(option.cost),
            "high": _usd(option.cost_high),
            "lines": [_line(line) for line in option.quote.lines],
            "at_least": option.quote.at_least,
            "unknown": list(option.quote.unknown),
        },
        "cost_per_work": _cost_per_work(option.cost, job),
        "energy": _energy(_energy_of(option, job, plan)),
        "saves": {
            "usd": _usd(saves),
            "fraction": round(float(saves / today), 4) if saves is not None and today else None,
        },
        "move": _move(option.move) if option.move else None,
        "benefit": benefit_json(option.benefit),
        "why": option.why,
    }


def _distribution(one: Distribution) -> _Json:
    return {
        "mode": one.mode,
        "why": one.why,
        "failures": _short(one.failures),
        "max_restarts": one.max_restarts,
        "nnodes": one.nnodes,
        "checkpoint_every_s": _short(one.checkpoint_every_s),
    }


def _cost_per_work(cost: Decimal | None, job: JobPlan) -> _Json | None:
    units = job.work.units
    unit = job.profile.work.unit if job.profile.work else None
    if not units or units < _LEAST_UNITS or unit is None or cost is None:
        return None
    size, prefix = next((s, p) for s, p in _LARGE_UNITS if units >= s or s == 1)
    per = cost * size / Decimal(str(units))
    return {"unit": f"{prefix}{unit}", "mid": _fine(per)}


def _energy_of(option: Option, job: JobPlan, plan: Plan) -> Energy:
    """Return the energy of an option: all its GPUs work, on today's machine as many as today."""
    offer, today = option.offer, job.baseline.offer
    gpus = round(offer.gpu_count) * option.count if offer.gpu_count >= 1 else None
    if today is not None and today.name == offer.name:
        gpus = job.profile.gpu_count * job.baseline.replicas
    hours = job.baseline.hours.mid
    return energy_of(job.profile, option, gpus=gpus, today_h=hours, site=plan.site)


def _energy(energy: Energy) -> _Json:
    return {
        "kwh": _estimate(energy.kwh) if energy.kwh else None,
        "kgco2e": _estimate(energy.kgco2e) if energy.kgco2e else None,
    }


def _fine(amount: Decimal) -> str:
    """Return cents, or four significant digits of what is less than a dollar."""
    return str(cents(amount)) if amount >= 1 else plain(Decimal(f"{amount:.4g}"))


def _move(move: Move) -> _Json:
    return {
        "once_usd": _usd(move.once_usd),
        "hours": _short(move.hours),
        "pays_back_days": _short(move.pays_back_days),
    }


def _fleet(fleet: Fleet) -> _Json:
    saves = fleet.cost_before - fleet.cost_after
    fraction = float(saves / fleet.cost_before) if fleet.cost_before else 0.0
    return {
        "gpus_before": fleet.gpus_before,
        "gpus_after": fleet.gpus_after,
        "gpus_lower_bound": fleet.gpus_lower_bound,
        "cost_before": _usd(fleet.cost_before),
        "cost_after": _usd(fleet.cost_after),
        "saves": {"usd": _usd(saves), "fraction": round(fraction, 4)},
        "placements": [_placement(placement) for placement in fleet.placements],
        "unmoved": [{"job": u.job, "reason": u.reason, "detail": u.detail} for u in fleet.unmoved],
        "alternatives": [],
    }


def _placement(placement: Placement) -> _Json:
    return {
        "id": placement.id,
        "offer": offer_json(placement.offer),
        "gpu": placement.gpu,
        "mode": placement.mode,
        "slice": None,
        "jobs": list(placement.jobs),
        "hours": _short(placement.hours),
        "cost": _usd(placement.cost),
        "lines": [_line(line) for line in placement.lines],
        "relative_speed": {name: _estimate(placement.speed[name]) for name in placement.jobs},
    }


def _estimate(estimate: Estimate) -> _Json:
    return {
        "low": _short(estimate.low),
        "mid": _short(estimate.mid),
        "high": _short(estimate.high),
        "basis": estimate.basis,
    }


def _line(line: QuoteLine) -> _Json:
    return {
        "what": line.what,
        "usd": plain(line.usd),
        "how": line.how,
        "rule": line.rule,
        "source": line.source,
        "as_of": line.as_of,
        "parts": [
            {"quantity": plain(p.quantity), "unit": p.unit, "unit_usd": plain(p.unit_usd)}
            for p in line.parts
        ],
    }


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else str(cents(amount))


def _short(value: float | None) -> float | int | None:
    """Return six significant digits, whole numbers without a point."""
    if value is None:
        return None
    rounded = float(f"{value:.6g}")
    return int(rounded) if rounded == int(rounded) else rounded
