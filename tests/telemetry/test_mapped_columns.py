"""`--map COLUMN=SLOT[:UNIT]`: every name that it takes, in every unit, and what it refuses."""

import re
from pathlib import Path

import pytest

from planner.profile.kinds import SLOTS
from planner.profile.model import Host, Profile
from pricing.errors import InputError
from telemetry.lake.profiles import columns_of
from telemetry.readers.hints import Hints
from telemetry.readers.units import HOST_UNITS, MAPPABLE, units_of
from tests.telemetry.reading import read_source

SECONDS = 20
# One value of each unit, and what it is in the slot's own.
VALUES = {
    "fraction": {"%": (40, 0.4), "ratio": (0.4, 0.4)},
    "GiB": {
        "B": (2**31, 2.0),
        "KiB": (2**21, 2.0),
        "MiB": (2048, 2.0),
        "GiB": (2, 2.0),
        "GB": (2.147483648, 2.0),
    },
    "W": {"W": (250, 250.0), "mW": (250_000, 250.0), "kW": (0.25, 250.0)},
    "°C": {"C": (61, 61.0)},
    "MHz": {"MHz": (1500, 1500.0), "Hz": (1.5e9, 1500.0), "GHz": (1.5, 1500.0)},
    "MiB/s": {
        "B/s": (2**23, 8.0),
        "KB/s": (8388.608, 8.0),
        "KiB/s": (8192, 8.0),
        "MB/s": (8.388608, 8.0),
        "MiB/s": (8, 8.0),
        "GB/s": (0.008388608, 8.0),
        "GiB/s": (1 / 128, 8.0),
    },
    # A meter that grows by 100 J a second.
    "J": {
        "J": (100, 100.0),
        "kJ": (0.1, 100.0),
        "mJ": (1e5, 100.0),
        "uJ": (1e8, 100.0),
        "Wh": (1 / 36, 100.0),
        "kWh": (1 / 36000, 100.0),
    },
}
READINGS = {**{name: slot.unit for name, slot in SLOTS.items()}, **HOST_UNITS}
CASES = [
    (name, unit, value, expected)
    for name, own in READINGS.items()
    for unit, (value, expected) in VALUES[own].items()
]

# A column of no name has a unit as any other has: each reading once.
NAMELESS = list({case[0]: case for case in CASES}.values())


def _imported(folder: Path, slot: str, value: float, *, header: bool) -> Profile:
    meter = slot.startswith("energy")
    rows = [
        f"2026-07-01T12:00:{i:02d}Z,{gpu},{value * (i if meter else 1)!r}"
        for i in range(SECONDS)
        for gpu in (0, 1)
    ]
    names = ("when", "card", "odd one") if header else ("1", "2", "3")
    file = folder / "own.csv"
    file.write_text("\n".join([*([",".join(names)] if header else []), *rows, ""]))
    mapped = zip(names, ("timestamp", "index", slot), strict=True)
    (profile,) = read_source(str(file), Hints(map=tuple(mapped), gpu="L4"))
    return profile


def _mean(profile: Profile, name: str) -> float | None:
    if name in SLOTS:
        found = profile.gpus[1].metrics.get(name)
    else:
        found = getattr(profile.host, name.removeprefix("host.")) if profile.host else None
    return None if found is None else found.mean


@pytest.mark.parametrize(
    ("case", "header"),
    [*((case, True) for case in CASES), *((case, False) for case in NAMELESS)],
    ids=str,
)
def test_every_reading_can_be_mapped_in_every_unit(
    tmp_path: Path, case: tuple[str, str, float, float], *, header: bool
) -> None:
    """A column of any name, or of none, fills the slot that `--map` gives it."""
    name, unit, value, expected = case
    profile = _imported(tmp_path, f"{name}:{unit}", value, header=header)
    times = SECONDS if name == "energy.total_j" else 1
    mean = _mean(profile, name)
    assert mean == pytest.approx(expected * times, rel=0.06 if times > 1 else 1e-5)


@pytest.mark.parametrize("name", READINGS)
def test_the_units_are_those_that_the_page_lists(name: str) -> None:
    """No unit that is offered is left out of the cases, and none is tried that is not offered."""
    assert set(units_of(name)) == set(VALUES[READINGS[name]])


@pytest.mark.parametrize(("name", "natural"), [("power.board_w", 250), ("host.cpu_util", 25)])
def test_without_a_unit_it_is_the_first_one_of_the_page(
    tmp_path: Path, name: str, natural: int
) -> None:
    """Percent, MiB and the slot's own unit otherwise."""
    scale = 0.01 if units_of(name)[0] == "%" else 1.0
    assert _mean(_imported(tmp_path, name, natural, header=True), name) == natural * scale


