"""Marks: what is ours says so in full, and nothing else is taken for ours."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import InputError
from providers.ownership_tags import (
    OwnershipTags,
    clean,
    keep_owner,
    new_run,
    owner_of,
    owns,
    read_marks,
    read_text,
)

AT = datetime(2026, 11, 21, 20, 15, tzinfo=UTC)
words = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9-]{0,47}", fullmatch=True)


@given(
    run=words,
    owner=words,
    plan=words,
    separator=st.sampled_from([":", "."]),
    started=st.sampled_from([None, AT]),
)
def test_marks_come_back_from_a_tag_and_a_name(
    run: str, owner: str, plan: str, separator: str, started: datetime | None
) -> None:
    """Whatever run, owner and plan are called, the text of the marks gives them back."""
    marks = OwnershipTags(run=run, deadline=AT, owner=owner, plan=plan, started=started)
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
    """Incomplete, damaged or foreign words are not marks."""
    assert read_text(text, ":") is None


@given(text=st.text())
def test_any_name_becomes_a_mark(text: str) -> None:
    """Whatever a plan or owner is called, its mark is one that providers take."""
    OwnershipTags(run="r", deadline=AT, owner=clean(text), plan=clean(text))


def test_the_owner_is_told_or_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """GPUCOST_OWNER wins; else user and machine; a user without a name is still somebody."""
    keep_owner(tmp_path)
    key = (tmp_path / "owner").read_text(encoding="ascii").strip()
    assert owner_of({"GPUCOST_OWNER": "ada lovelace"}, tmp_path) == f"ada-lovelace--{key}"
    monkeypatch.setattr("getpass.getuser", _nobody)
    monkeypatch.setattr("socket.gethostname", lambda: "box.example.org")
    assert owner_of({}, tmp_path) == f"user-box-example-org--{key}"


def test_names_without_a_letter_are_two_owners(tmp_path: Path) -> None:
    """Of two people whom tags cannot name, each has a folder, and so an id, of their own."""
    owners = set()
    for name in ("李", "王"):
        folder = tmp_path / name
        keep_owner(folder)
        owners.add(owner_of({"GPUCOST_OWNER": name}, folder))
    assert len(owners) == 2
    assert all(one.startswith("unnamed--") for one in owners)
    first, second = owners
    assert not owns(first, second)


def test_an_id_is_kept_and_only_its_owners(tmp_path: Path) -> None:
    """Made once, for the user's eyes alone; a damaged one is made anew; no file, no id."""
    assert owner_of({"GPUCOST_OWNER": "ada"}, tmp_path) == "ada--new"
    keep_owner(tmp_path)
    first = owner_of({"GPUCOST_OWNER": "ada"}, tmp_path)
    keep_owner(tmp_path)
    assert owner_of({"GPUCOST_OWNER": "ada"}, tmp_path) == first
    assert (tmp_path / "owner").stat().st_mode & 0o777 == 0o600
    (tmp_path / "owner").write_bytes(b"\xff no id")
    keep_owner(tmp_path)
    assert owner_of({"GPUCOST_OWNER": "ada"}, tmp_path) not in (first, "ada--new")
    assert [one.name for one in tmp_path.iterdir()] == ["owner"]


@given(name=st.text(max_size=80))
def test_any_owner_is_one_that_marks_hold(name: str) -> None:
    """Whatever somebody is called, the owner fits a tag, and a whole one names itself."""
    folder = Path("/no/such/folder")
    owner = owner_of({"GPUCOST_OWNER": name}, folder)
    OwnershipTags(run="r", deadline=AT, owner=owner, plan="p")
    assert owner_of({"GPUCOST_OWNER": f"{owner[:-3]}5hq2mzt8"}, folder) == f"{owner[:-3]}5hq2mzt8"


def test_marks_of_older_versions_are_their_owners() -> None:
    """A name without an id is the one whose name it is, unless nobody could be named."""
    assert owns("ada--5hq2mzt8", "ada")
    assert not owns("ada--5hq2mzt8", "ada--k3f9xw2m")
    assert not owns("unnamed--5hq2mzt8", "unnamed")


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
        OwnershipTags(**fields | changes)
