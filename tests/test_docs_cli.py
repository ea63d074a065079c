"""What the command line says about itself is complete and true."""

import re
import shlex
from importlib import import_module

import click
import pytest

from gpucost.cli import COMMANDS, EPILOG, LATER

FIRST_WORDS = frozenset((*COMMANDS, *LATER))


def _command(name: str) -> click.Command:
    command: click.Command = import_module(f"gpucost.commands.{COMMANDS[name][0]}").command
    return command


def _examples(epilog: str | None) -> list[list[str]]:
    text = (epilog or "").removeprefix("Example:")
    return [shlex.split(part) for part in re.split(r"&&|;", text) if "gpucost" in part]


def _inner(words: list[str]) -> list[str]:
    """Return the words after `gpucost`, also where they stand inside `eval "$(...)"`."""
    flat = " ".join(words).replace("$(", " ").replace(")", " ").split()
    return flat[flat.index("gpucost") + 1 :]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_does(name: str) -> None:
    """A command's help begins with a sentence, and so does its line in the general help."""
    assert (_command(name).help or "").strip().endswith(".")
    assert COMMANDS[name][1].endswith(".")
    assert _command(name).name == name


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    """Every option that is shown has a sentence of help."""
    silent = [
        parameter.opts[0]
        for parameter in _command(name).params
        if isinstance(parameter, click.Option) and not parameter.hidden and not parameter.help
    ]
    assert silent == []


@pytest.mark.parametrize("name", [*COMMANDS, ""])
def test_the_example_of_the_help_is_a_valid_command(name: str) -> None:
    """The example's options and values are accepted by the command that it shows."""
    examples = _examples(_command(name).epilog if name else EPILOG)
    assert examples
    for words in examples:
        command, *arguments = _inner(words)
        assert not name or command == name
        context = _command(command).make_context(command, arguments)
        assert context.params


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_one_spelling(name: str) -> None:
    """No two options of a command share a name, and long names use dashes."""
    spelled = [
        word
        for parameter in _command(name).params
        if isinstance(parameter, click.Option)
        for word in (*parameter.opts, *parameter.secondary_opts)
    ]
    assert len(spelled) == len(set(spelled))
    assert all(re.fullmatch(r"-[a-z]|--[a-z]+(-[a-z]+)*", word) for word in spelled)


def test_general_commands_are_those_of_the_code() -> None:
    """The general help's example uses commands that exist."""
    shown = [_inner(words)[0] for words in _examples(EPILOG)]
    assert set(shown) <= FIRST_WORDS
