"""Labelled series: counters, blanks, MIG instances, and whose workload a series is."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from telemetry.sources import BY_FILE, read_telemetry
from tests.telemetry.captures import assert_writable, path
from tests.telemetry.reading import read_source

START = 1782907200


def series(name: str, values: list[float | str], step: float = 10, **labels: str) -> dict[str, Any]:
    """Return one series of a matrix."""
    metric = {"gpu": "0", "modelName": "Tesla T4", **labels}
    if name:
        metric["__name__"] = name
    return {"metric": metric, "values": [[START + step * i, str(v)] for i, v in enumerate(values)]}


def imported(
    tmp_path: Path, *found: dict[str, Any], hints: Hints | None = None
) -> tuple[Profile, ...]:
    """Return the profiles of one range answer."""
    answer = {"status": "success", "data": {"resultType": "matrix", "result": list(found)}}
    file = tmp_path / "range.json"
    file.write_text(json.dumps(answer), encoding="utf-8")
    return read_source(str(file), hints or Hints())


def test_an_energy_counter_is_a_difference_and_survives_a_reset(tmp_path: Path) -> None:
    """Millijoules count from the driver's start; a reset adds what was counted since."""
    (profile,) = imported(
        tmp_path,
        series("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", [9e9, 9e9 + 5e6, 1e6, 3e6]),
        series("DCGM_FI_DEV_GPU_UTIL", [50, 50, 50, 50]),
    )
    assert profile.gpus[0].metrics["energy.total_j"].mean == pytest.approx(5000 + 1000 + 2000)


def test_violation_counters_become_a_share_of_time(tmp_path: Path) -> None:
    """Nanoseconds of throttling per second, power and heat together, at most all of it."""
    second = 1_000_000_000
    (profile,) = imported(
        tmp_path,
        series("DCGM_FI_DEV_POWER_VIOLATION", [0, 2 * second, 4 * second, 6 * second]),
        series("DCGM_FI_DEV_THERMAL_VIOLATION", [0, second, 2 * second, 3 * second]),
        series("DCGM_FI_DEV_GPU_UTIL", [90, 90, 90, 90]),
    )
    assert profile.gpus[0].metrics["throttle.fraction"].mean == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("values", "mib_s"),
    [
        ([float(2**20 * 10 * i) for i in range(12)], 1.0),
        ([float(2**20 * v) for v in (3, 1) * 6], 2.0),
    ],
)
def test_pcie_bytes_are_a_counter_where_they_only_rise(
    values: list[float | str], mib_s: float, tmp_path: Path
) -> None:
    """New exporters count bytes, old ones give bytes per second; both become MiB/s."""
    (profile,) = imported(tmp_path, series("DCGM_FI_PROF_PCIE_RX_BYTES", values))
    assert profile.gpus[0].metrics["io.pcie_rx_mib_s"].mean == pytest.approx(mib_s, rel=1e-3)


@pytest.mark.parametrize("blank", ["2147483632", "9223372036854775792", "140737488355328.0", "NaN"])
def test_blank_values_are_missing(blank: str, tmp_path: Path) -> None:
    """What DCGM writes for a missing value is not read as one."""
    (profile,) = imported(tmp_path, series("DCGM_FI_DEV_GPU_UTIL", [40, blank, 60]))
    assert profile.gpus[0].metrics["util.kernel_time"].max == 0.6
    assert sum(profile.provenance.sources[0].dropped.values()) == 1  # type: ignore[attr-defined]


def test_a_ratio_that_counts_to_100_is_rescaled_with_a_note(tmp_path: Path) -> None:
    """The name decides; a range that contradicts it is said aloud."""
    (profile,) = imported(tmp_path, series("DCGM_FI_DEV_GPU_UTIL_RATIO", [40, 60]))
    assert profile.gpus[0].metrics["util.kernel_time"].mean == 0.5
    assert any("read as percent" in note for note in profile.provenance.notes)


def test_lower_cased_names_are_known(tmp_path: Path) -> None:
    """Clouds that lower the names are read alike."""
    (profile,) = imported(tmp_path, series("dcgm_fi_dev_gpu_util", [40, 60]))
    assert profile.gpus[0].metrics["util.kernel_time"].mean == 0.5


