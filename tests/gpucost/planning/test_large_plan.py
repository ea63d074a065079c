"""A fleet that is planned in several processes and written job by job is the plan of one process.

In processes of their own: pytest has threads, and a process with threads does not copy itself.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gpucost.files.large_plan import processes

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DAY = "2026-11-22"
# What the process does before it plans: how many at once, from how many jobs on, what goes wrong.
SPREAD = """
import os, sys
from gpucost.files import in_processes, large_plan
from gpucost.cli import run
from planner.fleet import packing
large_plan.FEWEST_JOBS = packing.FEWEST_JOBS = 2
large_plan.processes = lambda: int(sys.argv[1])
parent, honest = os.getpid(), in_processes._kept
def kept(planning, group, keep, rest):
    if os.getpid() != parent and 3 in group:
        {trouble}
    if os.getpid() == parent:
        print("planned here", file=sys.stderr)
    return honest(planning, group, keep, rest)
in_processes._kept = kept
write = large_plan.LargePlan.write
def learned(self, plan):
    from providers.redaction import learn
    learn({learned!r})
    write(self, plan)
large_plan.LargePlan.write = learned
pack_one = packing.pack
def pack(*words, **named):
    if os.getpid() != parent:
        print("packed there", file=sys.stderr, flush=True)
        {trouble}
    return pack_one(*words, **named)
packing.pack = pack
sys.exit(run(sys.argv[2:]))
"""

pytestmark = pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform != "linux", reason="plans in one process elsewhere"
)


def plan(
    folder: Path,
    several: int,
    *words: str,
    trouble: str = "pass",
    secret: str = "",
    learned: str = "",
) -> subprocess.CompletedProcess[str]:
    """Plan in so many processes.

    Args:
        folder: of what is kept.
        several: processes.
        words: of the command line.
        trouble: what happens in one of them.
        secret: is known from the beginning.
        learned: is known when the file is written.
    """
    environ = {
        **os.environ,
        "LAMBDA_API_KEY": secret,
        "GPUCOST_CACHE_DIR": str(folder),
        "GPUCOST_CONFIG": str(folder / "settings.toml"),
        "GPUCOST_STATE_DIR": str(folder),
    }
    (folder / "settings.toml").touch()
    driver = SPREAD.format(trouble=trouble, learned=learned)
    command = (sys.executable, "-c", driver, str(several), "plan", *words, "--as-of", DAY)
    return subprocess.run(command, env=environ, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write jobs that share a machine, jobs that may share a GPU, and some that share nothing."""
    folder: Path = tmp_path_factory.mktemp("fleet")
    known = [
        *(EXAMPLES / "hard" / "pods-one-machine").glob("*.json"),
        *(EXAMPLES / "fleet").glob("*.json"),
        EXAMPLES / "visual-search.json",
        EXAMPLES / "well-used.json",
        EXAMPLES / "notebook.json",
    ]
    for path in known:
        profile = json.loads(path.read_bytes())
        (profile.get("work") or {}).pop("total", None)
        (folder / path.name).write_text(json.dumps(profile), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param("pass", id="all goes well"),
        pytest.param("os._exit(9)", id="a process dies"),
        pytest.param("raise MemoryError", id="a process has no memory"),
    ],
)
def test_the_same_bytes_and_screen(trouble: str, fleet: Path, tmp_path: Path) -> None:
    """File, screen and exit code are those of one process, also where another one fails."""
    target = tmp_path / "out" / "plan.json"
    target.parent.mkdir()
    words = (str(fleet), "-o", str(target))
    one = plan(tmp_path, 1, *words)
    text = target.read_text(encoding="utf-8")
    target.unlink()
    three = plan(tmp_path, 3, *words, trouble=trouble)
    assert target.read_text(encoding="utf-8") == text
    assert (three.stdout, three.returncode) == (one.stdout, 0)
    assert ("planned here" in three.stderr) == (trouble != "pass")
    assert "packed there" in three.stderr
    assert "packed there" not in one.stderr
    assert re.search(r'\n   "placement": \d', text), "nothing is packed, so nothing is filled in"
    assert list(target.parent.iterdir()) == [target]


