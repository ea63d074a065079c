"""What `gpucost import` says of the profiles that it made: each of a few, a table of many."""

from collections import Counter

from gpucost.views.output import Output
from planner.profile.model import Profile
from pricing.listing import counted

# More files than this are said in a table; -v says each.
MANY = 10
_FIRST = 5


def tell_profiles(profiles: tuple[Profile, ...], output: Output) -> None:
    """Say on standard error what was read: three lines a profile, or the first few and a count."""
    if output.quiet:
        return
    if len(profiles) <= MANY or output.verbose:
        for profile in profiles:
            _tell(profile, output)
        return
    rows = [("JOB", "GPU", "MODEL", "LENGTH", "READ AS"), *map(_row, profiles[:_FIRST])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        output.say("  ".join(cells).rstrip())
    gpus = sum(profile.gpu_count for profile in profiles)
    output.say(
        f"{counted(len(profiles), 'profile')} of {counted(gpus, 'GPU')} in all; the first {_FIRST} "
        "are shown, -v shows each."
    )
    _tell_notes(profiles, output)


def _tell_notes(profiles: tuple[Profile, ...], output: Output) -> None:
    """Say the commonest notes once, with how many profiles have them."""
    notes = Counter(note for profile in profiles for note in _unnamed(profile))
    common = sorted(notes.items(), key=lambda one: (-one[1], one[0]))
    for note, number in common[:_FIRST]:
        output.say(f"note of {counted(number, 'profile')}: {note}")
    if (rest := len(common) - _FIRST) > 0:
        output.say(f"{counted(rest, 'other note')}; -v shows them.")


def _unnamed(profile: Profile) -> set[str]:
    """Return a profile's notes without the names of its files, so that equal ones are counted."""
    names = [f"{source.path}: " for source in profile.provenance.sources]
    return {
        next((note.removeprefix(name) for name in names if note.startswith(name)), note)
        for note in profile.provenance.notes
    }


def _row(profile: Profile) -> tuple[str, ...]:
    formats = sorted({str(source.format) for source in profile.provenance.sources})
    model = profile.hardware.gpu or "model unknown"
    gpus = f"{profile.gpu_count:,}"
    return profile.job.name, gpus, model, _length(profile), ", ".join(formats)


def _length(profile: Profile) -> str:
    window = profile.window
    return f"{window.duration_s:,.0f} s" if window and window.duration_s else "an instant"


def _tell(profile: Profile, output: Output) -> None:
    for source in profile.provenance.sources:
        output.say(f"{profile.job.name}: read {source.path} as {source.format}")
    model = profile.hardware.gpu or "model unknown"
    output.say(
        f"{profile.job.name}: {counted(profile.gpu_count, 'GPU')} ({model}), {_length(profile)}"
    )
    for note in profile.provenance.notes:
        output.say(f"note: {note}")
