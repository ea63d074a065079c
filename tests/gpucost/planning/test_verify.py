"""`gpucost verify`: two runs, the plan that proposed the change, and the invoice."""

import json
import shutil
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from planner.proof.speed import StepRow
from tests.conftest import ROOT
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, changed, training
from tests.planner.proof.runs import series, with_losses

BILLS = ROOT / "tests" / "fixtures" / "bills"
STEP = {"count": 4000, "counted_by": "optimizer", "mean_s": 0.256, "p50_s": 0.25, "p95_s": 0.28}


def _lines(rows: tuple[StepRow, ...]) -> str:
    values = (
        {"step": r.step, "n": r.n, "step_s": r.step_s}
        | ({} if r.loss is None else {"loss": r.loss})
        for r in rows
    )
    return "".join(f"{json.dumps(value)}\n" for value in values)


@pytest.fixture
def job(write: Write) -> Any:
    """Writes a run that is so many times as fast as the first, with its steps beside it."""

    def write_run(name: str, times: float, *, losses: float | None = None, **changes: Any) -> str:
        document = training()
        document["step"] = STEP | {
            key: STEP[key] / times  # type: ignore[operator] # numbers
            for key in ("mean_s", "p50_s", "p95_s")
        }
        document["work"] = {"unit": "image", "rate_per_s": 250.0 * times}
        document["series"] = {"steps": f"{name}.steps.jsonl"}
        for path, value in changes.items():
            document = changed(document, tuple(path.split("__")), value)
        rows = series(0.256 / times, seed=len(name))
        write(f"{name}.steps.jsonl", _lines(rows if losses is None else with_losses(rows, losses)))
        return write(f"{name}.json", document)

    return write_run


def test_a_faster_run_is_proved(job: Any, call: Call) -> None:
    """Twice as fast: proved, with an interval that excludes 1, and half of the bill saved."""
    ran = call("verify", job("a", 1.0), job("bb", 2.0), "--as-of", AS_OF, "-f", "json")
    assert ran.code == 0, ran.err
    found = ran.json
    assert (found["schema"], found["verdict"]) == ("gpucost.verification/v1", "proved")
    assert 1.0 < found["speedup"]["low"] <= found["speedup"]["mid"] <= found["speedup"]["high"]
    assert found["speedup"]["mid"] == pytest.approx(2.0, rel=0.05)
    assert found["predicted"] is None
    saves = found["saves"]
    assert Decimal(saves["usd_before"]) == Decimal("395.63")  # 730 h x 0.531 USD/h + boot disk
    assert Decimal(saves["low"]) < Decimal(saves["usd"]) < Decimal(saves["high"])
    assert saves["fraction"] == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("times", "verdict"), [(1.0, "not-proved"), (0.5, "worse")])
def test_no_gain_and_a_loss_are_said(times: float, verdict: str, job: Any, call: Call) -> None:
    """An equal run proves nothing, a slower one is worse; both are answers: exit 0."""
    ran = call("verify", job("a", 1.0), job("bb", times), "--as-of", AS_OF, "-f", "json")
    assert (ran.code, ran.json["verdict"]) == (0, verdict)


def test_two_jobs_are_refused(job: Any, call: Call) -> None:
    """Another framework and another batch: exit 2, both said, nothing printed."""
    one = job("a", 1.0, job__framework="pytorch")
    other = job("bb", 2.0, job__framework="jax", job__batch_per_gpu=128)
    ran = call("verify", one, other, "-q")
    assert (ran.code, ran.out) == (2, "")
    assert "framework: pytorch before, jax after" in ran.err
    assert "batch: 64 before, 128 after" in ran.err
    agreed = call("verify", one, other, "--changed", "framework", "--changed", "batch")
    assert agreed.code == 0, agreed.err
    assert "differs: batch: 64 before, 128 after" in agreed.err


def test_a_changed_loss_curve_does_not_prove(job: Any, call: Call) -> None:
    """Twice as fast with another loss is not proved, and the loss is the reason."""
    runs = (job("a", 1.0, losses=1.0), job("bb", 2.0, losses=1.1))
    found = call("verify", *runs, "--as-of", AS_OF, "-f", "json").json
    assert (found["verdict"], found["losses"]["alike"]) == ("not-proved", "changed")
    assert "no longer learns the same" in found["why"]
    same = (job("a", 1.0, losses=1.0), job("bb", 2.0, losses=1.0))
    found = call("verify", *same, "--as-of", AS_OF, "-f", "json").json
    assert (found["verdict"], found["losses"]["alike"]) == ("proved", "identical")


