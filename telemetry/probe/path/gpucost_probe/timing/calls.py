"""What a line of Python is about to do, read from its bytecode and the types of its variables."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any

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
    found = _called.get(key)
    if found is None:
        try:
            found = _decoded(*key)
        except Exception:
            found = ("", "")
        if len(_called) >= MOST_KNOWN:
            _called.clear()
        _called[key] = found
    return found


def _decoded(code: CodeType, last: int) -> tuple[str, str]:
    import dis

    before = [one for one in dis.get_instructions(code) if one.offset <= last]
    if not before or "CALL" not in before[-1].opname:
        return "", ""
    loads = [one for one in before if one.opname.startswith(_LOADS)]
    if _HAS_POSITIONS:
        # The callee begins where the call begins; of a chain the longest part is the last name.
        start = _start(before[-1])
        loads = [one for one in loads if _start(one) == start]
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
    looks, found = _tensors.get(code, (0, False))
    if found or looks >= MOST_LOOKS:
        return found
    torch = sys.modules.get("torch")
    tensor = getattr(torch, "Tensor", None)
    if tensor is None or not code.co_flags & _OPTIMIZED or _TOUCHES_LOCALS & {*code.co_names}:
        return False
    found = _has(frame, tensor)
    if len(_tensors) >= MOST_KNOWN:
        _tensors.clear()
    _tensors[code] = (looks + 1, found)
    return found


def _has(frame: FrameType, kind: type) -> bool:
    if sys.version_info < (3, 11):
        import gc

        return any(issubclass(type(each), kind) for each in gc.get_referents(frame))
    values = frame.f_locals
    found = any(issubclass(type(each), kind) for each in values.values())
    if not _PROXIES:
        values.clear()  # a copy that would keep the values alive
    return found
