"""`gpucost diff` and `gpucost fleet` say what changed between two plans."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.documents.plan_change import plan_change
from planner.plan.read import read_plan
from pricing.errors import InputError
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, inference, training

CAUSES = ("price_usd", "usage_usd", "machine_usd", "new_jobs_usd", "gone_jobs_usd")


@pytest.fixture
def old(call: Call, write: Write) -> dict[str, Any]:
    """Return the plan of three jobs, kept in old.json."""
    names = [
        write(f"{n}.json", one)
        for n, one in enumerate((training(), inference("a"), inference("b")))
    ]
    ran = call(
        "plan", *map(str, names), "--as-of", AS_OF, "-o", "old.json", "-q", "--no-consolidate"
    )
    assert ran.code == 0, ran.err
    found: dict[str, Any] = json.loads(Path("old.json").read_text())
    return found


def _moved(old: dict[str, Any], new: dict[str, Any], call: Call, write: Write) -> dict[str, Any]:
    write("new.json", new)
    ran = call("diff", "old.json", "new.json", "-f", "json")
    assert ran.code == 0, ran.err
    found: dict[str, Any] = ran.json
    totals = {name: Decimal(usd) for name, usd in found["totals"].items()}
    assert totals["after"] == totals["before"] + sum(totals[name] for name in CAUSES)
    assert found["earlier"] == old["as_of"]
    return found


def test_nothing_changed(old: dict[str, Any], call: Call, write: Write) -> None:
    """Two equal plans have no cause and no job that moved."""
    found = _moved(old, old, call, write)
    assert {found["totals"][name] for name in CAUSES} <= {"0", "0.00"}
    assert found["waste"] == []
    assert "unchanged" in call("diff", "old.json", "new.json").out


def test_a_price_move_stands_apart_from_use(old: dict[str, Any], call: Call, write: Write) -> None:
    """The same machine at twice its price: the compute line is the price's part, to the cent."""
    base = old["jobs"][0]["baseline"]
    compute = sum(
        Decimal(line["usd"]) for line in base["cost"]["lines"] if line["what"] == "compute"
    )
    dearer = changed(
        old,
        ("jobs", 0, "baseline", "offer", "usd_per_hour"),
        str(2 * Decimal(base["offer"]["usd_per_hour"])),
    )
    after = Decimal(base["cost"]["total"]) + compute + 5  # and five dollars of more use
    found = _moved(
        old, changed(dearer, ("jobs", 0, "baseline", "cost", "total"), f"{after:.2f}"), call, write
    )
    (job,) = (one for one in found["jobs"] if one["before"] != one["after"])
    assert Decimal(job["price_usd"]) == round(compute, 2)
    assert abs(Decimal(job["usage_usd"]) - 5) < Decimal("0.02")


def test_jobs_and_waste_come_and_go(old: dict[str, Any], call: Call, write: Write) -> None:
    """A job that is gone takes bill and findings along; another machine is a cause of its own."""
    new = changed(old, ("jobs", 0, "baseline", "offer", "instance_type"), "g4dn.2xlarge")
    new = changed(new, ("jobs", 0, "baseline", "cost", "total"), "1.00")
    new["jobs"][1]["name"] = "c"
    gone, came = old["jobs"][1]["name"], "c"
    found = _moved(old, new, call, write)
    what = {job["job"]: job["what"] for job in found["jobs"]}
    assert (what[gone], what[came]) == ("gone", "new")
    assert Decimal(found["totals"]["machine_usd"]) < 0
    assert {one["job"] for one in found["waste"] if one["what"] == "new"} <= {came}
    text = " ".join(call("diff", "old.json", "new.json").out.split())
    assert "other machines -$" in text
    assert text.rstrip().endswith(".")


def test_weekly_takes_the_plan_of_a_week_ago(
    old: dict[str, Any], call: Call, tmp_path: Path
) -> None:
    """The newest plan is held against the latest that is a week older; other files are left."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "notes.json").write_text("[]")
    for day in ("2026-11-01", "2026-11-08", "2026-11-20", "2026-11-22"):
        (tmp_path / "kept" / f"{day}.json").write_text(json.dumps({**old, "as_of": day}))
    ran = call("fleet", str(tmp_path / "kept"), "--weekly")
    assert ran.code == 0, ran.err
    assert "2026-11-22.json against 2026-11-08.json" in ran.err
    assert "leave it" in call("fleet", "old.json").out or " o" in call("fleet", "old.json").out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fleet", "nowhere", "--weekly"), "no such folder"),
        (("fleet", ".", "--weekly"), "no plan is a week older"),
        (("diff", "."), "no plan is a week older"),
        (("diff", "old.json", "nothing.json"), "no such file"),
    ],
)
def test_what_cannot_be_compared_is_said(
    arguments: tuple[str, ...], said: str, old: dict[str, Any], call: Call
) -> None:
    """Exit 2 and a sentence."""
    assert old
    ran = call(*arguments)
    assert ran.code == 2
    assert said in ran.err


def test_a_month_is_not_a_run(old: dict[str, Any]) -> None:
    """Plans per month and per run are refused."""
    month = read_plan(json.dumps(old), "old.json")
    run = read_plan(json.dumps({**old, "period": "run"}), "new.json")
    with pytest.raises(InputError, match="cannot be compared"):
        plan_change(month, run)


def test_two_logs_of_one_job_are_held_against_each_other(call: Call, write: Write) -> None:
    """By hand: 30 % busy, then 60 %, the same machine: the bill stays, an hour of work halves."""
    rows = ["timestamp, name, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]"]
    for name, busy in (("before", 30), ("after", 60)):
        log = [
            f"2026/11/20 10:{n // 60:02d}:{n % 60:02d}.000, NVIDIA A100-SXM4-80GB, 0, {busy} %, "
            "20000 MiB, 81920 MiB"
            for n in range(300)
        ]
        path = write(f"{name}.csv", "\n".join(rows + log))
        ran = call("plan", path, "--as-of", AS_OF, "-o", f"{name}.json", "-q")
        assert ran.code == 0, ran.err
    change = call("diff", "before.json", "after.json", "-f", "json").json
    (job,) = change["jobs"]
    assert (job["what"], job["before"]) == ("stays", job["after"])
    assert (job["busy_before"], job["busy_after"]) == (0.3, 0.6)
    screen = " ".join(call("diff", "before.json", "after.json").out.split())
    assert "busy 60% of the time (before: 30%): an hour of their work costs -50%" in screen


def test_hours_and_the_price_of_an_hour_are_told_apart(call: Call, write: Write) -> None:
    """By hand: 100 h at $10, then 120 h at $9.50: $1,000 -> $1,140, +20 % and -5 %.

    $50 less is the price's at the hours of before, the other $190 are use.
    """
    for name, hours, price in (("before", 100, "10"), ("after", 120, "9.50")):
        document = changed(training(), ("usage",), {"hours_per_month": hours})
        path = write(f"{name}-job.json", document)
        options = ("--price", price, "--machine-only", "--as-of", AS_OF)
        ran = call("plan", str(path), *options, "-o", f"{name}.json", "-q")
        assert ran.code == 0, ran.err
    change = call("diff", "before.json", "after.json", "-f", "json").json
    assert (change["hours_ratio"], change["hour_price_ratio"]) == (1.2, 0.95)
    screen = " ".join(call("diff", "before.json", "after.json").out.split())
    assert "$1,000.00 -> $1,140.00 a month (+$140.00; hours +20%, price of an hour -5%)" in screen
    assert "(same usage) -$50.00, usage changes (same prices) +$190.00." in screen
