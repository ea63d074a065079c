"""`gpucost examples`: the bundled examples in a folder of the user's."""

from pathlib import Path

from tests.conftest import ROOT
from tests.gpucost.conftest import Call


def test_the_examples_are_written_and_can_be_planned(call: Call) -> None:
    """Every bundled file is there as it is in the repository; a second call changes nothing."""
    for _ in range(2):
        ran = call("examples", "examples")
        assert ran.code == 0, ran.err
    written = {path for path in Path("examples").rglob("*") if path.is_file()}
    assert {path.name for path in written} >= {"visual-search.json", "train.py", "plan_a_job.py"}
    for path in written:
        assert path.read_bytes() == (ROOT / path).read_bytes()
    assert call("plan", "examples/fleet", "-q").code == 0


def test_a_file_of_the_users_is_not_overwritten(call: Call) -> None:
    """Exit 2 names each file that differs, and nothing is written; --force writes them."""
    mine = Path("mine/visual-search.json")
    mine.parent.mkdir()
    mine.write_text("{}", encoding="utf-8")
    ran = call("examples", "mine")
    assert ran.code == 2
    assert str(mine) in ran.err
    assert sorted(mine.parent.iterdir()) == [mine]
    assert call("examples", "mine", "--force").code == 0
    assert mine.stat().st_size > 2
