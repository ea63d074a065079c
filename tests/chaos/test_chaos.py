"""Whatever goes wrong, nothing of ours is left, nothing else is touched, nothing untrue is said."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.chaos.__main__ import main
from tests.chaos.accounts import ACCOUNTS as OF_MACHINES
from tests.chaos.pool_accounts import POOL_ACCOUNTS
from tests.chaos.programme import CASES, some
from tests.chaos.trials import DOWN, LAUNCHES, stage
from tests.chaos.troubles import faults_of
from tests.chaos.truth import BAD, Count, check_ledger
from tests.chaos.workers import Task
from tests.providers.fakes.world import World

ACCOUNTS = {**OF_MACHINES, **POOL_ACCOUNTS}


@pytest.mark.parametrize("kind", ACCOUNTS)
def test_nothing_is_left_and_nothing_untrue_is_said(kind: str) -> None:
    """Killed, cut off, starved, in worlds that lag: all counts of the programme are 0."""
    total = Count()
    with stage(kind) as here:
        for job in some(kind).values():
            total.add(job(here))
    assert total.told == []
    assert total.is_clean
    assert total.kills >= (20 if kind == "lambda" else 4)
    assert total.billed > 0


def test_a_dirty_trial_is_seen() -> None:
    """Anything left, late, touched, dear, wrongly billed or untrue makes the programme fail."""
    assert Count(trials=9, may_stay=1).is_clean
    for name in BAD:
        assert not Count(**{name: 1}).is_clean


def test_every_provider_has_its_troubles() -> None:
    """Each account has launches, faults of each kind, and most of the worlds."""
    assert set(LAUNCHES) == set(ACCOUNTS)
    kinds = [set(faults_of(kind)) for kind in ACCOUNTS]
    assert all(one == kinds[0] and len(one) == 5 for one in kinds)
    for kind in ACCOUNTS:
        assert sum(kind in case.kinds for case in CASES.values()) >= (
            30 if kind in OF_MACHINES else 25
        )


@pytest.mark.parametrize(("left", "code"), [(0, 0), (1, 1)])
def test_the_tables_of_a_run_replace_those_of_a_page(
    left: int, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In Markdown, between the marks and nowhere else; anything left is the exit code."""
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- chaos: begin -->\nold\n<!-- chaos: end -->\nafter\n")

    def work_all(tasks: Iterable[Task], *, jobs: int) -> Iterator[tuple[Task, Count, float]]:
        assert jobs == 2
        yield from ((task, Count(trials=3, machines=left), 1.0) for task in tasks)

    monkeypatch.setattr("tests.chaos.__main__.work_all", work_all)
    assert main(["aws", "--some", "--jobs", "2", "--into", str(page)]) == code
    text = page.read_text()
    assert text.startswith("before\n<!-- chaos: begin -->\n| aws | trials | killed |")
    assert f"| plain | 3 | 0 | {left} |" in text
    assert text.endswith("<!-- chaos: end -->\nafter\n")
    assert "old" not in text


def test_a_long_run_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was clean is kept and not tried again; what was not is; the page has both."""
    tried: list[str] = []
    left = {"plain": 0, "full disk": 1}

    def work_all(tasks: Iterable[Task], *, jobs: int) -> Iterator[tuple[Task, Count, float]]:
        assert jobs == 1
        for task in tasks:
            tried.append(task[1])
            yield task, Count(trials=3, machines=left[task[1]]), 1.0

    monkeypatch.setattr("tests.chaos.__main__.work_all", work_all)
    page, file = tmp_path / "page.md", str(tmp_path / "kept.jsonl")
    page.write_text("<!-- chaos: begin --><!-- chaos: end -->")
    words = ["lambda", "--some", "--keep", file, "--into", str(page), "--world"]
    assert main([*words, "plain"]) == 0
    assert main([*words, "plain", "--world", "full disk"]) == 1
    assert "| **all** | 6 | 0 | 1 |" in page.read_text()
    left["full disk"] = 0
    assert main([*words, "full disk"]) == 0
    assert tried == ["plain", "full disk", "full disk"]
    assert "| plain | 3 | 0 | 0 |" in page.read_text()
    assert "| **all** | 6 | 0 | 0 |" in page.read_text()


def test_a_node_that_was_shown_has_a_bill() -> None:
    """A node that goes with its pool may be unknown only where no answer had its id."""
    count = Count()
    with stage("doks") as here, here.trial(World()):
        here.run(LAUNCHES["doks"]["1x GPU"])
        here.run(DOWN)
        (node,) = here.account.lives()
        empty = here.state / "none"
        check_ledger(here.account, empty, count, here.log, [f"1{node}".encode()])
        assert count.ledger == 0
        check_ledger(here.account, empty, count, here.log, here.answers)
    assert count.ledger == 1
