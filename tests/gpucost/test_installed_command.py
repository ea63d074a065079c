"""The installed script in a process of its own: exit codes, strangers' modules, closed pipes."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.gpucost.conftest import Write
from tests.gpucost.documents import AS_OF, EXAMPLES, training
from tests.waiting import CEILING_S

SCRIPT = Path(sys.executable).with_name("gpucost")
pytestmark = pytest.mark.skipif(not SCRIPT.is_file(), reason="gpucost is not installed here")


def _environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return {**kept, **more}


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SCRIPT), *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=CEILING_S,
        env=_environment(**environment),
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--version",), 0),
        (("plan", "--as-of", AS_OF), 0),
        (("plan", "missing.json"), 2),
        (("provision",), 2),
        (("plan", "--budget", "1"), 3),
        (("plan", "--fail-over", "1"), 7),
    ],
    ids=str,
)
def test_the_exit_code_reaches_the_shell(
    arguments: tuple[str, ...], code: int, write: Write
) -> None:
    """The process ends with the code of the contract, without a traceback."""
    write("profile.json", training())
    done = _run(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert (done.stdout == "") == (code == 2)


def test_as_a_module() -> None:
    """`python -m gpucost` is the same command."""
    done = subprocess.run(
        [sys.executable, "-m", "gpucost", "--version"],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(),
    )
    assert done.stdout == _run("--version").stdout


def test_an_interrupt_is_exit_130(empty_folder: Path) -> None:
    """Ctrl-C while a source is read ends with 130 and one line."""
    pipe = empty_folder / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        [str(SCRIPT), "plan", "pipe"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=_environment(),
        # What a shell starts in its background ignores the signal, and so would all below it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509 - one call
    )
    with pipe.open("wb"):  # opens when the command does
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=CEILING_S)
    assert process.returncode == 130
    assert out == ""
    assert err.strip().startswith("gpucost: interrupted")
    assert len(err.strip().splitlines()) == 1


def test_a_gate_is_heard_whoever_reads_its_output() -> None:
    """Where the reader of a pipe has gone, the exit code is still the gate's."""
    reader, writer = os.pipe()
    os.close(reader)
    example = Path(__file__).parents[2] / "examples/visual-search.json"
    done = subprocess.run(
        [str(SCRIPT), "plan", str(example), "--as-of", "2026-11-01", "--fail-over", "10", "-q"],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        env=_environment(),
    )
    os.close(writer)
    assert done.returncode == 7
    assert "above --fail-over $10.00" in done.stderr


@pytest.fixture
def strangers(empty_folder: Path) -> Path:
    """A folder with somebody's planner.py, pricing.py, providers.py and templates/."""
    folder = empty_folder / "theirs"
    (folder / "templates").mkdir(parents=True)
    theirs = "raise SystemExit('a stranger ran')\n"
    for name in ("planner.py", "pricing.py", "providers.py", "templates/__init__.py"):
        (folder / name).write_text(theirs, encoding="utf-8")
    return folder


def test_a_strangers_modules_do_not_replace_ours(strangers: Path, empty_folder: Path) -> None:
    """With PYTHONPATH full of modules of our names, the command runs its own code."""
    done = _run("demo", PYTHONPATH=str(strangers))
    assert done.returncode == 0, done.stderr
    assert (empty_folder / "report.md").is_file()
    assert "stranger" not in done.stdout + done.stderr


