"""Where the stepping thread spends its time: its stack, looked at from inside five times a second.

A thread of ours asks Python for the stacks of all threads (sys._current_frames). It changes nothing
in them, takes no signal, is unknown to `threading`, and ends before the program forks. What it saw
waits until the clock of the steps knows what it was part of: a step, a stall, an evaluation.

It needs the interpreter's lock to look, so Python code is seen late: at the next line that lets go
of the lock. Such a look says so. Who samples from outside needs no lock, and takes from here what
only the inside knows: what a line calls in C, by the types of its objects.

A place is named by the innermost line of the user's own code: names of functions and files and line
numbers, never arguments, values or source text. Code of the standard library and of installed
packages is folded into the user's line that called it; `telemetry.recording.places` says what the
names of the modules mean.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from _thread import LockType, allocate_lock, get_ident, start_new_thread
from functools import lru_cache
from threading import main_thread
from time import perf_counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    import dis
    from types import CodeType, FrameType
    from typing import Callable, Mapping

    from .events import Events

MOST_KNOWN = 4000
MOST_LOOKS = 3  # at the variables of a piece of code
MOST_FRAMES = 200
_NAMES_KNOWN = sys.version_info >= (3, 11)  # of what is called: bytecode has positions
_PROXIES = sys.version_info >= (3, 13)  # f_locals copies nothing any more
_OPTIMIZED = 0x1  # inspect.CO_OPTIMIZED: a function, not a module or class body
_LOADS = ("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF")
_OPERATES = ("BINARY_", "COMPARE_OP", "UNARY_", "INPLACE_", "STORE_SUBSCR")
_TOUCHES_LOCALS = frozenset(("locals", "vars", "exec", "eval", "dir"))
# A function of the user's own that makes tensors of what lies on the host prepares input.
_MAKES_TENSORS = ("from_numpy", "frombuffer", "as_tensor", "tensor")
# So does one that stacks items and copies them to where the model is, unless a module calls it.
_COPIES, _LOADS_DATA = frozenset(("to", "cuda", "pin_memory")), "torch.utils.data"
_MODULES = "torch.nn.modules"
_TRAINS = frozenset(("backward", "zero_grad", "step"))  # of an optimizer, or of a simulator
_QUEUES = ("queue", "multiprocessing.queues")
_WAITING = ("threading", "concurrent", "multiprocessing", "selectors", "asyncio", *_QUEUES)
_INLINE = ("<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")  # lines of the function around
LATE = "late:"
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)


class Places:
    """Names places; what is known of a piece of code is kept."""

    def __init__(self) -> None:
        self._owners: dict[tuple[CodeType, int], tuple[int, str]] = {}

    def of(self, thread: int, frames: Mapping[int, FrameType]) -> tuple[str, str, str]:
        """Return the place of a thread, what its line called, and within what.

        Of one that waits for another, the place of that one: a loader in a thread.

        Args:
            thread: its identity.
            frames: of all threads, from sys._current_frames().
        """
        location, owner, within = self._look(frames[thread])
        if owner.startswith(_WAITING):
            for number, frame in frames.items():
                if number == thread:
                    continue
                line, calls, around = self._look(frame)
                if around is not None and not calls.startswith(_WAITING):
                    return line, calls, _LOADS_DATA if owner.startswith(_QUEUES) else around
        return location, owner, within or ""

    def _look(self, frame: FrameType) -> tuple[str, str, str | None]:
        """Return the same of one thread; within None where no line of the user's is in it."""
        location = owner = inner = within = ""
        first: FrameType = frame
        outermost, outer = frame, frame.f_back
        at: FrameType | None = frame
        for _ in range(MOST_FRAMES):
            if at is None:
                break
            outermost, outer = at, at.f_back
            if _is_own(at.f_code):
                if at is first:
                    owner = self._called(at)
                if not location and at.f_code.co_name not in _INLINE:
                    location = _named(at)
                within = within or _tensors_made(at.f_code)
            else:
                module = str(at.f_globals.get("__name__") or "")
                if not location:
                    inner, owner = inner or module, module
                elif not module.startswith("gpucost_probe"):
                    # A tensor that a module of PyTorch makes on its way is not input.
                    within = module if module.startswith(_MODULES) else within or module
                    break
            at = outer
        if not location:
            return _named(outermost), owner, None
        distinct = owner and inner and inner != owner
        return location, "%s>%s" % (owner, inner) if distinct else owner, within

    def _called(self, frame: FrameType) -> str:
        """Return what a line calls in C, with the module or class that defines it.

        `torch` for an operator on tensors; empty where the line itself runs, or nobody knows.
        """
        key = (frame.f_code, frame.f_lasti)
        looks, owner = self._owners.get(key, (0, ""))
        if not owner and looks < MOST_LOOKS:
            owner = self._owner(frame, key)
            if len(self._owners) >= MOST_KNOWN:
                self._owners.clear()
            self._owners[key] = looks + 1, owner
        return owner

    def _owner(self, frame: FrameType, key: tuple[CodeType, int]) -> str:
        names = _decoded(*key)
        if not names:
            return ""
        variables = _variables(frame) if names[0] not in frame.f_globals else {}
        try:
            if names == (_OPERATOR,):
                tensor = getattr(sys.modules.get("torch"), "Tensor", ())
                return "torch" if any(isinstance(v, tensor) for v in variables.values()) else ""
            return _defined(names, variables, frame)
        except Exception:
            return ""
        finally:
            if not _PROXIES:
                variables.clear()  # a copy that would keep the values alive


