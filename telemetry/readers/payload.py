"""The bytes of one source: opened once, unpacked, measured, and turned into text."""

import gzip
import hashlib
import importlib
import io
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import BinaryIO, Self

from pricing.errors import InputError
from pricing.message import Message

HEAD_BYTES = 65_536
# A week of 8 GPUs at one row a second is about 0.5 GB of text; more belongs into several files.
MOST_BYTES = 512 << 20
MOST_HOLE_BYTES = 64 << 20
# Deflate reaches 1032:1 on constant bytes; telemetry stays under 100:1.
MOST_RATIO, RATIO_FROM_BYTES = 300, 16 << 20
MOST_LAYERS = 3
_MAGIC, _ZSTANDARD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_CHUNK, _CHUNKS = 1 << 20, 8  # bytes read at once, and how many of these a block has
_WIDE_MARKS = {b"\xff\xfe", b"\xfe\xff"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """One source, unpacked.

    Attributes:
        name: the file's name without folders, for provenance.
        path: as it was given, for messages.
        data: the unpacked bytes.
        sha256: of the bytes as they were given, packed or not; None where they were not kept.
    """

    name: str
    data: bytes
    sha256: str | None
    path: str = ""

    @property
    def text(self) -> str:
        """The data as text, NUL holes taken out."""
        return decode(self.data)

    def blocks(self) -> Iterator[str]:
        """Yield the text in blocks of whole lines; what was not loaded is read from its file."""
        if self.data or not self.path:
            yield self.text
            return
        with Stream(self.path) as stream:
            chunks = stream.chunks()
            block = next(chunks, b"")
            if block[:2] in _WIDE_MARKS or b"\0" in block[:_PROBE_BYTES]:
                yield decode(block + b"".join(chunks))
                return
            while chunk := b"".join(islice(chunks, _CHUNKS)):
                lines, newline, block = (block + chunk).rpartition(b"\n")
                yield decode(lines + newline)
            yield decode(block)


class Stream:
    """A source being read: first its head, then, if that is worth it, the rest.

    A context manager; leaving it closes the file it opened.

    Raises:
        InputError: the source cannot be opened or read, is a folder, or unpacks beyond the limits.
    """

    def __init__(self, path: str, stdin: BinaryIO | None = None) -> None:
        self.name = "-" if path == "-" else base_name(path)
        self.path = path
        self._read = bytearray()
        self._raw = self._open(path, stdin)
        self._owned = path != "-"
        self._given = _Given(self._raw, self.name)
        self._damaged: dict[type[Exception], str] = {}  # what says so of each kind of packing
        try:
            # The first read is small: a head that is not telemetry should cost nothing more.
            self._unpacked = self._unpacking(io.BufferedReader(self._given, HEAD_BYTES))
            self._fill(HEAD_BYTES)
            self._skip_hole()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self._owned:
            self._raw.close()

    @property
    def head(self) -> bytes:
        """The first bytes, unpacked."""
        return bytes(self._read[:HEAD_BYTES])

    def load(self) -> Payload:
        """Return the whole source; once, as it is not kept here."""
        self._fill(None)
        sha256 = self._given.hash.hexdigest()
        return Payload(name=self.name, data=self._take(), sha256=sha256, path=self.path)

    def chunks(self) -> Iterator[bytes]:
        """Yield the whole source in parts; once, in place of `load`.

        None is kept and none is hashed: hashing takes a tenth of the time of reading a log.
        """
        self._given.hashing = False
        size = len(self._read)
        yield self._take()
        while chunk := self._read_by(self._unpacked.read, _CHUNK):
            size += len(chunk)
            self._hold_ratio(size)
            yield chunk

    def _take(self) -> bytes:
        data = bytes(self._read)
        self._read = bytearray()  # one copy is enough for a large source
        return data

    def _skip_hole(self) -> None:
        # A log that was truncated under its writer begins with zeros, up to its former length.
        skipped = 0
        while self._read and not any(self._read[:HEAD_BYTES]) and skipped < MOST_HOLE_BYTES:
            before = len(self._read)
            self._read = self._read.lstrip(b"\0")
            skipped += before - len(self._read)
            self._fill(HEAD_BYTES)

    @staticmethod
    def _open(path: str, stdin: BinaryIO | None) -> BinaryIO:
        if path == "-":
            return stdin if stdin is not None else sys.stdin.buffer
        try:
            return Path(path).open("rb")
        except OSError as error:
            reason = error.strerror or "unreadable"
            raise InputError(
                f"{path}: cannot be read ({reason.lower()}). Check the name and its permissions."
            ) from None
        except ValueError:
            raise InputError(f"{path!r}: no file name. Check the spelling.") from None

    def _unpacking(self, source: io.BufferedReader) -> io.BufferedReader:
        """Return a source without what it is packed in."""
        for _ in range(MOST_LAYERS):
            first = self._read_by(source.peek, len(_ZSTANDARD))
            if first.startswith(_ZSTANDARD):
                source = self._of_zstandard(source)
            elif first.startswith(_MAGIC):
                errors = (EOFError, zlib.error, gzip.BadGzipFile)
                self._damaged |= dict.fromkeys(errors, "read.bad-gzip")
                source = io.BufferedReader(gzip.GzipFile(fileobj=source, mode="rb"), _CHUNK)
            else:
                return source
        raise InputError(Message("read.packed-often", file=self.name, n=MOST_LAYERS - 1))

    def _of_zstandard(self, source: io.BufferedReader) -> io.BufferedReader:
        try:
            library = importlib.import_module("zstandard")
        except ImportError:
            raise InputError(Message("read.zstandard", file=self.name)) from None
        # The library ends quietly where the last frame is cut: what follows is not known.
        self._damaged[library.ZstdError] = "read.bad-zstandard"
        unpacked = library.ZstdDecompressor().stream_reader(source, read_across_frames=True)
        return io.BufferedReader(unpacked, _CHUNK)

    def _read_by(self, read: Callable[[int], bytes], size: int) -> bytes:
        try:
            return read(size)
        except tuple(self._damaged) as error:
            code = next(c for kind, c in self._damaged.items() if isinstance(error, kind))
            raise InputError(Message(code, file=self.name)) from None

    def _fill(self, size: int | None) -> None:
        while size is None or len(self._read) < size:
            chunk = self._read_by(self._unpacked.read, size or _CHUNK)
            if not chunk:
                return
            self._read += chunk
            read = len(self._read)
            self._hold_ratio(read)
            if read > MOST_BYTES:
                raise InputError(Message("read.too-large", file=self.name, mib=MOST_BYTES >> 20))

    def _hold_ratio(self, read: int) -> None:
        if read > RATIO_FROM_BYTES and read > MOST_RATIO * max(1, self._given.count):
            raise InputError(Message("read.unpacks-huge", file=self.name, n=MOST_RATIO))


def hash_of(path: str) -> str:
    """Return the hash of a file's bytes as `Payload.sha256`, without keeping them.

    Raises:
        InputError: it cannot be read.
    """
    try:
        with Path(path).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}).") from None


