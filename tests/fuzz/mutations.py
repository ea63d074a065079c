"""Ways in which bytes go wrong: on disks, in transfers, in editors, in killed programs."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Mutation = Callable[[random.Random, bytes], bytes]
_NUMBER = re.compile(rb"-?\d+(\.\d+)?")
_ODD_NUMBERS = (
    b"0",
    b"-1",
    b"1e400",
    b"-1e308",
    b"99999999999999999999",
    b"NaN",
    b"Infinity",
    b"1e-320",
    b"",
    b"0x10",
    b"1,5",
    b"\xd9\xa3",
    b"1_0",
    b"9" * 400,
)
_WORDS = (
    b"N/A",
    b"[N/A]",
    b"-",
    b"ERR!",
    b"null",
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b",",
    b";",
    b"\t",
    b"\r",
    b"\n",
    b"\0",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"#",
    b"<",
    b"</gpu>",
    b"GPU 0",
    b"%",
    b" W",
)


def _cut(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _behead(rng: random.Random, data: bytes) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def _flip(rng: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 4, 32))):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def _hole(rng: random.Random, data: bytes) -> bytes:
    at, size = rng.randrange(len(data) + 1), rng.choice((1, 100, 5000, 70_000))
    return data[:at] + b"\0" * size + data[at:]


def _remove(rng: random.Random, data: bytes) -> bytes:
    at, size = rng.randrange(len(data)), rng.choice((1, 3, 40, 400))
    return data[:at] + data[at + size :]


def _repeat(rng: random.Random, data: bytes) -> bytes:
    at, size = rng.randrange(len(data)), rng.choice((1, 40, 4000))
    return data[:at] + data[at : at + size] * rng.choice((2, 3, 50)) + data[at + size :]


def _insert(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(_WORDS) * rng.choice((1, 1, 2, 500)) + data[at:]


def _number(rng: random.Random, data: bytes) -> bytes:
    out = data
    for _ in range(rng.choice((1, 1, 3))):
        at = rng.randrange(len(out) + 1)
        found = _NUMBER.search(out, at) or _NUMBER.search(out)
        if found is None:
            return out
        out = out[: found.start()] + rng.choice(_ODD_NUMBERS) + out[found.end() :]
    return out


def _lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    kind = rng.randrange(4)
    if kind == 0:
        rng.shuffle(lines)
    elif kind == 1:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 2:
        lines.insert(one, lines[0])
    else:
        lines[one] = lines[one] * rng.choice((2, 300))
    return b"\n".join(lines)


def _recoded(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    encoding = rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-8-sig", "utf-32", "cp1252"))
    return text.encode(encoding, "replace")


def _ends(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\n\r\n")))


def _noise(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.randbytes(rng.choice((4, 64, 4096))) + data[at:]


ALL: tuple[Mutation, ...] = (
    _cut, _behead, _flip, _hole, _remove, _repeat, _insert, _number, _number, _number, _lines,
    _recoded, _ends, _noise,
)  # fmt: skip


def mutated(rng: random.Random, data: bytes, others: list[bytes]) -> bytes:
    """Return data with one to three things wrong, sometimes with another file behind it."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        if data:
            data = rng.choice(ALL)(rng, data)
    if rng.random() < 0.03:
        data += rng.choice(others)
    return data