def test_a_series_without_a_name_can_be_mapped(tmp_path: Path) -> None:
    """rate() drops the name; the message says how to give it."""
    with pytest.raises(InputError, match="--map value=util"):
        imported(tmp_path, series("", [40, 60]))
    hints = Hints(map=(("value", "util.kernel_time"),))
    (profile,) = imported(tmp_path, series("", [40, 60]), hints=hints)
    assert profile.gpus[0].metrics["util.kernel_time"].mean == 0.5


@pytest.mark.parametrize(
    ("labels", "name"),
    [
        ({"pod": "dcgm-exporter-x", "exported_pod": "train"}, "train"),
        ({"pod": "train"}, "train"),
        ({"pod": "dcgm-abc", "container": "dcgm-exporter"}, "range"),
        ({"pod": "nvidia-dcgm-exporter-x", "job": "gpu-exporter"}, "range"),
        ({"hpc_job": "4711"}, "4711"),
        ({"job": "nightly"}, "nightly"),
    ],
)
def test_the_workload_is_not_the_exporter(
    labels: dict[str, str], name: str, tmp_path: Path
) -> None:
    """The job is named by the workload's label, never by the exporter's own pod or scrape job."""
    (profile,) = imported(tmp_path, series("DCGM_FI_DEV_GPU_UTIL", [40, 60], **labels))
    assert profile.job.name == name


def test_gpus_without_a_label_belong_to_no_job(tmp_path: Path) -> None:
    """With two jobs named, a third, free GPU is in neither profile, and a note says so."""
    util = "DCGM_FI_DEV_GPU_UTIL"
    profiles = imported(
        tmp_path,
        series(util, [40, 60], gpu="0", UUID="GPU-a", exported_pod="one"),
        series(util, [10, 30], gpu="1", UUID="GPU-b", exported_pod="two"),
        series(util, [0, 0], gpu="2", UUID="GPU-c"),
    )
    assert [(p.job.name, p.gpus[0].uuid, len(p.gpus)) for p in profiles] == [
        ("one", "GPU-a", 1),
        ("two", "GPU-b", 1),
    ]
    assert all(any("in no profile: GPU 2" in note for note in p.provenance.notes) for p in profiles)


def test_a_machine_that_no_job_held_is_a_profile_of_its_own(tmp_path: Path) -> None:
    """Of two jobs and three machines the third is idle and counts; so does another's free GPU."""
    util, told = "DCGM_FI_DEV_GPU_UTIL", list[str]()
    found = [
        series(util, [40, 60], gpu="0", UUID="GPU-a", exported_pod="one", Hostname="n1"),
        series(util, [10, 30], gpu="0", UUID="GPU-b", exported_pod="two", Hostname="n2"),
        series(util, [0, 0], gpu="1", UUID="GPU-c", Hostname="n2"),
        series(util, [0, 0], gpu="0", UUID="GPU-d", Hostname="n3"),
        series(util, [0, 0], gpu="1", UUID="GPU-e", Hostname="n3"),
    ]
    imported(tmp_path, *found)
    options = replace(BY_FILE, on_join=told.append)
    profiles = read_source(str(tmp_path / "range.json"), Hints(), options=options)
    idle = {p.job.name: [gpu.uuid for gpu in p.gpus] for p in profiles}
    assert idle == {
        "n2-gpu1-unassigned": ["GPU-c"],
        "n3": ["GPU-d", "GPU-e"],
        "one": ["GPU-a"],
        "two": ["GPU-b"],
    }
    assert told == [
        "n2: 1 of its 2 GPUs were held by no job.",
        "n3: no job held any of its 2 GPUs.",
    ]
    alone = read_source(str(tmp_path / "range.json"), Hints(job="one"))
    assert [p.job.name for p in alone] == ["one"]


