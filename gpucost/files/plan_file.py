"""Reads plan.json and finds an option in it."""

import json
from pathlib import Path
from typing import Any

from planner.plan.plan import SCHEMA
from pricing.errors import InputError

DEFAULT_PLAN = "plan.json"
_Json = dict[str, Any]

_TEXT = (str,)
_MONEY = (str, type(None))
_NUMBER = (int, float)
_OFFER: _Json = {
    "provider": _TEXT,
    "instance_type": _TEXT,
    "region": _TEXT,
    "gpu": _TEXT,
    "as_of": _TEXT,
}
_OFFER |= {"purchase": _TEXT, "usd_per_hour": _TEXT, "source": _TEXT, "gpu_count": _NUMBER}
_HOURS = {"low": _NUMBER, "mid": _NUMBER, "high": _NUMBER, "basis": _TEXT}
_LINE = {"what": _TEXT, "usd": _TEXT, "how": _TEXT, "rule": _TEXT, "as_of": _TEXT}
_REASON = {"reason": _TEXT, "detail": _TEXT}
_BENEFIT = {
    "net_usd": _MONEY,
    "periods": _TEXT,
    "saves_usd": _MONEY,
    "effort_hours": _NUMBER,
    "effort_usd": _TEXT,
    "moving_usd": _MONEY,
}
_SURE = {"level": ("good", "fair", "low"), "why": _TEXT}
# What a reader of a plan relies on: types, words, a record, or a list of records.
_SHAPE: _Json = {
    "as_of": _TEXT,
    "currency": _TEXT,
    "objective": _TEXT,
    "period": ("month", "run"),
    "catalog": {"offers": _NUMBER, "newest": _TEXT, "oldest": _TEXT},
    "jobs": [
        {
            "name": _TEXT,
            "baseline": {
                "assumed": (bool,),
                "count": _NUMBER,
                "hours": _HOURS,
                "cost": {"total": _MONEY, "lines": [_LINE]},
                "breaks": [_REASON],
            },
            "findings": [
                {
                    "code": _TEXT,
                    "severity": _TEXT,
                    "confidence": ("measured", "likely", "possible"),
                    "cause": _TEXT,
                    "evidence": [{"metric": _TEXT, "test": _TEXT, "name": _TEXT}],
                    "actions": [_TEXT],
                    "waste_usd": _MONEY,
                }
            ],
            "remedies?": [
                {
                    "code": _TEXT,
                    "class": _TEXT,
                    "acts_on": (str, type(None)),
                    "effect": (dict, type(None)),
                    "settings": {},
                }
            ],
            "options": [
                {
                    "id": _TEXT,
                    "offer": _OFFER,
                    "count": _NUMBER,
                    "actions": [_TEXT],
                    "settings?": {},
                    "hours": _HOURS,
                    "cost": {"low": _TEXT, "mid": _TEXT, "high": _TEXT, "lines": [_LINE]},
                    "saves": {"usd": _MONEY},
                    "benefit?": _BENEFIT,
                    "why": _TEXT,
                }
            ],
            "rejected": [{"offer": _TEXT, **_REASON}],
            "recommended": _TEXT,
            "smallest_change?": _TEXT,
            "cheapest?": _TEXT,
            "first_launchable?": _MONEY,
            "confidence?": {"level": _TEXT, "diagnosis": _SURE, "price": _SURE},
            "first_step?": (dict, type(None)),
        }
    ],
    "actions": {},
    "recommended?": {
        "cost_before": _TEXT,
        "cost": {"low": _TEXT, "mid": _TEXT, "high": _TEXT},
        "saves": {"usd": _TEXT, "fraction": _NUMBER},
        "packed": [_TEXT],
        "unknown": [_TEXT],
    },
    "roi": {"saves_usd": _TEXT, "effort_hours": _NUMBER},
    "assumptions": [_TEXT],
    "warnings": [_TEXT],
}
_SHOWN = 10


def load_plan(path: str) -> _Json:
    """Return the document of a plan file.

    Raises:
        InputError: it is missing (the commands that make one are named), no JSON, or no plan.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(
            f"{path}: no such file. `gpucost import TELEMETRY` writes profile.json, then "
            "`gpucost plan -o plan.json` writes a plan."
        ) from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error
    try:
        plan = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}); write it again.") from error
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        raise InputError(f"{path}: is no plan ({SCHEMA}); `gpucost plan -o plan.json` writes one.")
    problems = _misfits(plan, _SHAPE, "")
    if problems:
        raise InputError(
            f"{path}: {problem}; write the plan again with `gpucost plan -o plan.json`."
            for problem in problems[:_SHOWN]
        )
    return plan


def _misfits(value: Any, shape: Any, where: str) -> list[str]:  # noqa: ANN401 - walks JSON
    """Return where a document departs from a shape."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return [f"{where or 'it'} is no object"]
        return [
            problem
            for key, inner in shape.items()
            for problem in _misfits_of_key(value, key, inner, where)
        ]
    if isinstance(shape, list):
        if not isinstance(value, list):
            return [f"{where} is no list"]
        return [
            p for i, item in enumerate(value) for p in _misfits(item, shape[0], f"{where}[{i}]")
        ]
    if all(isinstance(choice, str) for choice in shape):
        return [] if value in shape else [f"{where} is none of {', '.join(shape)}"]
    return [] if isinstance(value, shape) else [f"{where} is of the wrong type"]


def _misfits_of_key(value: _Json, key: str, shape: Any, where: str) -> list[str]:  # noqa: ANN401
    """Return the misfits of one key; a name that ends in `?` may be missing."""
    name = key.removesuffix("?")
    if name in value:
        return _misfits(value[name], shape, f"{where}.{name}".lstrip("."))
    return [] if key != name else [f"{where}.{name} is missing".lstrip(".")]


def find_option(plan: _Json, name: str) -> _Json:
    """Return the option called JOB/ID; the job may be left out where there is only one.

    Raises:
        InputError: there is none of that name; the known ones are listed.
    """
    job_name, _, option_id = name.rpartition("/")
    jobs = [job for job in plan["jobs"] if job["name"] == job_name or not job_name]
    found = [option for job in jobs for option in job["options"] if option["id"] == option_id]
    if len(found) == 1 and len(jobs) == 1:
        option: _Json = found[0]
        return option
    known = [f"{job['name']}/{option['id']}" for job in plan["jobs"] for option in job["options"]]
    raise InputError(f"{name!r} is no option of this plan; known: {', '.join(known) or 'none'}.")
