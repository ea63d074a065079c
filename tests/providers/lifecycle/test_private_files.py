"""Files of the state: for their owner alone, and never through a link that somebody else made."""

import os
import stat
from pathlib import Path

import pytest

from providers.private_files import (
    NotOursError,
    open_private,
    private_folder,
    read_private,
    write_private,
)

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another's files")


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077])
def test_new_files_are_their_owners_alone(mask: int, tmp_path: Path) -> None:
    """0700 and 0600, whatever the umask is."""
    before = os.umask(mask)
    try:
        private_folder(tmp_path / "a" / "state")
        write_private(tmp_path / "a" / "state" / "file", "text")
    finally:
        os.umask(before)
    assert _mode(tmp_path / "a" / "state") == 0o700
    assert _mode(tmp_path / "a" / "state" / "file") == 0o600


def test_what_was_open_is_closed(tmp_path: Path) -> None:
    """A folder with nothing but ours, and a file in it, lose what others could do there."""
    (tmp_path / "keys").mkdir()
    (tmp_path / "owner").write_text("")
    (tmp_path / "owner").chmod(0o644)
    tmp_path.chmod(0o775)
    private_folder(tmp_path)
    os.close(open_private(tmp_path / "owner", os.O_RDWR))
    assert _mode(tmp_path) == 0o700
    assert _mode(tmp_path / "owner") == 0o600


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_a_folder_that_others_can_write_to_is_refused(mode: int, tmp_path: Path) -> None:
    """What else lies there is left as it is, and nothing of ours is put beside it."""
    (tmp_path / "something").write_text("of the user's")
    tmp_path.chmod(mode)
    with pytest.raises(NotOursError, match="others can write there"):
        private_folder(tmp_path)
    assert _mode(tmp_path) == mode
    tmp_path.chmod(0o700)


def test_a_folder_that_others_read_stays_so_where_it_holds_more(tmp_path: Path) -> None:
    """A home folder that is named as the state folder is not closed to others."""
    (tmp_path / "something").write_text("of the user's")
    tmp_path.chmod(0o755)
    private_folder(tmp_path)
    assert _mode(tmp_path) == 0o755


@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_what_is_no_file_is_not_opened(kind: str, tmp_path: Path) -> None:
    """A link is not followed, its target is not touched; a pipe does not block."""
    target, path = tmp_path / "target", tmp_path / "path"
    target.write_text("theirs")
    {
        "link": lambda: path.symlink_to(target),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
    }[kind]()
    with pytest.raises((NotOursError, IsADirectoryError)):
        os.close(open_private(path, os.O_RDWR | os.O_NONBLOCK))
    if kind == "link":
        with pytest.raises(NotOursError):
            write_private(path, "list_owned")
    assert target.read_text() == "theirs"


def test_ones_own_link_to_a_folder_is_followed(tmp_path: Path) -> None:
    """A user may keep the state on another disk."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    private_folder(tmp_path / "state")
    assert _mode(tmp_path / "disk") == 0o700


@needs_root
def test_what_somebody_else_made_is_not_used(tmp_path: Path) -> None:
    """Another's folder, another's link to a folder of ours, another's file: refused, untouched."""
    (tmp_path / "theirs").mkdir()
    os.chown(tmp_path / "theirs", NOBODY, NOBODY)
    with pytest.raises(NotOursError, match=f"belongs to user {NOBODY}"):
        private_folder(tmp_path / "theirs")
    (tmp_path / "list_owned").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "list_owned")
    os.chown(tmp_path / "link", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(NotOursError, match="not followed"):
        private_folder(tmp_path / "link")
    (tmp_path / "file").write_text("theirs")
    os.chown(tmp_path / "file", NOBODY, NOBODY)
    with pytest.raises(NotOursError, match="not used"):
        open_private(tmp_path / "file", os.O_RDWR)
    assert (tmp_path / "file").read_text() == "theirs"


def test_only_a_private_file_is_read(tmp_path: Path) -> None:
    """A file with secrets that others can read is refused, and says what to do."""
    (tmp_path / "file").write_text("text")
    (tmp_path / "file").chmod(0o640)
    with pytest.raises(NotOursError, match="chmod 600"):
        read_private(tmp_path / "file")
    (tmp_path / "file").chmod(0o600)
    assert read_private(tmp_path / "file") == "text"


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A text that cannot be encoded leaves the file as it was and nothing beside it."""
    write_private(tmp_path / "file", "before")
    with pytest.raises(UnicodeEncodeError):
        write_private(tmp_path / "file", "\ud800")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "before"
