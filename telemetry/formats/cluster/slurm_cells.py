"""Cells as Slurm writes them: lengths of time, and the GPUs of an allocation."""

import re

_LENGTH = re.compile(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)(?:\.\d+)?")


def length_s(text: str) -> float | None:
    """Return `10:00`, `01:00:00`, `1-00:00:00` or `600` as seconds; None for anything else."""
    if text.strip().isascii() and text.strip().isdecimal():
        return float(text)
    match = _LENGTH.fullmatch(text.strip())
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


def gpus_held(tres: str) -> tuple[int, str | None]:
    """Return the GPUs of an allocation and their type: `gres/gpu=2,gres/gpu:a100=2` are two.

    Slurm before 20.11 wrote `gpu:2` or `gpu:a100:2`.
    """
    untyped, typed = 0, {}
    for part in tres.split(","):
        if part.startswith("gpu:"):
            part = "gres/" + "=".join(part.rsplit(":", 1))  # noqa: PLW2901 - the newer spelling
        name, _, count = part.partition("=")
        if not count.isdecimal():
            continue
        if name == "gres/gpu":
            untyped = int(count)
        elif name.startswith("gres/gpu:"):
            typed[name.partition(":")[2]] = int(count)
    return untyped or sum(typed.values()), next(iter(typed)) if len(typed) == 1 else None
