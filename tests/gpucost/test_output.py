"""Data on standard output, messages on standard error, files whole or not at all."""

import csv
import io
import json
import os
import re
import stat
from pathlib import Path

import pytest

from gpucost.files.writing import write_file
from pricing.errors import InputError, ProviderError
from tests.gpucost.conftest import Call, Ran, Write
from tests.gpucost.documents import AS_OF, HOSTILE, changed, inference, training

DAY = ("--as-of", AS_OF)
PRINTING = {
    "plan": ("plan", "profile.json", *DAY),
    "plan of several": ("plan", "profile.json", "other.json", *DAY),
    "diagnose": ("diagnose", "profile.json"),
    "diagnose of several": ("diagnose", "profile.json", "other.json"),
    "quote": ("quote", "digitalocean/gpu-h100x8-640gb", "--duration", "90s", *DAY),
    "prices": ("prices", "--gpu", "H100", *DAY),
    "doctor": ("doctor",),
    "demo": ("demo",),
}


@pytest.fixture(autouse=True)
def profiles(write: Write) -> None:
    """Have two profiles to read."""
    write("profile.json", training())
    write("other.json", inference("serve"))


@pytest.mark.parametrize("case", PRINTING)
def test_json_is_one_document(case: str, call: Call) -> None:
    """With -f json standard output is one JSON document and nothing else."""
    ran = call(*PRINTING[case], "-f", "json")
    assert ran.code == 0
    assert ran.json


@pytest.mark.parametrize("case", PRINTING)
def test_csv_is_one_table(case: str, call: Call) -> None:
    """With -f csv standard output is one table: one heading, every row of its width."""
    ran = call(*PRINTING[case], "-f", "csv")
    heading, *rows = csv.reader(io.StringIO(ran.out))
    assert rows
    assert {len(row) for row in rows} == {len(heading)}
    assert heading not in rows


@pytest.mark.parametrize("case", PRINTING)
def test_markdown_tables_are_whole(case: str, call: Call) -> None:
    """With -f md every row of a table has the cells of its heading."""
    ran = call(*PRINTING[case], "-f", "md")
    assert "| ---" in ran.out or "|---" in ran.out
    assert_tables_whole(ran.out)


def assert_tables_whole(text: str) -> None:
    """Fail where a run of table rows differs in width."""
    width = 0
    for line in text.splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = line.replace("\\|", "").count("|")
        assert width in (0, cells), line
        width = cells


@pytest.mark.parametrize("case", PRINTING)
def test_a_table_keeps_every_figure(case: str, call: Call) -> None:
    """In a pipe the table is drawn without colours; a name may be cut, an amount never."""
    ran = call(*PRINTING[case])
    assert ran.out.strip()
    assert "\x1b" not in ran.out
    assert re.search(r"\$[\d,.]*…|[\d,.]+…\s*%", ran.out) is None


@pytest.mark.parametrize("case", PRINTING)
@pytest.mark.parametrize("file_format", ["table", "json", "csv", "md"])
def test_quiet_says_nothing(case: str, file_format: str, call: Call) -> None:
    """-q empties standard error and leaves the data alone."""
    loud = call(*PRINTING[case], "-f", file_format)
    quiet = call(*PRINTING[case], "-f", file_format, "-q")
    assert quiet.err == ""
    assert quiet.out == loud.out


