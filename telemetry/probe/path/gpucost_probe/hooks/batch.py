"""How many items a batch holds."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .loader import Known

DEEPEST = 8


def items_of_place(known: Known, number: int) -> int | None:
    """Return the items of batch `number`, from 1, of a loader that cuts the batches itself.

    Then each has `batch_size` items, but for a rest at the end; what a collate function makes of
    them does not matter.
    """
    size, sampled = known.batch_size, known.sampled
    if not size or sampled is None:
        return None
    return max(min(size, sampled - size * (number - 1)), 0) or None


def items_of_batch(batch: Any) -> int | None:
    """Return the length of the first tensor of a batch, None if none is found."""
    for _ in range(DEEPEST):
        shape = getattr(batch, "shape", None)
        if shape is not None:
            return int(shape[0]) if len(shape) else None
        if isinstance(batch, (list, tuple)):
            batch = batch[0] if batch else None
        elif hasattr(batch, "values") and hasattr(batch, "keys"):
            batch = next(iter(batch.values()), None)
        else:
            return None
    return None