@pytest.fixture
def plan(job: Any, call: Call) -> str:
    """A plan of the first run."""
    assert call("plan", job("a", 1.0), "--as-of", AS_OF, "-q", "-o", "plan.json").code == 0
    return "plan.json"


def test_the_option_on_the_same_machine_was_predicted(plan: str, job: Any, call: Call) -> None:
    """The plan's option on today's size is compared; whether its interval held follows from it."""
    for times in (2.0, 9.0):
        ran = call("verify", "a.json", job("bb", times), "--plan", plan, "-f", "json")
        said = ran.json["predicted"]
        assert said["option"].startswith("train/o")
        assert "dataloader-workers" in said["actions"]
        ends = said["speedup"]
        inside = ends["low"] <= ran.json["speedup"]["mid"] <= ends["high"]
        assert said["held"] is inside is (times == 2.0)


def test_what_was_applied_chooses_the_option(plan: str, job: Any, call: Call) -> None:
    """What `run` applied and left is in the report, and what was left of the option is said."""
    after = job(
        "bb",
        2.0,
        changes=[
            {"action": "dataloader-workers", "outcome": "applied", "what": "num_workers=4"},
            {"action": "gpu-preprocessing", "outcome": "left", "what": "no way to do it"},
        ],
    )
    found = call("verify", "a.json", after, "--plan", plan, "-f", "json").json
    assert "dataloader-workers" in found["predicted"]["actions"]
    assert any("gpu-preprocessing" in note for note in found["notes"])
    report = call("verify", "a.json", after, "--plan", plan, "-f", "md").out
    assert "applied dataloader-workers: num_workers=4" in report


def test_a_named_option_must_fit(plan: str, job: Any, call: Call) -> None:
    """An option on another GPU than the run's is refused; an unknown one lists what there is."""
    document = json.loads(Path(plan).read_text(encoding="utf-8"))
    other = next(o for o in document["jobs"][0]["options"] if o["offer"]["gpu"] != "T4")
    after = job("bb", 2.0)
    ran = call("verify", "a.json", after, "--plan", plan, "--option", f"train/{other['id']}")
    assert ran.code == 2
    assert other["offer"]["gpu"] in ran.err
    assert call("verify", "a.json", after, "--plan", plan, "--option", "o999").code == 2
    alone = call("verify", "a.json", after, "--option", "o1")
    assert (alone.code, "--plan" in alone.err) == (2, True)


def test_the_invoice_stands_beside(plan: str, job: Any, call: Call, empty_folder: Any) -> None:
    """730 h of g4dn.xlarge on the bill, 383.98 USD, against half of that by measurement."""
    shutil.copytree(BILLS, empty_folder, dirs_exist_ok=True)
    after = job("bb", 2.0)
    options = ("--plan", plan, "--bill", "aws_cur_2.csv")
    found = call("verify", "a.json", after, *options, "-f", "json").json["bill"]
    assert found["billed_usd"] == "383.98"
    billed, measured = Decimal(found["billed_usd"]), Decimal(found["measured_usd"])
    assert Decimal(185) < measured < Decimal(200)
    assert Decimal(found["difference_usd"]) == billed - measured


def test_a_move_is_proved_in_dollars(job: Any, call: Call) -> None:
    """Twice as fast at more than twice the price an hour is worse: the verdict is on dollars."""
    after = job(
        "bb",
        2.0,
        hardware__gpu="H100 SXM 80GB",
        hardware__provider="digitalocean",
        hardware__instance_type="gpu-h100x1-80gb",
        hardware__region=None,
    )
    ran = call("verify", job("a", 1.0), after, "--as-of", AS_OF, "-f", "json")
    assert (ran.json["verdict"], ran.json["about"]) == ("worse", "dollars")
    assert ran.json["speedup"]["low"] > 1.0


def test_without_a_price_the_speed_is_proved(job: Any, call: Call) -> None:
    """A run on no known GPU has no dollars; the verdict is on the speed, and the reason is said."""
    places = dict.fromkeys(
        ("hardware__gpu", "hardware__provider", "hardware__instance_type", "hardware__region")
    )
    ran = call("verify", job("a", 1.0, **places), job("bb", 2.0, **places), "-f", "json")
    assert (ran.json["verdict"], ran.json["about"], ran.json["saves"]) == ("proved", "speed", None)
    assert any("dollars are not known" in note for note in ran.json["notes"])


