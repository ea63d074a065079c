"""Sources recognized by their place or their Parquet columns: MLflow and Neptune runs, samples."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from planner.profile.kinds import SLOTS
from planner.profile.model import Host
from pricing.errors import InputError
from telemetry.readers.column_names import LABELS
from telemetry.readers.payload import MOST_BYTES, Payload, base_name, footer_of
from telemetry.readers.records import whole_of
from telemetry.recording.recording import EXTRA, GPU, TIME, RunSettings

_META, _METRICS = "meta.yaml", "metrics"
_NEPTUNE = (b"attribute_path", b"attribute_type", b"float_value")
# A run has a name for each GPU where it sees several: monitoring/1a2b/gpu_memory_1.
_MONITORED = re.compile(r"(monitoring/[^/,]+)/(gpu|gpu_memory|gpu_power)(?:_(\d{1,4}))?")
_TEXTS = """
    SELECT run_id, attribute_path, string_value FROM read_parquet(?)
    WHERE attribute_path = 'sys/name' OR attribute_path LIKE 'monitoring/%/hostname'
"""
_READINGS = """
    SELECT run_id, attribute_path, epoch_ms(timestamp), float_value FROM read_parquet(?)
    WHERE attribute_path LIKE 'monitoring/%/gpu%' AND timestamp IS NOT NULL
      AND float_value IS NOT NULL ORDER BY ALL
"""
_MOST_FILES = 1_000
_MOST_SETTINGS_BYTES = 1 << 20


def is_run_folder(path: str | Path) -> bool:
    """Return whether a folder is a run of MLflow: `meta.yaml` beside `metrics/`."""
    folder = Path(path)
    try:
        return (folder / _META).is_file() and (folder / _METRICS).is_dir()
    except (OSError, ValueError):
        return False


def is_run_table(path: str | Path) -> bool:
    """Return whether a file is Parquet with the columns that neptune-exporter writes."""
    footer = footer_of(path)
    return all(name in footer for name in _NEPTUNE)


def table_payload(path: str) -> Payload:
    """Return what a run of Neptune logged of its GPUs, as a table with a reading a row.

    Raises:
        InputError: the file is damaged.
    """
    import duckdb  # noqa: PLC0415 - only where there is such a file

    name = base_name(path)
    try:
        with duckdb.connect() as engine:
            texts = engine.execute(_TEXTS, [path]).fetchall()
            rows = engine.execute(_READINGS, [path]).fetchall()
        hashed = hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except (duckdb.Error, OSError) as error:
        reason = str(error).splitlines()[0][:200]
        raise InputError(f"{name}: a damaged Parquet file ({reason}). Export it again.") from None
    run_texts = {(run, attribute): _plain(text) for run, attribute, text in texts}
    lines = ["timestamp,host,gpu,job,metric,value"]
    for run, attribute, time_ms, value in rows:
        metric = _MONITORED.fullmatch(attribute)
        if metric is not None:
            host = run_texts.get((run, f"{metric[1]}/hostname")) or metric[1]
            job = run_texts.get((run, "sys/name")) or _plain(run)
            gpu = metric[3] or 0
            lines.append(f"{time_ms},{host},{gpu},{job},monitoring/{metric[2]},{value!r}")
    return Payload(name=name, path=path, data="\n".join(lines).encode(), sha256=hashed)


def _plain(text: object) -> str:
    return re.sub(r"[\s,;|\"]+", " ", str(text or "")).strip()


def run_payload(path: str | Path) -> Payload:
    """Return a run as the JSON that MLflow's metrics/get-history answers.

    The hash is of the files of its metrics, in the order of their names.

    Raises:
        InputError: its files cannot be read, or there are too many, or they are too large.
    """
    folder = Path(path)
    hashed = hashlib.sha256()
    points: list[dict[str, object]] = []
    size = 0
    files = sorted(file for file in (folder / _METRICS).rglob("*") if file.is_file())
    if len(files) > _MOST_FILES:
        raise InputError(
            f"{path}: over {_MOST_FILES:,} metrics are in this run; no run has as many."
        )
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            reason = (error.strerror or "unreadable").lower()
            raise InputError(f"{file}: cannot be read ({reason}).") from None
        size += len(data)
        if size > MOST_BYTES:
            raise InputError(f"{path}: over {MOST_BYTES >> 20} MiB of metrics are in this run.")
        hashed.update(data)
        key = file.relative_to(folder / _METRICS).as_posix()
        points += _points(key, data.decode("utf-8", "replace"))
    document = json.dumps({"metrics": points or [{"key": "none"}]})
    return Payload(
        name=_name(folder) or base_name(str(path)),
        path=str(path),
        data=document.encode(),
        sha256=hashed.hexdigest(),
    )


def _points(key: str, text: str) -> list[dict[str, object]]:
    lines = (line.split() for line in text.splitlines() if line.strip())
    return [
        {"key": key, "timestamp": parts[0], "value": parts[1]}
        if len(parts) > 1  # time and value; MLflow writes the step behind them
        else {"key": key}
        for parts in lines
    ]


def _name(folder: Path) -> str | None:
    """Return the run's name: `run_name: ...` in its description."""
    lines = _text(folder / _META).splitlines()
    line = next((row for row in lines if row.startswith("run_name:")), "")
    return line.partition(":")[2].strip().strip("'\"") or None


