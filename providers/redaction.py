"""The one redactor: knows every secret, and hides it in whatever leaves the process.

Known are the secrets of the environment (`VARIABLES`), and those that were learned on the way, such
as the keys that the AWS SDK found in a file (`learn`). A secret is found as it is and as other
programs write it (percent-encoded, quoted, in JSON, in base64, on one line), and so is a part of
one. Keys that can be told by their shape are hidden without being known.
"""

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, TextIO, cast

HIDDEN = "[secret]"
VARIABLES = (
    "DIGITALOCEAN_TOKEN",
    "DIGITALOCEAN_ACCESS_TOKEN",
    "GPUCOST_DIGITALOCEAN_REAPER_TOKEN",
    "LAMBDA_API_KEY",
    "GPUCOST_LAMBDA_REAPER_KEY",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_BEARER_TOKEN_BEDROCK",
    "SSH_PASSPHRASE",
    "SSHPASS",
)
"""Variables whose values are secrets; a test holds them against those of the providers.

They are written out here because every command hides them, and few need the providers.
"""

_SHAPES = re.compile(
    r"\bdo[opr]_v1_[0-9a-f]{16,}"  # DigitalOcean: personal, OAuth and refresh tokens
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"  # AWS: ids of keys, which name the account
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{16,}"  # the token of an Authorization header
    r"|(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----)"
)
_IN_SHAPES = ("_v1_", "AKIA", "ASIA", "earer ", "PRIVATE KEY")  # much quicker than the expression
_SHORTEST = 6  # a shorter one is a word of any sentence, and no secret
_LEAST_PART = 8
_LONG = 32
_LEAST_PART_OF_LONG = 12

_learned: dict[str, None] = {}


def learn(*secrets: str | None) -> None:
    """Hide these from now on, too; None and what is too short to hide are left out."""
    _learned.update(dict.fromkeys(secret for secret in secrets if secret))


