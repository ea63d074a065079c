"""All questions, in the order of the page."""

from collections.abc import Callable
from pathlib import Path

from pricing.errors import InputError
from research import (
    co_location,
    collectives,
    cross_gpu,
    host,
    probed,
    rows,
    serving,
    several_gpus,
    side_by_side,
    slice_probe,
    slices,
    small_work,
    tensor_parallel,
    turns,
)
from research.score import Section

SECTIONS: tuple[Callable[[Path], Section], ...] = (
    rows.section,
    serving.section,
    cross_gpu.section,
    small_work.section,
    several_gpus.section,
    probed.section,
    tensor_parallel.section,
    co_location.section,
    turns.section,
    side_by_side.section,
    slices.section,
    slice_probe.section,
    collectives.section,
    host.section,
)


def evaluate(folder: Path) -> tuple[Section, ...]:
    """Return all sections.

    Raises:
        InputError: a file of the data sets is missing; the first one of each section is named.
    """
    found: list[Section] = []
    problems: list[str] = []
    for section in SECTIONS:
        try:
            found.append(section(folder))
        except FileNotFoundError as error:
            problems.append(f"{error.filename}: no such file; the evaluation needs all data sets.")
    if problems:
        raise InputError(problems)
    return tuple(found)
