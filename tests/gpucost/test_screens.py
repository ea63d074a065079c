"""Ten commands on real terminals of three sizes: nothing is broken, the answer is in sight."""

import os
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.gpucost.conftest import Call
from tests.gpucost.profiling.test_profile import GPUCOST
from tests.gpucost.terminal import Terminal

EXAMPLE = str(ROOT / "examples" / "visual-search.json")
FLEET = str(ROOT / "examples" / "fleet")
MANY = str(ROOT / "examples" / "hard")
HANG = str(ROOT / "examples" / "hard" / "nccl-hang.json")
BILL = str(ROOT / "tests" / "fixtures" / "bills" / "aws_cur_2.csv")
DAY = ("--as-of", "2026-11-22")
AWS = ("provision", "--type", "aws/g6.xlarge/us-east-1", "--ttl", "2h", "--allow-stale")
DIGITALOCEAN = ("provision", "--type", "digitalocean/gpu-h100x1-80gb", "--ttl", "2h")
MACHINES = ("aws/p5.48xlarge/us-east-1", "digitalocean/gpu-h100x8-640gb")
SIZES = ((80, 24), (100, 30), (120, 40))
SCREENS = {
    "demo": ("demo",),
    "plan": ("plan", EXAMPLE, *DAY),
    "fleet": ("fleet", "fleet.json"),
    "diagnose": ("diagnose", EXAMPLE),
    "diagnose jobs": ("diagnose", EXAMPLE, HANG, FLEET),
    "prices": ("prices", "--gpu", "H100", *DAY),
    "prices by GPU": ("prices", "--group-by", "gpu", *DAY),
    "quote": ("quote", "aws/p5.48xlarge/us-east-1", "--monthly", "--storage", "500GiB", *DAY),
    "quotes": ("quote", *MACHINES, "--duration", "9h", *DAY),
    "provision": (*AWS, "--dry-run"),
    "provision refused": (*DIGITALOCEAN, "--dry-run", "--allow-stale"),
    "reconcile": ("reconcile", "plan.json", BILL),
}
ANSWERS = {
    "demo": r"2 Next aws/g4dn\.2xlarge, .*\$\d+ \(\$[\d-]+\) saves \d+ % .*wrote report\.md",
    "plan": r"You pay \$\d+ .* 2 Next aws/g4dn\.2xlarge, .*\(\$[\d-]+\) saves \d+ % .* Run -o",
    "fleet": r"You pay \$[\d,]+ .* 1 At home share today's GPUs \(proven minimum\) .*saves 75 %",
    "diagnose": r"visual-search: The input pipeline starves the GPU",
    "diagnose jobs": r"nccl-hang: Kernels spin and no work gets done: the job hangs",
    "prices": r"Cheapest: \S+, spot, \$[\d.]+ an hour \(old\)\. Cheapest that is not old: \S+",
    "prices by GPU": r"Cheapest: \S+, spot, \$[\d.]+ an hour\.$",
    "quote": r"\$[\d,]+\.\d\d for aws/p5\.48xlarge/us-east-1 x1\.$",
    "quotes": r"cheapest: \$[\d,.]+ for \S+ x1; the next, \S+, is \$[\d,.]+ more\.$",
    "provision": r"leave out --dry-run for a launch of at most \$[\d.]+\.$",
    "provision refused": r"a launch would be refused: see the warning\.$",
    "reconcile": r"planned USD [\d,.]+, billed USD [\d,.]+ for use, and USD [\d,.]+ of taxes",
}
LONGER = {"diagnose jobs", "provision", "provision refused"}  # than 24 lines, and said so
OWN = re.compile(
    r"Hidden columns: .*?\(widen the terminal or use -f md\)|\d+ more with -v"
)  # what depends on the size
RUN = re.compile(r"gpucost-[\w:.-]*…?")  # each run has an id of its own


@pytest.fixture
def plans(empty_folder: Path, call: Call) -> Path:
    """A plan of a job and one of a fleet."""
    for source, name in ((EXAMPLE, "plan.json"), (FLEET, "fleet.json")):
        assert call("plan", source, "-q", "-o", name, *DAY).code == 0
    return empty_folder


@pytest.mark.parametrize("case", SCREENS)
def test_a_screen_of_three_sizes(case: str, plans: Path) -> None:
    """No word is broken, no line is folded, the answer is on the last screen."""
    words = set(_words(" ".join(_shown(case, (400, 100)).printed)))
    for columns, rows in SIZES:
        seen = _shown(case, (columns, rows))
        assert _broken(seen, columns, words) == []
        last = " ".join(" ".join(line.strip() for line in seen.screen.display).split())
        assert re.search(ANSWERS[case], last), last
        if case not in LONGER:
            assert len(seen.printed) <= rows, "\n".join(seen.printed)
    assert plans.exists()


@pytest.mark.parametrize("source", [EXAMPLE, FLEET, MANY])
@pytest.mark.parametrize("size", SIZES)
def test_the_first_screen_is_ten_to_fourteen_lines(
    source: str, size: tuple[int, int], call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one job, four and 27: whole amounts, no line wider than the terminal, ids only with -v."""
    monkeypatch.setenv("COLUMNS", str(size[0]))
    lines = call("plan", source, "-q", *DAY).out.splitlines()
    assert 9 <= len(lines) <= 14, "\n".join(lines)
    assert max(map(len, lines)) <= size[0]
    assert not re.search(r"\bo\d+\*", "\n".join(lines))
    assert re.search(r"You pay +\$[\d,]+ a month", "\n".join(lines))


def _shown(case: str, size: tuple[int, int]) -> Terminal:
    command = [GPUCOST, *SCREENS[case], "--no-color"]
    shown = Terminal(command, {**os.environ, "TERM": "xterm-256color"}, size=size)
    assert shown.code == 0
    return shown


def _broken(seen: Terminal, columns: int, whole: set[str]) -> list[str]:
    """Return lines that the terminal folded, and words that do not stand in the wide output.

    A name may be cut with an ellipsis, an amount may not.
    """
    folded = [line for line in seen.sent if len(line) > columns]
    told = OWN.sub(" ", " ".join(line.strip() for line in seen.printed))
    return [*folded, *(word for word in _words(told) if not _stands(word, whole))]


def _stands(word: str, whole: set[str]) -> bool:
    cut = word.removesuffix("…").rstrip(",")
    named = word != cut and not re.fullmatch(r"\$?[\d.,]+", cut)
    return word in whole or (named and any(one.startswith(cut) for one in whole))


def _words(text: str) -> list[str]:
    words = RUN.sub("RUN", text.replace("─", "")).split()
    return [word.rstrip(".,;") for word in words if word != "."]
