"""`gpucost plan --help`: its many options stand under headings."""

import click

from gpucost.arguments.command_group import OTHERS, GroupedCommand
from gpucost.commands.planning.plan import command
from tests.gpucost.conftest import Call


def test_options_of_plan_stand_in_groups(call: Call) -> None:
    """Every option is under one of five headings, once, and no heading names what is not there."""
    assert isinstance(command, GroupedCommand)
    out = call("plan", "--help").out
    places = [out.index(f"\n{heading}:") for heading in command.groups]
    assert places == sorted(places)
    assert f"\n{OTHERS}:" not in out
    options = command.get_params(click.Context(command))
    flags = {flag for option in options for flag in option.opts}
    named = " ".join(command.groups.values()).split()
    assert len(named) == len(set(named))
    assert set(named) <= flags