_OPERATOR = "<operator>"


def _variables(frame: FrameType) -> dict[str, object]:
    code = frame.f_code
    if not code.co_flags & _OPTIMIZED:
        return dict(frame.f_locals)
    return {} if _TOUCHES_LOCALS & {*code.co_names} else dict(frame.f_locals)


@lru_cache(MOST_KNOWN)
def _is_own(code: CodeType) -> bool:
    """Return whether code is the user's own."""
    name = code.co_filename
    foreign = name.startswith((_OURS, "<frozen", _STANDARD))
    return not (foreign or any(part in name for part in _INSTALLED))


@lru_cache(MOST_KNOWN)
def _decoded(code: CodeType, last: int) -> tuple[str, ...]:
    """Return the names a, b, c of the call `a.b.c(...)` that runs; of an operator, its mark."""
    import dis

    before = [step for step in dis.get_instructions(code) if step.offset <= last]
    if not before or not _NAMES_KNOWN:
        return ()
    if before[-1].opname.startswith(_OPERATES):
        return (_OPERATOR,)
    if "CALL" not in before[-1].opname:
        return ()
    # The callee begins where the call begins.
    begin = _start(before[-1])
    loads = [load for load in before if load.opname.startswith(_LOADS) and _start(load) == begin]
    return tuple(str(load.argval) for load in loads)


