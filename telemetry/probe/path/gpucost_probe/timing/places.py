"""Names where a thread is: the innermost line of the user's own code, and what is done there.

Only names of functions and files and line numbers are kept, never arguments, values or source text.
Code of the standard library and of installed packages is folded into the line of the user's that
called it; what kind of work it does is told by the tables below.
"""

from __future__ import annotations

import os
import re
import sys

from .calls import called, holds_tensors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Mapping

MOST_FRAMES = 200
MOST_KNOWN = 4000

# Module, or package with all that is in it: what a thread does there. The longest name counts.
WORK = {
    "torch": "model",
    "torch.utils.data": "input",
    "torch.autograd": "device",
    "torch._tensor": "device",
    "torch.cuda": "device",
    "torch.optim": "device",
    "torch.amp": "device",
    "torch.nn.utils": "device",
    "torch.distributed": "communication",
    "torch.nn.parallel": "communication",
    "torch.distributed.checkpoint": "save",
    "torch.serialization": "save",
    "safetensors": "save",
    "torch._dynamo": "compile",
    "torch._inductor": "compile",
    "torch._functorch": "compile",
    "triton": "compile",
    "torchvision.models": "model",
    "torchvision": "input",
    "timm": "model",
    "timm.data": "input",
    "transformers.models": "model",
    "transformers.tokenization_utils": "input",
    "transformers.tokenization_utils_base": "input",
    "transformers.tokenization_utils_fast": "input",
    "jax": "device",
    "jaxlib": "device",
    "jax._src.compiler": "compile",
    "keras.src.trainers.data_adapters": "input",
    "tensorflow": "device",
    "tensorflow.python.data": "input",
    **dict.fromkeys(
        (
            "PIL",
            "cv2",
            "imageio",
            "skimage",
            "torchaudio",
            "soundfile",
            "librosa",
            "decord",
            "av",
            "datasets",
            "pyarrow",
            "pandas",
            "h5py",
            "zarr",
            "lmdb",
            "webdataset",
            "streaming",
            "tokenizers",
            "sentencepiece",
            "tiktoken",
            "albumentations",
            "imgaug",
            "fsspec",
            "s3fs",
            "gcsfs",
            "smart_open",
            "gzip",
            "zipfile",
            "tarfile",
            "lzma",
            "bz2",
            "numpy.lib",
        ),
        "input",
    ),
    **dict.fromkeys(
        ("requests", "urllib3", "urllib", "http", "httpx", "aiohttp", "botocore", "socket", "ssl"),
        "network",
    ),
    **dict.fromkeys(
        ("threading", "queue", "concurrent", "asyncio", "selectors", "multiprocessing"), "thread"
    ),
    "importlib": "import",
    "_frozen_importlib": "import",
    "_frozen_importlib_external": "import",
}
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
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


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
        for other, frame in frames.items():
            if other != thread:
                there, does, _ = self._look(frame, only_own=True)
                if there and does != "thread":
                    # What a thread puts into a queue that another one reads from is input.
                    return there, "input" if queued and does in _MAY_BE_INPUT else does
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
                        doing = _found(module, table) or doing
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
            ours = name.startswith((_OURS, "<frozen", _STANDARD))
            own = not (ours or any(part in name for part in _INSTALLED))
            if len(self._own) >= MOST_KNOWN:
                self._own.clear()
            self._own[code] = own
        return own


_QUEUES = frozenset(("queue", "multiprocessing.queues"))


def _found(module: str, table: Mapping[str, str]) -> str | None:
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
        known = _found(module.__name__, WORK)
        if known is not None:
            return known
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
