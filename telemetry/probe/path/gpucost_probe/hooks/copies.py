"""Host-to-device copies, timed on the GPU by CUDA events.

Two events are recorded around each `Tensor.to` and `Tensor.cuda` that moves a tensor from the host
to a GPU. They are read when they have passed, so a copy may be told in a later line than its step;
nothing is ever waited for. The two functions are wrapped after the first step of a program that
uses CUDA, so copying the model is not among them. A copy that raises shows one line of ours in its
traceback.

No GPU was at hand: this is tried with a stand-in for the functions of torch.cuda that are called
here.
"""

from __future__ import annotations

import functools
import sys
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..process import Probe

MOST_WAITING = (
    256  # copies that the GPU has not reached yet; more are not timed, and the sum is unknown
)


class Copies:
    """Times copies with pairs of events that are used again and again."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._free: list[Any] = []
        self._waiting: deque[Any] = deque()
        self._seen = False
        self._missed = False
        self.alive = True

    def begin(self, target: Any) -> Any:
        """Return the events of a copy that begins, None if this call is not a copy to a GPU.

        Args:
            target: what `Tensor.to` was told first: device, other tensor, data type.
        """
        device = self._device(target)
        if device is None:
            return None
        cuda = self._torch.cuda
        self._seen = True
        if cuda.is_current_stream_capturing():
            return None
        if len(self._waiting) >= MOST_WAITING:
            self._missed = True
            return None
        pair = self._free.pop() if self._free else _pair(cuda)
        stream = cuda.current_stream(device)
        pair[0].record(stream)
        return pair, stream

    def end(self, begun: Any) -> None:
        """Take that the copy was handed to the GPU."""
        pair, stream = begun
        pair[1].record(stream)
        self._waiting.append(pair)

    def taken_s(self) -> float | None:
        """Return the GPU time of copies that ended since the last call, None if none is known."""
        seconds = 0.0
        while self._waiting and self._waiting[0][1].query():
            pair = self._waiting.popleft()
            seconds += pair[0].elapsed_time(pair[1]) / 1000.0
            self._free.append(pair)
        missed, self._missed = self._missed, False
        return seconds if self._seen and not missed and self.alive else None

    def _device(self, target: Any) -> Any:
        """Return the GPU that a target of `Tensor.to` means, None if it means none."""
        torch = self._torch
        if isinstance(target, torch.dtype):
            return None
        if isinstance(target, torch.Tensor):
            target = target.device
        if isinstance(target, int):
            return target
        if isinstance(target, str):
            target = torch.device(target)
        if isinstance(target, torch.device) and target.type == "cuda":
            return target
        return None


class Guarded:
    """Keeps errors of ours from the program; after one, copies are timed no more."""

    def __init__(self) -> None:
        self.copies: Copies | None = None
        self.probe: Probe | None = None

    def begin(self, target: Any) -> Any:
        """Return what `end` needs, or None."""
        return self._tried("begin", target)

    def end(self, begun: Any) -> None:
        """Take the end of a copy."""
        self._tried("end", begun)

    def taken_s(self) -> float | None:
        """Return the GPU time of copies, None if unknown."""
        seconds: float | None = self._tried("taken_s")
        return seconds

    def _tried(self, part: str, *arguments: Any) -> Any:
        if self.copies is None or not self.copies.alive:
            return None
        try:
            return getattr(self.copies, part)(*arguments)
        except Exception as error:
            self.copies.alive = False
            if self.probe is not None:
                self.probe.events.odd("copies are not timed any more: %r" % (error,))
            return None


_guarded = Guarded()


def watch_copies(probe: Probe) -> None:
    """Start timing copies once CUDA is in use."""
    if _guarded.probe is probe and probe.steps.copies_s == _guarded.taken_s:
        return
    torch = sys.modules["torch"]
    if not torch.cuda.is_initialized():
        return
    first = _guarded.probe is None
    _guarded.probe, _guarded.copies = probe, Copies(torch)
    probe.steps.copies_s = _guarded.taken_s
    if first:
        for name in ("to", "cuda"):
            _wrap(torch.Tensor, name)


def _wrap(tensor: Any, name: str) -> None:
    original = getattr(tensor, name)
    usual = "cuda" if name == "cuda" else None

    @functools.wraps(original)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        # Subclasses may make a call of every attribute: they are left alone.
        if type(self) is not tensor or self.is_cuda:
            return original(self, *args, **kwargs)
        target = args[0] if args else kwargs.get("device", kwargs.get("other"))
        begun = _guarded.begin(usual if target is None else target)
        result = original(self, *args, **kwargs)
        if begun is not None:
            _guarded.end(begun)
        return result

    setattr(tensor, name, copy)


def _pair(cuda: Any) -> Any:
    return cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