def test_every_reading_of_a_profile_has_a_name() -> None:
    """A slot or a field of the host that is new can be mapped, too, unless it is worked out."""
    worked_out = {"host.ram_growth_gib_per_h"}  # from the memory in use over the run
    fields = {f"host.{field}" for field in Host.__struct_fields__}
    assert (set(SLOTS) | fields) - set(MAPPABLE) == worked_out


def test_an_unknown_slot_lists_all_that_there_are() -> None:
    """The message names what may stand there."""
    with pytest.raises(InputError) as refused:
        Hints(map=(("x", "gpu.load"),))
    (said,) = refused.value.problems
    assert all(name in said for name in MAPPABLE)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("power.board_w:GiB", "Use one of: W, mW, kW."),
        ("temp.core_c:F", "Use one of: C."),
        ("timestamp:ms", "it is a text"),
    ],
)
def test_a_unit_that_does_not_fit_is_refused(said: str, words: str) -> None:
    """A column in a unit of another quantity is never left out in silence."""
    with pytest.raises(InputError) as refused:
        Hints(map=(("x", said),))
    assert words in str(refused.value)


def test_memory_of_the_device_takes_a_unit(tmp_path: Path) -> None:
    """`memory.total` is a role with a unit."""
    file = tmp_path / "own.csv"
    file.write_text("load,size\n50,24\n60,24\n")
    hints = Hints(map=(("load", "util.kernel_time"), ("size", "memory.total:GiB")))
    (profile,) = read_source(str(file), hints)
    assert profile.hardware.gpu_memory_gib == 24.0


def test_a_host_reading_that_cannot_be_is_left_out(tmp_path: Path) -> None:
    """800 % of the cores is top's way of counting, not a share of them."""
    file = tmp_path / "own.csv"
    file.write_text("gpu_util,cpu,ram\n50,800,4096\n60,790,4096\n")
    hints = Hints(map=(("cpu", "host.cpu_util"), ("ram", "host.ram_used_gib")))
    (profile,) = read_source(str(file), hints)
    assert profile.host is not None
    assert profile.host.cpu_util is None
    assert profile.host.ram_used_gib is not None
    assert any("host.cpu_util: 2 values left out" in note for note in profile.provenance.notes)


def test_a_table_says_what_it_does_not_count() -> None:
    """What is not counted where a table lies is refused, not left out."""
    hints = Hints(map=(("cpu", "host.cpu_util"), ("meter", "energy.total_j")))
    names = ("t_s", "gpu", "util.kernel_time", "cpu", "meter")
    with pytest.raises(InputError) as refused:
        columns_of(names, "fleet", hints)
    assert len(refused.value.problems) == 2


PANEL_TIMES = [f"2026-11-10 08:{minute:02}:00" for minute in range(20)]


def _panel(file: Path, names: list[str], cells: str = "98%,2%,20%,50%") -> str:
    """Write a panel as Grafana joins its series by time, and return where."""
    rows = [f"{time},{cells}" for time in PANEL_TIMES]
    file.write_text("\n".join([",".join(["Time", *names]), *rows]) + "\n", encoding="utf-8")
    return str(file)


def test_columns_of_several_gpus_are_never_mapped_to_one_reading(tmp_path: Path) -> None:
    """A column a GPU, whose names do not number them: three of four would vanish."""
    names = ["first", "second", "third", "fourth"]
    file = _panel(tmp_path / "panel.csv", names)
    maps = tuple((name, "util.kernel_time") for name in names)
    with pytest.raises(InputError, match=r"first.*second.*all mapped to util\.kernel_time"):
        read_source(file, Hints(map=maps))
    (profile,) = read_source(file, Hints(map=maps[:1]))
    assert profile.mean("util.kernel_time") == pytest.approx(0.98)


@pytest.mark.parametrize(
    ("line", "gpus"),
    [
        ("2025/09/21 16:12:{s}.315, {gpu}, 50, 0, 4, 24564\n", 2),
        ("2025-09-21 16:12:{s},  4.6%,205,47.2,  466 mW\n", 1),
        ("2025-09-21T16:12:{s}, {gpu}, 35 %, 1024 MiB, 24564 MiB, 60.5 W\n", 2),
        ("17584715{s}, 4:00, 50, 7\n", 1),
    ],
)
@pytest.mark.parametrize("date", ["", "2025-09-21 16:12:24\n"])
def test_a_map_that_is_suggested_works_as_it_is_typed(
    line: str, gpus: int, date: str, tmp_path: Path
) -> None:
    """Rows without a header: the sentence's own options read every row, and no index is a load."""
    text = "".join(
        date * (gpu == 0) + line.format(s=s, gpu=gpu) for s in range(10, 40) for gpu in range(gpus)
    )
    file = tmp_path / "log.txt"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_source(str(file), Hints())
    maps = re.findall(r"--map (\S+)=(\S+?)\.?(?= |$)", str(caught.value))
    (profile,) = read_source(str(file), Hints(map=tuple(maps)))
    assert len(profile.gpus) == gpus
    assert any(f"{30 * gpus} of {30 * gpus} rows used" in note for note in profile.provenance.notes)


