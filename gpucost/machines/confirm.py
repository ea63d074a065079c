"""Asks before anything is spent or removed."""

import sys

import click

from pricing.errors import InputError, RefusedError


def confirm(question: str, *, yes: bool) -> None:
    """Return when the answer is yes.

    Args:
        question: what is about to happen.
        yes: the user said so already.

    Raises:
        InputError: nobody can be asked.
        RefusedError: the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{question} Nobody can be asked here: say --yes, or --dry-run to look.")
    if not click.confirm(question, default=False, err=True):
        raise RefusedError("Not confirmed; nothing was done.")
