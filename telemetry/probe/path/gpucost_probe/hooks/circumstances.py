"""What is written beside the steps: rank, model, precision, memory."""

from __future__ import annotations

import hashlib
import os
import sys
from time import perf_counter

from . import copies, memory, model, precision

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..process import Probe

MEMORY_EVERY_S = 5.0
MOST_TOLD = 100  # a program that changes its precision each step is not told for ever


class Circumstances:
    """Looks around after steps: at everything after the first, then at what may change."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._optimizer = 0
        self._autocast: Any = self
        self._dtype: str | None = None
        self._memory_s = 0.0
        self._peaks: tuple[float, float] | None = None
        self._told = 0

    def look(self, optimizer: Any, end_s: float) -> None:
        """Write what is new since the last step.

        Args:
            optimizer: the one that stepped.
            end_s: when it did, by time.perf_counter().
        """
        probe = self._probe
        autocast, probe.autocast = probe.autocast, None
        if id(optimizer) != self._optimizer:
            if not self._optimizer:
                self._guarded(_write_rank, probe)
            self._optimizer = id(optimizer)
            self._guarded(self._write_model, optimizer)
            self._autocast = self
        if autocast != self._autocast and self._told < MOST_TOLD:
            self._autocast = autocast
            self._told += 1
            self._guarded(precision.write, probe, autocast, self._dtype)
        if end_s - self._memory_s >= MEMORY_EVERY_S:
            self._memory_s = end_s
            self._guarded(self._write_memory)
            self._guarded(copies.watch, probe)
        else:
            return
        probe.steps.resume(perf_counter())

    def _write_model(self, optimizer: Any) -> None:
        found = model.describe(optimizer)
        self._dtype = found["dtype"]
        self._probe.events.write("model", **found)

    def _write_memory(self) -> None:
        self._peaks = memory.write(self._probe.events, self._peaks)

    def _guarded(self, part: Any, *arguments: Any) -> None:
        try:
            part(*arguments)
        except Exception as error:
            self._probe.events.odd("%s is unknown: %r" % (part.__name__.strip("_"), error))


def _write_rank(probe: Probe) -> None:
    """Write the rank of this process in a distributed job of more than one."""
    distributed = sys.modules.get("torch.distributed")
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return
    world = distributed.get_world_size()
    if world > 1:
        local = os.environ.get("LOCAL_RANK", "")
        probe.events.write(
            "rank",
            rank=distributed.get_rank(),
            world=world,
            local_rank=int(local) if local.isdigit() else None,
            run=_run(os.environ),
        )


def _run(environ: Any) -> str | None:
    """Return what all ranks of this run have in common; a hash, for it may be an address."""
    name = environ.get("TORCHELASTIC_RUN_ID", "none")
    if name == "none":
        place = (environ.get("MASTER_ADDR"), environ.get("MASTER_PORT"))
        if None in place:
            return None
        name = ":".join(map(str, place))
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:12]
