"""`import gpucost`: the names that users may rely on, loaded when first used."""

import inspect
import json
import re
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

import gpucost
from planner.models.document import to_text
from pricing.errors import InputError
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, ROOT, barely_measured, inference, training

# Name and leading parameters of every function of the contract.
FUNCTIONS = {
    "load_profile": ("path",),
    "read_telemetry": ("paths", "hints"),
    "diagnose": ("profile",),
    "load_catalog": ("as_of",),
    "predict": ("profile", "gpu", "gpu_count", "actions", "probes"),
    "predict_sharing": ("profiles", "mode", "on_slice"),
    "quote": ("offer", "usage"),
    "make_plan": ("profiles", "catalog", "requirements", "as_of"),
    "load_plan": ("path",),
    "find_option": ("plan", "name"),
    "plan_to_json": ("plan",),
    "render_report": ("plan", "style", "lang"),
}
VALUES = ("Catalog", "Estimate", "Finding", "Offer", "Plan", "Profile", "Quote")


def test_the_names_are_complete_and_sorted() -> None:
    """Every name of the contract is public, the list is sorted, and every name loads."""
    assert {*FUNCTIONS, *VALUES} <= set(gpucost.__all__)
    assert list(gpucost.__all__) == sorted(gpucost.__all__)
    for name in gpucost.__all__:
        assert getattr(gpucost, name) is not None


@pytest.mark.slow
def test_completion_in_a_shell_shows_the_names() -> None:
    """`dir(gpucost)` names everything public before it was used."""
    code = "import gpucost; print(set(gpucost.__all__) - set(dir(gpucost)))"
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "set()"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_takes_what_the_contract_says(name: str) -> None:
    """Parameters are called and ordered as in the contract."""
    taken = tuple(inspect.signature(getattr(gpucost, name)).parameters)
    assert taken[: len(FUNCTIONS[name])] == FUNCTIONS[name]


def test_a_plan_made_now_and_read_back_is_one(tmp_path: Path) -> None:
    """Document, report and options of a plan are those of its file, byte for byte."""
    profile = gpucost.load_profile(ROOT / "examples" / "visual-search.json")
    day = date.fromisoformat(AS_OF)
    made = gpucost.make_plan(
        (profile,), gpucost.load_catalog(day), gpucost.Requirements(), as_of=day
    )
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(gpucost.plan_to_json(made)), encoding="utf-8")
    back = gpucost.load_plan(path)
    assert gpucost.plan_to_json(back) == gpucost.plan_to_json(made)
    assert gpucost.render_report(back) == gpucost.render_report(made)
    for name in ("o0", "visual-search/o1"):
        assert gpucost.find_option(back, name) == gpucost.find_option(made, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that is not there behaves like in any module."""
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = gpucost.no_such_name


def test_the_example_of_the_docstring_runs(write: Write) -> None:
    """The code in the package's docstring works as printed."""
    write("profile.json", training())
    found = re.search(r"```python\n(.*?)```", gpucost.__doc__ or "", re.DOTALL)
    assert found
    names: dict[str, object] = {}
    exec(found[1], names)  # noqa: S102 - our own docstring
    assert isinstance(names["plan"], gpucost.Plan)


def test_the_api_and_the_command_agree(call: Call, write: Write) -> None:
    """`make_plan` gives the plan that `gpucost plan` writes, what it can launch included."""
    profile = gpucost.load_profile(write("profile.json", training()))
    day = date.fromisoformat(AS_OF)
    plan = gpucost.make_plan(
        (profile,), gpucost.load_catalog(day), gpucost.Requirements(), as_of=day
    )
    written = json.loads(call("plan", "--as-of", AS_OF, "-o", "-").out)
    ours = json.loads(to_text(plan))
    assert ours == written
    assert any(job["first_launchable"] for job in ours["jobs"])


def test_the_command_line_says_the_same(call: Call, write: Write) -> None:
    """`gpucost plan --gpu nothing --provider nobody` fails with the words of the Python API."""
    write("profile.json", training())
    catalog = gpucost.load_catalog()
    with pytest.raises(InputError) as from_api:
        gpucost.Requirements(gpus=("nothing",))
    assert from_api.value.problems[0] in call("plan", "--gpu", "nothing").err
    with pytest.raises(InputError) as from_plan:
        gpucost.make_plan(
            (gpucost.load_profile("profile.json"),),
            catalog,
            gpucost.Requirements(providers=("nobody",)),
            as_of=catalog.as_of,
        )
    assert from_plan.value.problems[0] in call("plan", "--provider", "nobody").err


def test_diagnose_and_predict(write: Write) -> None:
    """The verdict comes first; a prediction has a range and says where it comes from."""
    profile = gpucost.load_profile(write("profile.json", training()))
    assert gpucost.diagnose(profile)[0].code == "data-loading"
    faster = gpucost.predict(profile, gpu="A100-SXM4-80GB")
    assert 0 < faster.low <= faster.mid <= faster.high
    assert faster.basis


def test_sharing_is_relative_to_alone(write: Write) -> None:
    """Jobs on one GPU run no faster than alone but for its own spread, in order of the input."""
    profiles = [gpucost.load_profile(write(f"{i}.json", inference(f"infer-{i}"))) for i in range(3)]
    speeds = gpucost.predict_sharing(profiles)
    assert len(speeds) == 3
    assert all(0 < speed.low <= speed.mid <= speed.high <= 1.15 for speed in speeds)


def test_a_mode_that_there_is_not_is_refused(write: Write) -> None:
    """Every mode of the contract answers; another word is refused with what there is."""
    profile = gpucost.load_profile(write("profile.json", inference("a")))
    for mode in ("mps", "mig", "time-slicing"):
        assert len(gpucost.predict_sharing([profile], mode=mode)) == 1
    with pytest.raises(InputError, match="mps, time-slicing, mig"):
        gpucost.predict_sharing([profile], mode="nonsense")


def test_unmeasured_jobs_cannot_be_predicted_together(write: Write) -> None:
    """Without measured GPU use, sharing is refused rather than guessed."""
    profile = gpucost.load_profile(write("profile.json", barely_measured()))
    with pytest.raises(InputError, match="measured"):
        gpucost.predict_sharing([profile, profile])


@pytest.mark.parametrize("as_path", [False, True], ids=["text", "Path"])
def test_paths_are_text_or_path(write: Write, *, as_path: bool) -> None:
    """Files may be given as text or as Path, to both loaders."""
    name = write("profile.json", training())
    path = Path(name) if as_path else name
    assert gpucost.load_profile(path).job.name == "train"
    assert gpucost.read_telemetry(path).job.name == "train"


@pytest.mark.parametrize(
    ("content", "told"),
    [([training(), training()], "2 profiles"), ([], "empty"), ("{", "JSON")],
    ids=["two", "none", "cut"],
)
def test_load_profile_wants_one_profile(content: object, told: str, write: Write) -> None:
    """A file of several, of none, or of no JSON raises with the file's name."""
    with pytest.raises(InputError, match=told) as caught:
        gpucost.load_profile(write("profiles.json", content))
    assert "profiles.json" in str(caught.value)


@pytest.mark.slow
def test_importing_is_light() -> None:
    """`import gpucost` loads neither pandas nor numpy nor jinja2 nor rich."""
    code = (
        "import sys, gpucost; "
        "print(sorted({'pandas', 'numpy', 'jinja2', 'rich', 'click'} & set(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == "[]"