@pytest.mark.parametrize("form", ["gpu-n{} / GPU {}", "gpu-n{} GPU {}", "n{}:9400 - GPU{}"])
@pytest.mark.parametrize("said_by", ["panel", "option", "value"])
def test_the_lines_of_a_panel_are_the_gpus_of_hosts(
    form: str, said_by: str, tmp_path: Path
) -> None:
    """Names of lines tell host and GPU; what is drawn the panel's title, or `--map`."""
    names = [form.format(host, gpu) for host in (1, 2) for gpu in (0, 1)]
    title = "GPU Utilization-data-as-joinbyfield-2026-11-10 08_30_00" if said_by == "panel" else "p"
    maps = {
        "panel": (),
        "option": tuple((name, "util.kernel_time:%") for name in names),
        "value": (("value", "util.kernel_time:%"),),
    }[said_by]
    file = _panel(tmp_path / f"{title}.csv", names)
    (profile,) = read_source(file, Hints(map=maps, name="both"))
    assert (profile.hardware.gpu_count, profile.hardware.nodes) == (4, 2)
    loads = [(gpu.index, gpu.metrics["util.kernel_time"].mean) for gpu in profile.gpus]
    assert loads == [(0, 0.98), (1, 0.02), (0, 0.2), (1, 0.5)]


@pytest.mark.parametrize(
    ("title", "cell", "slot", "mean"),
    [
        ("GPU Framebuffer Mem Used", "10.5 GB", "mem.used_gib", pytest.approx(9.779, abs=1e-3)),
        ("GPU Framebuffer Mem Used", "10752", "mem.used_gib", 10.5),
        ("Tensor Core Utilization", "12%", "util.tensor_active", pytest.approx(0.12)),
    ],
)
def test_panels_of_nvidia_s_own_dashboard_say_what_they_draw(
    title: str, cell: str, slot: str, mean: float, tmp_path: Path
) -> None:
    """The titles are of NVIDIA's dashboard for DCGM's exporter; a cell's own unit counts."""
    file = tmp_path / f"{title}-data-as-joinbyfield-2026-11-10 08_30_00.csv"
    rows = "".join(f"2026-11-10 08:30:{s:02},{cell}\n" for s in range(30))
    file.write_text(f'"Time","GPU 0"\n{rows}', encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert profile.gpus[0].metrics[slot].mean == mean


def test_lines_of_a_panel_that_nothing_names_are_refused(tmp_path: Path) -> None:
    """Host and GPU do not say what is drawn, and the number of a metric's column is no host."""
    file = _panel(tmp_path / "p.csv", ["GPU 0", "GPU 1", "n1 GPU 2", "n1 GPU 3"])
    with pytest.raises(InputError, match=r"--map value=util\.kernel_time"):
        read_source(file, Hints())
    file = _panel(tmp_path / "q.csv", [f"utilization GPU {gpu}" for gpu in range(4)])
    with pytest.raises(InputError):
        read_source(file, Hints())


_GERMAN = ("Zeit", "GPU 0 Auslastung", "GPU 1 Auslastung", "GPU 0 Belegung", "GPU 1 Belegung")


@pytest.mark.parametrize("time", ["Zeit", "Wann"])
@pytest.mark.parametrize("full", [True, False])
def test_a_panel_in_german_is_read_by_its_own_names(
    *, time: str, full: bool, tmp_path: Path
) -> None:
    """A map may name time and whole headers, and a unit in a cell counts as it does elsewhere."""
    file = tmp_path / "panel.csv"
    rows = [
        f"2026-11-20 {10 + s // 3600}:{s // 60 % 60:02}:{s % 60:02},80.0%,20.0%,60.0 GiB,10.0 GiB\n"
        for s in range(0, 7200, 30)
    ]
    file.write_text(",".join((time, *_GERMAN[1:])) + "\n" + "".join(rows), encoding="utf-8")
    names = [name if full else name[len("GPU 0 ") :] for name in _GERMAN[1:]]
    slots = 2 * ["util.kernel_time"] + 2 * ["mem.used_gib"]
    maps = ((time, "timestamp"), *dict(zip(names, slots, strict=True)).items())
    (profile,) = read_source(str(file), Hints(map=maps))
    assert profile.window is not None
    assert profile.window.duration_s == pytest.approx(7200.0)
    busy = [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus]
    used = [gpu.metrics["mem.used_gib"].mean for gpu in profile.gpus]
    assert (busy, used) == (pytest.approx([0.8, 0.2]), pytest.approx([60.0, 10.0]))