def test_a_machine_without_the_label_of_the_one_job_is_no_part_of_it(tmp_path: Path) -> None:
    """One pod holds one of two machines: the other is free, and has a profile of its own."""
    util = "DCGM_FI_DEV_GPU_UTIL"
    profiles = imported(
        tmp_path,
        series(util, [80, 90], gpu="0", UUID="GPU-a", exported_pod="tune", Hostname="n1"),
        series(util, [0, 0], gpu="0", UUID="GPU-b", Hostname="n2"),
    )
    assert [(p.job.name, p.gpus[0].uuid) for p in profiles] == [("tune", "GPU-a"), ("n2", "GPU-b")]


@pytest.mark.parametrize(
    ("second", "minutes", "names"),
    [(0, 30, ["n1", "n2"]), (40, 30, ["n1", "n2"]), (70, 30, ["range"]), (0, 5, ["range"])],
    ids=["idle", "less than half", "alike", "minutes"],
)
def test_machines_that_are_not_used_alike_are_not_one_job(
    second: int, minutes: int, names: list[str], tmp_path: Path
) -> None:
    """Without a label two machines at 92 % and less than half of it, for long, are two jobs."""
    profiles = imported(
        tmp_path,
        *(
            series("DCGM_FI_DEV_GPU_UTIL", [busy] * minutes, 60, gpu="0", Hostname=host)
            for host, busy in (("n1", 92), ("n2", second))
        ),
    )
    assert sorted(p.job.name for p in profiles) == names


def test_the_name_of_a_scrape_is_no_job_of_free_gpus(tmp_path: Path) -> None:
    """GPUs of two machines with nothing but the scrape's label are free, each on its machine."""
    util, told, scrape = "DCGM_FI_DEV_GPU_UTIL", list[str](), {"job": "gpu-metrics"}
    found = [
        series(util, [40, 60], gpu="0", UUID="GPU-a", exported_pod="one", Hostname="n1", **scrape),
        series(util, [0, 0], gpu="1", UUID="GPU-b", Hostname="n1", **scrape),
        series(util, [10, 30], gpu="0", UUID="GPU-c", exported_pod="two", Hostname="n2", **scrape),
        series(util, [0, 0], gpu="1", UUID="GPU-d", Hostname="n2", **scrape),
    ]
    imported(tmp_path, *found)
    options = replace(BY_FILE, on_join=told.append)
    profiles = read_source(str(tmp_path / "range.json"), Hints(), options=options)
    free = [f"n{n}-gpu1-unassigned" for n in (1, 2)]
    assert [profile.job.name for profile in profiles] == ["one", "two", *free]
    assert told == [f"n{n}: 1 of its 2 GPUs were held by no job." for n in (1, 2)]
    (asked,) = read_source(str(tmp_path / "range.json"), Hints(job_label="job"))
    assert (asked.job.name, asked.gpu_count) == ("gpu-metrics", 4)


def test_one_label_does_not_hide_the_other_gpus(tmp_path: Path) -> None:
    """With one job named, all GPUs are counted and the note says how to read that job alone."""
    util = "DCGM_FI_DEV_GPU_UTIL"
    found = (
        series(util, [40, 60], gpu="0", UUID="GPU-a", exported_pod="one"),
        series(util, [0, 0], gpu="1", UUID="GPU-b"),
    )
    (profile,) = imported(tmp_path, *found)
    assert (profile.job.name, profile.gpu_count) == ("range", 2)
    assert any("--job one" in note for note in profile.provenance.notes)
    (alone,) = imported(tmp_path, *found, hints=Hints(job="one"))
    assert (alone.job.name, alone.gpu_count) == ("one", 1)


def test_readings_before_the_pod_started_are_not_its_own(tmp_path: Path) -> None:
    """A GPU's unlabelled past belongs to nobody; unlabelled metrics during the job to the job."""
    util = "DCGM_FI_DEV_GPU_UTIL"
    late = series(util, [80, 80, 80], UUID="GPU-a", exported_pod="one")
    late["values"] = [[t + 100, v] for t, v in late["values"]]
    other = series(util, [5, 5], UUID="GPU-b", gpu="1", exported_pod="two")
    profiles = imported(
        tmp_path,
        series(util, [0] * 10, UUID="GPU-a"),
        late,
        series("DCGM_FI_DEV_FB_USED", [1024] * 10 + [4096] * 3, UUID="GPU-a"),
        other,
    )
    metrics = profiles[0].gpus[0].metrics
    assert (metrics["util.kernel_time"].min, metrics["mem.used_gib"].min) == (0.8, 4.0)


