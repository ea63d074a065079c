"""Ten commands on real terminals of three sizes: nothing is broken, the answer is in sight."""

import json
import os
import re
from decimal import Decimal

import pytest

from tests.conftest import ROOT
from tests.gpucost.conftest import Call, Write
from tests.gpucost.terminal import HERE, Terminal

EXAMPLE = str(ROOT / "examples" / "visual-search.json")
FLEET = str(ROOT / "examples" / "fleet")
MANY = str(ROOT / "examples" / "hard")
EXAMPLES = [str(p) for p in sorted((ROOT / "examples").glob("*.json"))]
EXAMPLES += [str(p) for p in sorted((ROOT / "examples" / "hard").glob("*.json"))]
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
    "bill": ("bill", BILL),
    "compare": ("compare", "8xH100", "8x1xH100", *DAY),
    "report": ("report", "plan.json", "-o", "report.md"),
}
ANSWERS = {
    "demo": r"2 Next aws/g4dn\.2xlarge, .*\$\d+ \(\$[\d-]+\) saves \d+ % .*wrote report\.md",
    "plan": r"You pay \$\d+ .* 2 Next aws/g4dn\.2xlarge, .*\(\$[\d-]+\) saves \d+ % .* Run again",
    "fleet": r"You pay \$[\d,]+ .* 1 At home share today's GPUs \(proven minimum\) .*saves 75 %",
    "diagnose": r"visual-search: The CPU cannot keep up with the GPU",
    "diagnose jobs": r"nccl-hang: Kernels spin and no work gets done: the job hangs",
    "prices": r"Cheapest: \S+, spot, \$[\d.]+ an hour \(old\)\. Cheapest that is not old: \S+",
    "prices by GPU": r"Cheapest: \S+, spot, \$[\d.]+ an hour\.$",
    "quote": r"\$[\d,]+\.\d\d for aws/p5\.48xlarge/us-east-1 x1\.$",
    "quotes": r"cheapest: \$[\d,.]+ for \S+ x1; the next, \S+, is \$[\d,.]+ more\.$",
    "provision": r"leave out --dry-run for a launch of at most \$[\d.]+\.$",
    "provision refused": r"a launch would be refused: see the warning\.$",
    "bill": r"gpucost plan \S+ --current aws/p5\.48xlarge",
    "compare": r"gpucost compare 8xH100 8x1xH100 profile\.json",
    "report": r"wrote report\.md",
    "reconcile": r"planned USD [\d,.]+, billed USD [\d,.]+ for use, and USD [\d,.]+ of taxes",
}
LONGER = {
    "diagnose jobs",
    "provision",
    "provision refused",
    "report",
    "help",
}  # than 24 lines, and said so
OWN = re.compile(
    r"Hidden columns: .*?\(widen the terminal or use -f md\)|\d+ more with -v"
)  # what depends on the size
RUN = re.compile(r"gpucost-[\w:.-]*…?")  # each run has an id of its own


PLANS = {"plan.json": EXAMPLE, "fleet.json": FLEET}


@pytest.mark.parametrize("case", SCREENS)
def test_a_screen_of_three_sizes(case: str, call: Call) -> None:
    """No word is broken, no line is folded, the answer is on the last screen."""
    for name in PLANS.keys() & set(SCREENS[case]):
        assert call("plan", PLANS[name], "-q", "-o", name, *DAY).code == 0
    assert call(*SCREENS[case]).code == 0  # what it imports and reads, the forks below have then
    words = set(_words(" ".join(_shown(case, (400, 100)).printed)))
    for columns, rows in SIZES:
        seen = _shown(case, (columns, rows))
        assert _broken(seen, columns, words) == []
        last = " ".join(" ".join(line.strip() for line in seen.screen.display).split())
        assert re.search(ANSWERS[case], last), last
        if case not in LONGER:
            assert len(seen.printed) <= rows, "\n".join(seen.printed)


