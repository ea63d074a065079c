"""Many things in a sentence: how many, the first few by name, how many more there are."""

import shlex
from collections.abc import Iterable, Sequence

ALIKE = 3  # two lines that differ in their first word are still read at a glance


def listed(names: Sequence[str], shown: int = 5) -> str:
    """Return names as one line: those that are shown, then "and N more"; "none" of no name."""
    more = [f"and {len(names) - shown:,} more"] if len(names) > shown else []
    return ", ".join([*names[:shown], *more]) or "none"


def as_typed(word: str) -> str:
    """Return a word of a command that is printed for a reader to paste into a shell.

    What would end the line or the code around it, or look like HTML, is left for the reader to
    type: `NAME`.
    """
    is_fit = word.isprintable() and not any(sign in word for sign in "`<>")
    return shlex.quote(word) if is_fit else "NAME"


def counted(number: float, noun: str) -> str:
    """Return how many there are: `1 job`, `2 jobs`, `1,200 jobs`."""
    if number == 1:
        return f"1 {noun}"
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,g}"
    return f"{shown} {noun}{'es' if noun.endswith('s') else 's'}"


def grouped(problems: Iterable[str]) -> list[str]:
    """Return problems; those of ALIKE or more that differ only in whose they are, as one.

    Args:
        problems: sentences, such as "JOB: what is wrong with it".
    """
    subjects_by_text: dict[str, list[str]] = {}
    for problem in problems:
        subject, text = _parts(problem)
        subjects_by_text.setdefault(text, []).append(subject)
    lines: list[str] = []
    for text, names in subjects_by_text.items():
        is_repeated = len(set(names)) >= ALIKE
        lines += [listed(names) + text] if is_repeated else [name + text for name in names]
    return lines


def _parts(problem: str) -> tuple[str, str]:
    """Return whose problem it is, and the rest; a sentence that names nobody is all rest."""
    subject, colon, text = problem.partition(": ")
    return (subject, colon + text) if text else ("", problem)
