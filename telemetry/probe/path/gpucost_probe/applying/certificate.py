"""What must hold before a loader gets workers, so that no result changes by a bit.

The first batches are read as the program reads them, by itself. Looked at are the random streams
and all that the data set can reach, around the sampler and around the items; then workers read the
same batches again, which must be the same bit for bit. Each later batch of a worker is looked at,
too.

Workers are told of batches before the program wants them. That changes nothing where a sampler
draws its random numbers when it begins, and everything where it draws as it goes: so the order in
which items are asked for must be one that may be worked out ahead of time.
"""

from __future__ import annotations

import multiprocessing
import os
import re
import sys
from statistics import median

from .reach import Content, Reach, UnknownContentError, drawn, names_in, streams

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List, Tuple

    from ..foreign import Foreign

    _State = Tuple[Dict[str, object], List[object]]


BATCHES = 8
_SETTLED = 4  # of them, the last: what a data set opens or builds at its first item is there
_LEAST_SHARE = 0.05  # of the time of the loop that waits for batches: below it nothing is to gain
_LEAST_EPOCH_S = 0.5  # reading that one start of workers (25-36 ms each) must be small against
_SHM = "/dev/shm"  # noqa: S108 - where PyTorch hands over batches
_SHM_SHARE = 0.5  # of what is free there


class Watch:
    """Looks at everything that items may change.

    Args:
        roots: data set, collate function, sampler.
    """

    def __init__(self, *roots: object) -> None:
        self.reach = Reach(*roots)

    def look(self) -> _State:
        """Return how everything stands."""
        return streams(), self.reach.state()

    def changed(self, before: _State) -> str | None:
        """Return what has changed since, in words; None for nothing."""
        stream = drawn(before[0], streams())
        if stream is not None:
            return "items draw from %s random numbers" % stream
        if before[1] != self.reach.state():
            return "the data set changes itself while it is read"
        return None


class Evidence:
    """What the first batches of a loader showed.

    Attributes:
        indices: of the batches, to be read again by workers.
        marks: their contents.
        size: bytes of the largest.
        fetch_s: seconds that reading each took.
        busy_s: of them on a core, or in wait for one.
        round_s: from one request to the next, without our own looking.
    """

    def __init__(self) -> None:
        self.indices: list[object] = []
        self.marks: list[int] = []
        self.size = 0
        self.fetch_s: list[float] = []
        self.busy_s: list[float] = []
        self.round_s: list[float] = []

    @property
    def complete(self) -> bool:
        """Whether enough batches were seen."""
        return len(self.marks) >= BATCHES

    def add(
        self, index: object, batch: object, changed: str | None, order: str | None
    ) -> str | None:
        """Take a batch; return why the loader must be left alone, if that is known already.

        Args:
            index: of the batch.
            batch: itself.
            changed: what reading it changed.
            order: what asking the sampler changed, but for the first time of an iteration.
        """
        if changed is not None and ("draw" in changed or len(self.marks) >= BATCHES - _SETTLED):
            return changed
        if order is not None:
            return "the sampler draws random numbers or changes itself as it goes"
        try:
            content = Content(batch)
        except UnknownContentError as error:
            return str(error)
        if content.on_device:
            return "items are made on the GPU, which a worker cannot share"
        self.indices.append(index)
        self.marks.append(content.mark)
        self.size = max(self.size, content.size)
        return None

    @property
    def fetch_typical_s(self) -> float:
        """The time of a batch."""
        return median(self.fetch_s[1:] or self.fetch_s)

    @property
    def round_typical_s(self) -> float:
        """The time of a round of the program's loop."""
        return median(self.round_s[1:] or self.round_s)

    @property
    def busy_share(self) -> float:
        """Share of the reading in which it was on a core, or waited for one."""
        read_s = sum(self.fetch_s)
        return min(1.0, sum(self.busy_s) / read_s) if read_s else 1.0


def indices_of(loader: Foreign) -> Foreign:
    """Return what gives the indices of a loader, batch by batch."""
    own: Foreign | None = loader.batch_sampler
    sampler: Foreign = loader.sampler
    return sampler if own is None else own


def why_not_begin(loader: Foreign) -> str | None:
    """Return why a loader is left alone, as far as that shows before it is read."""
    data = sys.modules["torch.utils.data"]
    if isinstance(loader.dataset, data.IterableDataset):
        return "an iterable data set would give every batch once for each worker"
    if getattr(type(loader), "_get_iterator", None) is not data.DataLoader._get_iterator:
        return "its iterator is not PyTorch's own"
    kinds = {base.__name__ for base in type(loader.dataset).__mro__}
    if hasattr(loader.dataset, "reading_service") or kinds & {"MapDataPipe", "IterDataPipe"}:
        return "a data pipe shares its items out by itself"
    if multiprocessing.current_process().daemon:
        return "this process is a daemon, which may start no workers"
    if loader.multiprocessing_context is not None or _start_method() != "fork":
        return (
            "workers would not be forked but started anew: they need a data set that can be "
            "pickled and a script with a main guard"
        )
    return why_not_ahead(indices_of(loader))


