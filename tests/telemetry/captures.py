"""The captures under tests/fixtures/telemetry and how tests read them."""

from pathlib import Path

from planner.profile.codec import dump, parse_profiles
from planner.profile.model import Profile
from telemetry.formats.sniff import recognize
from telemetry.readers.hints import Hints
from telemetry.readers.payload import Stream
from telemetry.recording.recording import Recording

FOLDER = Path(__file__).resolve().parents[1] / "fixtures" / "telemetry"


def path(name: str) -> str:
    """Return where a capture lies."""
    return str(FOLDER / name)


def recorded(source: str | Path, hints: Hints | None = None) -> Recording:
    """Return a file's recording, recognized by its content."""
    hints = hints or Hints()
    with Stream(str(source)) as stream:
        form = recognize(stream.name, stream.head, hints)
        assert form is not None
        return form.read(stream.load(), hints)


def assert_writable(profiles: tuple[Profile, ...]) -> None:
    """Assert that the profiles, written as profile.json, pass every check of reading it."""
    assert profiles
    assert len(parse_profiles(dump(profiles).encode(), "written")) == len(profiles)