def test_a_gpu_stays_with_its_last_pod_until_another_has_it(tmp_path: Path) -> None:
    """Hours in which a node is on after its only job are that job's idle hours, in any file."""
    util, hour = "DCGM_FI_DEV_GPU_UTIL", 360
    job = series(util, [80] * hour, UUID="GPU-a", exported_pod="one")
    after = series(util, [0] * (3 * hour), UUID="GPU-a")
    after["values"] = [[t + 10 * hour, v] for t, v in after["values"]]
    other = series(util, [50] * hour, UUID="GPU-b", gpu="1", exported_pod="two")
    one, two = imported(tmp_path, job, after, other)
    (alone,) = imported(tmp_path, job, after)
    assert one.idle_around_fraction == alone.idle_around_fraction == pytest.approx(0.75, abs=0.01)
    assert one.window == alone.window
    assert two.idle_around_fraction == 0.0
    third = series(util, [30] * hour, UUID="GPU-a", exported_pod="three")
    third["values"] = [[t + 10 * 5 * hour, v] for t, v in third["values"]]
    assert {p.idle_around_fraction for p in imported(tmp_path, job, after, other, third)} == {0.0}


def test_mig_instances_are_not_added_to_their_gpu() -> None:
    """The device's own memory stays; what only instances report is kept by instance."""
    (profile,) = read_telemetry([path("dcgm_mig.prom")], Hints())
    assert profile.hardware.gpu_count == 1
    assert [sorted(gpu.metrics) for gpu in profile.gpus] == [
        ["mem.used_gib", "power.board_w"],
        ["util.sm_active"],
        ["util.sm_active"],
    ]
    assert profile.peak("mem.used_gib") == 30.0
    assert profile.peak("util.sm_active") == 1.0


MIG = {"UUID": "GPU-a", "modelName": "NVIDIA A100-SXM4-80GB"}


def piece(instance: str, profile: str, pod: str) -> list[dict[str, Any]]:
    """Return what one slice tells of a pod."""
    labels = {**MIG, "GPU_I_ID": instance, "GPU_I_PROFILE": profile, "pod": pod}
    return [
        series("DCGM_FI_PROF_SM_ACTIVE", [0.5, 0.5], **labels),
        series("DCGM_FI_DEV_FB_USED", [1024, 2048], **labels),
    ]


def test_a_job_on_one_slice_of_a_gpu_says_so(tmp_path: Path) -> None:
    """Each pod has its own slice; what the device tells of all of them changes nothing."""
    power = series("DCGM_FI_DEV_POWER_USAGE", [250, 250], **MIG)
    both = [*piece("1", "2g.20gb", "small"), *piece("2", "3g.40gb", "large")]
    found = {one.job.name: one for one in imported(tmp_path, *both, power)}
    assert {name: one.hardware.slice for name, one in found.items()} == {
        "small": "2g.20gb",
        "large": "3g.40gb",
    }
    assert_writable(tuple(found.values()))


@pytest.mark.parametrize("other", ["2g.20gb", "3g.40gb"])
def test_a_job_on_several_slices_of_a_gpu_is_not_on_one(tmp_path: Path, other: str) -> None:
    """Two slices of one GPU are no slice of it: that is noted, nothing is claimed."""
    both = [*piece("1", "2g.20gb", "one"), *piece("2", other, "one")]
    (profile,) = imported(tmp_path, *both)
    assert profile.hardware.slice is None
    assert any("several of one GPU" in note for note in profile.provenance.notes)


@pytest.mark.parametrize(
    ("label", "gpus"), [("cluster", 2), ("zone", 2), ("prometheus_replica", 1)]
)
def test_clusters_with_one_host_name_are_two(tmp_path: Path, label: str, gpus: int) -> None:
    """Federation adds `cluster`: GPU 0 of host n1 in each is a GPU of its own."""
    members = [
        series("DCGM_FI_DEV_GPU_UTIL", [busy, busy], gpu="0", Hostname="n1", **{label: name})
        for name, busy in (("a", 90), ("b", 10))
    ]
    (profile,) = imported(tmp_path, *members)
    assert profile.hardware.gpu_count == gpus
    assert_writable((profile,))