@pytest.mark.parametrize("format_", ["table", "md", "csv"])
def test_what_is_printed(format_: str, plan: str, job: Any, call: Call) -> None:
    """Every format has measured and predicted speed and the dollars; a report can be attached."""
    after = job("bb", 2.0)
    ran = call(
        "verify",
        "a.json",
        after,
        "--plan",
        plan,
        "-f",
        format_,
        "--report",
        "proof.md",
        "-o",
        "v.json",
    )
    assert ran.code == 0, ran.err
    assert "predicted" in ran.out
    assert "395.63" in ran.out
    report = Path("proof.md").read_text(encoding="utf-8")
    assert report.startswith("# train: proved")
    assert "\n\n|---" not in report
    if format_ == "md":
        assert ran.out == report


@pytest.mark.parametrize(
    ("whole", "own", "verdict"),
    [(1.0, 0.3, "not-proved"), (1.0, 0.96, "proved"), (0.5, 0.1, "proved")],
)
def test_others_work_proves_nothing(
    whole: float, own: float, verdict: str, job: Any, call: Call
) -> None:
    """A machine that others fill hides what made the difference; the job's own work does not."""
    busy = {
        "host": {"cpu_util": {"mean": own}},
        "machine": {"cpu_cores": 4, "cpu_util": {"mean": whole}},
    }
    runs = (job("a", 1.0, **busy), job("bb", 2.0))
    found = call("verify", *runs, "--as-of", AS_OF, "-f", "json").json
    assert found["verdict"] == verdict
    assert ("others worked on the machine" in found["why"]) is (verdict == "not-proved")


def test_an_experiment_within_one_run_holds_among_others(job: Any, call: Call) -> None:
    """Which setting met the others' work was drawn: it proves, and the dollars follow from it."""
    busy = {
        "host": {"cpu_util": {"mean": 0.3}},
        "machine": {"cpu_cores": 4, "cpu_util": {"mean": 1.0}},
    }
    made = {"actions": ["compile"], "ended": "planned", "low": 1.9, "mid": 2.0, "high": 2.1}
    runs = (job("a", 1.0, **busy), job("bb", 1.4, experiment=made))
    found = call("verify", *runs, "--as-of", AS_OF, "-f", "json").json
    assert found["verdict"] == "proved"
    assert found["speedup"]["mid"] == 2.0
    assert float(found["saves"]["usd_after"]) == pytest.approx(
        float(found["saves"]["usd_before"]) / 2.0, rel=0.01
    )


def test_several_jobs_need_a_name(job: Any, call: Call, write: Write) -> None:
    """A file of two jobs is refused until one is named."""
    write("two.json", [training("train"), training("other")])
    refused = call("verify", "two.json", job("bb", 2.0))
    assert (refused.code, "--job NAME" in refused.err) == (2, True)
    assert call("verify", "two.json", "bb.json", "--job", "train").code == 0


@pytest.mark.parametrize("format_", ["table", "json", "md", "csv"])
def test_too_few_steps_are_unknown(
    format_: str, plan: str, job: Any, call: Call, write: Write
) -> None:
    """An interval wider than ten times either way is no figure: unknown, not proved, not kept."""
    job("bb", 1.0)
    for name in ("a", "bb"):
        document = json.loads(Path(f"{name}.json").read_text(encoding="utf-8"))
        document["step"]["count"] = 12
        write(f"{name}.json", document)
        rows = [
            {"step": 1 + at, "n": 1, "step_s": 40.0 if at % 5 == 0 else 0.02} for at in range(16)
        ]
        write(f"{name}.steps.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows))
    ran = call("verify", "a.json", "bb.json", "--plan", plan, "-f", format_)
    assert ran.code == 0, ran.err
    assert "unknown" in ran.out
    assert "outcomes.jsonl" not in ran.err
    if format_ == "json":
        assert (ran.json["speedup"], ran.json["saves"], ran.json["verdict"]) == (
            None,
            None,
            "not-proved",
        )
        assert ran.json["predicted"]["held"] is None
        assert "12 steps are too few" in ran.json["why"]
