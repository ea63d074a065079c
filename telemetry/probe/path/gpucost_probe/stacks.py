"""Where the stepping thread spends its time: its stack, looked at five times a second.

A thread of ours asks Python for the stacks of all threads (sys._current_frames). It changes nothing
in them, takes no signal, is unknown to `threading`, and ends before the program forks. What it saw
waits until the clock of the steps knows what it was part of: a step, a stall, an evaluation.

A place is named by the innermost line of the user's own code: names of functions and files and line
numbers, never arguments, values or source text. Code of the standard library and of installed
packages is folded into the user's line that called it; what kind of work it does is told by the
tables below, by the bytecode of the line, and by the types of its variables.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from _thread import allocate_lock, get_ident, start_new_thread
from threading import main_thread
from time import perf_counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Mapping

    from .events import Events


MOST_KNOWN = 4000
MOST_LOOKS = 3  # at the variables of a piece of code
_HAS_POSITIONS = sys.version_info >= (3, 11)
_PROXIES = sys.version_info >= (3, 13)  # f_locals copies nothing any more
_OPTIMIZED = 0x1  # inspect.CO_OPTIMIZED: a function, not a module or class body
_LOADS = ("LOAD_METHOD", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF")
_TOUCHES_LOCALS = frozenset(("locals", "vars", "exec", "eval", "dir"))

_called: dict[tuple[CodeType, int], tuple[str, str]] = {}
_tensors: dict[CodeType, tuple[int, bool]] = {}


def called(frame: FrameType) -> tuple[str, str]:
    """Return what is called where a frame is: first name and last name of `a.b.c(...)`.

    Two empty names where it calls nothing, or what cannot be named.
    """
    key = (frame.f_code, frame.f_lasti)
    names = _called.get(key)
    if names is None:
        try:
            names = _decoded(*key)
        except Exception:
            names = ("", "")
        if len(_called) >= MOST_KNOWN:
            _called.clear()
        _called[key] = names
    return names


def _decoded(code: CodeType, last: int) -> tuple[str, str]:
    import dis

    before = [
        instruction for instruction in dis.get_instructions(code) if instruction.offset <= last
    ]
    if not before or "CALL" not in before[-1].opname:
        return "", ""
    loads = [instruction for instruction in before if instruction.opname.startswith(_LOADS)]
    if _HAS_POSITIONS:
        # The callee begins where the call begins; of a chain the longest part is the last name.
        start = _start(before[-1])
        loads = [instruction for instruction in loads if _start(instruction) == start]
    else:
        loads = loads[-2:]
    if not loads:
        return "", ""
    return str(loads[0].argval), str(loads[-1].argval)


def _start(instruction: Any) -> tuple[int, int]:
    """Return the line and column at which an instruction's source begins."""
    line, _, column, _ = instruction.positions
    return line, column


def holds_tensors(frame: FrameType) -> bool:
    """Return whether a function works on tensors of PyTorch, by the types of its variables.

    Each piece of code is looked at a few times only, and no value is kept.
    """
    code = frame.f_code
    looks, holds = _tensors.get(code, (0, False))
    if holds or looks >= MOST_LOOKS:
        return holds
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if tensor is None or not code.co_flags & _OPTIMIZED or _TOUCHES_LOCALS & {*code.co_names}:
        return False
    holds = _has(frame, tensor)
    if len(_tensors) >= MOST_KNOWN:
        _tensors.clear()
    _tensors[code] = (looks + 1, holds)
    return holds


def _has(frame: FrameType, kind: type) -> bool:
    if sys.version_info < (3, 11):
        import gc

        return any(issubclass(type(value), kind) for value in gc.get_referents(frame))
    values = frame.f_locals
    holds = any(issubclass(type(value), kind) for value in values.values())
    if not _PROXIES:
        values.clear()  # a copy that would keep the values alive
    return holds


MOST_FRAMES = 200