def why_no_gain(evidence: Evidence, batches: int | None) -> str | None:
    """Return why workers would gain nothing; None where they may.

    Args:
        evidence: of the first batches.
        batches: of an epoch, None where unknown.
    """
    fetch_s, round_s = evidence.fetch_typical_s, evidence.round_typical_s
    if fetch_s < _LEAST_SHARE * round_s:
        return "the program waits %s of a step of %s for it: nothing to gain" % (
            milliseconds(fetch_s),
            milliseconds(round_s),
        )
    if batches is not None and fetch_s * batches < _LEAST_EPOCH_S:
        return "an epoch of it is read in %s: starting workers would cost as much" % (
            milliseconds(fetch_s * batches)
        )
    return None


def affordable(count: int, prefetch: int, size: int) -> tuple[int, int]:
    """Return workers and batches ahead of each that /dev/shm has room for; (0, 0) for none.

    Args:
        count: of workers wanted.
        prefetch: batches ahead wanted, for each.
        size: bytes of a batch.
    """
    try:
        state = os.statvfs(_SHM)
    except OSError:
        return 0, 0
    room = int(state.f_bavail * state.f_frsize * _SHM_SHARE)
    # One more of each worker is in the making.
    for ahead in range(prefetch, 1, -1):
        if count * (ahead + 1) * size <= room:
            return count, ahead
    fewer = room // (3 * size)
    return (fewer, 2) if fewer >= 1 else (0, 0)


def milliseconds(seconds: float) -> str:
    """Return a time in words."""
    return "%.3g ms" % (seconds * 1000)


def _start_method() -> str:
    """Return how processes are started, without settling it for the program."""
    return (
        multiprocessing.get_start_method(allow_none=True)
        or (multiprocessing.get_all_start_methods()[0])
    )


# Module and class: they draw when they begin, or from a generator that nobody else has.
_KNOWN = {
    ("torch.utils.data.sampler", "SequentialSampler"),
    ("torch.utils.data.sampler", "SubsetRandomSampler"),
    ("torch.utils.data.sampler", "WeightedRandomSampler"),
    ("torch.utils.data.sampler", "RandomSampler"),
    ("torch.utils.data.distributed", "DistributedSampler"),
    ("accelerate.data_loader", "SeedableRandomSampler"),
    ("transformers.trainer_pt_utils", "LengthGroupedSampler"),
}
# They hand on what the samplers in them give.
_WRAPPERS = {
    ("torch.utils.data.sampler", "BatchSampler"): ("sampler",),
    ("accelerate.data_loader", "BatchSamplerShard"): ("batch_sampler",),
    ("accelerate.data_loader", "SkipBatchSampler"): ("batch_sampler",),
}
_PLAIN = (range, list, tuple)
# Words in which a draw is written.
_DRAWS = re.compile(
    r"^(rand|shuffle|choice|sample$|multinomial|permut|uniform|normal|default_rng|bernoulli|integers"
    r"|getrandbits|(manual_)?seed|Generator$|Random)"
)


def why_not_ahead(sampler: object) -> str | None:
    """Return why a sampler's order cannot be worked out ahead, None where it can."""
    kind = type(sampler)
    key = (kind.__module__, kind.__name__)
    if key in _WRAPPERS:
        inner = (getattr(sampler, name, None) for name in _WRAPPERS[key])
        return next((why for part in inner if (why := why_not_ahead(part)) is not None), None)
    if key[1] == "RandomSampler" and key in _KNOWN:
        if (
            getattr(sampler, "generator", None) is not None
        ):  # once more at its end, with or without replacement
            return "the sampler draws from the program's generator as it goes"
        return None
    if key in _KNOWN or kind in _PLAIN:
        return None
    used = next((name for name in sorted(_used(kind)) if _DRAWS.match(name)), None)
    if used is not None:
        return "the sampler %s is the program's own and uses `%s`, maybe as it goes" % (
            kind.__name__,
            used,
        )
    return None


def _used(kind: type) -> set[str]:
    """Return the names that the methods of a class use, those of its own bases included."""
    names: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith(("torch.", "typing", "builtins", "collections")):
            continue
        for value in vars(base).values():
            code = getattr(getattr(value, "__func__", value), "__code__", None)
            if code is not None:
                names.update(names_in(code))
    return names
