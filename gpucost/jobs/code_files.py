"""Which files of a folder are sent: all but what .gitignore names, and git's own.

git itself says which, also in a folder that is not a repository: nobody else reads those patterns
quite as it does. Without git a folder that has such a file is refused, because what it names
(data, keys) would be sent.
"""

import hashlib
import os
import shutil
import stat
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from pricing.errors import InputError
from pricing.listing import counted

_MUCH = 10**9
_LARGEST = 3
_MEGABYTE = 10**6


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFile:
    """A file or link that is sent.

    Attributes:
        name: path below the folder.
        size: in bytes; 0 for a link.
        is_link: whether it is a symbolic link, which is sent as one.
    """

    name: str
    size: int
    is_link: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SentFolder:
    """What of a folder is sent.

    Attributes:
        folder: here.
        files: in the order of their names.
    """

    folder: Path
    files: tuple[SentFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def text(self) -> str:
        """How much it is, for people."""
        return f"{counted(len(self.files), 'file')}, {self.size / _MEGABYTE:,.1f} MB"

    def notes(self) -> list[str]:
        """Return what its user should know before it is sent."""
        notes = []
        secret = [file.name for file in self.files if Path(file.name).name.startswith(".env")]
        if secret:
            notes.append(
                f"{', '.join(secret)} may hold secrets and is sent; name it in .gitignore to keep "
                "it here"
            )
        if self.size > _MUCH:
            largest = sorted(self.files, key=lambda file: -file.size)[:_LARGEST]
            sizes = ", ".join(f"{o.name} ({o.size / _MEGABYTE:,.0f} MB)" for o in largest)
            notes.append(f"{self.folder}: over 1 GB is sent. The largest: {sizes}")
        outside = [
            file.name for file in self.files if file.is_link and _leaves(self.folder, file.name)
        ]
        if outside:
            notes.append(f"links that lead out of {self.folder} lead nowhere there: {outside[0]}")
        return notes

    def sums(self) -> list[str]:
        """Return lines as sha256sum writes and checks them; links are not among them."""
        return [
            _sum_line(self.folder / file.name, file.name) for file in self.files if not file.is_link
        ]


def code_of(folder: Path) -> SentFolder:
    """Return what of a folder of code is sent.

    Raises:
        InputError: git cannot say what .gitignore leaves out.
    """
    git = shutil.which("git")
    if git is None:
        ignoring = next(folder.rglob(".gitignore"), None)
        if ignoring is not None:
            raise InputError(
                f"{ignoring}: git is not installed here, so what it names would be sent; "
                "install git, or give --sync a folder without .gitignore."
            )
        return whole_folder(folder)
    with tempfile.TemporaryDirectory() as empty:
        _git(git, "init", "--quiet", "--bare", empty)
        where = (f"--git-dir={empty}", f"--work-tree={folder}", "-C", str(folder))
        rules = ("--others", "--exclude-per-directory=.gitignore", "--exclude=.git", "-z")
        names = _git(git, *where, "ls-files", *rules).split("\0")
    tracked = _tracked(git, folder)
    paths = {name for name in (*names, *tracked) if name and ".git" not in name.split("/")}
    for inner in (name for name in names if name.endswith("/")):  # a repository of its own
        paths |= {f"{inner}{file.name}" for file in code_of(folder / inner).files}
    return _folder(folder, sorted(paths))


def whole_folder(folder: Path) -> SentFolder:
    """Return every file of a folder."""
    names = [
        os.path.relpath(os.path.join(at, name), folder)  # noqa: PTH118 - one path for each of many
        for at, folders, files in os.walk(folder)
        for name in (*files, *(link for link in folders if os.path.islink(os.path.join(at, link))))  # noqa: PTH118, PTH114 - the same
    ]
    return _folder(folder, sorted(name for name in names if ".git" not in name.split("/")))


def _tracked(git: str, folder: Path) -> list[str]:
    """Return what a repository tracks although .gitignore names it."""
    command = (git, "-C", str(folder), "ls-files", "--cached", "-z")
    done = subprocess.run(command, check=False, capture_output=True)  # noqa: S603 - words of ours
    return os.fsdecode(done.stdout).split("\0") if done.returncode == 0 else []


def _git(git: str, *words: str) -> str:
    done = subprocess.run((git, *words), check=False, capture_output=True)  # noqa: S603 - words of ours
    if done.returncode != 0:
        errors = " ".join(os.fsdecode(done.stderr).split())
        raise InputError(f"git cannot say what is to be sent: {errors}")
    return os.fsdecode(done.stdout)


def _folder(folder: Path, names: list[str]) -> SentFolder:
    files = []
    for name in names:
        try:
            status = (folder / name).lstat()
        except FileNotFoundError:
            continue  # git still has it; its user has removed it
        is_link = stat.S_ISLNK(status.st_mode)
        if is_link or stat.S_ISREG(status.st_mode):
            files.append(
                SentFile(name=name, size=0 if is_link else status.st_size, is_link=is_link)
            )
    return SentFolder(folder=folder, files=tuple(files))


def _leaves(folder: Path, name: str) -> bool:
    return not (folder / name).resolve().is_relative_to(folder.resolve())


def _sum_line(path: Path, name: str) -> str:
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if "\\" in name or "\n" in name:  # as sha256sum escapes them
        return f"\\{digest}  {name.replace(chr(92), chr(92) * 2).replace(chr(10), chr(92) + 'n')}"
    return f"{digest}  {name}"
