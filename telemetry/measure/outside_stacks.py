"""Where the Python programs of a job are, by py-spy: it reads memory, and needs no lock of theirs.

A run of py-spy lasts some seconds, at first few, later a minute, and writes what it saw with its
moments. What was going on at a moment (a step, an evaluation, a stall) the events of the probe
tell, a little later. Without the probe nothing is known of that, and places are all there is.
"""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from telemetry.recording.places import LOCK, NOT_WAITING, OUTSIDE, WAITING_FOR_LOCK, most_frequent

RATE = 10  # looks a second
_FIRST_RUN_S, _RUN_GROWTH, _LONGEST_RUN_S = 2.0, 1.5, 60.0
_MOST_PROCESSES = 8
_KNOWN_AFTER_S = 35.0  # the probe holds lines back for half a minute at most
_LAST_WAIT_S = 1.0
_MOST_PLACES = 48
_MOST_FAILURES = 3
_MOST_FRAMES = 200

Frame = tuple[str, str, int]  # function, file, line
Stacks = dict[int, tuple[Frame, ...]]  # of each thread, the outermost frame first


def command() -> str | None:
    """Return py-spy's path: beside the Python that runs us, else on PATH; None without it."""
    installed = Path(sys.executable).with_name("py-spy")
    return str(installed) if os.access(installed, os.X_OK) else shutil.which("py-spy")


def looks(text: str) -> Iterator[tuple[float, Stacks, int | None]]:
    """Yield the moments of a Chrome trace of py-spy, with stacks by thread, and the main thread.

    A thread's stack holds from one event to the next; between two, it was seen unchanged.
    """
    stacks: dict[int, list[Frame]] = {}
    main: int | None = None
    moment_us: float | None = None
    for event in sorted(json.loads(text), key=lambda event: float(event["ts"])):
        moment_us = float(event["ts"]) if moment_us is None else moment_us
        while moment_us < event["ts"]:
            if any(stacks.values()):
                yield (
                    moment_us / 1e6,
                    {t: tuple(stack) for t, stack in stacks.items() if stack},
                    main,
                )
            moment_us += 1e6 / RATE
        thread, name = int(event["tid"]), str(event["name"])
        stack = stacks.setdefault(thread, [])
        if not event["args"]["filename"] and name.startswith("thread ("):
            # The system numbers the first thread as the process.
            main = thread if name.startswith(f"thread ({event['pid']})") else main
        elif event["ph"] == "B":
            stack.append((name, str(event["args"]["filename"]), int(event["args"]["line"])))
        elif stack:
            stack.pop()


_PACKAGE = re.compile(r"/(?:site|dist)-packages/(.+?)(?:/__init__)?(?:\.pyx?|\.so)?$")
_STANDARD = re.compile(
    r"/lib(?:64)?/python3\.\d+t?/(?!site-packages|dist-packages)(.+?)(?:/__init__)?\.py$"
)
_FROZEN = re.compile(r"^<frozen (.+)>$")
_OURS = re.compile(r"/gpucost_probe/")


def module_of(path: str) -> str | None:
    """Return the module of a library's file as Python names it; None for the user's own."""
    for pattern in (_PACKAGE, _STANDARD, _FROZEN):
        if match := pattern.search(path):
            return match[1].replace("/", ".")
    return None


def placed(thread: int, stacks: Mapping[int, Sequence[Frame]]) -> tuple[str, str, str]:
    """Return place, owner and within of a thread, as rows of `stacks` lines have them.

    Of one that waits for another, the place of that one: a loader in a thread, or Python that
    `tf.data` calls in a thread of TensorFlow while its graph runs.
    """
    spot, owner, within = _locate(stacks[thread])
    in_graph = _TENSORFLOW in owner
    if not in_graph and not owner.startswith(_WAITING):
        return spot, owner, within
    for number, frames in stacks.items():
        if number != thread and not _OURS.search(frames[0][1]):
            its, calls, around = _locate(frames)
            works = around != _OUTERMOST and not calls.startswith(_WAITING)
            if works and (around.startswith(_TENSORFLOW) or not in_graph):
                feeds = in_graph or owner.startswith(_QUEUES)
                return its, calls, "torch.utils.data" if feeds else around
    return spot, owner, within


_WAITING = ("threading", "queue", "concurrent", "multiprocessing", "selectors", "asyncio")
_QUEUES = ("queue", "multiprocessing.queues")
_TENSORFLOW = "tensorflow.python."
_INLINE = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")  # lines of the function around
_OUTERMOST = "<none>"  # no line of the user's own is in the stack


def _locate(frames: Sequence[Frame]) -> tuple[str, str, str]:
    spot, owner, inner, within = "", "", "", ""
    frames = [frame for frame in frames if not _OURS.search(frame[1])]
    for function, path, line in list(reversed(frames))[:_MOST_FRAMES]:
        module = module_of(path)
        if module is None:
            if function.endswith(_INLINE):
                continue
            spot = spot or f"{function.rpartition('<locals>.')[2]} ({Path(path).name}:{line})"
        elif not spot:
            inner, owner = inner or module, module
        else:
            within = module
            break
    if not spot and frames:
        function, path, line = frames[0]
        return f"{function} ({Path(path).name}:{line})", owner, _OUTERMOST
    distinct = inner.partition(".")[0] != owner.partition(".")[0] or inner.count(".") > 1
    return spot, f"{owner}>{inner}" if owner and distinct and inner != owner else owner, within


