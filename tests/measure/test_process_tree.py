"""Which processes are the job's, and what they used: no more, no less, each second once."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from telemetry.measure.processes import ProcessTree
from tests.measure.process_world import INIT, World

JOB, STRANGER = 100, 50
MARK = b"GPUCOST_PROBE_DIR=/tmp/x"


def _world() -> World:
    world = World()
    world.fork(STRANGER, INIT)
    world.fork(JOB, INIT)
    return world


def test_members_are_the_descendants() -> None:
    """Children and theirs are members, also those with lower numbers than their parents."""
    world = _world()
    tree = ProcessTree(JOB, table=world)
    world.fork(300, JOB)
    world.fork(200, 300)
    world.fork(250, 200)
    world.fork(60, STRANGER)
    assert tree.look() == {JOB, 300, 200, 250}


def test_who_measures_from_within_is_not_of_the_job() -> None:
    """A program that measures itself started us: neither we nor what we start is its work."""
    world = _world()
    world.fork(os.getpid(), JOB, b"HOME=/\0" + MARK + b"\0")
    world.fork(os.getpid() + 1, os.getpid(), b"HOME=/\0" + MARK + b"\0")
    tree = ProcessTree(JOB, MARK, table=world)
    world.fork(200, JOB)
    world.fork(os.getpid() + 2, os.getpid())
    assert tree.look() == {JOB, 200}
    assert not tree.holds(os.getpid() + 2)


def test_one_that_lost_its_parent_stays() -> None:
    """A process whose parents ended between two looks is still the job's."""
    world = _world()
    world.fork(200, JOB)
    world.fork(300, 200)
    tree = ProcessTree(JOB, table=world)
    world.end(200)
    world.wait(200)
    world.fork(400, 300)
    assert tree.look() == {JOB, 300, 400}


def test_a_daemon_that_was_never_seen_below_is_known_by_its_environment() -> None:
    """What left the tree before the first look carries the mark, and so do its children."""
    world = _world()
    tree = ProcessTree(JOB, MARK, table=world)
    world.fork(200, INIT, b"HOME=/\0" + MARK + b"\0")
    world.fork(300, 200)
    world.fork(400, INIT, b"GPUCOST_PROBE_DIR=/tmp/xy\0")
    assert tree.look() == {JOB, 200, 300}
    assert tree.holds(300)
    assert not tree.holds(400)


def test_a_number_that_is_used_again_is_another_process() -> None:
    """A stranger that gets the number of a member that ended is not a member."""
    world = _world()
    world.fork(200, JOB)
    tree = ProcessTree(JOB, table=world)
    world.reuse(200, STRANGER)
    assert tree.look() == {JOB}


def test_one_younger_than_the_last_look_is_held() -> None:
    """A process that started after the last look is told by its ancestors."""
    world = _world()
    tree = ProcessTree(JOB, table=world)
    world.fork(200, JOB)
    world.fork(60, STRANGER)
    assert tree.holds(200)
    assert not tree.holds(60)


def test_the_end_of_the_job_is_an_empty_tree() -> None:
    """When all members ended there are none, and a stranger with the top's number is not taken."""
    world = _world()
    tree = ProcessTree(JOB, table=world)
    world.end(JOB)
    assert tree.look() == frozenset()
    world.fork(JOB, STRANGER)
    assert tree.look() == frozenset()


def test_an_environment_that_was_empty_for_a_moment_is_read_again() -> None:
    """One that begins another program shows none: it is looked at twice, and then for another's."""
    world = _world()
    world.fork(200, INIT)
    tree = ProcessTree(JOB, MARK, table=world)
    world.processes[200].environment = MARK + b"\0"
    assert tree.look() == {JOB, 200}
    tree.look()
    world.reads = 0
    tree.look()
    assert world.reads == 2  # the members; what never has an environment costs nothing


def test_a_look_reads_the_members_and_what_is_new() -> None:
    """Among a thousand others' processes a look costs the job's own, after the first."""
    world = _world()
    for pid in range(1000, 2000):
        world.fork(pid, STRANGER)
    tree = ProcessTree(JOB, table=world)
    tree.look()
    world.reads = 0
    tree.look()
    assert world.reads == 1


