"""What the items of a data set can reach, what a batch holds, and the random streams of a program.

A data set reaches its attributes, and the globals of its own functions. From there come the things
that workers must not share (open files, iterators, other loaders) and those that change while items
are read (generators, counters, caches). Two batches are compared bit for bit.
"""

from __future__ import annotations

import functools
import inspect
import io
import random
import struct
import sys
import types
import zlib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator

    from ..foreign import Foreign


_MOST, _FIRST = 300, 8
_DEEPEST = 12
_PLAIN = (bool, int, float, complex, str, bytes, type(None))
# By module and name of a class among the bases: what it is in words.
_SHARED = {
    ("h5py", "File"): "an open HDF5 file",
    ("h5py", "Dataset"): "an open HDF5 file",
    ("h5py", "Group"): "an open HDF5 file",
    ("sqlite3", "Connection"): "an open data base",
    ("zipfile", "ZipFile"): "an open archive",
    ("tarfile", "TarFile"): "an open archive",
    ("socket", "socket"): "an open connection",
    ("lmdb", "Environment"): "an open data base",
    ("torch", "DataLoader"): "another DataLoader, whose workers a worker cannot start",
}
_STREAMS = (sys.stdin, sys.stdout, sys.stderr)
# Methods that are called for an item, or for a batch.
_READ = ("__getitem__", "__getitems__", "__call__", "forward", "__iter__", "__next__", "__len__")


class Reach:
    """The objects that a data set, its collate function and its sampler can reach.

    Attributes:
        shared: what workers must not share, in words; None where nothing was found.
    """

    def __init__(self, *roots: object) -> None:
        self.shared: str | None = None
        self._seen: dict[int, object] = {}
        self._generators: list[object] = []
        self._globals: list[tuple[dict[str, object], str]] = []
        waiting: list[tuple[object, int]] = [(root, 0) for root in roots]
        while waiting and len(self._seen) < _MOST:
            item, depth = waiting.pop(0)
            if isinstance(item, _PLAIN) or id(item) in self._seen or depth > _DEEPEST:
                continue
            self._seen[id(item)] = item
            try:
                self._look(item)
                waiting += [(part, depth + 1) for part in self._parts(item)]
            except Exception:
                self.shared = "something that cannot be looked at (%s)" % type(item).__name__

    def state(self) -> list[object]:
        """Return what is the same as long as none of the objects changes.

        Attributes and globals by value where they are plain, else by identity; containers by
        length; tensors by their version; generators by state.
        """
        states: list[object] = [state_of(generator) for generator in self._generators]
        states += map(_state, self._seen.values())
        states += [_value(names.get(name)) for names, name in self._globals]
        return states

    def _look(self, item: object) -> None:
        if state_of(item) is not None:
            self._generators.append(item)
        elif isinstance(item, io.IOBase):
            own = isinstance(item, (io.BytesIO, io.StringIO)) or item in _STREAMS
            if not own and not item.closed:
                self.shared = "an open file, whose position workers would share"
        elif hasattr(type(item), "__next__"):
            self.shared = "an iterator, of which each worker would have a copy of its own"
        else:
            for base in type(item).__mro__:
                key = (base.__module__.partition(".")[0], base.__name__)
                self.shared = _SHARED.get(key) or self.shared

    def _parts(self, item: object) -> Iterator[object]:
        if isinstance(item, dict):
            yield from list(item.values())[:_FIRST]
        elif isinstance(item, (list, tuple, set, frozenset)):
            yield from list(item)[:_FIRST]
        elif isinstance(item, types.MethodType):
            yield from (item.__self__, item.__func__)
        elif isinstance(item, types.FunctionType):
            yield from self._of_function(item)
        elif isinstance(item, (type, types.ModuleType)):
            return
        else:
            attributes = getattr(item, "__dict__", None)
            yield from list(attributes.values()) if isinstance(attributes, dict) else ()
            yield from [getattr(item, name, None) for name in _slots(item)]
            if isinstance(item, functools.partial):
                yield from (item.func, item.args, item.keywords)
            yield from _methods(type(item))

    def _of_function(self, function: types.FunctionType) -> Iterator[object]:
        yield from inspect.getclosurevars(function).nonlocals.values()
        yield from function.__defaults__ or ()
        if not _own(function):
            return
        names = function.__globals__
        for name in names_in(function.__code__):
            if name not in names:
                continue
            value = names[name]
            if not isinstance(value, (type, types.ModuleType)):
                self._globals.append((names, name))
                yield value


def _methods(kind: type) -> list[object]:
    """Return the methods of the program's own that reading an item comes to."""
    own = {}
    for base in reversed(kind.__mro__):
        for name, member in vars(base).items():
            method = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(method, types.FunctionType) and _own(method):
                own[name] = method
    waiting, reached = [name for name in _READ if name in own], {}
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached[name] = own[name]
            waiting += [callee for callee in names_in(own[name].__code__) if callee in own]
    return list(reached.values())


def _own(function: types.FunctionType) -> bool:
    """Return whether a function is the program's own, not one of an installed package."""
    path = function.__code__.co_filename
    return (
        "site-packages" not in path
        and "dist-packages" not in path
        and not path.startswith(
            (sys.prefix + "/lib/python", sys.base_prefix + "/lib/python", "<frozen")
        )
    )