# What a thread does in a module, or a package with all that is in it. The longest name counts.
# fmt: off
WORK = {name: work for work, names in (
    ("model", ("torch", "torchvision.models", "timm", "transformers.models")),
    ("device", ("torch.autograd", "torch._tensor", "torch.cuda", "torch.optim", "torch.amp",
                "torch.nn.utils", "jax", "jaxlib", "tensorflow")),
    ("communication", ("torch.distributed", "torch.nn.parallel")),
    ("save", ("torch.distributed.checkpoint", "torch.serialization", "safetensors")),
    ("compile", ("torch._dynamo", "torch._inductor", "torch._functorch", "triton",
                 "jax._src.compiler")),
    ("input", ("torch.utils.data", "torchvision", "timm.data",
               "transformers.tokenization_utils", "transformers.tokenization_utils_base",
               "transformers.tokenization_utils_fast", "keras.src.trainers.data_adapters",
               "tensorflow.python.data", "PIL", "cv2", "imageio", "skimage", "torchaudio",
               "soundfile", "librosa", "decord", "av", "datasets", "pyarrow", "pandas", "h5py",
               "zarr", "lmdb", "webdataset", "streaming", "tokenizers", "sentencepiece", "tiktoken",
               "albumentations", "imgaug", "fsspec", "s3fs", "gcsfs", "smart_open", "gzip",
               "zipfile", "tarfile", "lzma", "bz2", "numpy.lib")),
    ("network", ("requests", "urllib3", "urllib", "http", "httpx", "aiohttp", "botocore", "socket",
                 "ssl")),
    ("thread", ("threading", "queue", "concurrent", "asyncio", "selectors", "multiprocessing")),
    ("import", ("importlib", "_frozen_importlib", "_frozen_importlib_external")),
) for name in names}
# fmt: on
# What encloses the user's own code tells what that is for.
ENCLOSING = {
    "torch.utils.data": "input",
    "torch.nn.modules.module": "model",
    "torch.optim": "device",
    "torch.serialization": "save",
    "importlib": "import",
    "_frozen_importlib": "import",
    "_frozen_importlib_external": "import",
}
# A function with such a name prepares input; where it does something of its own or waits.
INPUT_NAME = re.compile(
    r"(get|next|load|read|fetch|make|sample|draw|prepare|create|build|generate|gen|produce|batch)\w*"
    r"(batch|data|sample|item|example|image|frame|record|shard|token|file|input)"
    r"|^_*(load|read|fetch|decode|augment|collate|tokeni[sz]e|preprocess|prefetch|download)"
    r"|^__(getitem|next|iter)__$"
)
_MAY_BE_INPUT = frozenset((None, "host", "sleep", "network", "thread"))
_STANDARD = os.path.dirname(os.__file__) + os.sep
_INSTALLED = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class Places:
    """Names places; what is known of a piece of code is kept."""

    def __init__(self) -> None:
        self._own: dict[CodeType, bool] = {}

    def of(self, thread: int, frames: Mapping[int, FrameType]) -> tuple[str, str]:
        """Return where a thread is and what it does there.

        Of one that waits for another, the place of that one: a loader in a thread.

        Args:
            thread: its identity.
            frames: of all threads, from sys._current_frames().
        """
        place, doing, queued = self._look(frames[thread])
        if doing != "thread":
            return place, doing
        for number, frame in frames.items():
            if number != thread:
                location, does, _ = self._look(frame, only_own=True)
                if location and does != "thread":
                    # What a thread puts into a queue that another one reads from is input.
                    return location, "input" if queued and does in _MAY_BE_INPUT else does
        return place, "input" if queued else "thread"

    def _look(self, frame: FrameType | None, *, only_own: bool = False) -> tuple[str, str, bool]:
        """Return the place, the work, and whether the thread waits in a queue."""
        place, doing, queued, names = "", None, False, []
        first, outermost = frame, frame
        for _ in range(MOST_FRAMES):
            if frame is None:
                break
            outermost = frame
            if self._is_own(frame.f_code):
                name = frame.f_code.co_name
                names.append(name)
                if not place:
                    place = _named(frame)
                    if frame is first:
                        doing = _of_call(frame)
            else:
                module = frame.f_globals.get("__name__")
                if isinstance(module, str):
                    table = ENCLOSING if place else WORK
                    if place or doing is None:
                        doing = _work_of(module, table) or doing
                    queued = queued or (not place and module in _QUEUES)
            frame = frame.f_back
        if doing in _MAY_BE_INPUT and any(map(INPUT_NAME.search, names)):
            doing = "input"
        if not place and outermost is not None and not only_own:
            place = _named(outermost)
        return place, doing or "host", queued

    def _is_own(self, code: CodeType) -> bool:
        """Return whether code is the user's own."""
        own = self._own.get(code)
        if own is None:
            name = code.co_filename
            foreign = name.startswith((_OURS, "<frozen", _STANDARD))
            own = not (foreign or any(part in name for part in _INSTALLED))
            if len(self._own) >= MOST_KNOWN:
                self._own.clear()
            self._own[code] = own
        return own


_QUEUES = frozenset(("queue", "multiprocessing.queues"))


def _work_of(module: str, table: Mapping[str, str]) -> str | None:
    """Return what a table says of a module, by its longest name."""
    while module:
        work = table.get(module)
        if work is not None:
            return work
        module = module.rpartition(".")[0]
    return None


def _named(frame: FrameType) -> str:
    code = frame.f_code
    name = getattr(code, "co_qualname", code.co_name).rpartition("<locals>.")[2]
    return "%s (%s:%d)" % (name, os.path.basename(code.co_filename), frame.f_lineno or 0)


def _of_call(frame: FrameType) -> str | None:
    """Return what a line of the user's own does, that runs or has called a function in C."""
    root, name = called(frame)
    module = frame.f_globals.get(root) if root else None
    if isinstance(module, type(sys)):
        work = _work_of(module.__name__, WORK)
        if work is not None:
            return work
        if name in CALLS:
            return CALLS[name]
        return "host"
    if name in CALLS:
        return CALLS[name]
    return "model" if holds_tensors(frame) else None


# A method in C: what it does, mostly. Those that need a result of the GPU wait for it.
CALLS = {
    **dict.fromkeys(("item", "cpu", "tolist", "numpy", "synchronize", "nonzero"), "device"),
    **dict.fromkeys(("sleep", "input", "pause", "select", "poll"), "sleep"),
    **dict.fromkeys(("recv", "recv_into", "sendall", "accept", "connect"), "network"),
    **dict.fromkeys(("acquire", "wait", "join"), "thread"),
    **dict.fromkeys(("read", "readline", "readlines", "readinto", "imread", "fromfile"), "input"),
}


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
        rows: list[Any] = [[*key, n] for key, n in ranked[:MOST_PLACES]]
        folded: dict[tuple[str, str], int] = {}
        for (during, _, doing), n in ranked[MOST_PLACES:]:
            folded[during, doing] = folded.get((during, doing), 0) + n
        rows += [[during, "", doing, n] for (during, doing), n in sorted(folded.items())]
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
