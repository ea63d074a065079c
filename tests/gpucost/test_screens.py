"""Eight commands on real terminals of three sizes: nothing is broken, the answer is in sight."""

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
    "demo": r"Run it on aws/g4dn\.2xlarge, .*\$[\d-]+ a month, [\d-]+ % less\. .*wrote report\.md",
    "plan": r"Run it on aws/g4dn\.2xlarge, .*: \$[\d-]+ a month, [\d-]+ % less\. First try",
    "fleet": r"Recommended: \$[\d,.]+ a month in place of \$[\d,.]+, 75 % less; .* share\.$",
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


def test_the_chosen_row_is_marked() -> None:
    """On a terminal of 90x24 the chosen row is marked, and the advice stands below the table."""
    text = [line for line in _shown("plan", (90, 24)).printed if line]
    chosen = next(n for n, line in enumerate(text) if re.match(r" ?o\d+\*", line))
    advice = next(n for n, line in enumerate(text) if line.startswith("Run it on"))
    assert advice > chosen
    assert re.search(r"\$\d+ .*\$\d+-\d+ +\d+ %$", text[chosen])


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