def names_in(code: types.CodeType) -> Iterator[str]:
    """Yield the names that a function and those within it use."""
    yield from code.co_names
    for const in code.co_consts:
        if isinstance(const, types.CodeType):
            yield from names_in(const)


def _slots(item: object) -> Iterator[str]:
    for base in type(item).__mro__:
        slots = vars(base).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


def _state(item: object) -> object:
    if isinstance(item, (list, dict, set, tuple, frozenset)):
        return len(item)
    if isinstance(item, sys.modules["torch"].Tensor):
        return None if item.is_inference() else item._version
    if isinstance(item, (types.FunctionType, types.MethodType, types.ModuleType, type)):
        return None
    attributes = getattr(item, "__dict__", None)
    if not isinstance(attributes, dict):
        return None
    return tuple((name, _value(value)) for name, value in list(attributes.items()))


def _value(value: object) -> object:
    return value if isinstance(value, _PLAIN) else id(value)


_EXACT = (bool, int, str, bytes, type(None))


class UnknownContentError(Exception):
    """A batch holds something that cannot be compared."""


class Content:
    """The content of one batch.

    Attributes:
        mark: the same for batches that are the same bit for bit.
        size: bytes of its tensors.
        on_device: whether a tensor lies on a GPU.
    """

    def __init__(self, batch: object) -> None:
        self.mark = 0
        self.size = 0
        self.on_device = False
        self._torch = sys.modules["torch"]
        numpy = sys.modules.get("numpy")
        self._arrays = (numpy.ndarray, numpy.generic) if numpy is not None else ()
        self._take(batch, 0)

    def _add(self, data: bytes | memoryview) -> None:
        self.mark = zlib.crc32(data, self.mark)

    def _take(self, item: object, depth: int) -> None:
        if depth > _DEEPEST:
            raise UnknownContentError("it is nested too deep")
        if isinstance(item, self._torch.Tensor):
            self._tensor(item)
            return
        self._add(type(item).__qualname__.encode())
        if isinstance(item, float):
            self._add(struct.pack("d", item))
        elif isinstance(item, _EXACT):
            self._add(repr(item).encode("utf-8", "backslashreplace"))
        elif isinstance(item, self._arrays):
            self._array(item)
        else:
            parts = _parts(item)
            self._add(b"%d" % len(parts))
            for part in parts:
                self._take(part, depth + 1)

    def _tensor(self, tensor: Foreign) -> None:
        if tensor.layout is not self._torch.strided:
            raise UnknownContentError("a batch holds a sparse tensor, which is not compared")
        self.size += tensor.numel() * tensor.element_size()
        self.on_device |= tensor.device.type != "cpu"
        self._add(repr((tensor.dtype, tuple(tensor.shape), tensor.stride())).encode())
        if not self.on_device and tensor.numel():
            flat = tensor.detach().contiguous().reshape(-1)
            self._add(memoryview(flat.view(self._torch.uint8).numpy()))

    def _array(self, array: Foreign) -> None:
        if array.dtype.hasobject:
            raise UnknownContentError("a batch holds an array of objects, which is not compared")
        self._add(repr((array.dtype.str, array.shape)).encode())
        self._add(array.tobytes())


def _parts(item: object) -> list[object]:
    """Return what a collection or an object holds, in its order."""
    if isinstance(item, (list, tuple)):
        return list(item)
    if hasattr(item, "keys") and hasattr(item, "__getitem__"):
        return [part for key in list(item.keys()) for part in (key, item[key])]
    if hasattr(item, "__dict__") and not callable(item):
        return _parts(vars(item))
    raise UnknownContentError("a batch holds %s, which is not compared" % type(item).__name__)


def streams() -> dict[str, object]:
    """Return the state of each global stream, by its name; the same until somebody draws."""
    torch = sys.modules["torch"]
    states = {
        "PyTorch's": torch.default_generator.get_state().numpy().tobytes(),
        "Python's": random.getstate(),
    }
    legacy = sys.modules.get("numpy.random.mtrand")
    if legacy is not None:
        states["NumPy's"] = _numpy_state(legacy._rand)
    return states


def state_of(generator: object) -> object:
    """Return the state of a generator of the program's own; None for what is none."""
    torch = sys.modules["torch"]
    if isinstance(generator, random.Random):
        return None if isinstance(generator, random.SystemRandom) else generator.getstate()
    if isinstance(generator, torch.Generator):
        return generator.get_state().cpu().numpy().tobytes()
    numpy = sys.modules.get("numpy.random")
    if numpy is None:
        return None
    if isinstance(generator, numpy.RandomState):
        return _numpy_state(generator)
    if isinstance(generator, numpy.Generator):
        return repr(generator.bit_generator.state)
    if isinstance(generator, numpy.BitGenerator):
        return repr(generator.state)
    return None


def drawn(before: dict[str, object], after: dict[str, object]) -> str | None:
    """Return the name of a stream that was drawn from between two looks, None if none was."""
    for name, state in after.items():
        if name in before and before[name] != state:
            return name
    return None


def _numpy_state(stream: Foreign) -> object:
    name, keys, position, has_gauss, gauss = stream.get_state()
    return name, keys.tobytes(), position, has_gauss, gauss
