"""A folder as a fleet: what belongs together, what takes turns, how much is told meanwhile."""

import json
from pathlib import Path

import pytest

from planner.profile.join import by_shared_gpus
from planner.profile.model import Profile
from pricing.errors import InputError
from telemetry.folder import FolderReadOptions
from telemetry.readers.hints import Hints
from telemetry.sources import read_telemetry
from tests.telemetry.captures import assert_writable, path
from tests.telemetry.reading import read_source

START = 1782907200
PAGE = 'vllm:num_requests_waiting{model_name="m"} 4\nvllm:num_requests_running{model_name="m"} 9\n'
SMI = (
    "timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB]\n"
    "2026/03/01 10:00:0{i}.000, 0, GPU-{node}, NVIDIA L4, {busy} %, 1024 MiB\n"
)


def _log(file: Path, node: str, busy: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    head, row = SMI.splitlines(keepends=True)
    rows = "".join(row.format(i=i, node=node, busy=busy) for i in range(6))
    file.write_text(head + rows, encoding="utf-8")


def _names(profiles: tuple[Profile, ...]) -> list[str]:
    assert_writable(profiles)
    return sorted(one.job.name for one in profiles)


def test_a_page_of_a_server_goes_with_the_only_gpu_log_beside_it(tmp_path: Path) -> None:
    """`plan DIR`: what has no GPU of its own is of the job in its folder, not a job beside it."""
    for name in ("chat", "code"):
        _log(tmp_path / name / "smi.csv", name, 50)
        (tmp_path / name / "vllm.prom").write_text(PAGE, encoding="utf-8")
    found = read_source(str(tmp_path), Hints())
    assert _names(found) == ["smi-chat", "smi-code"]
    assert all(one.job.serving and one.job.serving.requests_waiting == 4.0 for one in found)


def test_a_page_beside_two_jobs_is_of_neither(tmp_path: Path) -> None:
    """Whose server it is cannot be known where two jobs lie in one folder."""
    for name in ("a", "b"):
        _log(tmp_path / f"{name}.csv", name, 50)
    (tmp_path / "vllm.prom").write_text(PAGE, encoding="utf-8")
    found = {one.job.name: one for one in read_source(str(tmp_path), Hints())}
    assert sorted(found) == ["a", "b", "vllm"]
    assert found["a"].job.serving is None


@pytest.mark.parametrize(
    ("jobs_by", "expected"),
    [("file", ["n1", "n2", "n3"]), ("folder", ["n1", "n3"])],
)
def test_jobs_by_file_or_by_folder(jobs_by: str, expected: list[str], tmp_path: Path) -> None:
    """`--jobs-by` says whether files of one folder are one job, for both ways to read a folder."""
    _log(tmp_path / "x" / "n1.csv", "n1", 20)
    _log(tmp_path / "x" / "n2.csv", "n2", 80)
    _log(tmp_path / "y" / "n3.csv", "n3", 50)
    options = FolderReadOptions(jobs_by=jobs_by)
    for found in (
        read_source(str(tmp_path), Hints(), options=options),
        read_telemetry([str(tmp_path)], Hints(), options=options),
    ):
        assert _names(found) == expected


def test_progress_is_told_for_each_file(tmp_path: Path) -> None:
    """Every telemetry file counts once, up to all of them."""
    for i in range(5):
        _log(tmp_path / f"n{i}.csv", f"n{i}", 50)
    (tmp_path / "README.md").write_text("# logs\n", encoding="utf-8")
    told: list[tuple[int, int]] = []
    options = FolderReadOptions(
        jobs_by="file", progress=lambda done, total: told.append((done, total))
    )
    assert len(read_source(str(tmp_path), Hints(), options=options)) == 5
    assert told == [(i + 1, 5) for i in range(5)]


def test_jobs_that_take_turns_on_a_device_share_it(tmp_path: Path) -> None:
    """Pods that held one GPU, together or one after the other, are known to share it."""

    def series(pod: str, uuid: str, begin: int) -> dict[str, object]:
        return {
            "metric": {"__name__": "DCGM_FI_DEV_GPU_UTIL", "pod": pod, "UUID": uuid, "gpu": "0"},
            "values": [[START + begin + 30 * i, "50"] for i in range(5)],
        }

    result = [
        series("a", "GPU-1", 0),
        series("b", "GPU-1", 600),
        series("b", "GPU-2", 600),
        series("c", "GPU-2", 1200),
        series("d", "GPU-3", 0),
    ]
    answer = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    file = tmp_path / "range.json"
    file.write_text(json.dumps(answer), encoding="utf-8")
    profiles = read_source(str(file), Hints())
    assert [profile.job.name for profile in profiles] == ["a", "b", "c", "d"]
    assert by_shared_gpus(profiles) == [[0, 1, 2], [3]]


def test_zstandard_is_read_as_it_is(tmp_path: Path) -> None:
    """`*.zst` of several frames gives what the plain log gives; damage is a sentence."""
    zstandard = pytest.importorskip("zstandard", reason="zstandard is not installed")
    plain = Path(path("nvidia_smi.csv")).read_bytes()
    packer = zstandard.ZstdCompressor()
    half = len(plain) // 2
    file = tmp_path / "nvidia_smi.csv.zst"
    file.write_bytes(packer.compress(plain[:half]) + packer.compress(plain[half:]))
    (packed,) = read_source(str(file), Hints())
    (whole,) = read_source(path("nvidia_smi.csv"), Hints())
    assert packed.gpus == whole.gpus
    assert packed.job.name == whole.job.name
    damaged = bytearray(packer.compress(plain * 50))
    damaged[20:60] = bytes(40)
    file.write_bytes(bytes(damaged))
    with pytest.raises(InputError, match=r"damaged or cut|not telemetry|binary"):
        read_source(str(file), Hints())


def test_zstandard_without_its_package_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is guessed: the sentence names the package."""
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    file = tmp_path / "x.csv.zst"
    file.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    with pytest.raises(InputError, match="pip install zstandard"):
        read_source(str(file), Hints())