class _Given(io.RawIOBase):
    """The bytes of a source as they are given: hashed and counted as they are read."""

    def __init__(self, raw: BinaryIO, name: str) -> None:
        super().__init__()
        self._raw, self._name = raw, name
        self.hash, self.hashing, self.count = hashlib.sha256(), True, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        try:
            chunk = self._raw.read(len(buffer))
        except OSError as error:
            raise InputError(f"{self._name}: reading stopped: {error.strerror}.") from None
        if self.hashing:
            self.hash.update(chunk)
        self.count += len(chunk)
        buffer[: len(chunk)] = chunk
        return len(chunk)


def base_name(path: str) -> str:
    """Return the last part of a path of either kind; folders may name users or hosts."""
    return PureWindowsPath(PurePosixPath(path).name).name or path


def stem(name: str) -> str:
    """Return a file's name without its extensions, as a job's name; `job` for standard input."""
    text = name
    while (shorter := PurePosixPath(text).stem) != text:
        text = shorter
    return text if text not in {"-", ""} else "job"


_BOMS = ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"\xef\xbb\xbf", "utf-8"))
_PROBE_BYTES = 512
# Plain bytes within UTF-16, where cmd.exe's `>>` goes on with what PowerShell's `>` began: text of
# UTF-16 has a zero byte in each of its ASCII characters, and others are rarely 16 pairs of ASCII.
_PLAIN = re.compile(rb"((?:[\t\r\n -~](?!\0)){32,}(?:[^\0\xfe\xff](?!\0))*)")
_HOLE = re.compile(r"(?<=[^\n\0])\0{16,}")  # after a line's begin
# What a terminal acts on and does not show (ECMA-48): the cursor's place; all else.
_TO_PLACE = re.compile(r"\x1b\[[\d;]*[HfEF]")
_OF_TERMINAL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-DGI-eg-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-Z^-~])"
)