@pytest.mark.parametrize("how", ["flag", "variable"])
def test_colours_can_be_switched_off(how: str, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """--no-color and NO_COLOR do away with colours, even where they are forced."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    if how == "variable":
        monkeypatch.setenv("NO_COLOR", "1")
    flags = ("--no-color",) if how == "flag" else ()
    ran = call(*PRINTING["prices"], *flags)
    assert "\x1b[3" not in ran.out


@pytest.mark.parametrize("case", ["plan", "diagnose"])
@pytest.mark.parametrize("file_format", ["md", "csv"])
def test_hostile_names_break_no_table(
    case: str, file_format: str, call: Call, write: Write
) -> None:
    """Pipes, line breaks and markup in a name stay inside their cell."""
    write("profile.json", changed(training(), ("job", "name"), HOSTILE))
    out = call(*PRINTING[case], "-f", file_format).out
    if file_format == "md":
        assert "<script>" not in out
        assert_tables_whole(out)
        assert "\n# y" not in out
    else:
        heading, *rows = csv.reader(io.StringIO(out))
        assert {len(row) for row in rows} == {len(heading)}


def test_a_dash_is_standard_input_and_output(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input as SOURCE, and writes standard output as FILE."""
    for command in ("plan", "diagnose", "import"):
        data = io.BytesIO(json.dumps(training()).encode())
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(data))
        rest = {"plan": (*DAY, "-f", "json"), "diagnose": ("-f", "json"), "import": ("-o", "-")}
        ran = call(command, "-", *rest[command])
        assert ran.code == 0, ran.err
        assert ran.json
    as_data = call("plan", *DAY, "-o", "-")
    assert as_data.json["schema"] == "gpucost.plan/v1"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("plan",), ("profile.json", "gpucost import", "gpucost demo")),
        (("diagnose",), ("profile.json", "gpucost import")),
        (("report",), ("plan.json", "gpucost import", "gpucost plan -o plan.json")),
    ],
)
def test_a_missing_default_says_what_makes_one(
    arguments: tuple[str, ...], told: tuple[str, ...], call: Call, empty_folder: Path
) -> None:
    """Without profile.json or plan.json, exit 2 says the two commands that make one."""
    for measured in ("profile.json", "other.json"):
        (empty_folder / measured).unlink()
    ran = call(*arguments)
    assert ran.code == 2
    assert all(word in ran.err for word in told)


def test_the_defaults_are_found(call: Call, empty_folder: Path) -> None:
    """`plan` reads ./profile.json, `report` ./plan.json; what `plan` wrote is what it printed."""
    printed = call("plan", *DAY, "-f", "json", "-q")
    assert call("plan", *DAY, "-q", "-o", "plan.json", "--report", "one.md").code == 0
    assert json.loads((empty_folder / "plan.json").read_text(encoding="utf-8")) == printed.json
    report = call("report")
    assert report.out == (empty_folder / "one.md").read_text(encoding="utf-8")


def test_a_plan_writes_nothing_unasked(call: Call, empty_folder: Path) -> None:
    """Without -o and --report no file appears."""
    before = sorted(empty_folder.iterdir())
    assert call("plan", *DAY).code == 0
    assert sorted(empty_folder.iterdir()) == before


def test_the_same_bytes_twice(call: Call, empty_folder: Path) -> None:
    """Two runs write byte-identical plan.json and report.md."""
    sources = ("profile.json", "other.json")
    for run in ("1", "2"):
        ran = call("plan", *sources, *DAY, "-o", f"{run}.json", "--report", f"{run}.md")
        assert ran.code == 0
    for suffix in ("json", "md"):
        first, second = ((empty_folder / f"{n}.{suffix}").read_bytes() for n in "12")
        assert first.replace(b"1.json", b"2.json") == second  # a report names its plan


NOWHERE = ("", ".", "/", "..", "folder", "missing/plan.json", "profile.json/plan.json")


@pytest.mark.parametrize("target", NOWHERE, ids=lambda t: t or "empty")
@pytest.mark.parametrize("option", ["-o", "--report"])
def test_what_cannot_be_written_is_an_input_error(
    option: str, target: str, call: Call, empty_folder: Path
) -> None:
    """A target that is not a file exits 2 and leaves no draft behind."""
    (empty_folder / "folder").mkdir()
    ran = call("plan", *DAY, option, target)
    assert ran.code == 2, ran.err
    left = {path.name for path in empty_folder.iterdir()}
    assert left == {"folder", "profile.json", "other.json"}


