"""What a Parquet file says of itself, without a library that reads it."""

from pathlib import Path

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
