"""What of a folder is sent: git's own reading of .gitignore, in and outside of a repository."""

import shutil
import subprocess
from pathlib import Path

import pytest

from gpucost.jobs.steps import code_of, whole_folder
from pricing.errors import InputError

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")

KEPT = [".gitignore", "keep.ckpt", "lib/.gitignore", "lib/ein Modell é.py", "lib/secrets"]


def _names(folder: Path) -> list[str]:
    return [one.name for one in code_of(folder).files]


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True, capture_output=True)


def test_a_folder_without_a_repository(project: Path) -> None:
    """Nested files, exceptions and anchored patterns count as git reads them."""
    assert _names(project) == [*KEPT, "train.py"]


def test_a_repository_sends_what_it_tracks_and_what_is_new(project: Path) -> None:
    """Tracked files are sent even where they are named; removed ones and git's own are not."""
    _git(project, "init", "-q")
    (project / "gone.py").touch()
    _git(project, "add", "-f", "big.ckpt", "train.py", "gone.py")
    (project / "gone.py").unlink()
    assert _names(project) == [".gitignore", "big.ckpt", *KEPT[1:], "train.py"]


def test_a_repository_inside_is_sent_by_its_own_rules(project: Path) -> None:
    """As a vendored checkout is: its files, without its .git."""
    inner = project / "vendor"
    inner.mkdir()
    _git(inner, "init", "-q")
    (inner / "a.py").touch()
    (inner / "b.o").touch()
    (inner / ".gitignore").write_text("*.o\n", encoding="utf-8")
    assert [name for name in _names(project) if name.startswith("vendor")] == [
        "vendor/.gitignore",
        "vendor/a.py",
    ]


def test_what_must_be_known_before_it_is_sent(project: Path) -> None:
    """Files that look like secrets, over a gigabyte, links that lead out."""
    (project / ".env").write_text("TOKEN=x", encoding="utf-8")
    with (project / "huge.bin").open("wb") as stream:
        stream.truncate(10**9 + 1)
    (project / "out").symlink_to("/etc")
    notes = "\n".join(code_of(project).notes())
    assert ".env may hold secrets" in notes
    assert "over 1 GB is sent" in notes
    assert "huge.bin (1,000 MB)" in notes
    assert "links that lead out" in notes


def test_without_git_nothing_is_guessed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with .gitignore is refused; one without is sent as a whole."""
    monkeypatch.setattr("gpucost.jobs.steps.shutil.which", lambda _: None)
    with pytest.raises(InputError, match="git is not installed here"):
        code_of(project)
    assert [one.name for one in code_of(project / "secrets").files] == ["token"]


def test_sums_are_those_of_sha256sum(project: Path) -> None:
    """Names with blanks, umlauts, backslashes and line ends are written as it writes them."""
    (project / "a\\b\nc.py").write_text("x", encoding="utf-8")
    lines = "".join(f"{line}\n" for line in code_of(project).sums())
    told = ["sha256sum", "--check", "--strict", "--quiet", "-"]
    done = subprocess.run(told, check=False, cwd=project, input=lines.encode(), capture_output=True)
    assert done.returncode == 0, done.stdout
    assert len(lines.splitlines()) == len(whole_folder(project).files) - 3
