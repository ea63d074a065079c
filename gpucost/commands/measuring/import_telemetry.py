"""`gpucost import`: telemetry files in, a profile out."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import click

from gpucost.arguments.parameters import options, today
from gpucost.files.writing import write_file
from gpucost.live.live_metrics import LiveOptions, is_server, recording_rules
from gpucost.live.sources import SourceReading, read_sources
from gpucost.prices.cache import load_catalog
from gpucost.views.output import Output, common_options, folder_options
from planner.profile.codec import dump
from planner.profile.model import Profile
from pricing.catalog.offer import parse_place
from pricing.errors import InputError
from pricing.listing import counted, listed
from pricing.message import Message

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


def _rules(context: click.Context, _: click.Parameter, shown: bool) -> None:  # noqa: FBT001 - click's
    if shown:
        click.echo(recording_rules(), nl=False)
        context.exit()


@click.command(
    name="import",
    epilog="Example: gpucost import smi.csv --kind training --precision fp32 --work image=900000",
)
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@options("output.import format.import gpu.import machine.import")
@options("kind precision cores cpu")
@options(
    "batch work tz.import interval.import map.import label since until step match "
    "recorded recording-rules job-label",
    recording_rules={"callback": _rules},
)
@options("jobs-by name job.import")
@common_options
def command(
    sources: tuple[str, ...], target: str, jobs_by: str | None, output: Output, **options: Any
) -> None:
    """Turn telemetry files of one job into a profile; the files complement each other."""
    from telemetry.readers.hints import Hints  # noqa: PLC0415 - pandas comes with the readers

    live = LiveOptions(
        since_s=int(options.pop("since")),
        until=options.pop("until"),
        step_s=None if (step := options.pop("step")) is None else int(step),
        recorded=options.pop("recorded"),
        match=options.pop("match"),
    )
    if live.match and not any(map(is_server, sources)):
        raise InputError(Message("input.match-no-server"))
    interval = options.pop("interval")
    hints = Hints(
        format=options.pop("format_name"),
        map=options.pop("map_"),
        interval_s=None if interval is None else float(interval),
        **options,
    )
    folders = folder_options(jobs_by, output, "folder")
    how = SourceReading(folders=folders, hints=hints, live=live)
    profiles = read_sources(sources, output.say, how)
    if hints.machine:
        _check_machine(profiles, hints.machine, output)
    _write(profiles, target, output)
    tell_profiles(profiles, output)


def _check_machine(profiles: tuple[Profile, ...], machine: str, output: Output) -> None:
    """Refuse a listed machine that cannot be the measured one, as a plan does."""
    from planner.choice.baseline import check_machine  # noqa: PLC0415 - heavy, only for this

    catalog = load_catalog(today(), say=output.say)
    provider, instance_type, _ = parse_place(machine)
    sold = (o for o in catalog.offers if (o.provider, o.instance_type) == (provider, instance_type))
    if (offer := next(sold, None)) is not None:
        for profile in profiles:
            check_machine(profile, offer, catalog)


def _write(profiles: tuple[Profile, ...], target: str, output: Output) -> None:
    """Write the profiles; say it file by file, or of many with their number."""
    files = _files(profiles, target)
    many, replaced = len(files) > MANY and not output.verbose, 0
    for path, text in files:
        exists = path != "-" and Path(path).exists()
        write_file(path, text)
        replaced += exists
        if path != "-" and not many:
            output.say(f"wrote {path}" + (", in place of what was there" if exists else ""))
    if many:
        instead = f", {replaced:,} in place of what was there" if replaced else ""
        output.say(f"wrote {counted(len(files), 'file')} to {target}{instead}")


def _files(profiles: tuple[Profile, ...], target: str) -> list[tuple[str, str]]:
    if not target:
        raise InputError("-o names no file; give one, such as profile.json.")
    if target == "-" or (len(profiles) == 1 and not _is_folder(target)):
        return [(target, dump(profiles))]
    if not _is_folder(target):
        all_jobs = listed([profile.job.name for profile in profiles], MANY)
        raise InputError(Message("input.jobs-in-one-file", n=len(profiles), jobs=all_jobs))
    folder = Path(target)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be made: {error.strerror or error}.") from error
    names = [_UNSAFE.sub("-", profile.job.name).strip("-.") or "job" for profile in profiles]
    unique = [
        name if names.count(name) == 1 else f"{name}-{names[: i + 1].count(name)}"
        for i, name in enumerate(names)
    ]
    return [
        (str(folder / f"{name}.json"), dump((profile,)))
        for name, profile in zip(unique, profiles, strict=True)
    ]


def _is_folder(target: str) -> bool:
    return target.endswith("/") or Path(target).is_dir()


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
    common = sorted(notes.items(), key=lambda entry: (-entry[1], entry[0]))
    for note, number in common[:_FIRST]:
        output.say(f"note of {counted(number, 'profile')}: {note}")
    if (remaining := len(common) - _FIRST) > 0:
        output.say(f"{counted(remaining, 'other note')}; -v shows them.")


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
    for source in profile.provenance.sources if output.verbose else ():
        for column in source.columns:
            if column.scale is None:
                output.say(
                    f"not understood: {column.source}, in {column.n:,} rows of {source.path}"
                )