@pytest.mark.parametrize("clusters", [("eu1", "us1"), ("us1", "eu1"), ("eu1", "eu1")])
def test_pods_of_one_name_in_two_clusters_are_two_jobs(
    tmp_path: Path, clusters: tuple[str, str]
) -> None:
    """90 % and 10 %, not 50 % of two; replicas of one Prometheus stay one pod."""
    members = [
        series(
            "DCGM_FI_DEV_GPU_UTIL",
            [busy, busy],
            gpu="0",
            Hostname="n1",
            cluster=cluster,
            pod="api-0",
            namespace="prod",
            prometheus_replica=replica,
        )
        for cluster, busy, replica in zip(clusters, (90, 10), "ab", strict=True)
    ]
    if clusters[0] == clusters[1]:
        members[1] = members[0] | {"metric": members[1]["metric"]}
    use = {
        profile.job.name: profile.mean("util.kernel_time")
        for profile in imported(tmp_path, *members)
    }
    several = dict(zip((f"{cluster}/api-0" for cluster in clusters), (0.9, 0.1), strict=True))
    assert use == (several if len(set(clusters)) > 1 else {"api-0": 0.9})


NAMED = {
    "device": ({"device": "nvidia0"}, {"device": "nvidia1"}, (0, 1)),
    "number in a name": ({"gpu": "GPU0"}, {"gpu": "GPU1"}, (0, 1)),
    "uuid": ({"gpu": "GPU-aaaaaaaa-1"}, {"gpu": "GPU-aaaaaaaa-2"}, (None, None)),
    "address": ({"pci_bus_id": "0:3B:00.0"}, {"pci_bus_id": "0:5E:00.0"}, (None, None)),
    "any label": ({"slot": "left"}, {"slot": "right"}, (None, None)),
    "slices of one": ({"gpu": "0:7"}, {"gpu": "0:8"}, (0, 0)),
}


@pytest.mark.parametrize("name", NAMED)
def test_gpus_are_told_apart_by_whatever_label_does(tmp_path: Path, name: str) -> None:
    """One GPU is at 90 % and the other at 10 %: they are never one GPU at either."""
    first, second, indices = NAMED[name]
    members = [
        series(metric, [value] * 4, **{"gpu": "", "Hostname": "n1", **labels})
        for labels, busy, used in ((first, 90, 8192), (second, 10, 2048))
        for metric, value in (("DCGM_FI_DEV_GPU_UTIL", busy), ("DCGM_FI_DEV_FB_USED", used))
    ]
    (profile,) = imported(tmp_path, *members)
    readings = {
        (gpu.metrics["util.kernel_time"].mean, gpu.metrics["mem.used_gib"].mean)
        for gpu in profile.gpus
    }
    assert readings == {(0.9, 8.0), (0.1, 2.0)}
    assert tuple(gpu.index for gpu in profile.gpus) == indices
    assert any("labels slot" in note for note in profile.provenance.notes) == (name == "any label")


def test_gpus_of_machines_without_a_label_of_the_gpu_are_not_one(tmp_path: Path) -> None:
    """Two machines of one GPU each: 90 % and 10 %, told apart by their names alone."""
    members = [
        series("DCGM_FI_DEV_GPU_UTIL", [busy] * 4, gpu="", Hostname=host)
        for host, busy in (("n1", 90), ("n2", 10))
    ]
    (profile,) = imported(tmp_path, *members)
    assert sorted(gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus) == [0.1, 0.9]


def test_names_of_the_first_dcgm_exporter_are_read(tmp_path: Path) -> None:
    """dcgm-exporter 1 had names of its own: MiB, watts and percent, as its later ones."""
    (profile,) = imported(
        tmp_path,
        series("dcgm_gpu_utilization", [90, 90]),
        series("dcgm_fb_used", [8192, 8192]),
        series("dcgm_power_usage", [250, 250]),
    )
    means = {name: metric.mean for name, metric in profile.gpus[0].metrics.items()}
    assert (means["util.kernel_time"], means["mem.used_gib"]) == (0.9, 8.0)
    assert means["power.board_w"] == 250.0


