"""Jobs of real people, from public threads: the plan says what an expert would have answered.

Each case of public_jobs.json holds the figures of its thread (machines and hours are ours where it
names none), where and when it was written, and the answer, which was judged before the product saw
it. written_jobs.json holds jobs that were made up, with the answer, likewise, before the plan saw
them. `python -m tests.outside.test_public_jobs` prints what the plan says of each.
"""

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.outside.test_advice_cases import Ran, named, plan_of

CASES: list[dict[str, Any]] = [
    case
    for name in ("public_jobs.json", "written_jobs.json")
    for case in json.loads(Path(__file__).with_name(name).read_text("utf-8"))
]
PRICE = {"sbert-4x4090": "--price 2.96"}


def profile(case: Mapping[str, Any]) -> dict[str, Any]:
    """The profile.json of a case: one reading a slot, the same on every GPU but the first."""
    job = dict(case["profile"])
    first = {slot: _statistics(value) for slot, value in job.pop("gpu").items()}
    others = {slot: _statistics(value) for slot, value in job.pop("other_gpus", {}).items()}
    count = job["hardware"]["gpu_count"]
    metrics = [first, *[others or first] * (count - 1)]
    job["host"] = {slot: _statistics(value) for slot, value in job.get("host", {}).items()}
    window = {"start": "2026-11-20T00:00:00Z", "duration_s": 86400, "interval_s": 1.0,
              "coverage": 1.0}  # fmt: skip
    gpus = [{"index": i, "metrics": slots} for i, slots in enumerate(metrics)]
    return {"schema": "gpucost.profile/v1", "window": window, **job, "gpus": gpus}


def _statistics(value: float | dict[str, float]) -> dict[str, float]:
    return value if isinstance(value, dict) else {"mean": value, "p95": value, "max": value}


def agrees(wants: Mapping[str, Any], ran: Ran) -> Iterator[tuple[str, bool]]:
    """Yield each condition of the expert's answer, and whether the plan keeps it."""
    option, first, codes = ran.option, ran.first["code"], named(ran.job)
    cures = set(wants.get("names", ()))
    holds = {
        "first": lambda codes_: first in codes_,
        "not_first": lambda codes_: first not in codes_,
        "names": lambda _: bool(cures & codes),
        "names_or_faster": lambda wanted: (
            bool(set(wanted) & codes) or (option is not None and option["speed"]["mid"] >= 1.25)
        ),
        "never": lambda codes_: not set(codes_) & codes,
        "cured": lambda _: option is None or bool(cures & set(option["actions"])),
        "share_most": lambda most: ran.share <= most,
        "offers_for": lambda most: any(
            float(o["cost"]["mid"]) <= most * float(ran.job["baseline"]["cost"]["total"])
            and o["offer"]["gpu"].startswith(tuple(wants["gpus"]))
            for o in ran.job["options"]
        ),
        "stays": lambda _: option is None,
        "gpus": lambda models: option is None or option["offer"]["gpu"].startswith(tuple(models)),
        "not_types": lambda types: option is None or option["offer"]["instance_type"] not in types,
        "gib_least": lambda gib: ran.gib >= gib,
        "gib_least_or_cured": lambda gib: ran.gib >= gib or bool(cures & codes),
        "text": lambda words: any(word in ran.text for word in words),
        "not_text": lambda words: not any(word in ran.text for word in words),
    }
    for key, wanted in wants.items():
        yield key, bool(holds[key](wanted))


def ran_case(case: Mapping[str, Any], folder: Path) -> Ran:
    """What `gpucost plan` says of a case."""
    job = profile(case)
    path = folder / "profile.json"
    path.write_text(json.dumps(job), "utf-8")
    options = case.get("options", PRICE.get(job["job"]["name"], ""))
    return plan_of(path, options, folder / "plan.json")


@pytest.mark.parametrize("case", CASES, ids=[case["profile"]["job"]["name"] for case in CASES])
def test_the_plan_says_what_an_expert_would(tmp_path: Path, case: Mapping[str, Any]) -> None:
    """Every condition of the answer is kept."""
    ran = ran_case(case, tmp_path)
    assert ran.code == 0, ran.text
    assert [key for key, kept in agrees(case["wants"], ran) if not kept] == [], ran.text


def _print(folder: Path) -> None:
    for case in CASES:
        ran, name = ran_case(case, folder), case["profile"]["job"]["name"]
        broken = ["exit"] if ran.code else [k for k, kept in agrees(case["wants"], ran) if not kept]
        sys.stdout.write(f"{name}: {', '.join(broken) or 'right'}\n    {ran.text}\n")


if __name__ == "__main__":
    _print(Path(sys.argv[1]))