@pytest.mark.parametrize("text", ["good\n", "\ud800"], ids=["text", "no UTF-8"])
def test_a_file_is_written_whole_or_not_at_all(text: str, empty_folder: Path) -> None:
    """A text that cannot be written leaves the earlier file and no draft."""
    target = empty_folder / "report.md"
    target.write_text("earlier\n", encoding="utf-8")
    wanted = text
    try:
        write_file(str(target), text)
    except InputError:
        wanted = "earlier\n"
    assert target.read_text(encoding="utf-8") == wanted
    assert not [p.name for p in empty_folder.iterdir() if p.name.startswith(".")]


def test_a_pipe_as_target_stays_a_pipe(empty_folder: Path) -> None:
    """A device or a pipe is written to, never replaced by a file."""
    pipe = empty_folder / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_file(str(pipe), "report\n")
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert os.read(reader, 100) == b"report\n"
    finally:
        os.close(reader)


def test_a_link_as_target_is_followed(empty_folder: Path) -> None:
    """Writing through a link changes the file it points to, and keeps the link."""
    real, link = empty_folder / "real.md", empty_folder / "link.md"
    real.write_text("earlier\n", encoding="utf-8")
    link.symlink_to(real)
    write_file(str(link), "now\n")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "now\n"


def test_a_long_name_is_written(empty_folder: Path) -> None:
    """A name as long as the file system allows can be written."""
    target = empty_folder / ("n" * 252 + ".md")
    write_file(str(target), "text\n")
    assert target.read_text(encoding="utf-8") == "text\n"


def _demo(call: Call, *arguments: str) -> Ran:
    ran = call("demo", *arguments)
    assert ran.code == 0, ran.err
    return ran


def test_the_demo_needs_nothing(call: Call, empty_folder: Path) -> None:
    """In any folder `demo` prints a plan and writes report.md, twice the same."""
    assert "visual-search" in _demo(call).out
    first = (empty_folder / "report.md").read_bytes()
    assert first.startswith(b"# GPU cost report")
    _demo(call)
    assert (empty_folder / "report.md").read_bytes() == first


def test_the_demo_leaves_a_strangers_report_alone(call: Call, write: Write) -> None:
    """A report.md that is not ours is left as it was, and the user is told."""
    path = Path(write("report.md", "# Quarterly report\n"))
    ran = _demo(call)
    assert path.read_text(encoding="utf-8") == "# Quarterly report\n"
    assert "left alone" in ran.err
    assert "--report" in ran.err


def test_the_demo_writes_where_it_is_told(call: Call, empty_folder: Path) -> None:
    """--report names another file, and - standard output."""
    _demo(call, "--report", "mine.md")
    assert (empty_folder / "mine.md").is_file()
    assert not (empty_folder / "report.md").exists()
    assert "# GPU cost report" in _demo(call, "--report", "-").out


@pytest.mark.parametrize("code", ["data-loading", "well-used", "dataloader-workers", "spot"])
def test_explain_knows_findings_and_actions(code: str, call: Call) -> None:
    """`explain` describes every code by name, with its source or effort."""
    ran = call("explain", code)
    assert ran.code == 0
    assert ran.out.startswith(code)


def test_explain_names_the_nearest_code(call: Call) -> None:
    """A misspelled code exits 2 with the right one."""
    ran = call("explain", "data-loadin")
    assert ran.code == 2
    assert "data-loading" in ran.err


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_a_script_for_the_shell(shell: str, call: Call) -> None:
    """`completion` prints a script that calls gpucost."""
    ran = call("completion", shell)
    assert ran.code == 0
    assert "_GPUCOST_COMPLETE" in ran.out


def test_the_doctor_shows_no_secret(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """`doctor` says whether a credential is set, never what it is, also when nobody answers."""
    monkeypatch.setenv("DIGITALOCEAN_TOKEN", "dop_v1_secret")
    monkeypatch.setattr("gpucost.commands.installation.open_cloud", _nobody_answers)
    ran = call("doctor", "-f", "json")
    assert "dop_v1_secret" not in ran.out + ran.err
    states = [(check["check"], check["state"]) for check in ran.json]
    assert ("DIGITALOCEAN_TOKEN", "set") in states
    assert ("digitalocean", "fail") in states


def _nobody_answers(provider: str) -> None:
    raise ProviderError(f"{provider} does not answer")