@pytest.mark.parametrize("instant", [False, True])
def test_what_promtool_prints_is_read(tmp_path: Path, *, instant: bool) -> None:
    """A head and points with times: 90 and 70 % are 80 %; beside the head it is one point."""
    head = 'DCGM_FI_DEV_GPU_UTIL{gpu="1", modelName="NVIDIA L40S"} =>'
    points = (
        f"{head} 80 @[{START}.5]\n" if instant else f"{head}\n90 @[{START}]\n70 @[{START + 60}]\n"
    )
    file = tmp_path / "promtool.txt"
    file.write_text(points, encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert profile.gpus[0].metrics["util.kernel_time"].mean == pytest.approx(0.8)
    assert profile.gpus[0].index == 1
    assert profile.window.duration_s == (None if instant else 120)


def test_a_long_table_whose_names_carry_labels_is_read(tmp_path: Path) -> None:
    """Grafana's long form: metric and labels in one cell, a unit behind the value."""
    rows = [
        f'"2026-03-06 10:0{minute}:00","DCGM_FI_DEV_GPU_UTIL{{gpu=""{gpu}""}}","{busy}%"\n'
        for minute in range(3)
        for gpu, busy in ((0, 90), (1, 10))
    ]
    file = tmp_path / "long.csv"
    file.write_text('"Time","Metric","Value"\n' + "".join(rows), encoding="utf-8")
    (profile,) = read_source(str(file), Hints())
    assert [gpu.metrics["util.kernel_time"].mean for gpu in profile.gpus] == [0.9, 0.1]


@pytest.mark.parametrize(
    "labels", [{"card_series": "AMD Instinct MI300X OAM", "card_model": "102-G30211-0C"}]
)
def test_the_series_of_an_amd_card_is_its_model(tmp_path: Path, labels: dict[str, str]) -> None:
    """`card_model` is a part number; what people call the card is `card_series`."""
    member = series("gpu_gfx_activity", [90, 90], modelName="", gpu_id="0", **labels)
    (profile,) = imported(tmp_path, member)
    assert profile.hardware.gpu == "AMD Instinct MI300X OAM"


def test_a_device_whose_name_ends_in_a_slice_is_that_slice(tmp_path: Path) -> None:
    """What PyTorch calls a device names the slice of it."""
    named = {"UUID": "MIG-a", "modelName": "NVIDIA A100-SXM4-80GB MIG 1g.10gb"}
    (profile,) = imported(tmp_path, series("DCGM_FI_PROF_SM_ACTIVE", [0.5, 0.5], **named))
    assert profile.hardware.slice == "1g.10gb"


def test_memory_shares_use_the_size_of_the_model(tmp_path: Path) -> None:
    """A share of memory becomes GiB by the device's total, else by its model's."""
    (profile,) = imported(tmp_path, series("DCGM_FI_DEV_FB_USED_PERCENT", [0.5, 0.5]))
    assert profile.gpus[0].metrics["mem.used_gib"].mean == pytest.approx(7.5, rel=0.1)


def test_appended_scrapes_are_a_series_of_their_order(tmp_path: Path) -> None:
    """A file of scrapes one after the other is read as ticks, `interval_s` apart."""
    file = tmp_path / "scrapes.prom"
    file.write_text(
        "".join(
            f'# TYPE DCGM_FI_DEV_GPU_UTIL gauge\nDCGM_FI_DEV_GPU_UTIL{{gpu="0"}} {value}\n'
            for value in (40, 50, 60)
        ),
        encoding="utf-8",
    )
    (profile,) = read_source(str(file), Hints(interval_s=15.0))
    assert profile.window is not None
    assert profile.window.duration_s == 45.0
    assert profile.gpus[0].metrics["util.kernel_time"].p50 == 0.5


def test_instants_of_several_queries_are_still_a_snapshot(tmp_path: Path) -> None:
    """Answers about different metrics, taken one after the other, are one instant of each."""
    found = [
        series("DCGM_FI_DEV_GPU_UTIL", [50]),
        series("DCGM_FI_DEV_FB_USED", [1024]),
        series("DCGM_FI_DEV_GPU_TEMP", [40]),
    ]
    for place, one in enumerate(found):
        one["values"][0][0] += 0.25 * place
    (profile,) = imported(tmp_path, *found)
    assert profile.window is not None
    assert (profile.window.duration_s, profile.window.interval_s) == (None, None)
    assert any("a snapshot" in note for note in profile.provenance.notes)


def test_metrics_read_one_after_the_other_keep_their_own_pace(tmp_path: Path) -> None:
    """Queries with different offsets give the interval of each, not the time between them."""
    found = [
        series("DCGM_FI_DEV_GPU_UTIL", [50] * 20, step=15),
        series("DCGM_FI_DEV_FB_USED", [1024] * 20, step=15),
        series("DCGM_FI_DEV_GPU_TEMP", [40] * 20, step=15),
    ]
    for place, one in enumerate(found):
        one["values"] = [[time + 0.1 * place, value] for time, value in one["values"]]
    (profile,) = imported(tmp_path, *found)
    assert profile.window is not None
    assert profile.window.interval_s == 15.0
    assert profile.window.coverage == pytest.approx(1.0, abs=0.01)


UTIL = "DCGM_FI_DEV_GPU_UTIL"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"Hostname": "node-a", "pod": "train"}, {"Hostname": "node-a", "pod": "serve"}),
        ({"instance": "10.0.0.3:9400", "pod": "a"}, {"instance": "10.0.0.3:9100", "pod": "b"}),
    ],
    ids=["dcgm-exporter", "scraped address"],
)
def test_pods_of_one_node_are_on_one_machine(
    one: dict[str, str], other: dict[str, str], tmp_path: Path
) -> None:
    """Jobs of one host carry the same machine id, which does not tell the host's name."""
    first, second = imported(
        tmp_path,
        series(UTIL, [50, 50], **one),
        series(UTIL, [20, 20], **{**other, "gpu": "1"}),
    )
    assert first.hardware.machine == second.hardware.machine
    assert str(first.hardware.machine).startswith("host-")


