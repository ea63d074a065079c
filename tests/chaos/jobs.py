"""Launches with `--run` that are killed: taken up again or ended, and each step ran once."""

from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from tests.chaos.trials import LAUNCHES, Stage
from tests.chaos.truth import Count, runs_of
from tests.chaos.wire import Command, Ended, Trouble
from tests.providers.fakes.world import World

_TRAIN = "mkdir -p outputs; echo trained >>outputs/weights"
_STEPS = ["code", "gpucost", "job"]
_OTHERS = 4


def jobs_killed(
    here: Stage, *, world: World, step: int, first: int = 0, launch: str = "1x GPU"
) -> Count:
    """Kill the launch of a job; then `logs ID -f`, or in one of four trials `down` and `reap`.

    It is killed at every `step`-th point between its first command on a machine and its last, and
    of the others at every `_OTHERS * step`-th. One in three is killed once more as it is followed.
    """
    count, machines = Count(), 2 if launch == "two nodes" else 1
    with _trial(here, world) as project:
        whole = here.run(_job(here, launch, project), Trouble())
        here.look(whole, count)
        _finish(here, count, project, whole, machines)
    if whole.code != 0:
        count.refused += 1
        count.told.append(f"the job ends with {whole.code}: {here.log}")
        return count
    for number, at in enumerate(_points(whole.steps, step, first)):
        with _trial(here, world) as project:
            ended = here.run(_job(here, launch, project), Trouble(kill_at=at))
            count.kills += ended.was_killed
            here.look(ended, count)
            if number % 4 != 3:
                ended = _followed(here, count, number if number % 3 == 1 else None) or ended
            _finish(here, count, project, ended, machines)
    return count


def _points(steps: tuple[str, ...], step: int, first: int) -> list[int]:
    """Where to kill."""
    begins, ends = steps.index("before prepare over SSH"), steps.index("after stop over SSH")
    inside = range(begins + first % step, ends + 1, step)
    outside = range(first, len(steps), _OTHERS * step)
    return sorted({*inside, *(at for at in outside if not begins <= at <= ends)})


@contextmanager
def _trial(here: Stage, world: World) -> Iterator[Path]:
    """A trial in a folder of its own, with code to send."""
    with here.trial(world):
        project = here.folder / f"place-{here.number}" / "code"
        project.mkdir(parents=True)
        (project / "train.py").write_text("print(1)\n", encoding="utf-8")
        with chdir(project.parent):
            yield project


def _job(here: Stage, launch: str, project: Path) -> Command:
    words = ("--run", _TRAIN, "--sync", str(project), "--collect", "outputs/")
    return (*LAUNCHES[here.kind][launch], *words)


def _followed(here: Stage, count: Count, kill_at: int | None) -> Ended | None:
    """Take the job up again, as the documents say; None where nothing was written down of it."""
    there = [run for run in runs_of(here.state) if run.state != "ended"]
    if not there:
        return None
    command: Command = ("logs", there[0].marks.run, "-f")
    if kill_at is not None:
        killed = here.run(command, Trouble(kill_at=kill_at))
        count.kills += killed.was_killed
        here.look(killed, count)
    ended = here.run(command)
    here.look(ended, count)
    return ended


def _finish(here: Stage, count: Count, project: Path, ended: Ended, machines: int) -> None:
    """Hold what is there against what was said; then end everything and count what is left."""
    count.trials += 1
    steps = here.machines.started()
    done = ended.code == 0
    if done:
        here.count_left(count)
    for told in _steps_wrong(steps, project, done=done):
        count.lies += done
        count.bugs += not done
        count.told.append(f"job: {told}: {here.log}")
    here.recover(count)
    here.hold_cap(count, machines=machines)


def _steps_wrong(steps: list[list[str]], project: Path, *, done: bool) -> Iterator[str]:
    for one in steps:
        if one != (_STEPS if done else _STEPS[: len(one)]):
            yield f"its steps were {one}"
    if done and not steps:
        yield "no step ran"
    weights = [*project.parent.glob("gpucost-runs/*/outputs/weights")]
    if done and not (weights and [*project.parent.glob("gpucost-runs/*/after.json")]):
        yield "its results are not here"
    if any(file.read_text(encoding="utf-8") != "trained\n" for file in weights):
        yield "its command ran more than once"