def settings_beside(path: Path) -> RunSettings:
    """Return what the configuration beside a file of a run says, or in the folder of one.

    W&B writes config.yaml and the program's arguments, Lightning hparams.yaml, MLflow a file a
    parameter.
    """
    pairs: list[tuple[str, object]] = []
    for folder in ("files/", ""):
        pairs += _of_yaml(_text(path.parent / f"{folder}config.yaml"))
        match = re.search(
            r'"args": *\[([^\]]*)\]', _text(path.parent / f"{folder}wandb-metadata.json")
        )
        options = re.sub(r'[",\s]+', " ", match[1]) if match else ""
        pairs += re.findall(r"--([\w-]+)[= ]([^\s-]\S*)", options)
    pairs += _of_yaml(_text(path.parent / "hparams.yaml"))
    if is_run_folder(path):
        pairs += [(file.name, _text(file)) for file in (path / "params").glob("*")]
    return settings_of(pairs)


def settings_of(pairs: Iterable[tuple[str, object]]) -> RunSettings:
    """Return what names and values of a configuration say; nothing of a name with two values."""
    texts_by_name: dict[str, set[str]] = defaultdict(set)
    for name, value in _flat(pairs):
        texts_by_name[name.lower().rpartition("/")[2].replace("-", "_")].add(str(value).lower())
    values = {name: next(iter(texts)) for name, texts in texts_by_name.items() if len(texts) == 1}
    own = {f"{name}={value}" for name, value in values.items()}
    precisions = (
        word
        for word, signs in LABELS["precisions"].items()
        if any(own.issuperset(sign.split()) for sign in signs)
    )
    numbers = {
        field: whole_of(next((values[name] for name in names if name in values), None))
        for field, names in LABELS["settings"].items()
    }
    return RunSettings(precision=next(precisions, None), **numbers)


def _flat(pairs: Iterable[tuple[str, object]]) -> Iterator[tuple[str, object]]:
    for name, value in pairs:
        if isinstance(value, dict):
            yield from _flat(value.items())
        else:
            yield str(name), value


def _of_yaml(text: str) -> list[tuple[str, object]]:
    """Return names and values; `value` is that of the name above it, as W&B writes them."""
    pairs, above = list[tuple[str, object]](), ""
    for name, value in re.findall(r"^ *([\w./-]+): *(\S.*)?$", text, re.MULTILINE):
        above = above if value else name
        pairs += [(above if name == "value" else name, value.strip(" '\""))] if value else []
    return pairs


def _text(file: Path) -> str:
    try:
        with file.open("rb") as stream:
            return stream.read(_MOST_SETTINGS_BYTES).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""


HOST, _OF_MACHINE = "host.", "machine."
_HOST_FIELDS = Host.__struct_fields__
OURS = {
    TIME,
    GPU,
    *SLOTS,
    *EXTRA,
    *(f"{HOST}{name}" for name in _HOST_FIELDS),
    *(f"{HOST}{_OF_MACHINE}{name}" for name in _HOST_FIELDS),
}
# A column stands in the footer behind its length.
_NAMED = (b"\x03t_s", b"\x03gpu")


def is_series_table(path: str | Path) -> bool:
    """Return whether a file is Parquet with columns of samples and no other.

    One with a column more, such as a job, is a table of a fleet.
    """
    footer = footer_of(path)
    if not all(name in footer for name in _NAMED):
        return False
    import duckdb  # noqa: PLC0415 - only where there is such a file

    try:
        with duckdb.connect() as engine:
            named = engine.read_parquet(str(path)).columns
    except duckdb.Error:
        return False
    return set(named) <= OURS
