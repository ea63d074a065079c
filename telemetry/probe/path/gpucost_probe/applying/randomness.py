"""The random streams that every program has: PyTorch's, Python's and NumPy's."""

from __future__ import annotations

import random
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def streams() -> dict[str, Any]:
    """Return the state of each global stream, by its name; the same until somebody draws."""
    torch: Any = sys.modules["torch"]
    found = {
        "PyTorch's": torch.default_generator.get_state().numpy().tobytes(),
        "Python's": random.getstate(),
    }
    legacy: Any = sys.modules.get("numpy.random.mtrand")
    if legacy is not None:
        found["NumPy's"] = _numpy_state(legacy._rand)
    return found


def state_of(generator: Any) -> Any:
    """Return the state of a generator of the program's own; None for what is none."""
    torch: Any = sys.modules["torch"]
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    if isinstance(generator, torch.Generator):
        return generator.get_state().cpu().numpy().tobytes()
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is None:
        return None
    if isinstance(generator, numpy.RandomState):
        return _numpy_state(generator)
    if isinstance(generator, numpy.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, numpy.BitGenerator):
        return repr(generator.state)
    return None


def drawn(before: dict[str, Any], after: dict[str, Any]) -> str | None:
    """Return the name of a stream that was drawn from between two looks, None if none was."""
    for name, state in after.items():
        if name in before and before[name] != state:
            return name
    return None


def _numpy_state(stream: Any) -> Any:
    name, keys, position, has_gauss, gauss = stream.get_state()
    return name, keys.tobytes(), position, has_gauss, gauss