_APART = ("evaluation", "stall")  # other spans are parts of a step


@dataclass(slots=True)
class _Run:
    """A run of py-spy."""

    process: subprocess.Popen[bytes]
    began_s: float
    output: Path


@dataclass(slots=True)
class _Watched:
    """A process that is looked at.

    Attributes:
        name: of its events.
        thread: the one that steps, None for the main thread.
        first_s: the end of its first step, seconds since 1970; None before.
        last_s: the end of the last step that was told.
        stepped: whether an optimizer stepped; else rounds of the loop count.
        spans: begin, end and kind of what was timed apart from steps.
        waiting: looks that are not counted yet: moment, and place with its work.
        counts: looks by phase and place since the last line.
    """

    name: str
    run_s: float = _FIRST_RUN_S
    run: _Run | None = None
    failures: int = 0
    thread: int | None = None
    first_s: float | None = None
    last_s: float = 0.0
    stepped: bool = False
    spans: list[tuple[float, float, str]] = field(default_factory=list)
    waiting: list[tuple[float, tuple[str, str, str]]] = field(default_factory=list)
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def take(self, event: Mapping[str, object]) -> None:
        """Take an event of its probe."""
        kind, t_s = event.get("event"), float(str(event.get("t_s") or 0.0))
        if kind in {"step", "iteration"}:
            self.last_s = t_s
            self.first_s = t_s if self.first_s is None else self.first_s
            self.stepped = self.stepped or kind == "step"
        elif kind == "span" and event.get("kind") in _APART:
            end_s = t_s + float(str(event.get("over_s") or event.get("s") or 0.0))
            self.spans.append((t_s, end_s, str(event.get("kind"))))
        elif kind == "thread":
            self.thread = int(str(event.get("ident")))

    def settle(self, until_s: float, *, ended: bool) -> None:
        """Count the looks until a moment by what was going on."""
        later = []
        for moment_s, spot in self.waiting:
            if moment_s > until_s:
                later.append((moment_s, spot))
            else:
                self.counts[self._phase(moment_s, ended=ended), *spot] += 1
        self.waiting = later
        self.spans = [span for span in self.spans if span[1] > until_s - 2 * _KNOWN_AFTER_S]

    def _phase(self, moment_s: float, *, ended: bool) -> str:
        if self.first_s is None:
            return "unstepped"
        if moment_s <= self.first_s:
            return "start-up"
        if ended and moment_s > self.last_s:
            return "teardown"
        spans = (kind for begin_s, end_s, kind in self.spans if begin_s <= moment_s < end_s)
        return next(spans, "steady" if self.stepped else "unstepped")

    def lines(self, t_s: float) -> Iterator[str]:
        """Yield what was counted since the last lines, for the capture."""
        counts, self.counts = self.counts, Counter()
        states = [key for key in counts if key[2] in _LOCK_STATES]
        lock = [[*key, counts.pop(key)] for key in states]
        for by, rows in ((LOCK, lock), (OUTSIDE, most_frequent(counts, _MOST_PLACES))):
            line = {"event": "stacks", "by": by, "t_s": round(t_s, 3), "seen": rows}
            if rows:
                yield json.dumps({**line, "process": self.name}, separators=(",", ":"))


