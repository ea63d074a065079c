"""What a batch holds: whether two are the same bit for bit, how large it is, where it lies."""

from __future__ import annotations

import struct
import sys
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DEEPEST = 12
_PLAIN = (bool, int, str, bytes, type(None))


class UnknownContentError(Exception):
    """A batch holds something that cannot be compared."""


class Content:
    """The content of one batch.

    Attributes:
        mark: the same for batches that are the same bit for bit.
        size: bytes of its tensors.
        on_device: whether a tensor lies on a GPU.
    """

    def __init__(self, batch: Any) -> None:
        self.mark = 0
        self.size = 0
        self.on_device = False
        self._torch: Any = sys.modules["torch"]
        numpy: Any = sys.modules.get("numpy")
        self._arrays: Any = (numpy.ndarray, numpy.generic) if numpy is not None else ()
        self._take(batch, 0)

    def _add(self, data: Any) -> None:
        self.mark = zlib.crc32(data, self.mark)

    def _take(self, item: Any, depth: int) -> None:
        if depth > _DEEPEST:
            raise UnknownContentError("it is nested too deep")
        if isinstance(item, self._torch.Tensor):
            self._tensor(item)
            return
        self._add(type(item).__qualname__.encode())
        if isinstance(item, float):
            self._add(struct.pack("d", item))
        elif isinstance(item, _PLAIN):
            self._add(repr(item).encode("utf-8", "backslashreplace"))
        elif isinstance(item, self._arrays):
            self._array(item)
        else:
            parts = _parts(item)
            self._add(b"%d" % len(parts))
            for each in parts:
                self._take(each, depth + 1)

    def _tensor(self, tensor: Any) -> None:
        if tensor.layout is not self._torch.strided:
            raise UnknownContentError("a batch holds a sparse tensor, which is not compared")
        self.size += tensor.numel() * tensor.element_size()
        self.on_device |= tensor.device.type != "cpu"
        self._add(repr((tensor.dtype, tuple(tensor.shape), tensor.stride())).encode())
        if not self.on_device and tensor.numel():
            flat = tensor.detach().contiguous().reshape(-1)
            self._add(memoryview(flat.view(self._torch.uint8).numpy()))

    def _array(self, array: Any) -> None:
        if array.dtype.hasobject:
            raise UnknownContentError("a batch holds an array of objects, which is not compared")
        self._add(repr((array.dtype.str, array.shape)).encode())
        self._add(array.tobytes())


def _parts(item: Any) -> list[Any]:
    """Return what a collection or an object holds, in its order."""
    if isinstance(item, (list, tuple)):
        return list(item)
    if hasattr(item, "keys") and hasattr(item, "__getitem__"):
        return [part for key in list(item.keys()) for part in (key, item[key])]
    if hasattr(item, "__dict__") and not callable(item):
        return _parts(vars(item))
    raise UnknownContentError("a batch holds %s, which is not compared" % type(item).__name__)
