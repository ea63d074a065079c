"""`gpucost.measure()` in a program, and the magic of notebooks."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gpucost
from gpucost.profiling.measuring import arguments
from pricing.errors import InputError
from telemetry.probe import PATH

STAND_IN = Path(__file__).resolve().parents[2] / "probe" / "stand_in"
MEASURE = "with gpucost.measure('mine', gpu=False, interval_s=0.1, quiet=True) as m:\n"


def _run(text: str) -> subprocess.CompletedProcess[str]:
    """A program of its own, as the probe patches what it finds in a process."""
    command = [sys.executable, "-c", "import gpucost, time\n" + text]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def _document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_steps_that_a_program_tells_are_measured(empty_folder: Path) -> None:
    """Steps, samples, host and the name come out; the profile is in memory and on disk."""
    loop = "    for _ in range(30):\n        time.sleep(0.02); m.step(items=8)\n"
    loop += (
        "    import pathlib; end_s = time.monotonic() + 120\n    while time.monotonic() < end_s "
    )
    loop += "and 'cpu_util' not in ''.join(path.read_text() for path in "
    loop += "pathlib.Path().glob('profile.capture.jsonl')): time.sleep(0.1)\n"
    ran = _run(MEASURE + loop + "print(m.profile.step.count, m.profile.job.name, m.path.name)")
    assert (ran.returncode, ran.stdout) == (0, "30 mine profile.json\n"), ran.stderr
    assert ran.stderr == ""
    found = _document(empty_folder / "profile.json")
    assert found["step"]["count"] == 30
    assert found["step"]["mean_s"] >= 0.02
    assert found["work"]["unit"] == "sample"
    assert found["host"] is not None
    assert [path.name for path in empty_folder.glob("*capture*")] == []


def test_two_blocks_are_two_measurements(empty_folder: Path) -> None:
    """The second block begins at nothing, and what is done between them is in neither."""
    loop = "    for _ in range({n}):\n        time.sleep(0.01); m.step()\n"
    one, two = (MEASURE + loop.format(n=n) + "print(m.profile.step.count)\n" for n in (20, 12))
    ran = _run(one + "m.step()\ntime.sleep(0.2)\n" + two)
    assert ran.stdout.split() == ["20", "12"], ran.stderr
    assert _document(empty_folder / "profile.json")["step"]["count"] == 12


def test_an_exception_goes_through_and_the_profile_is_there(empty_folder: Path) -> None:
    """What the program raises is what it gets; what was measured until then is written."""
    ran = _run(MEASURE + "    time.sleep(0.3)\n    raise ValueError('mine own')")
    assert ran.returncode == 1
    assert ran.stderr.rstrip().endswith("ValueError: mine own")
    assert "gpucost" not in ran.stderr.replace("gpucost.measure", "")
    assert (empty_folder / "profile.json").exists()


@pytest.mark.parametrize("before", [True, False], ids=["imported before", "imported within"])
def test_steps_of_an_optimizer_are_found(empty_folder: Path, *, before: bool) -> None:
    """PyTorch's steps count by themselves, whenever it is imported (here: its stand-in)."""
    use = "import torch.optim\n"
    path = f"import sys; sys.path.insert(0, {str(STAND_IN)!r})\n"
    loop = (
        "    import torch.optim\n"
        "    optimizer = torch.optim.SGD([])\n"
        "    for _ in range(15):\n"
        "        time.sleep(0.01); optimizer.step()\n"
    )
    ran = _run(path + (use if before else "") + MEASURE + loop + "print(m.profile.step.count)")
    assert ran.stdout == "15\n", ran.stderr
    assert _document(empty_folder / "profile.json")["job"]["framework"] == "pytorch"


def test_within_gpucost_profile_the_outer_one_measures(empty_folder: Path) -> None:
    """A program that measures itself under `gpucost profile` is measured once, and says so."""
    program = "import gpucost\nwith gpucost.measure('in', gpu=False) as m:\n    m.step()\n"
    (empty_folder / "program.py").write_text(program, encoding="utf-8")
    command = [str(Path(sys.executable).parent / "gpucost"), "profile", "--no-gpu", "--"]
    ran = subprocess.run(
        [*command, sys.executable, "program.py"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0
    assert "runs under `gpucost profile`" in ran.stderr
    assert sorted(path.name for path in empty_folder.glob("profile*.json")) == ["profile.json"]


def test_wrong_arguments_are_told_before_anything_runs() -> None:
    """An interval or a kind that cannot be is an error of the call."""
    with pytest.raises(InputError, match=r"interval_s=0\.01"):
        gpucost.measure("x", interval_s=0.01)
    with pytest.raises(InputError, match="--kind dancing"):
        gpucost.measure("x", kind="dancing")


def test_the_probe_is_left_on_no_path() -> None:
    """A program that measured itself finds no `sitecustomize` of ours afterwards."""
    ran = _run(MEASURE + f"    time.sleep(0.1)\nimport sys; print({str(PATH)!r} in sys.path)")
    assert ran.stdout == "False\n", ran.stderr


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("", {"name": "notebook"}),
        ("train", {"name": "train"}),
        (
            "'my job' --no-gpu -o cell.json --interval 0.5s",
            {"name": "my job", "gpu": False, "target": "cell.json", "interval_s": 0.5},
        ),
    ],
)
def test_the_magic_takes_words(line: str, found: dict[str, object]) -> None:
    """The words behind `%%gpucost` are a name and options."""
    assert found.items() <= arguments(line).items()


@pytest.mark.parametrize("line", ["a b", "--nothing", "--interval soon"])
def test_the_magic_refuses_other_words(line: str) -> None:
    """What is not understood is answered with the usage."""
    with pytest.raises(InputError, match="usage: %%gpucost"):
        arguments(line)


def test_a_cell_of_a_notebook_is_measured(empty_folder: Path) -> None:
    """`%%gpucost` after `%load_ext`: variables stay, errors are shown, a profile is there."""
    pytest.importorskip("IPython", reason="IPython is not installed")
    cell = (
        "%%gpucost cell --no-gpu --quiet --interval 0.1\\nimport time\\ntime.sleep(0.3)\\nx = 7\\n"
    )
    bad = "%%gpucost cell --no-gpu --quiet --interval 0.1\\n1 / 0\\n"
    ran = _run(
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'gpucost')\n"
        f"shell.run_cell('{cell}').raise_error()\n"
        "print(shell.user_ns['x'], shell.user_ns['_gpucost'].profile.job.name)\n"
        f"print(type(shell.run_cell('{bad}').error_in_exec).__name__)\n"
    )
    words = [line for line in ran.stdout.splitlines() if line in {"7 cell", "ZeroDivisionError"}]
    assert words == ["7 cell", "ZeroDivisionError"], ran.stdout + ran.stderr
    assert (empty_folder / "profile.json").exists()
