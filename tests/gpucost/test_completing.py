"""What a shell offers while a command or an option is typed, at once and without a network."""

import os
import subprocess

import pytest

from tests.gpucost.profiling.test_profile import GPUCOST


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("dia",), "plain,diagnose"),
        (("plan", "--horiz"), "plain,--horizon"),
        (("plan", "--objective", "ti"), "plain,time"),
    ],
)
def test_a_word_that_is_half_typed(words: tuple[str, ...], expected: str) -> None:
    """Commands, options and choices are offered by click's own completion."""
    typed = {"COMP_WORDS": " ".join(("gpucost", *words)), "COMP_CWORD": str(len(words))}
    environment = {**os.environ, **typed, "_GPUCOST_COMPLETE": "bash_complete"}
    said = subprocess.run([GPUCOST], env=environment, capture_output=True, text=True, check=False)
    assert said.stderr == ""
    assert expected in said.stdout.splitlines()
