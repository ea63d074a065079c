"""Names and labels of metrics beyond DCGM's own: Ray, Triton, OpenTelemetry, shared GPUs, pods."""

import json
from pathlib import Path

import pytest

from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.readers.hints import Hints
from tests.telemetry.captures import assert_writable
from tests.telemetry.reading import read_source

START = 1782907200
OTEL = 'hw_id="GPU-1",hw_model="NVIDIA L4",host_name="n1"'
PAGES = {
    # Pages as the documentation of Ray, Triton and of OpenTelemetry's hardware metrics has them.
    "ray": (
        (
            'ray_node_gpus_utilization{instance="a:1",GpuIndex="0",GpuDeviceName="NVIDIA L4"} 42\n'
            'ray_node_gram_used{instance="a:1",GpuIndex="0",GpuDeviceName="NVIDIA L4"} 1024\n'
            'ray_node_gram_available{instance="a:1",GpuIndex="0",GpuDeviceName="NVIDIA L4"} 22528\n'
        ),
        {"util.kernel_time": 0.42, "mem.used_gib": 1.0},
    ),
    "triton": (
        (
            'nv_gpu_utilization{gpu_uuid="GPU-1"} 0.42\n'
            'nv_gpu_memory_used_bytes{gpu_uuid="GPU-1"} 1073741824\n'
            'nv_gpu_memory_total_bytes{gpu_uuid="GPU-1"} 24696061952\n'
            'nv_gpu_power_usage{gpu_uuid="GPU-1"} 61.5\n'
        ),
        {"util.kernel_time": 0.42, "mem.used_gib": 1.0, "power.board_w": 61.5},
    ),
    "opentelemetry": (
        (
            f'hw_gpu_utilization_ratio{{{OTEL},hw_gpu_task="general"}} 0.42\n'
            f'hw_gpu_utilization_ratio{{{OTEL},hw_gpu_task="encoder"}} 0.1\n'
            f'hw_gpu_utilization_ratio{{{OTEL},hw_gpu_task="copy"}} 0.9\n'
            f"hw_gpu_memory_usage_bytes{{{OTEL}}} 1073741824\n"
            f"hw_gpu_memory_limit_bytes{{{OTEL}}} 24696061952\n"
            f'hw_power_watts{{{OTEL},hw_type="gpu"}} 61.5\n'
            'hw_power_watts{hw_id="psu",hw_type="power_supply"} 900\n'
        ),
        {
            "util.kernel_time": 0.42,
            "util.encoder": 0.1,
            "mem.used_gib": 1.0,
            "power.board_w": 61.5,
        },
    ),
    "google": (
        (
            'gpu_dcgm_utilization{gpu_number="0",gpu_model="NVIDIA L4",gpu_uuid="GPU-1"} 0.42\n'
            'gpu_dcgm_pipe_utilization{gpu_number="0",gpu_uuid="GPU-1",gpu_pipe="tensor"} 0.2\n'
            'gpu_dcgm_pipe_utilization{gpu_number="0",gpu_uuid="GPU-1",gpu_pipe="fp16"} 0.9\n'
        ),
        {"util.kernel_time": 0.42, "util.tensor_active": 0.2},
    ),
}


def _read(tmp_path: Path, text: str, hints: Hints | None = None) -> tuple[Profile, ...]:
    file = tmp_path / "metrics.prom"
    file.write_text(text, encoding="utf-8")
    profiles = read_source(str(file), hints or Hints())
    assert_writable(profiles)
    return profiles


@pytest.mark.parametrize("whose", PAGES)
def test_names_of_others_fill_the_same_slots(whose: str, tmp_path: Path) -> None:
    """Each name lands in its slot in its unit; what means something else lands nowhere."""
    text, expected = PAGES[whose]
    (profile,) = _read(tmp_path, text)
    (gpu,) = profile.gpus
    assert {slot: one.mean for slot, one in gpu.metrics.items()} == pytest.approx(expected)
    if whose != "google":
        assert profile.hardware.gpu_memory_gib == pytest.approx(23, abs=0.01)
    if whose != "triton":
        assert profile.hardware.gpu == "NVIDIA L4"


def _matrix(*series: dict[str, object]) -> str:
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}
    )


def _points(name: str, values: list[float], **labels: str) -> dict[str, object]:
    return {
        "metric": {"__name__": name, **labels},
        "values": [[START + 30 * i, str(value)] for i, value in enumerate(values)],
    }


def _by_name(tmp_path: Path, *series: dict[str, object]) -> dict[str, Profile]:
    return {one.job.name: one for one in _read(tmp_path, _matrix(*series))}


def test_pods_become_the_jobs_that_their_labels_name(tmp_path: Path) -> None:
    """`kube_pod_labels` beside DCGM: two pods of one job are one, with its team and cost centre."""
    gpus = [
        _points("DCGM_FI_DEV_GPU_UTIL", [50, 60, 70], UUID=f"GPU-{pod}", gpu="0", **place)
        for pod, place in (
            ("train-0", {"exported_pod": "train-0", "exported_namespace": "ml", "pod": "dcgm-x"}),
            ("train-1", {"exported_pod": "train-1", "exported_namespace": "ml", "pod": "dcgm-y"}),
            ("chat", {"exported_pod": "chat", "exported_namespace": "web", "pod": "dcgm-y"}),
        )
    ]
    labels = [
        _points(
            "kube_pod_labels",
            [1],
            namespace="ml",
            pod=pod,
            label_batch_kubernetes_io_job_name="train",
            label_app="pytorch",
            label_team="vision",
            label_cost_center="cc-7",
        )
        for pod in ("train-0", "train-1")
    ]
    # Another namespace has a pod of the same name: it says nothing of ours.
    stranger = _points("kube_pod_labels", [1], namespace="ml", pod="chat", label_team="other")
    found = _by_name(tmp_path, *gpus, *labels, stranger)
    assert sorted(found) == ["chat", "train"]
    job = found["train"].job
    assert (found["train"].gpu_count, job.team, job.cost_center, job.owner) == (
        2,
        "vision",
        "cc-7",
        None,
    )
    assert found["chat"].job.team == "web"


