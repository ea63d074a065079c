"""gpucost as a wheel, made of what runs here: a machine gets the same, local changes included."""

import base64
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator
from importlib import metadata, util
from pathlib import Path

from gpucost.version import __version__

NAME = f"gpucost-{__version__}-py3-none-any.whl"
_PACKAGES = ("gpucost", "planner", "pricing", "providers", "telemetry", "templates")
_ELSEWHERE = ("gpucost.examples",)  # in a checkout it lies outside of its package
_LEFT_OUT = ("__pycache__",)
_SAME_TIME = (1980, 1, 1, 0, 0, 0)
_WHEEL = "Wheel-Version: 1.0\nGenerator: gpucost\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def own_wheel() -> bytes:
    """Return the wheel; the same bytes for the same installation."""
    files = dict(_files())
    record = f"gpucost-{__version__}.dist-info/RECORD"
    lines = [f"{name},{_sum(data)},{len(data)}" for name, data in files.items()]
    files[record] = "".join(f"{line}\n" for line in (*lines, f"{record},,")).encode()
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, data in files.items():
            wheel.writestr(zipfile.ZipInfo(name, _SAME_TIME), data, zipfile.ZIP_DEFLATED)
    return made.getvalue()


def _files() -> Iterator[tuple[str, bytes]]:
    for package in (*_PACKAGES, *_ELSEWHERE):
        folder = _folder(package)
        for path in sorted(folder.rglob("*")):
            name = path.relative_to(folder).as_posix()
            if path.is_file() and not any(part in _LEFT_OUT for part in path.parts):
                yield f"{package.replace('.', '/')}/{name}", path.read_bytes()
    told = metadata.distribution("gpucost")
    info = f"gpucost-{__version__}.dist-info"
    yield f"{info}/METADATA", (told.read_text("METADATA") or _pkg_info(told)).encode()
    yield f"{info}/entry_points.txt", (told.read_text("entry_points.txt") or "").encode()
    yield f"{info}/WHEEL", _WHEEL.encode()


def _pkg_info(told: metadata.Distribution) -> str:
    return told.read_text("PKG-INFO") or ""


def _folder(package: str) -> Path:
    found = util.find_spec(package)
    places = [] if found is None else list(found.submodule_search_locations or ())
    return Path(os.fspath(places[0]))


def _sum(data: bytes) -> str:
    told = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=")
    return f"sha256={told.decode()}"
