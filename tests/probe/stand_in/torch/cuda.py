"""The functions of torch.cuda that the probe calls, on a GPU that does nothing.

The GPU has a clock of its own, which the program sets: work that is handed to it takes the seconds of
`WORK_S`, one piece after the other, and is done when `reach` has passed it. Waiting is an error.
"""

from typing import Any

WORK_S = 0.002
STATE = {"initialized": False, "handed_s": 0.0, "reached_s": 0.0, "capturing": False}


class dtype:  # noqa: N801 - as PyTorch names it
    """A data type."""


class device:  # noqa: N801 - as PyTorch names it
    """A device."""

    def __init__(self, text: str) -> None:
        self.type = text.partition(":")[0]


class Tensor:
    """A tensor that lies somewhere."""

    def __init__(self, place: str = "cpu") -> None:
        self.device = device(place)

    @property
    def is_cuda(self) -> bool:
        """Whether it lies on the GPU."""
        return self.device.type == "cuda"

    def to(self, target: Any = None, **kwargs: Any) -> "Tensor":
        """Copy, if that is needed."""
        target = kwargs.get("device", target)
        return self._moved(target.device if isinstance(target, Tensor) else target)

    def _moved(self, target: Any) -> "Tensor":
        place = "cuda" if isinstance(target, int) else getattr(target, "type", target)
        place = place.partition(":")[0] if isinstance(place, str) else place
        if isinstance(target, dtype) or place == self.device.type:
            return self
        if place == "broken":
            raise RuntimeError("CUDA error: out of memory")
        STATE["handed_s"] += WORK_S
        return Tensor(str(place))

    def cuda(self, device: Any = None) -> "Tensor":
        """Copy to the GPU."""
        return self._moved("cuda" if device is None else device)


class Event:
    """A mark between two pieces of work."""

    def __init__(self, *, enable_timing: bool) -> None:
        assert enable_timing
        self.at_s: float | None = None

    def record(self, stream: Any) -> None:
        """Put the mark after what was handed over."""
        assert stream == "stream"
        self.at_s = STATE["handed_s"]

    def query(self) -> bool:
        """Return whether the GPU is past the mark."""
        return self.at_s is not None and self.at_s <= STATE["reached_s"]

    def elapsed_time(self, other: "Event") -> float:
        """Return the milliseconds to another mark."""
        assert self.query()
        assert other.query()
        return (other.at_s - self.at_s) * 1000.0

    def synchronize(self) -> None:
        """Wait: the probe must not."""
        raise AssertionError("the probe waited for the GPU")


synchronize = Event.synchronize


def reach() -> None:
    """Let the GPU finish what it has."""
    STATE["reached_s"] = STATE["handed_s"]


def is_initialized() -> bool:
    """Return whether CUDA is in use."""
    return bool(STATE["initialized"])


def is_current_stream_capturing() -> bool:
    """Return whether a graph is being captured."""
    return bool(STATE["capturing"])


def current_stream(device: Any) -> str:
    """Return the stream of a device."""
    assert device is not None
    return "stream"


def device_count() -> int:
    """Return the number of GPUs."""
    return 2


def max_memory_allocated(device: int) -> int:
    """Return bytes."""
    return (3 + device) * 2**30


def max_memory_reserved(device: int) -> int:
    """Return bytes."""
    return (5 + device) * 2**30
