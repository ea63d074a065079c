"""Where the stepping thread spends its time: its stack, looked at five times a second.

A thread of ours asks Python for the stacks of all threads (sys._current_frames). It changes nothing
in them, takes no signal, is unknown to `threading`, and ends before the program forks. What it saw
waits until the clock of the steps knows what it was part of: a step, a stall, an evaluation.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from _thread import allocate_lock, get_ident, start_new_thread
from threading import main_thread
from time import perf_counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from ..events import Events

VARIABLE = "GPUCOST_PROBE_STACKS"
PERIOD_S = 0.2
GOLDEN = 0.6180339887498949  # spreads the moments evenly, so that no rhythm of the loop is hit
MOST_WAITING = 600
MOST_PLACES = 24  # in a line; the rest is told as one
JOIN_S = 1.0
# Seconds between lines: at first often, as short programs matter, too.
FIRST_LINE_S, LINE_GROWTH, LINE_S = 2.0, 1.5, 300.0


class Samples:
    """Counts where the thread was seen, by what went on meanwhile.

    Attributes:
        waiting: moment by time.perf_counter(), and place with its work, not yet counted.
        meanwhile: the phase of those that wait too long.
    """

    def __init__(self, events: Events) -> None:
        self._events = events
        self._lock = allocate_lock()
        self._counts: dict[tuple[str, str, str], int] = {}
        self._from_s: float | None = None
        self._width_s = FIRST_LINE_S
        self.waiting: list[tuple[float, tuple[str, str]]] = []
        self.meanwhile = "unstepped"

    def settle(self, during: str, from_s: float = 0.0, until_s: float = float("inf")) -> None:
        """Count what waits from the time given as seen in a phase."""
        if not self.waiting:
            return
        with self._lock:
            waiting, self.waiting = self.waiting, []
            counts = self._counts
            for each in waiting:
                if from_s <= each[0] <= until_s:
                    key = (during, *each[1])
                    counts[key] = counts.get(key, 0) + 1
                else:
                    self.waiting.append(each)

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
        ranked = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
        rows: list[Any] = [[*key, n] for key, n in ranked[:MOST_PLACES]]
        rest: dict[tuple[str, str], int] = {}
        for (during, _, doing), n in ranked[MOST_PLACES:]:
            rest[during, doing] = rest.get((during, doing), 0) + n
        rows += [[during, "", doing, n] for (during, doing), n in sorted(rest.items())]
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
        self._stop: Any = None
        self._ended: Any = None

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
        if stop is None:
            return False
        self._stop = self._ended = None
        stop.release()
        ended.acquire(timeout=JOIN_S)
        return True

    def forget(self) -> None:
        """Take that this is a forked child, in which the thread does not exist."""
        self._stop = self._ended = None

    def _run(self, stop: Any, ended: Any) -> None:
        try:
            from .places import Places

            places, own, turn = Places(), get_ident(), 0.0
            while not stop.acquire(timeout=PERIOD_S * (0.5 + turn)):
                turn = (turn + GOLDEN) % 1.0
                self._look(places, own)
        except Exception as error:
            try:
                self._failed("stacks are not sampled any more: %r" % (error,))
            except Exception:
                pass
        finally:
            ended.release()

    def _look(self, places: Any, own: int) -> None:
        self._look_around()
        samples = self._samples()
        frames = sys._current_frames()
        frames.pop(own, None)
        thread = self._watched()
        if thread not in frames:
            thread = main_thread().ident or 0
        if thread in frames:
            moment_s = perf_counter()
            samples.waiting.append((moment_s, places.of(thread, frames)))
            if len(samples.waiting) >= MOST_WAITING:
                samples.settle(samples.meanwhile)
            if samples.is_due(moment_s):
                samples.write()
