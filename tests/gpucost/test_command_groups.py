"""`prices` and `quote` have sub-commands, and every earlier spelling still works."""

from pathlib import Path

import pytest

from tests.gpucost.conftest import Call

H100 = "digitalocean/gpu-h100x8-640gb"
DAY = ("--as-of", "2026-11-22")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (("prices", "--gpu", "L4", *DAY), ("prices", "list", "--gpu", "L4", *DAY)),
        (
            ("prices", "--provider", "aws", *DAY, "check"),
            ("prices", "check", "--provider", "aws", *DAY),
        ),
        (
            ("quote", H100, "--duration", "90m", *DAY),
            ("quote", "offer", H100, "--duration", "90m", *DAY),
        ),
        (
            ("quote", "--duration", "90m", *DAY, H100),
            ("quote", "offer", "--duration", "90m", *DAY, H100),
        ),
        (("quote", "--option", "a/o1"), ("quote", "plan", "--option", "a/o1")),
        (("quote", "p.json", "--option=a/o1"), ("quote", "plan", "p.json", "--option", "a/o1")),
    ],
    ids=str,
)
def test_earlier_spellings_are_the_sub_commands(
    old: tuple[str, ...], new: tuple[str, ...], call: Call
) -> None:
    """The same exit code, output and messages with and without the sub-command's name."""
    assert call(*old) == call(*new)


@pytest.mark.parametrize("command", ["prices", "quote"])
def test_the_help_shows_options_and_sub_commands(command: str, call: Call) -> None:
    """The help of the group has the options of what is meant, and names the others."""
    ran = call(command, "--help")
    assert ran.code == 0
    assert "--as-of" in ran.out
    assert "Commands:" in ran.out


def test_settings_and_variables_reach_the_sub_commands(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A section [prices] and GPUCOST_PRICES_* hold for every sub-command that takes the option."""
    text = '[prices]\nprovider = ["digitalocean"]\ngpu = "L4"\n'
    Path("gpucost.toml").write_text(text, encoding="utf-8")
    checked = call("prices", "check", "-f", "json")
    assert [one["provider"] for one in checked.json["providers"]] == ["digitalocean"]
    monkeypatch.setenv("GPUCOST_PRICES_PROVIDER", "aws")
    listed = call("prices", "-f", "json")
    assert {one["provider"] for one in listed.json} == {"aws"}
    assert {one["gpu"] for one in listed.json} == {"L4"}
