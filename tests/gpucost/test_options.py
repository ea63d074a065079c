"""One option, one meaning: options.toml is all there is, and each help says what it says."""

from collections.abc import Iterator

import click
import pytest

from gpucost.arguments.parameters import OPTIONS
from gpucost.cli import COMMANDS, load_command
from tests.gpucost.conftest import Call

CLICKS = {"--help", "--help-all", "--version"}
EARLIER = {name: flag for flag, row in OPTIONS.items() for name in row.get("earlier", ())}
REUSED = {
    "--gpus",
    "--node",
    "--output",
    "--precision",
    "--step",
    "--trace",
}  # by options of other commands


def _taken(command: click.Command, path: str) -> Iterator[tuple[str, click.Option]]:
    yield from ((path, option) for option in command.params if isinstance(option, click.Option))
    if isinstance(command, click.Group):
        for name, below in command.commands.items():
            yield from _taken(below, f"{path} {name}")


TAKEN = [pair for name in COMMANDS for pair in _taken(load_command(name), name)]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_says_its_one_meaning(name: str) -> None:
    """In each command its help begins with what it means everywhere."""
    for path, option in (pair for pair in TAKEN if pair[0].split()[0] == name):
        flags = [word for word in option.opts if word.startswith("--")]
        if set(flags) & CLICKS:
            continue
        row = OPTIONS[flags[0].removeprefix("--")]
        assert (option.help or "").startswith(row.get("means", "")), (path, flags)
        assert option.hidden or row["means"]


def test_an_option_has_one_kind_of_value() -> None:
    """A day stays a day; only which choices are left may differ."""
    for flag, row in OPTIONS.items():
        kinds = {v["type"] for v in row.values() if isinstance(v, dict) and "type" in v}
        assert kinds <= {row.get("type", "unset"), "unset"}, flag


def test_earlier_names_are_not_shown_and_mean_one_thing() -> None:
    """They stay callable; a new option takes none of them over but in other commands."""
    shown = {name for _, option in TAKEN for name in option.opts if name.startswith("--")}
    assert set(EARLIER) <= shown
    assert {name for name in EARLIER if name.removeprefix("--") in OPTIONS} == REUSED


def test_help_fits_on_a_page(call: Call) -> None:
    """Of every command at 80 columns: 60 lines, and 30 of the first page."""
    for name in COMMANDS:
        lines = call(name, "--help").out.splitlines()
        assert len(lines) <= 60, (name, len(lines))
    assert len(call("--help").out.splitlines()) <= 40


@pytest.mark.parametrize(
    ("words", "purchase"), [(("--spot",), "spot"), (("--on-demand",), "on_demand")]
)
def test_purchases_are_words(words: tuple[str, ...], purchase: str, call: Call) -> None:
    """`--spot` is `--purchase spot`, in every command that takes it."""
    offers = call("prices", "--gpu", "H100", *words, "--as-of", "2026-11-22", "-f", "json").json
    assert {offer["purchase"] for offer in offers} == {purchase}