def test_a_folder_of_such_modules_is_a_fine_place_to_work(
    strangers: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Standing in that folder, the script and `python -m gpucost` both run our code."""
    monkeypatch.chdir(strangers)
    assert _run("demo").returncode == 0
    done = subprocess.run(
        [sys.executable, "-m", "gpucost", "demo"],
        capture_output=True,
        text=True,
        check=False,
        env=_environment(),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["make_plan", "load_catalog", "load_profile", "Profile"])
@pytest.mark.parametrize("kind", ["module", "package"])
def test_the_api_says_who_stands_in_its_place(kind: str, name: str, empty_folder: Path) -> None:
    """With a stranger's `planner` and `pricing` first, the API raises an ImportError with the way.

    The stranger's name, its folder, and what to do are in the message.
    """
    theirs = empty_folder / "theirs"
    for package in ("planner", "pricing"):
        path = theirs / (f"{package}.py" if kind == "module" else f"{package}/__init__.py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("", encoding="utf-8")
    code = (
        "import gpucost\n"
        "try:\n"
        f"    gpucost.{name}\n"
        "except ImportError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(PYTHONPATH=str(theirs)),
    )
    assert done.stdout.startswith("ImportError ")
    assert str(theirs) in done.stdout
    assert "sys.path" in done.stdout


@pytest.mark.parametrize("file_format", ["table", "csv", "json"])
def test_a_reader_that_leaves_is_no_failure(file_format: str) -> None:
    """`gpucost prices | head -1` ends quietly."""
    process = subprocess.Popen(
        [str(SCRIPT), "prices", "-v", "-q", "-f", file_format],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    told = process.stderr.read()
    process.stderr.close()
    assert process.wait(CEILING_S) in (0, -signal.SIGPIPE, 128 + signal.SIGPIPE)
    assert told == b""


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("command", ["plan", "diagnose"])
def test_any_terminal_can_be_written_to(command: str, encoding: str, write: Write) -> None:
    """On a terminal without UTF-8, names lose letters and nothing else happens."""
    document = training("größe-训练")
    write("profile.json", document)
    done = subprocess.run(
        [str(SCRIPT), command],
        capture_output=True,
        check=False,
        env=_environment(PYTHONIOENCODING=encoding),
    )
    assert done.returncode == 0, done.stderr
    assert b"T4" in done.stdout or b"data-loading" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_full_disk_is_no_bug() -> None:
    """Standard output that takes nothing ends with a sentence, not with "a bug"."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        done = subprocess.run(
            [str(SCRIPT), "prices", "-q", "-f", "csv"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env=_environment(),
        )
    assert done.returncode == 2
    assert "No space left" in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.parametrize("words", ["gpucost pl", "gpucost plan --obj", "gpucost explain "])
def test_completion_answers(words: str) -> None:
    """The shell's question is answered without an error, also beside a broken settings file."""
    Path("gpucost.toml").write_text("[plan\n", encoding="utf-8")
    count = str(len(words.split()) - (not words.endswith(" ")))
    done = _run(_GPUCOST_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=count)
    assert done.returncode == 0
    assert done.stderr == ""


def test_a_plan_of_a_profile_needs_no_pandas() -> None:
    """`plan` of a profile.json loads neither pandas nor what reads plans back: it starts fast."""
    code = (
        "import sys\nfrom gpucost.cli import run\n"
        f"run(['plan', {str(EXAMPLES / 'visual-search.json')!r}, '-q', '-f', 'csv'])\n"
        "heavy = {'pandas', 'numpy', 'scipy', 'jinja2', 'cattrs'}\n"
        "print(heavy & set(sys.modules), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=_environment(),
    )
    assert done.stderr.strip() == "set()"


def test_no_network_is_needed(write: Write) -> None:
    """Every offline command works where every connection is refused."""
    write("profile.json", training())
    write(
        "theirs/sitecustomize.py",
        "import socket\n"
        "def refuse(*_, **__):\n    raise SystemExit('reached for the network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n",
    )
    for command in (("plan",), ("diagnose",), ("prices",), ("doctor",), ("demo",)):
        done = _run(*command, PYTHONPATH="theirs")
        assert done.returncode == 0, done.stderr


def test_the_same_bytes_in_two_processes(write: Write) -> None:
    """Whatever the hash seed, plan.json has the same bytes."""
    write("a.json", training("a"))
    write("b.json", training("b"))
    plans = [
        _run("plan", *order, "--as-of", AS_OF, "-o", "-", PYTHONHASHSEED=seed).stdout
        for order, seed in ((("a.json", "b.json"), "1"), (("b.json", "a.json"), "2"))
    ]
    assert plans[0] == plans[1]
    assert json.loads(plans[0])["schema"] == "gpucost.plan/v1"
