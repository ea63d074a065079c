"""One command: a machine is set up, the code runs there, what it leaves comes back, it is ended."""

import json
from pathlib import Path

import pytest

from providers.ssh import shell
from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.providers.fakes.sshd import Machine

EXAMPLE = str(ROOT / "examples" / "train-8xh100-aws.json")
OURS = ("opt/gpucost", "etc/gpucost", "var/lib/gpucost", "scratch/gpucost", "run/gpucost")


def provision(machine: Machine, project: Path, run: str, *more: str) -> tuple[str, ...]:
    """The command line of a job on a machine."""
    place = ("provision", "--type", f"ssh/{machine.host}", "--ttl", "1h", "--yes")
    return (*place, "--sync", str(project), "--run", run, "--collect", "outputs/", *more)


def results() -> Path:
    """The folder that the one run's results came to."""
    (folder,) = (path for path in Path("gpucost-runs").iterdir() if path.is_dir())
    return folder


def _recipe(call: Call) -> str:
    """The recipe of what a plan recommends."""
    assert call("plan", EXAMPLE, "-q", "-o", "plan.json").code == 0
    assert call("recipe", "plan.json", "-q", "-o", "recipe.json").code == 0
    return "recipe.json"


@pytest.mark.parametrize("by", ["rsync", "tar"])
def test_from_a_plan_to_the_end_of_its_machine(
    machine: Machine, project: Path, call: Call, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Code and data arrive, run under the recipe; results and profile are here, nothing is left."""
    if by == "tar":
        monkeypatch.setattr(shell, "has_rsync", lambda: False)
    elif not shell.has_rsync():
        pytest.skip("needs rsync; `make test-tools` installs it on Debian")
    (project.parent / "Daten 1").mkdir()
    (project.parent / "Daten 1" / "ä b.bin").write_bytes(bytes(70_000))
    listed = "python3 -c 'import os; print(sorted(os.listdir()), sorted(os.listdir(\"lib\")))'"
    more = ("--data", "Daten 1", "--recipe", _recipe(call), "-f", "json")
    ran = call(*provision(machine, project, f"{listed}; python3 train.py", *more))
    assert ran.code == 0, ran.err
    assert "['.gitignore', 'keep.ckpt', 'lib', 'outputs', 'train.py']" in ran.err
    assert "['.gitignore', 'ein Modell é.py', 'secrets']" in ran.err
    assert "data: ['ä b.bin']" in ran.err
    came = results()
    assert (came / "outputs" / "Gewichte für später.txt").read_text("utf-8") == "w" * 1000
    assert not (project / "outputs").exists(), "beside the code"
    assert (came.parent / ".gitignore").read_text("utf-8") == "*\n"
    after = json.loads((came / "after.json").read_text("utf-8"))
    assert after["schema"] == "gpucost.profile/v1"
    assert "changes" in after
    assert ran.json["state"] == "ended"
    assert ran.json["job"]["exit_status"] == 0
    assert [path for path in OURS if (machine.root / path).exists()] == []
    kept = call("logs", ran.json["run"])
    assert kept.code == 0
    assert kept.out.count("trains in") == 1


def test_a_failing_command_ends_the_machine_and_names_its_status(
    quick_machine: Machine, project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its status is in the message and the document; what it wrote is here; the code is 2.

    Without rsync code and data arrive, too.
    """
    monkeypatch.setattr(shell, "has_rsync", lambda: False)
    (project.parent / "Daten 1").mkdir()
    (project.parent / "Daten 1" / "ä b.bin").write_bytes(bytes(70_000))
    more = ("--data", "Daten 1", "-f", "json")
    ran = call(*provision(quick_machine, project, "python3 train.py 7", *more))
    assert ran.code == 2
    assert "data: ['ä b.bin']" in ran.err
    assert "ended with exit status 7" in ran.err
    assert ran.json["job"]["exit_status"] == 7
    assert (results() / "outputs").is_dir()
    assert [path for path in OURS if (quick_machine.root / path).exists()] == []