@pytest.mark.parametrize(
    ("careless", "told"),
    [(False, "in its parent's time"), (True, "nowhere: its parent ignores its children")],
)
def test_what_ended_processes_used_is_counted_once(careless: bool, told: str) -> None:  # noqa: FBT001
    """The seconds of a child that ended count once, wherever the kernel adds them."""
    world = _world()
    world.processes[JOB].careless = careless
    tree = ProcessTree(JOB, table=world)
    world.fork(200, JOB)
    world.work(200, 7.0)
    world.work(JOB, 1.0)
    tree.look()
    world.end(200)
    if not careless:
        world.wait(200)
    tree.look()
    assert tree.used().cpu_s == pytest.approx(8.0), told
    assert tree.used().read_mib == pytest.approx(8.0), told


Step = tuple[str, int, int]


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a machine in use
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("fork", "work", "end", "wait")), st.integers(0, 5), st.integers(1, 4)
        ),
        max_size=40,
    )
)
@example(  # a child whose parent ends before it does: init collects it
    [("fork", 0, 1), ("fork", 1, 1), ("work", 2, 4), ("end", 0, 1), ("end", 0, 1)]
)
def test_every_second_is_counted_once(steps: list[Step]) -> None:
    """Whatever forks, works, ends, is collected or orphaned: the tree's seconds are the truth."""
    world = _world()
    tree = ProcessTree(JOB, table=world)
    ours, truth_s, number = [JOB], 0.0, 200
    for what, which, much in steps:
        alive = [pid for pid in ours if pid in world.processes and not world.processes[pid].ended]
        ended = [
            pid
            for pid in ours
            if pid in world.processes
            and world.processes[pid].ended
            and world.processes[pid].parent != INIT
        ]
        if what == "fork" and alive:
            number += 1
            ours.append(world.fork(number, alive[which % len(alive)]))
        elif what == "work" and alive:
            world.work(alive[which % len(alive)], float(much))
            world.work(STRANGER, 100.0)
            truth_s += much
        elif what == "end" and len(alive) > 1:
            world.end(alive[1 + which % (len(alive) - 1)])
        elif what == "wait" and ended:
            world.wait(ended[which % len(ended)])
        tree.look()
        assert tree.used().cpu_s == pytest.approx(truth_s)


_BURN = "import time\nend = time.process_time() + {s}\nwhile time.process_time() < end: pass\n"


def test_real_processes_that_come_and_go() -> None:
    """Of a shell that starts one short program after the other, all their seconds are counted."""
    burn = f"{sys.executable} -I -S -c '{_BURN.format(s=0.2)}'"
    shell = subprocess.Popen(["sh", "-c", f"{burn}; {burn}; {burn}; read _"], stdin=subprocess.PIPE)
    try:
        tree = ProcessTree(shell.pid)
        deadline = time.monotonic() + 60
        while tree.used().cpu_s < 0.6 and time.monotonic() < deadline:
            time.sleep(0.05)
            tree.look()
        assert 0.6 <= tree.used().cpu_s < 3.0  # start-up of Python is in it
    finally:
        shell.communicate(b"\n")


def test_a_real_daemon_is_found_by_its_mark() -> None:
    """A program that forks twice and leaves its parents behind is still the job's."""
    script = (
        "import os, sys, time\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        print(os.getpid(), flush=True)\n"
        "        time.sleep(60)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "sys.stdin.read()\n"
    )
    name, _, value = MARK.decode().partition("=")
    job = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", script],
        env={**os.environ, name: value},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert job.stdout is not None
    daemon = int(job.stdout.readline())
    try:
        assert daemon in ProcessTree(job.pid, MARK).look()
        assert daemon not in ProcessTree(job.pid).look()
    finally:
        os.kill(daemon, 9)
        job.communicate(b"")


def test_a_job_that_we_started_counts_from_its_start() -> None:
    """What it used before it was first seen is its own, and so is all of one that was not seen."""
    world = _world()
    world.work(JOB, 0.3)
    tree = ProcessTree(JOB, begun_s=0.0, table=world)
    assert tree.used().cpu_s == 0.3
    world.end(JOB)
    missed = ProcessTree(JOB, begun_s=0.0, table=world)
    assert missed.has_ended
    missed.ended(0.5)
    assert missed.used().cpu_s == 0.5