def _start(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    """Return the line and column at which an instruction's source begins."""
    span = instruction.positions
    return (span.lineno, span.col_offset) if span else (None, None)


def _defined(names: tuple[str, ...], variables: dict[str, object], frame: FrameType) -> str:
    """Return the full name of what `names` call: by module, or by the class that defines it.

    Attributes are read where they lie, never through code of the program.
    """
    root = names[0]
    value = variables.get(root, frame.f_globals.get(root, frame.f_builtins.get(root)))
    if len(names) == 1:
        name = getattr(value, "__qualname__", "") if type(value) in _CALLABLE else ""
        return "%s.%s" % (value.__module__ or "builtins", name) if name else ""
    for name in names[1:-1]:
        value = object.__getattribute__(value, "__dict__").get(name)
    if isinstance(value, type(sys)):
        return "%s.%s" % (value.__name__, names[-1])
    kinds = (kind for kind in type(value).__mro__ if names[-1] in vars(kind))
    kind = next(kinds, None)
    return "%s.%s.%s" % (kind.__module__, kind.__qualname__, names[-1]) if kind else ""


_CALLABLE = (type(len), type(_defined), type)


def _tensors_made(code: CodeType) -> str:
    """Return by which function of PyTorch a function makes tensors, "" where it makes none."""
    names = {*code.co_names}
    if _TRAINS & names:
        return ""
    if "stack" in names and _COPIES & names:
        return _LOADS_DATA
    return next(("torch." + name for name in _MAKES_TENSORS if name in code.co_names), "")


def _named(frame: FrameType) -> str:
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return "%s (%s:%d)" % (name, os.path.basename(code.co_filename), frame.f_lineno or 0)


VARIABLE = "GPUCOST_PROBE_STACKS"
PERIOD_S = 0.2
GOLDEN = 0.6180339887498949  # spreads the moments evenly, so that no rhythm of the loop is hit
MOST_WAITING = 600
MOST_PLACES = 24  # in a line; the rest is told as one
JOIN_S = 1.0
LATE_S = 0.0002  # over the timer's slack of 50 us, and waking
# Seconds between lines: at first often, as short programs matter, too.
FIRST_LINE_S, LINE_GROWTH, LINE_S = 2.0, 1.5, 300.0


class Samples:
    """Counts where the thread was seen, by what went on meanwhile.

    Attributes:
        waiting: moment by time.perf_counter(), and place with owner and within, not yet counted.
        meanwhile: the phase of those that wait too long.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = allocate_lock()
        self._counts: dict[tuple[str, ...], int] = {}
        self._from_s: float | None = None
        self._width_s = FIRST_LINE_S
        self.waiting: list[tuple[float, tuple[str, str, str]]] = []
        self.meanwhile = "unstepped"

    def settle(self, during: str, from_s: float = 0.0, until_s: float = float("inf")) -> None:
        """Count what waits from the time given as seen in a phase."""
        if not self.waiting:
            return
        with self._lock:
            waiting, self.waiting = self.waiting, []
            counts = self._counts
            for sample in waiting:
                if from_s <= sample[0] <= until_s:
                    key = (during, *sample[1])
                    counts[key] = counts.get(key, 0) + 1
                else:
                    self.waiting.append(sample)

    def is_due(self, moment_s: float) -> bool:
        """Return whether a line should be written: never before hello was said."""
        if not self._events.greeted:
            return False
        if self._from_s is None:
            self._from_s = moment_s
        return moment_s - self._from_s >= self._width_s

    def write(self) -> None:
        """Write what was counted since the last line."""
        with self._lock:
            counts, self._counts = self._counts, {}
        self._from_s = perf_counter()
        self._width_s = min(self._width_s * LINE_GROWTH, LINE_S)
        if not counts:
            return
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        rows: list[list[object]] = [[*key, n] for key, n in ranked[:MOST_PLACES]]
        folded: dict[tuple[str, ...], int] = {}
        for (during, _, *names), n in ranked[MOST_PLACES:]:
            key = (during, "", *names)
            folded[key] = folded.get(key, 0) + n
        rows += [[*key, n] for key, n in sorted(folded.items())]
        line = {"event": "stacks", "t_s": round(time.time(), 6), "seen": rows}
        self._events.line(json.dumps(line))


class Watch:
    """The thread that looks.

    Args:
        samples: returns where to count.
        watched: returns the thread that steps; the main thread is looked at where it has no stack.
        look_around: called before each look.
        failed: told an error of ours; the thread has ended then.
    """

    def __init__(
        self,
        samples: Callable[[], Samples],
        watched: Callable[[], int],
        look_around: Callable[[], None],
        failed: Callable[[str], None],
    ) -> None:
        self._samples = samples
        self._watched = watched
        self._look_around = look_around
        self._failed = failed
        self._stop: LockType | None = None
        self._ended: LockType | None = None

    def start(self) -> None:
        """Start the thread, unless it runs or the environment forbids it."""
        masks = hasattr(signal, "pthread_sigmask")  # without, signals could reach our thread
        if self._stop is not None or not masks or os.environ.get(VARIABLE) == "0":
            return
        stop, ended = allocate_lock(), allocate_lock()
        stop.acquire()
        ended.acquire()
        # The thread inherits the mask: signals stay those of the program's threads.
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:
            start_new_thread(self._run, (stop, ended))
            self._stop, self._ended = stop, ended
        except RuntimeError:
            pass  # no more threads, or Python ends
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)

    def end(self) -> bool:
        """End the thread and wait for it; return whether it ran."""
        stop, ended = self._stop, self._ended
        if stop is None or ended is None:
            return False
        self._stop = self._ended = None
        stop.release()
        ended.acquire(timeout=JOIN_S)
        return True

    def forget(self) -> None:
        """Take that this is a forked child, in which the thread does not exist."""
        self._stop = self._ended = None

    def _run(self, stop: LockType, ended: LockType) -> None:
        try:
            places, own, turn = Places(), get_ident(), 0.0
            while True:
                wait_s = PERIOD_S * (0.5 + turn)
                due_s, ready_s = perf_counter() + wait_s, core_times_s()[1]
                if stop.acquire(timeout=wait_s):
                    return
                late_s = perf_counter() - due_s - (core_times_s()[1] - ready_s)
                turn = (turn + GOLDEN) % 1.0
                self._look(places, own, late=late_s > LATE_S)
        except Exception as error:
            try:
                self._failed("stacks are not sampled any more: %r" % (error,))
            except Exception:
                pass
        finally:
            ended.release()

    def _look(self, places: Places, own: int, *, late: bool) -> None:
        self._look_around()
        samples = self._samples()
        frames = sys._current_frames()
        frames.pop(own, None)
        thread = self._watched()
        if thread not in frames:
            thread = main_thread().ident or 0
        if thread in frames:
            moment_s = perf_counter()
            location, owner, within = places.of(thread, frames)
            if late and owner:  # Python held the lock until this call let go of it
                owner = LATE + owner
            samples.waiting.append((moment_s, (location, owner, within)))
            if len(samples.waiting) >= MOST_WAITING:
                samples.settle(samples.meanwhile)
            if samples.is_due(moment_s):
                samples.write()


def core_times_s() -> tuple[float, float]:
    """Return how long this thread was on a core, and how long it waited for one, since it began.

    To wait for the interpreter's lock is neither.
    """
    try:
        with open("/proc/thread-self/schedstat", "rb") as stream:
            running_ns, ready_ns = stream.read().split()[:2]
    except (OSError, ValueError):
        return time.thread_time(), 0.0
    return int(running_ns) / 1e9, int(ready_ns) / 1e9
