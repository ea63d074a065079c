"""What a job leaves may be made to run code on this computer: nothing of it does."""

import io
import json
import os
import stat
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from gpucost.jobs import results as job_results
from gpucost.jobs.results import UnfitResultsError, unpack
from tests.fuzz.results import archive, harm_of
from tests.gpucost.conftest import Call
from tests.gpucost.jobs.test_job_run import provision, results
from tests.providers.fakes.sshd import Machine

SEEDS = 400  # `python -m tests.fuzz.results 10000` tries more


def test_a_job_writes_nothing_beside_the_code(
    quick_machine: Machine, project: Path, call: Call
) -> None:
    """Both attacks that worked: files of the user's names, and hooks of git, in the profile.

    What is good beside them comes, so that a fetch of nothing would not pass.
    """
    subprocess.run(["git", "init", "-q", "."], cwd=project.parent, check=True)
    (project.parent / "train.py").write_text("mine", encoding="utf-8")
    before = _tree(project.parent)
    attack = (
        "mkdir -p ../profile/.git/hooks outputs; cd ../profile; echo evil >train.py; "
        "echo evil >.git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; "
        "echo evil >after.steps.jsonl.sh; ln -s ../../.. up; mkfifo after.steps.jsonl"
    )
    ran = call(*provision(quick_machine, project, attack))
    assert ran.code == 0, ran.err
    after = _tree(project.parent)
    assert {path: after[path] for path in before} == before
    assert {path.parts[0] for path in after.keys() - before.keys()} == {"gpucost-runs"}
    assert sorted(path.name for path in results().iterdir()) == ["after.json", "outputs"]
    document = json.loads((results() / "after.json").read_text(encoding="utf-8"))
    assert document["schema"] == "gpucost.profile/v1"


def test_ten_more_ways_in_a_folder_that_is_collected(
    quick_machine: Machine, project: Path, call: Call
) -> None:
    """Each is left behind by name, or comes as a plain file; what is good beside it comes."""
    attack = """
    mkdir -p outputs/.git/hooks outputs/bare/objects outputs/bare/refs outputs/real && cd outputs
    echo evil >.git/hooks/pre-commit
    echo 'ref: refs/heads/x' >bare/HEAD; printf '[core]\\nfsmonitor=touch owned' >bare/config
    mkfifo pipe; mknod disk b 7 0; mknod zero c 1 5
    ln -s /etc/passwd absolute; ln -s ../../../x out; ln -s real inside; ln -s real/../../x over
    echo x >setuid; chmod 6755 setuid; ln setuid hard
    echo x >"$(printf 'new\\nline')"; echo x >"$(printf 'esc\\033[2J')"; echo x >'=cmd|calc'
    truncate -s 3M sparse; echo good >real/weights
    """
    ran = call(*provision(quick_machine, project, attack, "-f", "json"))
    assert ran.code == 0, ran.err
    came = results() / "outputs"
    names = sorted(str(path.relative_to(came)) for path in came.rglob("*"))
    plain = ["=cmd|calc", "hard", "real", "real/weights", "setuid", "sparse"]
    assert names == sorted([*plain, "bare", "bare/config", "bare/objects", "bare/refs", "inside"])
    assert (came / "real" / "weights").read_text(encoding="utf-8") == "good\n"
    assert (came / "inside").readlink() == Path("real")
    assert stat.S_IMODE((came / "setuid").stat().st_mode) & 0o7000 == 0
    assert (came / "hard").stat().st_nlink == 1
    assert (came / "sparse").stat().st_size == 3 * 2**20
    told = " ".join(ran.json["job"]["left_behind"])
    for name in ("pipe", "disk", "zero", "absolute", "out", "over", "new", "esc", "HEAD", ".git"):
        assert name in told
    assert "\x1b" not in ran.err + ran.out.replace("\\u001b", "")
    git = subprocess.run(["git", "status"], cwd=came / "bare", check=False, capture_output=True)
    assert not (came / "bare" / "owned").exists(), git.stderr


def test_no_test_of_a_stranger_runs(quick_machine: Machine, project: Path, call: Call) -> None:
    """`pytest`, typed in the folder of the code afterwards, runs nothing that a job wrote."""
    attack = "mkdir outputs; cd outputs; echo 'assert 0' | tee conftest.py test_evil.py"
    ran = call(*provision(quick_machine, project, attack))
    assert ran.code == 0, ran.err
    assert (results() / "outputs" / "test_evil.py").is_file()
    (project.parent / "test_mine.py").write_text("def test_mine(): pass", encoding="utf-8")
    words = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(project.parent))
    tested = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (tested.returncode, "1 passed" in tested.stdout) == (0, True), tested.stdout


def test_renames_that_race_with_the_fetch(
    quick_machine: Machine, project: Path, call: Call
) -> None:
    """A folder that turns into a link out and back all the while: nothing is written there."""
    attack = (
        "mkdir -p outputs/d; touch outputs/d/x; setsid sh -c 'for n in $(seq 300); do "
        "mv outputs/d outputs/e; ln -s /tmp outputs/d; rm outputs/d; mv outputs/e outputs/d; "
        "done' >/dev/null 2>&1 &"
    )
    before = _tree(project)
    ran = call(*provision(quick_machine, project, attack))
    assert ran.code in (0, 6), ran.err
    assert _tree(project) == before
    for path in Path("gpucost-runs").rglob("*"):
        assert not path.is_symlink(), path


_ELSEWHERE = (
    'echo \'{"schema": "gpucost.profile/v1", "job": {"name": "a"}, '
    '"series": {"samples": "../../x"}}\''
)


