"""Hostile archives by the thousand, as a rented machine may send them: nothing leaves the folder.

`python -m tests.fuzz.results 10000 --seed 1`. Each is unpacked into a folder beside canaries; it
fails where a canary changed, where anything but plain files, folders and links that stay inside is
there afterwards, or where something other than a sentence comes out.
"""

import argparse
import io
import os
import random
import stat
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from gpucost.jobs.results import Received, UnfitResultsError, unpack

CANARY = b"as it was"
_MOST_BYTES = 1 << 20
_PARTS = ("a", "b", "c", "outputs", "canary", ".", "..", "...", "", "ä", "x" * 300)
_TRAPS = ("new\nline", "\x1b]0;t\x07", ".git", ".GIT", "HEAD", "git~1", "\u202egpj")
_PLAIN = (tarfile.REGTYPE, tarfile.AREGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE)
_ODD = (b"1", b"3", b"4", b"6", b"7", b"K", b"L", b"S", b"V", b"g", b"x")


def archive(seed: int) -> bytes:
    """Return an archive that its job made to harm; one in four is damaged as well."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    out = io.BytesIO()
    for _ in range(chance.randrange(12)):
        _entry(chance, out)
    out.write(bytes(1024) if chance.random() < 0.8 else b"")
    data = bytearray(out.getvalue())
    if data and chance.random() < 0.25:
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        del data[chance.randrange(len(data)) :]
    return bytes(data)


def _entry(chance: random.Random, out: io.BytesIO) -> None:
    entry = tarfile.TarInfo(_path(chance))
    entry.type = chance.choice(_PLAIN if chance.random() < 0.9 else _ODD)
    entry.linkname = _path(chance)
    entry.mode = chance.choice((0o644, 0o755, 0o4755, 0o2777, 0o7777, 0))
    entry.mtime = chance.choice((0, -1, 1e9, 2**33 - 1))
    content = chance.randbytes(chance.choice((0, 1, 511, 512, 5000)))
    entry.size = chance.choice((0, 10**12, 2**63)) if chance.random() < 0.05 else len(content)
    if entry.type in (tarfile.DIRTYPE, tarfile.SYMTYPE):
        content, entry.size = b"", 0
    try:
        out.write(entry.tobuf(tarfile.GNU_FORMAT, "utf-8", "surrogateescape"))
    except (ValueError, UnicodeError, OverflowError):
        return
    out.write(content + bytes(-len(content) % 512))


def _path(chance: random.Random) -> str:
    start = chance.choice(("", "", "", "/", "./", "../", "outputs/"))
    return start + "/".join(
        chance.choice((*_PARTS, "x" * 300)) for _ in range(chance.randrange(1, 5))
    )


def harm_of(data: bytes, folder: Path, wanted: str = "") -> Iterator[str]:
    """Unpack into an empty folder's `results`; yield what is wrong with what is there then."""
    target = folder / "results"
    target.mkdir(parents=True)
    canaries = [folder / "train.py", folder / "canary", target.parent / "HEAD"]
    for canary in canaries:
        canary.write_bytes(CANARY)
    before = {path.name for path in folder.iterdir()}
    takes = lambda name: not wanted or name.parts[:1] == (wanted,)  # noqa: E731 - a test's
    received = Received()
    try:
        received = unpack(io.BytesIO(data), target, takes, _MOST_BYTES)
    except (UnfitResultsError, tarfile.ReadError, EOFError) as error:
        text = str(error)
        if not text.isprintable():
            yield f"a sentence with control characters: {text!r}"
    if any(not note.isprintable() for note in received.notes):
        yield "what was left behind is told with control characters"
    if {path.name for path in folder.iterdir()} != before:
        yield "something was written beside the folder"
    if any(canary.read_bytes() != CANARY for canary in canaries):
        yield "a canary was changed"
    yield from _unfit(target)


def _unfit(target: Path) -> Iterator[str]:
    for at, folders, files in os.walk(target):
        for name in (*folders, *files):
            path = Path(at, name)
            mode = path.lstat().st_mode
            inside = PurePosixPath(path.relative_to(target))
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
                yield f"{inside}: neither file nor folder nor link"
            if mode & (stat.S_ISUID | stat.S_ISGID) and not stat.S_ISDIR(mode):
                yield f"{inside}: setuid"
            end = Path(os.path.realpath(path))
            if stat.S_ISLNK(mode) and not end.is_relative_to(target.resolve()):
                yield f"{inside}: leads to {end}"
            if stat.S_ISREG(mode) and path.lstat().st_nlink > 1:
                yield f"{inside}: a hard link"
            if not name.isprintable() or name.lower() in (".git", "head"):
                yield f"{inside!r}: a name that does something"


def main() -> int:
    """Return 1 where one did harm."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.results")
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    harmed = made = 0
    with tempfile.TemporaryDirectory() as root:
        for seed in range(asked.seed, asked.seed + asked.count):
            folder = Path(root, str(seed))
            for harm in harm_of(archive(seed), folder):
                harmed += 1
                print(f"seed {seed}: {harm}")
            made += sum(1 for _ in (folder / "results").rglob("*"))
    print(f"{asked.count} archives, {made} files, folders and links taken, {harmed} did harm")
    return 1 if harmed else 0


if __name__ == "__main__":
    sys.exit(main())
