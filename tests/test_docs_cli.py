"""What the command line says about itself is complete and true."""

import re
import shlex

import click
import pytest

from gpucost.arguments.command_group import DefaultGroup
from gpucost.cli import COMMANDS, EPILOG, load_command

FIRST_WORDS = frozenset(COMMANDS)


def _leaves(command: click.Command) -> list[click.Command]:
    """The command, or its sub-commands where it has some."""
    return list(command.commands.values()) if isinstance(command, click.Group) else [command]


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
    assert (load_command(name).help or "").strip().endswith(".")
    assert COMMANDS[name][1].endswith(".")
    assert load_command(name).name == name
    assert all((one.help or "").strip().endswith(".") for one in _leaves(load_command(name)))


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_what_it_does(name: str) -> None:
    """Every option that is shown has a sentence of help."""
    silent = [
        parameter.opts[0]
        for one in _leaves(load_command(name))
        for parameter in one.params
        if isinstance(parameter, click.Option) and not parameter.hidden and not parameter.help
    ]
    assert silent == []


@pytest.mark.parametrize("name", [*COMMANDS, ""])
def test_the_example_of_the_help_is_a_valid_command(name: str) -> None:
    """The example's options and values are accepted by the command that it shows."""
    examples = _examples(load_command(name).epilog if name else EPILOG)
    assert examples
    for below in _leaves(load_command(name)) if name else ():
        assert _examples(below.epilog)
        examples += _examples(below.epilog)
    for words in examples:
        command, *arguments = _inner(words)
        assert not name or command == name
        shown = load_command(command)
        if isinstance(shown, DefaultGroup):
            command, *arguments = shown.in_order(arguments)
            shown = shown.commands[command]
        assert shown.make_context(command, arguments).params


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_has_one_spelling(name: str) -> None:
    """No two options of a command share a name, and long names use dashes."""
    for one in _leaves(load_command(name)):
        spelled = [
            word
            for parameter in one.params
            if isinstance(parameter, click.Option)
            for word in (*parameter.opts, *parameter.secondary_opts)
        ]
        assert len(spelled) == len(set(spelled))
        option = r"-[a-z]|--[a-z][a-z0-9]*(-[a-z][a-z0-9]*)*"
        assert all(re.fullmatch(option, word) for word in spelled)


def test_general_commands_are_those_of_the_code() -> None:
    """The general help's example uses commands that exist."""
    shown = [_inner(words)[0] for words in _examples(EPILOG)]
    assert set(shown) <= FIRST_WORDS