@pytest.mark.parametrize(
    ("attack", "told"),
    [
        ("head -c 20000000 /dev/zero", "over 16,777,216 bytes"),
        (_ELSEWHERE, "names series elsewhere"),
        ("echo '[[[[[['", "after.json:"),
        ("echo '{\"schema\": \"gpucost.plan/v1\"}'", "after.json"),
    ],
)  # fmt: skip
def test_a_profile_of_a_machine_is_read_before_it_counts(
    quick_machine: Machine, project: Path, call: Call, attack: str, told: str
) -> None:
    """Huge, leading elsewhere, damaged, another document: not taken, and the job's code is its."""
    stub = quick_machine.root.parents[1] / "programs" / "gpucost"
    text = stub.read_text(encoding="utf-8")
    line = text.splitlines()[-2].removesuffix(' >"$target"')
    assert line.startswith("echo ")
    stub.write_text(text.replace(line, attack), encoding="utf-8")
    ran = call(*provision(quick_machine, project, "mkdir -p outputs; exit 3"))
    assert "ended with exit status 3" in ran.err
    assert told in ran.err
    assert "left behind: after.json" in ran.err
    assert not (results() / "after.json").exists()


def test_a_results_folder_that_is_a_link_is_refused(
    quick_machine: Machine, project: Path, call: Call, tmp_path: Path
) -> None:
    """A cloned repository may hold `gpucost-runs` as a link into the user's home."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project.parent / "gpucost-runs").symlink_to(elsewhere)
    ran = call(*provision(quick_machine, project, "python3 train.py"))
    assert ran.code == 6
    assert "a link, which is not followed" in ran.err
    assert list(elsewhere.iterdir()) == []


def test_more_than_the_disk_holds_is_not_begun(
    quick_machine: Machine, project: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The announced size counts before a byte of it is written."""
    monkeypatch.setattr(job_results, "_OF_DISK", 1e-9)
    ran = call(*provision(quick_machine, project, "mkdir outputs; truncate -s 1T outputs/bomb"))
    assert ran.code == 6
    assert "all that may be taken of this disk" in ran.err
    assert list(results().glob("outputs*")) == []


def _tree(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {
        path.relative_to(folder): (
            path.lstat().st_mode,
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in folder.rglob("*")
    }


def _tar(*entries: tuple[str, bytes, int, str]) -> bytes:
    """Return an archive of entries: name, type, size that is announced, target of a link."""
    out = io.BytesIO()
    for name, kind, size, to in entries:
        entry = tarfile.TarInfo(name)
        entry.type, entry.size, entry.linkname = kind, size, to
        out.write(entry.tobuf(tarfile.GNU_FORMAT) + bytes(min(size, 1024) + -size % 512))
    return out.getvalue() + bytes(1024)


_LONG = _tar(("n", tarfile.GNUTYPE_LONGNAME, 512, ""))[:1024]


@pytest.mark.parametrize(
    "data",
    [
        _tar(("a", tarfile.REGTYPE, 10**15, "")),
        _tar(("a", tarfile.FIFOTYPE, 10**15, "")),
        _tar(("a", tarfile.GNUTYPE_LONGNAME, 10**15, "")),
        _tar(("a", b"x", 10**15, "")),
        _tar(("a", tarfile.GNUTYPE_SPARSE, 10**15, "")),
        _LONG * 3000,
    ],
    ids=["file", "fifo", "name", "pax", "sparse", "chain"],
)
def test_bombs_cost_neither_memory_nor_disk(empty_folder: Path, data: bytes) -> None:
    """What is announced is refused before it is read, and a chain of names is no traceback."""
    with pytest.raises(UnfitResultsError):
        unpack(io.BytesIO(data), empty_folder, lambda _: True, 2**30)
    assert sum(path.stat().st_size for path in empty_folder.rglob("*")) == 0


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted as they come."""
    monkeypatch.setattr(job_results, "MOST_ENTRIES", 5)
    data = _tar(*((f"f{n}", tarfile.REGTYPE, 0, "") for n in range(9)))
    with pytest.raises(UnfitResultsError, match="over 5 files"):
        unpack(io.BytesIO(data), tmp_path, lambda _: True, 2**30)


def test_a_disk_that_is_full_is_no_broken_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told at once, and not tried again for minutes."""
    opened = os.open

    def full(path: str, flags: int, mode: int = 0o777) -> int:
        if flags & os.O_EXCL:
            raise OSError(28, "No space left on device")
        return opened(path, flags, mode)

    monkeypatch.setattr(job_results.os, "open", full)
    with pytest.raises(UnfitResultsError, match="No space left on device"):
        unpack(io.BytesIO(_tar(("a", b"0", 3, ""))), tmp_path, lambda _: True, 2**30)


def test_a_link_below_a_link_is_left_behind(empty_folder: Path) -> None:
    """Not even looked at through the first, whose target is longer than any name."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as made:
        for name, to in (("c", "x" * 300), ("c/canary/d", "e")):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, to
            made.addfile(entry)
    out.seek(0)
    received = unpack(out, empty_folder, lambda _: True, 1 << 20)
    assert received.notes == ("'c/canary/d': another of that name came before it",)
    assert [path.name for path in empty_folder.iterdir()] == ["c"]


def test_hostile_archives_do_no_harm(tmp_path: Path) -> None:
    """Drawn by the hundred: names, links, types, sizes, damage."""
    harm = [
        f"seed {seed}: {told}"
        for seed in range(SEEDS)
        for told in harm_of(archive(seed), tmp_path / str(seed))
    ]
    assert harm == []