@pytest.mark.parametrize(
    "hosts",
    [("node-a", "node-b"), ("localhost:9400", "localhost:9400"), ("", "")],
    ids=["two hosts", "a name that every machine has", "none"],
)
def test_no_machine_is_named_where_none_is_known(hosts: tuple[str, str], tmp_path: Path) -> None:
    """Devices of several hosts, or of one without a name of its own, have no machine id."""
    (profile,) = imported(
        tmp_path,
        *(series(UTIL, [50, 50], instance=host, gpu=str(i)) for i, host in enumerate(hosts)),
    )
    assert profile.hardware.machine is None


POD = {"UUID": "GPU-1", "pod": "a-1", "namespace": "search"}
OTHER = {"UUID": "GPU-2", "pod": "b-1", "namespace": "vision", "gpu": "1"}
BUSY = "DCGM_FI_DEV_GPU_UTIL"


def test_a_pod_s_namespace_is_its_team_where_no_label_says_another(tmp_path: Path) -> None:
    """Namespaces say who pays; a label does before them, and an exporter's own one never does."""
    exported = {"UUID": "GPU-3", "gpu": "2", "exported_pod": "c-1", "namespace": "monitoring"}
    found = imported(
        tmp_path,
        series(BUSY, [1, 2], **POD),
        series(BUSY, [1, 2], **OTHER, label_squad="eyes", squad="eyes"),
        series(BUSY, [1, 2], **exported),
    )
    assert {one.job.name: one.job.team for one in found} == {
        "a-1": "search",
        "b-1": "eyes",
        "c-1": None,
    }


def test_a_label_names_the_jobs_of_a_file(tmp_path: Path) -> None:
    """Two pods of two namespaces are two jobs by namespace; no such label is an error."""
    members = series(BUSY, [1, 2], **POD), series(BUSY, [1, 2], **OTHER)
    found = imported(tmp_path, *members, hints=Hints(job_label="namespace"))
    assert [one.job.name for one in found] == ["search", "vision"]
    with pytest.raises(InputError, match="--job-label cell: no series has that label"):
        imported(tmp_path, *members, hints=Hints(job_label="cell"))
