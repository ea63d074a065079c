"""`gpucost init` writes a settings file that the other commands read."""

import io
import sys
import tomllib
from pathlib import Path

import pytest

from gpucost.arguments.settings import load_settings
from gpucost.commands.planning.plan import command as plan
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF, training

FILE = Path("gpucost.toml")
EVERYTHING = (
    "--provider=digitalocean",
    "--provider=aws",
    "--region=EU",
    "--hours-per-month=200",
    "--engineer-rate=85.50",
)


class _Terminal(io.StringIO):
    """Standard input that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def _answer(monkeypatch: pytest.MonkeyPatch, *answers: str) -> None:
    monkeypatch.setattr(sys, "stdin", _Terminal("".join(f"{one}\n" for one in answers)))


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody can be asked, but where a test says so."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())


def _read() -> dict[str, object]:
    return tomllib.loads(FILE.read_text(encoding="utf-8"))


def test_what_is_said_is_written_and_read_again(call: Call) -> None:
    """Each option becomes the key of the same name, which `plan` accepts."""
    ran = call("init", *EVERYTHING)
    assert ran.code == 0, ran.err
    names = {"provider": ["digitalocean", "aws"], "region": ["eu"]}
    amounts = {"hours-per-month": 200, "engineer-rate": 85.5}
    assert _read() == {"plan": {**names, **amounts}, "prices": names}
    heard = load_settings(plan, ("plan", "prices"))
    assert set(heard) == {"providers", "regions", "hours_per_month", "engineer_rate"}


def test_a_plan_heeds_the_file(call: Call, write: Write) -> None:
    """`plan` looks at no other provider after `init`."""
    write("profile.json", training())
    assert call("init", "--provider", "digitalocean").code == 0
    ran = call("plan", "--as-of", AS_OF, "-q", "-f", "json")
    assert ran.code == 0, ran.err
    offered = {o["offer"]["provider"] for o in ran.json["jobs"][0]["options"]}
    assert offered == {"digitalocean"}


def test_on_a_terminal_what_was_not_said_is_asked(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown name is asked again, an empty answer is the default, flags are not asked."""
    _answer(monkeypatch, "amazonn", "aws, digitalocean", "", "8h", "160", "")
    ran = call("init")
    assert ran.code == 0, ran.err
    assert "amazonn is not in the catalog" in ran.err
    assert _read() == {
        "plan": {
            "provider": ["aws", "digitalocean"],
            "hours-per-month": 160,
            "engineer-rate": 100,
        },
        "prices": {"provider": ["aws", "digitalocean"]},
    }
    _answer(monkeypatch)
    assert call("init", *EVERYTHING, "--force").code == 0


def test_an_answer_that_ends_changes_nothing(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of the input at a question is exit 130, and no file."""
    _answer(monkeypatch, "aws")
    assert call("init").code == 130
    assert not FILE.exists()


REFUSED = {
    "nobody to ask": ((), "not a terminal"),
    "an unknown provider": (("--provider", "amazonn"), "--provider amazonn"),
    "an unknown region": (("--region", "mars"), "--region mars"),
    "no month": (("--hours-per-month", "9000"), "--hours-per-month"),
    "no dollars": (("--engineer-rate", "-3"), "--engineer-rate"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused(case: str, call: Call) -> None:
    """Exit 2, the reason on standard error, and no file."""
    arguments, reason = REFUSED[case]
    ran = call("init", *arguments)
    assert ran.code == 2
    assert reason in ran.err
    assert not FILE.exists()


def test_a_file_that_is_there_stays(call: Call, write: Write) -> None:
    """Only --force writes over it."""
    before = write("gpucost.toml", "[plan]\nmax-slowdown = 1.1\n")
    ran = call("init", "--yes")
    assert ran.code == 2
    assert "--force" in ran.err
    assert "max-slowdown" in Path(before).read_text(encoding="utf-8")
    assert call("init", "--yes", "--force").code == 0
    assert _read() == {"plan": {}, "prices": {}}
