"""Reads plan.json and finds an option in it."""

import json
from pathlib import Path
from typing import Any

from planner.plan import SCHEMA
from pricing.errors import InputError

DEFAULT_PLAN = "plan.json"
_Json = dict[str, Any]


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
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error
    try:
        plan = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        raise InputError(f"{path}: not valid JSON ({error}); write it again.") from error
    if not isinstance(plan, dict) or plan.get("schema") != SCHEMA:
        raise InputError(f"{path}: is no plan ({SCHEMA}); `gpucost plan -o plan.json` writes one.")
    return plan


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