def decode(data: bytes) -> str:
    """Return bytes as text: by byte-order mark, else UTF-16 by its zero bytes, else UTF-8.

    Plain bytes that follow UTF-16, and UTF-16 after them again, are each read as what they are.
    NUL characters are taken out (a log truncated while its writer kept its place has holes of
    them, which end a line), and so is what colours a terminal or moves its cursor, which begins a
    line where it moves to another; bytes that are not UTF-8 become replacement characters.
    """
    mark, encoding = next((bom for bom in _BOMS if data.startswith(bom[0])), (b"", "utf-8"))
    even, odd = data[:_PROBE_BYTES:2], data[1:_PROBE_BYTES:2]
    for zeros, letters, wide in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if not mark and zeros and not any(zeros) and 0 not in letters and letters.isascii():
            encoding = wide
    parts = [data[len(mark) :]] if encoding == "utf-8" else _PLAIN.split(data[len(mark) :])
    text = "".join(
        part.decode("utf-8" if i % 2 else encoding, "replace") for i, part in enumerate(parts)
    )
    if len(parts) > 1:  # PowerShell marks what it writes anew
        text = text.replace("\ufeff", "")
    text = _HOLE.sub("\n", text).replace("\0", "") if "\0" in text else text
    return _TO_PLACE.sub("\n", _OF_TERMINAL.sub("", text)) if "\x1b" in text else text


# What `ts` puts before a line: a date with its year, or none that tells the year.
STAMP = r"\[?(?:\d{4}-\d\d-\d\d[ T]|[A-Z][a-z]{2} +\d{1,2} )?\d\d:\d\d:\d\d(?:\.\d+)?\]?[ \t]+"
_STAMPED = re.compile(rf"({STAMP})(.*)", re.DOTALL)


# What `date /T`, `time /T` and `echo %DATE% %TIME%` of a batch file print, each part or both.
_BATCH_LINE = re.compile(
    r"(?=\S)(?:\w{2,3}\.? )?(?P<day>\d\d?[-/.]\d\d?[-/.]\d{4}|\d{4}-\d\d-\d\d)?\s*"
    r"(?P<time>\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?: [AP]M)?)?",
    re.IGNORECASE,
)
DATE_LINE = re.compile(r"^\w{3} (\w{3} +\d+ \d\d:\d\d:\d\d) (?:(UTC|GMT) )?(?:\w+ )?(\d{4})$")


def is_date_line(text: str) -> bool:
    """Return whether a line is what the `date` command prints, also `date +%T`, or a batch file."""
    line = text.strip()
    return bool(DATE_LINE.match(line) or _BATCH_LINE.fullmatch(line))


def date_after(before: str, line: str) -> str:
    """Return when rows below a date line were read; a time alone is of the day in a line before."""
    day, now = _BATCH_LINE.fullmatch(before), _BATCH_LINE.fullmatch(line.strip())
    if day and now and day["day"] and not now["day"]:
        return f"{day['day']} {now['time']}"
    return line.strip()


def without_stamp(line: str) -> tuple[str | None, str]:
    """Return the time that `ts` put before a line, None where it did not, and the line.

    A date that lacks its year is left out: HH:MM:SS.
    """
    stamped = _STAMPED.match(line)
    if stamped is None:
        return None, line
    time = stamped[1].strip(" \t[]")
    return (time if time[:1].isdigit() else time.rpartition(" ")[2]), stamped[2]


MAGIC = b"PAR1"
_FOOTER_BYTES = 1 << 17


def footer_of(path: str | Path) -> bytes:
    """Return the end of a Parquet file, where its columns are named; b"" for any other file."""
    try:
        with Path(path).open("rb") as stream:
            if stream.read(len(MAGIC)) != MAGIC:
                return b""
            stream.seek(max(0, stream.seek(0, 2) - _FOOTER_BYTES))
            return stream.read()
    except (OSError, ValueError):
        return b""