@pytest.mark.parametrize(
    ("secret", "learned"),
    [
        pytest.param("visual-search", "", id="of the environment"),
        pytest.param("", "visual-search", id="learned when all is planned"),
        pytest.param("visual-search", "well-used", id="both"),
        pytest.param('visual-search\n  "placement', "", id="of two lines"),
        pytest.param('visual-search": {\n', '   "confidence": {\n', id="of the form of a plan"),
    ],
)
def test_secrets_are_hidden(secret: str, learned: str, fleet: Path, tmp_path: Path) -> None:
    """What is hidden of one process's plan is hidden of several processes', and nothing else."""
    target = tmp_path / "plan.json"
    texts = []
    for several in (1, 3):
        plan(tmp_path, several, str(fleet), "-o", str(target), secret=secret, learned=learned)
        texts.append(target.read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert "visual-search" not in texts[0]
    assert "[secret]" in texts[0]


def test_problems_of_all_jobs(fleet: Path, tmp_path: Path) -> None:
    """What is wrong with jobs is told together, whichever process met it."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    for number, path in enumerate(sorted(fleet.iterdir())):
        profile = json.loads(path.read_bytes())
        if number % 5 == 0:
            profile["hardware"]["gpu"] = f"GPU that nobody sells {number}"
        (folder / path.name).write_text(json.dumps(profile), encoding="utf-8")
    one, three = (plan(tmp_path, several, str(folder)) for several in (1, 3))
    assert one.returncode == three.returncode == 2
    assert one.stderr == three.stderr
    assert one.stderr.count("nobody sells") > 2


def test_no_folder_for_the_file(fleet: Path, tmp_path: Path) -> None:
    """A target in a folder that is not there is told as with one process."""
    words = (str(fleet), "-o", str(tmp_path / "none" / "plan.json"))
    one, three = (plan(tmp_path, several, *words) for several in (1, 3))
    assert one.returncode == three.returncode == 2
    assert one.stderr.replace("planned here\n", "") == three.stderr.replace("packed there\n", "")


def test_threads_keep_it_to_one_process() -> None:
    """A process that has other threads does not copy itself."""
    script = (
        "import threading; from gpucost.files.large_plan import processes; end = threading.Event();"
        "print(processes()); threading.Thread(target=end.wait).start(); print(processes());"
        "end.set()"
    )
    done = subprocess.run(
        (sys.executable, "-c", script), capture_output=True, text=True, check=True
    )
    cores, one = map(int, done.stdout.split())
    assert cores == len(os.sched_getaffinity(0))
    assert one == 1
    assert processes() >= 1


@pytest.mark.parametrize(
    ("trouble", "made_here"),
    [
        pytest.param("pass", "0 3 6", id="all goes well"),
        pytest.param("os._exit(9)", "0 1 3 4 6 7", id="a process dies"),
        pytest.param("os.kill(os.getpid(), 9)", "0 1 3 4 6 7", id="a process is killed"),
        pytest.param("raise MemoryError", "0 1 3 4 6 7", id="a process has no memory"),
        pytest.param("return lambda: 0", "0 1 3 4 6 7", id="what is returned cannot be sent"),
    ],
)
def test_what_calls_return(trouble: str, made_here: str) -> None:
    """Calls return the same wherever they are made; those that a process had are made here."""
    script = (
        "import os; from gpucost.files.in_processes import call_in\n"
        "parent, here = os.getpid(), []\n"
        "def call(number):\n"
        "    if os.getpid() == parent: here.append(number)\n"
        f"    elif number == 4: {trouble}\n"
        "    return number * 100_000 * (1,)\n"
        "calls = [(lambda n=n: call(n)) for n in range(8)]\n"
        "print(*(len(one) // 100_000 for one in call_in(3, calls))); print(*sorted(here))\n"
        "try: os.waitpid(-1, 0)\n"
        "except ChildProcessError: print('nobody is left')\n"
    )
    done = subprocess.run(
        (sys.executable, "-c", script), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["0 1 2 3 4 5 6 7", made_here, "nobody is left"]


def test_a_call_that_fails_here_ends_the_others() -> None:
    """The error of a call is raised, once, and no process is left behind."""
    script = (
        "import os, time; from gpucost.files.in_processes import call_in; parent = os.getpid()\n"
        "def call(): 1 / 0 if os.getpid() == parent else time.sleep(600)\n"
        "try: list(call_in(2, [call, call]))\n"
        "except ZeroDivisionError: print('raised')\n"
        "try: os.waitpid(-1, 0)\n"
        "except ChildProcessError: print('nobody is left')\n"
    )
    done = subprocess.run(
        (sys.executable, "-c", script), capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split("\n") == ["raised", "nobody is left", ""]
