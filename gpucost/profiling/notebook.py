"""`%load_ext gpucost`, then `%%gpucost [NAME]`: measures what a cell of a notebook does."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

from gpucost.profiling.measuring import Measurement, measure
from pricing.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

_USAGE = "usage: %%gpucost [NAME] [--no-gpu] [--quiet] [-o FILE] [--interval SECONDS]"
_FLAGS = {"--no-gpu": ("gpu", False), "--quiet": ("quiet", True), "-q": ("quiet", True)}
_VALUES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "-o": ("target", str),
    "--output": ("target", str),
    "--interval": ("interval_s", lambda text: float(text.removesuffix("s"))),
}


def load_ipython_extension(shell: Any) -> None:  # noqa: ANN401 - IPython has no types
    """Add the cell magic to a shell; IPython calls this at `%load_ext gpucost`."""

    def gpucost(line: str, cell: str) -> Measurement | None:
        """Measure a cell: GPUs, host, and the steps of PyTorch and Keras in it."""
        try:
            measurement = measure(**arguments(line))
        except InputError as error:
            print("\n".join(error.problems))  # noqa: T201 - as the cell's output
            return None
        with measurement:
            result = shell.run_cell(cell)
        shell.user_ns["_gpucost"] = measurement
        result.raise_error()
        return measurement

    shell.register_magic_function(gpucost, magic_kind="cell", magic_name="gpucost")


def arguments(line: str) -> dict[str, Any]:
    """Return what the words behind the magic ask of `measure`.

    Raises:
        InputError: they are not understood.
    """
    found: dict[str, Any] = {"name": "notebook"}
    words = shlex.split(line)
    names = 0
    while words:
        word = words.pop(0)
        if word in _FLAGS:
            name, value = _FLAGS[word]
            found[name] = value
        elif word in _VALUES and words:
            name, read = _VALUES[word]
            try:
                found[name] = read(words.pop(0))
            except ValueError:
                raise InputError(_USAGE) from None
        elif word.startswith("-") or names:
            raise InputError(f"{word}: not understood; {_USAGE}")
        else:
            found["name"], names = word, 1
    return found