class OutsideStacks:
    """Runs py-spy on the job's Python programs.

    Attributes:
        problem: why nothing was seen, in the words of py-spy or the system; None while it works.
        looked: looks so far.
    """

    def __init__(self) -> None:
        self._command = command()
        self._folder: Path | None = None
        self._watched: dict[int, _Watched] = {}
        self._names: dict[str, int] = {}
        self.problem = None if self._command else "py-spy is not installed: pip install py-spy"
        self.looked = 0
        self._lock_due_s = 0.0

    def take(self, lines: Iterable[str]) -> None:
        """Take events of the probe, as lines of a capture."""
        for line in lines:
            event = json.loads(line)
            name, kind = str(event.get("process")), event.get("event")
            if kind == "hello":
                self._names[name] = int(event["pid"])
                watched = self._watched.setdefault(int(event["pid"]), _Watched(name))
                watched.name = name
            pid = self._names.get(name)
            if pid is not None:
                self._watched[pid].take(event)

    def look(self, program: int | None, now_s: float) -> list[str]:
        """Start runs and take in those that are over; return lines for the capture.

        Args:
            program: the job's busiest Python program, looked at where no probe said hello.
            now_s: seconds since 1970.
        """
        if program is not None and not self._watched:
            self._watched[program] = _Watched(f"outside-{program}")
        lines: list[str] = []
        for pid, watched in list(self._watched.items())[:_MOST_PROCESSES]:
            self._advance(pid, watched, now_s)
            self._look_for_lock(pid, watched, now_s)
            watched.settle(min(now_s - _KNOWN_AFTER_S, watched.last_s), ended=False)
            lines += watched.lines(now_s)
        return lines

    def end(self, now_s: float) -> list[str]:
        """Take in what is left; return the last lines."""
        until_s = time.monotonic() + _LAST_WAIT_S
        lines: list[str] = []
        for pid, watched in self._watched.items():
            if watched.run is not None:
                with contextlib.suppress(subprocess.TimeoutExpired, ProcessLookupError):
                    if os.path.exists(f"/proc/{pid}"):  # noqa: PTH110 - it goes on, we do not
                        watched.run.process.send_signal(2)
                    watched.run.process.wait(max(0.0, until_s - time.monotonic()))
                self._collect(watched, watched.run)
            watched.settle(float("inf"), ended=True)
            lines += watched.lines(now_s)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        return lines

    def _look_for_lock(self, pid: int, watched: _Watched, now_s: float) -> None:
        """Look a few times whether the main thread waits for the interpreter's lock."""
        if now_s < self._lock_due_s:
            return
        for i in range(_LOCK_LOOKS):
            state = lock_state(pid)
            if state is None:
                return
            watched.waiting.append((now_s + i * _LOCK_PAUSE_S, ("", state, "")))
            time.sleep(_LOCK_PAUSE_S)
        self._lock_due_s = now_s + _LOCK_EVERY_S

    def _advance(self, pid: int, watched: _Watched, now_s: float) -> None:
        run = watched.run
        if run is not None and run.process.poll() is not None:
            self._collect(watched, run)
            run = None
        alive = os.path.exists(f"/proc/{pid}")  # noqa: PTH110 - quick
        if run is None and alive and watched.failures < _MOST_FAILURES and self._command:
            watched.run = self._start(pid, watched, now_s)

    def _start(self, pid: int, watched: _Watched, now_s: float) -> _Run | None:
        length_s, watched.run_s = watched.run_s, min(watched.run_s * _RUN_GROWTH, _LONGEST_RUN_S)
        command = [str(self._command), "record", "--pid", str(pid), "--rate", str(RATE)]
        command += ["--duration", str(round(length_s)), "--format", "chrometrace", "--idle"]
        command += ["--nonblocking", "--threads", "--full-filenames", "--output"]
        try:
            self._folder = self._folder or Path(tempfile.mkdtemp(prefix="gpucost-stacks-"))
            output = self._folder / f"{pid}.json"
            output.unlink(missing_ok=True)
            process = subprocess.Popen(  # noqa: S603 - py-spy, with numbers and a path of ours
                [*command, str(output)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
        except OSError as error:
            self.problem = f"it cannot be run: {error}"
            watched.failures = _MOST_FAILURES
            return None
        return _Run(process, now_s, output)

    def _collect(self, watched: _Watched, run: _Run) -> None:
        """Take in what a run saw."""
        watched.run = None
        if run.process.poll() is None:
            run.process.kill()
        _, errors = run.process.communicate()
        try:
            text = run.output.read_text(encoding="utf-8", errors="replace")
            looks_taken = [
                (run.began_s + moment_s, placed(thread, stacks))
                for moment_s, stacks, main in looks(text)
                if (thread := watched.thread if watched.thread in stacks else main) in stacks
                and thread is not None
            ]
        except (OSError, ValueError, KeyError):
            looks_taken = []
        watched.waiting += looks_taken
        self.looked += len(looks_taken)
        watched.failures = 0 if looks_taken else watched.failures + 1
        if not looks_taken and not self.looked:
            self.problem = _reason(errors.decode("utf-8", errors="replace")) or self.problem
        elif looks_taken:
            self.problem = None


_LOCK_STATES = (WAITING_FOR_LOCK, NOT_WAITING)
_LOCK_LOOKS, _LOCK_PAUSE_S, _LOCK_EVERY_S = 4, 0.013, 0.5
_FUTEX = {"x86_64": "202", "aarch64": "98"}.get(os.uname().machine)


def lock_state(pid: int) -> str | None:
    """Return whether the main thread waits for the interpreter's lock; None where that is hidden.

    CPython waits for it with a timeout, of 5 ms (ceval_gil.c, take_gil), which few other waits have
    that are made by futex: the fifth field of proc(5), `/proc/PID/syscall`, is the timeout.
    """
    try:
        fields = Path(f"/proc/{pid}/syscall").read_text(encoding="ascii").split()
    except OSError:
        return None
    waits = len(fields) > _TIMEOUT and fields[0] == _FUTEX and fields[_TIMEOUT] != "0x0"
    return WAITING_FOR_LOCK if waits else NOT_WAITING


_TIMEOUT = 4


def _reason(errors: str) -> str | None:
    """Return the last cause that py-spy names."""
    if "ermission" in errors or "EPERM" in errors or "not permitted" in errors:
        return "the system does not permit it (a container needs the capability SYS_PTRACE)"
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return lines[0].removeprefix("Error: ")[:200] if lines else None
