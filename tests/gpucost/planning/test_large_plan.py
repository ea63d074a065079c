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

from gpucost.files.executors import processes

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
DAY = "2026-11-22"
# What the process does before it plans: how many at once, from how many jobs on, what goes wrong.
DRIVER = """
import os, sys
from gpucost.files import executors
from gpucost.cli import run
from planner import pipeline
from planner.fleet import packing
executors.FEWEST_JOBS = packing.FEWEST_JOBS = 2
pipeline._GROUPS_A_PART = 2
executors.processes = lambda: int(sys.argv[1])
parent, plan_groups, pack_rows = os.getpid(), pipeline._plan_groups, packing.pack_rows
def planned(shared, market, groups):
    names = [profile.job.name for group in groups for profile, _ in group]
    if os.getpid() != parent and "visual-search" in names:
        {trouble}
    if os.getpid() == parent:
        print("planned here", file=sys.stderr)
    return plan_groups(shared, market, groups)
pipeline._plan_groups = planned
def pack(*words, **named):
    if os.getpid() != parent:
        os.write(2, b"packed there\\n")
    return pack_rows(*words, **named)
packing.pack_rows = pack
from gpucost.views import output
write = output.write_pieces
def learned(target, pieces):
    from providers.redaction import learn
    learn({learned!r})
    write(target, pieces)
output.write_pieces = learned
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
    driver = DRIVER.format(trouble=trouble, learned=learned)
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
    assert ("packed there" in three.stderr) == (trouble != "os._exit(9)")
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
            profile["hardware"]["gpu"] = f"TPU that nobody sells {number}"
        (folder / path.name).write_text(json.dumps(profile), encoding="utf-8")
    one, three = (plan(tmp_path, several, str(folder)) for several in (1, 3))
    assert one.returncode == three.returncode == 2
    assert one.stderr.replace("planned here\n", "") == three.stderr
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
        "import threading; from gpucost.files.executors import processes; end = threading.Event();"
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


CLUSTER = """
import sys
from distributed import LocalCluster
from gpucost.cli import run
if __name__ == "__main__":
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        code = run([*sys.argv[1:], "--dask", cluster.scheduler_address])
    sys.exit(code)
"""


def test_a_cluster_plans_the_same(fleet: Path, tmp_path: Path) -> None:
    """Two workers of a Dask cluster make the bytes that one process makes."""
    pytest.importorskip("distributed")
    target, driver = tmp_path / "plan.json", tmp_path / "driver.py"
    words = (str(fleet), "-o", str(target))
    plan(tmp_path, 1, *words)
    text = target.read_text(encoding="utf-8")
    target.unlink()
    driver.write_text(CLUSTER, encoding="utf-8")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GPUCOST_")}
    done = subprocess.run(
        (sys.executable, str(driver), "plan", *words, "--as-of", DAY),
        env={**environ, "GPUCOST_CACHE_DIR": str(tmp_path), "GPUCOST_STATE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert target.read_text(encoding="utf-8") == text
