"""The programs of examples/api run as printed, through the public names alone."""

import ast
import runpy
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

API = ROOT / "examples" / "api"
PROGRAMS = sorted(API.glob("*.py"))
JOB = ROOT / "examples" / "visual-search.json"
LOG = """timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]
2026/11/16 09:00:00.118, 0, Tesla T4, 0 %, 3 MiB, 15360 MiB
2026/11/16 09:00:30.118, 0, Tesla T4, 0 %, 8410 MiB, 15360 MiB
2026/11/16 09:01:00.118, 0, Tesla T4, 0 %, 8410 MiB, 15360 MiB
"""
# What each prints, in one of its lines.
PRINTS = {
    "compare_gpus": "L4 with gpu-preprocessing: x",
    "diagnose_a_log": "idle",
    "gate_a_change": "USD after",
    "plan_a_job": "* o",
    "quote_a_machine": "total",
}


def _arguments(name: str, folder: Path) -> list[str]:
    log = folder / "smi.csv"
    log.write_text(LOG, encoding="utf-8")
    known = {
        "diagnose_a_log": [str(log)],
        "gate_a_change": [str(JOB), str(JOB)],
        "quote_a_machine": [],
    }
    return known.get(name, [str(JOB)])


def test_every_program_is_run() -> None:
    """No program is left out of the next test."""
    assert [path.stem for path in PROGRAMS] == sorted(PRINTS)


@pytest.mark.parametrize("name", PRINTS)
def test_a_program_runs(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A program ends well and prints what it is there for."""
    path = API / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), *_arguments(name, tmp_path)])
    try:
        runpy.run_path(str(path), run_name="__main__")
    except SystemExit as left:
        assert left.code == 0  # noqa: PT017 - a program may end itself
    assert PRINTS[name] in capsys.readouterr().out


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_needs_gpucost_alone(path: Path) -> None:
    """A program imports gpucost and the standard library: nothing that may move."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = {
        name.split(".")[0]
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    assert names <= {"gpucost", *sys.stdlib_module_names}