def test_labels_that_the_exporter_copies_count(tmp_path: Path) -> None:
    """dcgm-exporter with pod labels switched on has the team on each series."""
    found = _by_name(
        tmp_path,
        _points("DCGM_FI_DEV_GPU_UTIL", [5, 6], UUID="GPU-a", gpu="0", pod="a", team="vision"),
        _points("DCGM_FI_DEV_GPU_UTIL", [5, 6], UUID="GPU-b", gpu="1", pod="b"),
    )
    assert {name: one.job.team for name, one in found.items()} == {"a": "vision", "b": None}


def test_a_label_of_the_command_line_fills_gaps(tmp_path: Path) -> None:
    """`--label` names the team where the data does not; the data wins, with a note."""
    series = [
        _points("DCGM_FI_DEV_GPU_UTIL", [5, 6], UUID=f"GPU-{pod}", gpu=gpu, pod=pod, **more)
        for pod, gpu, more in (("a", "0", {"team": "vision"}), ("b", "1", {}))
    ]
    file = tmp_path / "range.json"
    file.write_text(_matrix(*series), encoding="utf-8")
    hints = Hints(labels=(("team", "search"), ("cost-center", "cc-1")))
    found = {one.job.name: one for one in read_source(str(file), hints)}
    assert {name: one.job.team for name, one in found.items()} == {"a": "vision", "b": "search"}
    assert {one.job.cost_center for one in found.values()} == {"cc-1"}
    notes = {name: " ".join(one.provenance.notes) for name, one in found.items()}
    assert "--label team=search is not used: the data says vision" in notes["a"]
    assert "--label" not in notes["b"]


@pytest.mark.parametrize(("labels", "what"), [((("squad", "x"),), "squad"), ((("team", " "),), "")])
def test_unknown_labels_are_refused(labels: tuple[tuple[str, str], ...], what: str) -> None:
    """A label of another name, or without a text, is named with those that there are."""
    with pytest.raises(InputError, match=f"--label {what}.*team, owner, cost-center"):
        Hints(labels=labels)


def _turns(**values: list[float]) -> list[dict[str, object]]:
    return [
        _points(name, [value] * 3, UUID="GPU-1", gpu="0", pod=pod, vgpu=str(i))
        for name, each in values.items()
        for i, (pod, value) in enumerate(zip(("a", "b"), each, strict=True))
    ]


def test_pods_in_turns_show_the_whole_gpu(tmp_path: Path) -> None:
    """Time-slicing, older exporters: equal copies are the device's readings, and that is said."""
    found = _by_name(tmp_path, *_turns(DCGM_FI_DEV_GPU_UTIL=[99, 99], DCGM_FI_DEV_FB_USED=[9, 9]))
    assert sorted(found) == ["a", "b"]
    assert {one.mean("util.kernel_time") for one in found.values()} == {0.99}
    assert all(one.mean("mem.used_gib") is not None for one in found.values())
    for one in found.values():
        assert "how much of it is one pod's is not known" in " ".join(one.provenance.notes)


def test_pods_in_turns_with_readings_of_their_own(tmp_path: Path) -> None:
    """Time-slicing, newer exporters: memory that differs by pod is that of its processes."""
    found = _by_name(
        tmp_path, *_turns(DCGM_FI_DEV_GPU_UTIL=[70, 20], DCGM_FI_DEV_FB_USED=[2048, 1024])
    )
    assert {name: one.mean("util.kernel_time") for name, one in found.items()} == {
        "a": 0.7,
        "b": 0.2,
    }
    assert {name: one.mean("mem.process_gib") for name, one in found.items()} == {
        "a": 2.0,
        "b": 1.0,
    }
    assert all(one.mean("mem.used_gib") is None for one in found.values())


def test_slices_of_dynamic_resource_allocation_are_apart(tmp_path: Path) -> None:
    """DRA names MIG devices by labels of its own: two claims on one GPU are two slices."""
    text = "".join(
        f'DCGM_FI_PROF_GR_ENGINE_ACTIVE{{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",'
        f'pod="{pod}",dra_claim_name="{pod}",dra_driver_name="gpu.nvidia.com",'
        f'dra_mig_profile="1g.10gb",dra_mig_device_uuid="MIG-{pod}"}} 0.5\n'
        f'DCGM_FI_PROF_SM_ACTIVE{{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3",'
        f'pod="{pod}",dra_claim_name="{pod}",dra_driver_name="gpu.nvidia.com",'
        f'dra_mig_profile="1g.10gb",dra_mig_device_uuid="MIG-{pod}"}} {busy}\n'
        for pod, busy in (("a", 0.4), ("b", 0.1))
    )
    found = {one.job.name: one for one in _read(tmp_path, text)}
    assert {name: one.mean("util.sm_active") for name, one in found.items()} == {
        "a": 0.4,
        "b": 0.1,
    }
    assert all("1g.10gb" in str(one.gpus[0].uuid) for one in found.values())
