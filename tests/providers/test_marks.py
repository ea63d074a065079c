"""Marks: what is ours says so in full, and nothing else is taken for ours."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import InputError
from providers.ownership_tags import Marks, clean, new_run, owner_of, read_marks, read_text

AT = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)
words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,47}", fullmatch=True)


@given(run=words, owner=words, plan=words, separator=st.sampled_from([":", "."]))
def test_marks_come_back_from_a_tag_and_a_name(
    run: str, owner: str, plan: str, separator: str
) -> None:
    """Whatever run, owner and plan are called, the text of the marks gives them back."""
    marks = Marks(run=run, deadline=AT, owner=owner, plan=plan)
    assert read_text(marks.text(separator), separator) == marks
    assert read_marks(marks.tags()) == marks


@pytest.mark.parametrize(
    "text",
    [
        "gpucost-run:k3f9xw2m:20261121T201500Z:ada",
        "gpucost-run:k3f9xw2m:tomorrow:ada:plan",
        "gpucost-run:k3f9xw2m:20261121T201500Z:ada lovelace:plan",
        "gpucost-run:k3f9xw2m:20261121T201500Z:ada:plan:more",
        "my-gpucost-run:k3f9xw2m:20261121T201500Z:ada:plan",
        "gpucost",
        "",
    ],
)
def test_what_only_looks_like_ours_is_not(text: str) -> None:
    """Incomplete, damaged or foreign words are no marks."""
    assert read_text(text, ":") is None


@given(text=st.text())
def test_any_name_becomes_a_mark(text: str) -> None:
    """Whatever a plan or owner is called, its mark is one that providers take."""
    Marks(run="r", deadline=AT, owner=clean(text), plan=clean(text))


def test_the_owner_is_told_or_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUCOST_OWNER wins; else user and machine; a user without a name is still somebody."""
    assert owner_of({"GPUCOST_OWNER": "ada lovelace"}) == "ada-lovelace"
    monkeypatch.setattr("getpass.getuser", _nobody)
    monkeypatch.setattr("socket.gethostname", lambda: "box.example.org")
    assert owner_of({}) == "user-box-example-org"


def _nobody() -> str:
    raise KeyError("getpwuid(): uid not found: 1234")


def test_runs_have_names_of_their_own() -> None:
    """Ten thousand names are ten thousand names."""
    assert len({new_run() for _ in range(10_000)}) == 10_000


@pytest.mark.parametrize(
    "changes",
    [{"owner": ""}, {"plan": "a b"}, {"run": "x" * 49}, {"deadline": datetime(2026, 1, 1)}],  # noqa: DTZ001 - the point
)
def test_impossible_marks_are_refused(changes: dict[str, Any]) -> None:
    """What a provider would refuse, or nobody could read back, is an error at once."""
    fields: dict[str, Any] = {"run": "r", "deadline": AT, "owner": "o", "plan": "p"}
    with pytest.raises(InputError):
        Marks(**fields | changes)
