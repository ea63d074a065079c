"""Whether the order in which items are asked for may be worked out ahead of time.

Workers are told of batches before the program wants them. That changes nothing where a sampler
draws its random numbers when it begins, and everything where it draws as it goes.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types
    from typing import Any, Iterator

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


def why_not_ahead(sampler: Any) -> str | None:
    """Return why a sampler's order cannot be worked out ahead, None where it can."""
    kind = type(sampler)
    key = (kind.__module__, kind.__name__)
    if key in _WRAPPERS:
        inner = (getattr(sampler, name, None) for name in _WRAPPERS[key])
        return next((why for each in inner if (why := why_not_ahead(each)) is not None), None)
    if key[1] == "RandomSampler" and key in _KNOWN:
        if sampler.generator is not None:  # once more at its end, with or without replacement
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
    found: set[str] = set()
    for base in kind.__mro__:
        if base.__module__.startswith(("torch.", "typing", "builtins", "collections")):
            continue
        for each in vars(base).values():
            code = getattr(getattr(each, "__func__", each), "__code__", None)
            if code is not None:
                found.update(_names(code))
    return found


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for const in code.co_consts:
        if hasattr(const, "co_names"):
            yield from _names(const)