def secrets_known(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the secrets that are hidden now."""
    return (*(environment[name] for name in VARIABLES if environment.get(name)), *_learned)


_COMMANDS = re.compile(
    r"[\x00-\x07\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;?]*[mKABCDG]|\[0?J|[78])"
)
"""Control characters but for tab, line ends, backspace and sequences that colour or move: titles,
clipboards, answers and settings of a terminal are nobody's but its user's."""


def redact(text: str, environment: Mapping[str, str] = os.environ) -> str:
    """Return the text with every known secret, or a part of one, hidden.

    A part is a fourth of a secret of 32 letters or more (12 letters at least), and half of a
    shorter one (8 letters at least).
    """
    spans = [
        span
        for spelling, min_length in _spellings(secrets_known(environment))
        for span in _parts(text, spelling, min_length)
    ]
    for start, end in reversed(_merged(spans)):
        # An escape goes as a whole: half of one would break the JSON or the shell word around it.
        before = text[:start].rstrip("\\")
        after = text[end + 1 :] if text[end - 1] == "\\" else text[end:]
        text = before + HIDDEN + after
    return _SHAPES.sub(HIDDEN, text) if any(_holds(text, word) for word in _IN_SHAPES) else text


@lru_cache(maxsize=8)
def _spellings(secrets: tuple[str, ...]) -> tuple[tuple[str, int], ...]:
    """Return every way in which a secret is written, with the letters of a part that is hidden."""
    lengths: dict[str, int] = {}
    for secret in secrets:
        for form in dict.fromkeys((secret, secret.strip(), *secret.splitlines())):
            if len(form) >= _SHORTEST:
                lengths.update((spelling, _min_length(spelling)) for spelling in _written(form))
    return tuple(lengths.items())


def _min_length(spelling: str) -> int:
    length = len(spelling)
    if length >= _LONG:
        return max(_LEAST_PART_OF_LONG, length // 4)
    return min(length, max(_LEAST_PART, length // 2))


def _written(secret: str) -> Iterator[str]:
    import base64  # noqa: PLC0415 - only where there is a secret
    import html  # noqa: PLC0415 - the same
    from urllib.parse import quote, quote_plus  # noqa: PLC0415 - the same

    raw = secret.encode("utf-8", "surrogateescape")
    yield secret
    yield quote(raw, safe="")
    yield quote(raw)
    yield quote_plus(raw)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    yield ascii(secret)[1:-1]
    yield repr(raw)[2:-1]
    quoted = secret.replace("'", "'\"'\"'")  # a shell's single quotes
    yield quoted
    yield json.dumps(quoted)[1:-1]
    yield html.escape(secret)
    yield " ".join(secret.split())
    yield "".join(letter if letter.isprintable() else " " for letter in secret)
    yield raw.decode("latin-1")
    yield base64.b64encode(raw).decode("ascii").rstrip("=")


def _parts(text: str, secret: str, min_length: int) -> Iterator[tuple[int, int]]:
    """Yield where at least so many letters of the secret stand in a row.

    Any part of that length holds one of the blocks that are looked for in full.
    """
    step = max(1, min_length // 2)
    for start in range(0, len(secret) - step + 1, step):
        block = secret[start : start + step]
        at = text.find(block) if _holds(text, block) else -1
        while at >= 0:
            before = after = 0
            while min(at, start) > before and text[at - before - 1] == secret[start - before - 1]:
                before += 1
            room = min(len(text) - at, len(secret) - start)
            while after < room and text[at + after] == secret[start + after]:
                after += 1
            if before + after >= min_length:
                yield at - before, at + after
            at = text.find(block, at + max(1, after))


def _holds(text: str, phrase: str) -> bool:
    """Return whether words stand in a text; from its end their absence is seen in half the time."""
    return text.rfind(phrase) >= 0


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order, with those that touch made one."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


@contextmanager
def redacted_output(*, outlives_reader: bool = False) -> Iterator[None]:
    """Let everything that is printed in the block pass the redactor.

    Args:
        outlives_reader: whether the block goes on where the reader of a pipe has gone, as its exit
            code is an answer, too; else a `BrokenPipeError` ends it.
    """
    streams = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (
        cast("TextIO", RedactedStream(stream, outlives_reader=outlives_reader))
        for stream in streams
    )
    try:
        yield
    finally:
        sys.stdout, sys.stderr = streams


class RedactedStream:
    """A text stream whose every text passes the redactor; in all else the stream that it wraps."""

    def __init__(self, stream: Any, *, outlives_reader: bool = False) -> None:  # noqa: ANN401 - a test's stream may be of any class
        self._stream = stream
        self._outlives_reader = outlives_reader

    def write(self, text: str) -> int:
        """Write the text with secrets hidden; to a terminal what moves and colours, no commands."""
        hidden = redact(text)
        with self._reader_may_go():
            self._stream.write(_COMMANDS.sub("", hidden) if self._stream.isatty() else hidden)
        return len(text)

    def flush(self) -> None:
        """Write what is buffered."""
        with self._reader_may_go():
            self._stream.flush()

    @contextmanager
    def _reader_may_go(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            if not self._outlives_reader:
                raise
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())  # what is still buffered goes there, too
            os.close(nowhere)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write the lines with secrets hidden."""
        self.write("".join(lines))

    @property
    def buffer(self) -> "_RedactedBytes":
        """The stream of bytes below, redacted as well."""
        return _RedactedBytes(self._stream.buffer)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the stream has
        return getattr(self._stream, name)


class _RedactedBytes:
    def __init__(self, stream: Any) -> None:  # noqa: ANN401 - as above
        self._stream = stream

    def write(self, data: bytes) -> int:
        text = bytes(data).decode("utf-8", "surrogateescape")
        self._stream.write(redact(text).encode("utf-8", "surrogateescape"))
        return len(data)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - as above
        return getattr(self._stream, name)