@pytest.mark.parametrize("source", [FLEET, MANY, *EXAMPLES])
def test_the_first_screen_is_at_most_fourteen_lines(
    source: str, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each example at 80 columns: no line is wider, amounts are whole, ids only with -v."""
    monkeypatch.setenv("COLUMNS", "80")
    lines = call("plan", source, "-q", *DAY).out.splitlines()
    assert 7 <= len(lines) <= 14, "\n".join(lines)
    assert max(map(len, lines)) <= 80
    assert not re.search(r"\bo\d+\*", "\n".join(lines))
    assert re.search(r"You pay +(at least )?\$[\d,]+ a month|unknown", "\n".join(lines))


@pytest.mark.parametrize("source", [FLEET, MANY, *EXAMPLES])
def test_a_dearer_next_says_why(source: str, call: Call) -> None:
    """Where what is next costs more than the cure here, its line gives the reason."""
    document = call("plan", source, "-q", *DAY, "-f", "json", "--brief").json
    assert document["schema"] == "gpucost.brief/v1"
    bills = {a["label"]: Decimal(a["usd"]["mid"]) for a in document["actions"] if a["usd"]}
    following = next((a["what"] for a in document["actions"] if a["label"] == "next"), "")
    if "next" in bills and bills["next"] > bills.get("now", bills["next"]):
        assert re.search(r"less work than 1|surer than 1|as asked for", following)


@pytest.mark.parametrize("source", [EXAMPLE, FLEET, MANY])
def test_the_brief_is_the_first_screen(source: str, call: Call) -> None:
    """Under 60 lines: what is recommended with its range, the cause, what to type."""
    ran = call("plan", source, "-q", *DAY, "-f", "json", "--brief")
    assert len(ran.out.splitlines()) < 60
    screen = " ".join(call("plan", source, "-q", *DAY).out.split())
    assert ran.json["cause"] in screen
    assert all(" ".join(command.split()) in screen for command in ran.json["commands"][-1:])
    assert Decimal(ran.json["low"]) <= Decimal(ran.json["mid"]) <= Decimal(ran.json["high"])
    assert call("plan", source, "--brief", *DAY).code == 2


def test_all_options_leave_nothing_of_the_first_screen_out(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--all and the report say what a term costs, which a full first screen may leave out."""
    source = str(ROOT / "examples" / "hard" / "rl-atari-ppo.json")
    steady = ("plan", source, "--hours-per-month", "730", "--as-of", "2026-11-22")
    monkeypatch.setenv("COLUMNS", "50")
    assert "Steady use" not in call(*steady).out
    for shown in (call(*steady, "--all").out, call(*steady, "-f", "md").out):
        assert "Steady use" in shown
        assert "Settle it" in shown


def _shown(case: str, size: tuple[int, int]) -> Terminal:
    command = [HERE, *SCREENS[case], "--no-color"]
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
    words = RUN.sub("RUN", re.sub("[─█░]", "", text)).split()  # lines and bars have no words
    return [word.rstrip(".,;") for word in words if word != "."]


def test_a_row_of_a_fleet_keeps_the_name_of_its_job(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 80 columns a long advice goes on below; neither it nor the job that it is of is cut."""
    machine = {"provider": "aws", "instance_type": "p5.48xlarge", "region": "us-east-1"}
    links = {"nodes": 2, "network_gbps": 25, "interconnect": "nvlink"}
    slow = {
        "schema": "gpucost.profile/v1",
        "job": {"name": "fsdp-13b", "kind": "training", "parallelism": "fsdp"},
        "hardware": {"gpu": "H100 SXM", "gpu_count": 16, **links, **machine},
        "step": {"count": 400, "mean_s": 1.5, "compute_s": 0.55, "comm_s": 0.9},
        "gpus": [{"metrics": {"util.kernel_time": 0.98, "mem.used_gib": 66}}],
        "usage": {"hours_per_month": 100},
    }
    monkeypatch.setenv("COLUMNS", "80")
    shown = call("plan", write("slow.json", slow), EXAMPLE, "-q", *DAY).out
    rows = [line for line in shown.splitlines() if " -> " in line]
    assert [row.split()[0] for row in rows] == ["fsdp-13b", "visual-search"], shown
    assert "workers (processes instead of threads): aws/" in " ".join(shown.split())


def test_gpus_that_nobody_watched_are_on_the_screen_with_their_dollars(
    call: Call, write: Write
) -> None:
    """Use 0 and memory 0 are of an idle GPU or of none read: 4 of 6 GPUs, 40 h at $1.31 are $52."""

    def job(name: str, number: int, gpus: int, used: str) -> str:
        row = f"{number}|{name}|2026-06-01T12:00:00|10:00:00|gres/gpu:a100={gpus}|"
        return f"{row}\n{number}.0|x||10:00:00||{used}\n"

    head = "JobID|JobName|Start|Elapsed|AllocTRES|TRESUsageInTot\n"
    seen, zero = "gres/gpumem=9G,gres/gpuutil=50", "gres/gpumem=0M,gres/gpuutil=0"
    two = head + job("a", 1, 1, seen) + job("b", 2, 4, zero)
    single = call("plan", write("sacct.txt", two), "--price", "1.31", "-q")
    assert "held GPUs for 40.0 of 50.0 GPU hours" in " ".join(single.out.split())
    source = write("jobs.txt", two + job("c", 3, 1, seen))
    screen = " ".join(call("plan", source, "--price", "1.31", "-q").out.split())
    assert "2 jobs on 2 GPUs, and 1 more without GPU readings on 4 GPUs," in screen
    assert "held GPUs for 40.0 of 60.0 GPU hours and were not watched: use unknown" in screen
    assert "At what the others cost: $52 paid." in screen
    assert "keep as is" not in screen  # half of what was watched is wasted: first its cause
    assert "1 Measure 2 jobs like a: find the cause" in screen
    assert "2 Measure 1 not watched: log nvidia-smi" in screen
    shown = " ".join(call("diagnose", source).out.split())
    assert "held GPUs for 40.0 of 60.0 GPU hours" in shown
    assert shown.count("a: ") == 1  # a verdict that is in sight is not said again


@pytest.mark.parametrize(
    ("second", "later_h", "may_be"), [("node1", 10, True), ("node1", 11, False), ("b", 10, False)]
)
def test_logs_of_two_hosts_may_be_of_one_job(
    call: Call, write: Write, second: str, later_h: int, *, may_be: bool
) -> None:
    """The same minute, length and GPUs under names of hosts: else nothing is asked."""
    head = "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB]\n"
    for name, hour in (("node0", 10), (second, later_h)):
        cells = f"0, GPU-{name}, NVIDIA A10, 90 %, 9000 MiB"
        rows = (f"2026/11/16 {hour}:{minute:02d}:00.000, {cells}\n" for minute in range(20))
        path = write(f"{name}.csv", head + "".join(rows))
    folder = path.rpartition("/")[0] or "."
    ran = call("plan", folder, "--price", "1", "--kind", "training", "-q")
    assert ("node0, node1 began together" in " ".join(ran.out.split())) is may_be, ran.err
    if may_be:
        joined = call("plan", folder, "--price", "1", "--jobs-by", "folder", "-q")
        assert "began together" not in joined.out


@pytest.mark.parametrize("name", ["gnn-sampling", "jax-speech", "rl-atari-ppo", "kaggle-unet"])
def test_diagnose_and_plan_begin_with_the_same_step(call: Call, name: str) -> None:
    """What a cure gains and costs is weighed by the plan, and said in both in the same words."""
    source = str(ROOT / "examples" / "hard" / f"{name}.json")
    brief = json.loads(call("plan", source, "-f", "json", "--brief").out)
    shown = " ".join(call("diagnose", source).out.split())
    assert f"first: {brief['actions'][0]['what']}" in shown


def test_an_owned_fleet_without_a_price_says_how_few_gpus_are_enough(
    call: Call, write: Write
) -> None:
    """Six jobs that fill a tenth of a GPU each: the same GPUs are freed as at a price, for $0."""
    for number in range(6):
        load = {"util.kernel_time": 0.12, "util.sm_active": 0.1, "mem.used_gib": 4}
        job = {
            "schema": "gpucost.profile/v1",
            "job": {"name": f"job{number}", "kind": "training"},
            "hardware": {"gpu": "A100-SXM4-40GB", "gpu_count": 1, "cpu_cores": 32},
            "window": {"duration_s": 86400, "interval_s": 10},
            "gpus": [{"metrics": load}],
            "host": {"cpu_util": 0.05},
        }
        folder = write(f"fleet/{number}.json", job).rpartition("/")[0]
    priced = call("plan", folder, "--owned", "--price", "1.5", "-q").out
    screen = call("plan", folder, "--owned", "-q").out
    counts = [re.findall(r"GPUs .* (6 -> [1-5])", text) for text in (priced, screen)]
    assert counts[0] == counts[1] != [], screen
    assert "share today's GPUs" in screen
    assert "You pay    nothing by the hour: you own it" in screen
    assert "frees" in screen
