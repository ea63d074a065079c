"""What a public repository is expected to have is there, and is valid."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

from gpucost.cli import COMMANDS
from tests.conftest import ROOT

GITHUB = ROOT / ".github"
FORMS = sorted(
    set((GITHUB / "ISSUE_TEMPLATE").glob("*.yml")) - {GITHUB / "ISSUE_TEMPLATE/config.yml"}
)
SCHEMAS = {
    "github-workflows": sorted((GITHUB / "workflows").glob("*.yml")),
    "github-issue-forms": FORMS,
    "github-issue-config": [GITHUB / "ISSUE_TEMPLATE/config.yml"],
    "dependabot": [GITHUB / "dependabot.yml"],
}


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _workflow(name: str) -> dict[str, Any]:
    read: dict[str, Any] = _read(GITHUB / "workflows" / f"{name}.yml")
    return read


def _steps(workflow: dict[str, Any]) -> list[dict[str, Any]]:
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_file_of_github_keeps_its_schema(schema: str) -> None:
    """GitHub accepts the workflows, forms and settings: their published JSON Schemas do."""
    assert SCHEMAS[schema]
    files = [str(path) for path in SCHEMAS[schema]]
    done = CliRunner().invoke(check_jsonschema, ["--builtin-schema", f"vendor.{schema}", *files])
    assert done.exit_code == 0, done.output


def test_ci_runs_what_make_test_runs() -> None:
    """CI calls targets that the Makefile has, among them every part of `make test`."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    called = {
        word
        for name in ("ci", "release")
        for step in _steps(_workflow(name))
        for words in re.findall(r"\bmake ((?:[a-z-]+ ?)+)", step.get("run", ""))
        for word in words.split()
    }
    (parts,) = re.findall(r"^\t@\$\(MAKE\) [a-z0-9 -]+ --jobs 2 ([a-z ]+)$", makefile, re.MULTILINE)
    assert called <= targets
    assert set(parts.split()) <= called


def test_ci_knows_the_pythons_that_we_promise() -> None:
    """The tests run on every version of Python that the package is classified for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    promised = re.findall(r":: (3\.\d+)", " ".join(project["classifiers"]))
    assert _workflow("ci")["jobs"]["tests"]["strategy"]["matrix"]["python"] == promised
    assert project["requires-python"] == f">={promised[0]}"


def test_a_release_holds_no_token() -> None:
    """PyPI trusts the publishing job itself; what is built there was tested, and names its tag."""
    jobs = _workflow("release")["jobs"]
    publish = jobs["publish"]
    assert publish["permissions"] == {"id-token": "write"}
    assert publish["environment"]["name"] == "pypi"
    assert publish["needs"] == "build"
    assert "secrets." not in (GITHUB / "workflows/release.yml").read_text(encoding="utf-8")
    assert any("make test " in step.get("run", "") for step in jobs["build"]["steps"])


def test_every_night_runs_what_make_test_leaves_out() -> None:
    """`make unit` leaves proofs out by their mark, `make slow-test` runs them, and a timer that."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    unit, slow = (
        makefile.partition(f"\n{name}: ")[2].partition("\n\n")[0] for name in ("unit", "slow-test")
    )
    assert '-m "not proof"' in unit
    assert '-m "proof or hypothesis"' in slow
    nightly = _workflow("nightly")
    assert any("make slow-test " in step.get("run", "") for step in _steps(nightly))
    assert "schedule" in nightly[True]  # YAML 1.1 reads the word `on` as true


@pytest.mark.parametrize("name", ["ci", "release", "nightly"])
def test_a_workflow_may_read_and_ends(name: str) -> None:
    """A workflow has no right but to read the code unless a job asks; every job has a limit."""
    workflow = _workflow(name)
    assert workflow["permissions"] == {"contents": "read"}
    assert [job for job, said in workflow["jobs"].items() if "timeout-minutes" not in said] == []


def test_a_hook_has_a_pinned_home() -> None:
    """Each repository of the pre-commit configuration has a version, and each hook an id."""
    for repository in _read(ROOT / ".pre-commit-config.yaml")["repos"]:
        assert repository["repo"] == "local" or re.fullmatch(r"v?\d+\.\d+\.\d+", repository["rev"])
        assert all(hook["id"] for hook in repository["hooks"])


def test_an_issue_form_asks_only_for_commands_that_exist() -> None:
    """What a form tells people to type is a command of ours."""
    text = "".join(form.read_text(encoding="utf-8") for form in FORMS)
    assert set(re.findall(r"`gpucost ([a-z]+)", text)) <= set(COMMANDS)


def test_the_site_leads_to_every_page() -> None:
    """Each page of docs/ stands in the site's navigation; decisions are listed by their index."""
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    docs = ROOT / "docs"
    pages = [path.relative_to(docs).as_posix() for path in docs.rglob("*.md")]
    wanted = [page for page in pages if page != "README.md" and not page.startswith("adr/0")]
    assert [page for page in wanted if page not in navigation] == []


def test_each_promise_of_security_names_its_test() -> None:
    """Every bullet of what it does, and every test that is named there is there."""
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    bullets = re.split(r"\n(?=- |\n|#)", text)
    promises = [bullet for bullet in bullets if bullet.startswith("- ")]
    assert len(promises) > 15
    assert [bullet for bullet in promises if "`tests/" not in bullet] == []
    named = re.findall(r"`(tests/[\w./]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []
