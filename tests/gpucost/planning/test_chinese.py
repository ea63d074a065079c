"""`--lang zh` and `--fx` at the terminal."""

import json
import re
from pathlib import Path

import pytest
from wcwidth import wcswidth

from gpucost.views.output import wrapped
from tests.gpucost.conftest import Call
from tests.gpucost.documents import AS_OF

ROOT = Path(__file__).parents[3]
ONE = str(ROOT / "examples/visual-search.json")
FLEET = str(ROOT / "examples/fleet")
SOURCES = (
    ONE,
    FLEET,
    *(str(ROOT / f"examples/{name}.json") for name in ("notebook", "train-8xh100-aws")),
    *(str(ROOT / f"examples/hard/{name}") for name in ("llm-35-mfu.json", "pods-one-machine")),
)
# Three words of English side by side, as no code, name or unit is written.
ENGLISH = re.compile(r"(?<![\w/.=(-])[A-Za-z][a-z']+,? [a-z][a-z']+ [a-z][a-z']+")
COMMAND = re.compile(
    r"gpucost (?:prices update|explain [a-z-]+|"
    r"(?:export|profile|provision|quote|recipe|run|verify) [\w.-]+(?: [\w.-]+)?)"
)
RATE = ("--fx", "CNY=7.1@2026-11-20")


@pytest.mark.parametrize("columns", [80, 100, 120])
@pytest.mark.parametrize("source", [ONE, FLEET])
def test_a_chinese_plan_fits_the_terminal(
    source: str, columns: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is wider than the terminal in cells, and columns stand below each other."""
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = call("plan", source, "--lang", "zh", "--as-of", AS_OF, *RATE)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert max(map(wcswidth, lines)) <= columns
    assert "每月" in ran.out
    assert "CNY" in ran.out


def _notes(source: Path) -> list[str]:
    """What stands in profiles as a user's own words, which are not ours to translate."""
    files = sorted(source.glob("*.json")) if source.is_dir() else [source]
    found = (json.loads(path.read_text("utf-8"))["provenance"]["notes"] for path in files)
    return [note for notes in found for note in notes]


@pytest.mark.parametrize("columns", [80, 120])
@pytest.mark.parametrize("whole", ["-v", "--all"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: Path(path).stem)
def test_all_of_a_plan_is_chinese_and_fits(
    source: str, whole: str, columns: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With -v and --all nothing but a user's own notes is English, and no line is too wide."""
    monkeypatch.setenv("COLUMNS", str(columns))
    ran = call("plan", source, "--lang", "zh", "--as-of", AS_OF, whole)
    assert ran.code == 0
    assert max(map(wcswidth, ran.out.splitlines())) <= columns
    said = COMMAND.sub("", ran.out + ran.err)
    for note in _notes(Path(source)):
        said = said.replace(note, "")
    said = re.sub(r"请核对：.*?(?=\n\S|\Z)", "", said, flags=re.DOTALL)  # a source, as it reads
    assert ENGLISH.findall(said) == []


@pytest.mark.parametrize("columns", [80, 120])
def test_what_changed_is_chinese_and_fits(
    columns: int, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`diff` on the screen, of a job that is new, one that is gone and one that is dearer."""
    monkeypatch.setenv("COLUMNS", str(columns))
    old, new = str(tmp_path / "old.json"), str(tmp_path / "new.json")
    hours = ("--hours-per-month", "300")
    assert call("plan", ONE, SOURCES[3], "--as-of", AS_OF, "-o", old).code == 0
    assert call("plan", ONE, SOURCES[2], "--as-of", AS_OF, *hours, "-o", new).code == 0
    ran = call("diff", old, new, "--lang", "zh")
    assert ran.code == 0
    assert max(map(wcswidth, ran.out.splitlines())) <= columns
    assert "新出现" in ran.out
    assert ENGLISH.findall(ran.out + ran.err) == []
    for form in ("json", "csv"):
        asked = ("diff", old, new, "-f", form)
        assert call(*asked, "--lang", "zh").out == call(*asked).out
    assert "unchanged" in call("diff", old, old).out
    assert "没有变化" in call("diff", old, old, "--lang", "zh").out


def test_data_for_programs_stay_english(call: Call) -> None:
    """JSON and CSV are the same in every language, and hold dollars alone."""
    for form in ("json", "csv"):
        asked = ("plan", ONE, "--as-of", AS_OF, "-f", form)
        assert call(*asked, "--lang", "zh", *RATE).out == call(*asked).out


def test_a_saved_plan_is_reported_in_chinese(call: Call, tmp_path: Path) -> None:
    """`report` of every style and `diff` speak Chinese; the plan on disk does not."""
    plan = str(tmp_path / "plan.json")
    assert call("plan", ONE, "--as-of", AS_OF, "--lang", "zh", "-o", plan).code == 0
    assert json.loads(Path(plan).read_text())["jobs"][0]["findings"][0]["cause"].isascii()
    for style, words in (("md", "## 原因"), ("html", 'lang="zh"'), ("github-comment", "## 原因")):
        assert words in call("report", plan, "--style", style, "--lang", "zh").out
    ran = call("diff", plan, plan, "--style", "github-comment", "--lang", "zh")
    assert "以来的变化" in ran.out


@pytest.mark.parametrize(
    "given", ["CNY", "CNY=0@2026-11-20", "CNY=7.1", "USD=1@2026-11-20", "CNY=7.1@2026-13-40", "a=1"]
)
def test_a_rate_without_its_day_is_refused(given: str, call: Call) -> None:
    """A rate needs a currency, a figure above 0 and a day; the message shows one."""
    ran = call("report", "--fx", given)
    assert ran.code == 2
    assert "--fx" in ran.err


@pytest.mark.parametrize("width", [20, 33, 80])
def test_chinese_is_wrapped_between_characters(width: int) -> None:
    """Lines fill the cells; no figure loses its sign, no line begins with what closes."""
    text = "目前每月支付 $1,186，降低 75 %；改在 aws/g4dn.2xlarge 上运行（改动：混合精度）。" * 3
    lines = wrapped(text, width)
    assert max(map(wcswidth, lines)) <= width
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert not [line for line in lines if line[0] in "，。；：）%"]
