"""Catalogs of SkyPilot and gpuhunt become readings; what is none of theirs is refused."""

import io
import os
import zipfile
from datetime import date
from pathlib import Path

import pytest

from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError
from pricing.refresh.gpuhunt import read_gpuhunt
from pricing.refresh.integrity_gate import check
from pricing.refresh.reading import PriceReading
from pricing.refresh.skypilot import read_skypilot

DAY = date(2026, 11, 21)
SKY = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"
HUNT = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,"
    "gpu_vendor,flags,cpu_arch,provider_data"
)


def gpu_info(size: float, count: int = 1) -> str:
    """GpuInfo as SkyPilot prints it."""
    memory = f"'MemoryInfo': {{'SizeInMiB': {size}}}"
    one = f"{{'Name': 'X', 'Manufacturer': 'NVIDIA', 'Count': {count}.0, {memory}}}"
    return f"\"{{'Gpus': [{one}], 'TotalGpuMemoryInMiB': {size}}}\""


def skypilot(folder: Path, cloud: str, *lines: str, header: str = SKY) -> Path:
    """Write the vms.csv of a cloud."""
    path = folder / cloud / "vms.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join((header, *lines, "")), encoding="utf-8")
    return path


def told(reading: PriceReading) -> list[tuple[str, ...]]:
    """Type, region, purchase, price, GPU, count and memory of each row."""
    names = ("instance_type", "region", "purchase", "usd_per_hour", "gpu", "gpu_count")
    return [tuple(row[name] for name in (*names, "gpu_memory_gib")) for row in reading.rows]


def test_a_skypilot_folder_is_read_by_cloud(tmp_path: Path) -> None:
    """Names of providers are ours; on-demand and spot are rows of their own; CPUs are none."""
    skypilot(
        tmp_path,
        "lambda",
        f"gpu_8x_v100,V100,8.0,88.0,448.0,6.32,us-east-1,{gpu_info(16384, 8)},",
        "cpu_4x,,,4.0,16.0,0.2,us-east-1,,",
    )
    skypilot(tmp_path, "do", f"gpu-h100x8-640gb,H100,8,160,1920.0,35.28,tor1,{gpu_info(81559)},")
    skypilot(tmp_path, "gcp", "a2-highgpu-1g,A100,1,12,85,3.67,us-central1,,1.1")
    do, gcp, lambda_ = read_skypilot(tmp_path, DAY)
    assert (do.provider, lambda_.provider) == ("digitalocean", "lambda")
    assert told(do) == [
        ("gpu-h100x8-640gb", "tor1", "on_demand", "35.28", "H100-SXM-80GB", "8", "80")
    ]
    assert told(lambda_) == [
        ("gpu_8x_v100", "us-east-1", "on_demand", "6.32", "V100-16GB", "8.0", "16")
    ]
    assert [row[2:5] for row in told(gcp)] == [
        ("on_demand", "3.67", "A100-SXM-40GB"),
        ("spot", "1.1", "A100-SXM-40GB"),
    ]


@pytest.mark.parametrize(
    ("name", "info", "gpu", "memory_gib"),
    [
        ("A100-80GB", gpu_info(80), "A100-SXM-80GB", "80"),
        ("A100-80GB", gpu_info(81920), "A100-SXM-80GB", "80"),
        ("RTX4090", "\"{'Gpus': [{'Name': 'RTX 4090', 'Count': 1}]}\"", "RTX-4090", "24"),
        ("L40S", "", "L40S", "48"),
        ("L40S", "L40S:48GB", "L40S", "48"),
        ("H100", "\"{'gpus': [{'memoryinfo': {'sizeinmib': 81559}}]}\"", "H100-SXM-80GB", "80"),
        ("H100", "\"__import__('os')\"", "H100-SXM-80GB", "80"),
        ("H100", gpu_info(24), "H100-SXM-80GB", "24"),
    ],
)
def test_the_memory_of_one_gpu_is_read_from_its_quirks(
    tmp_path: Path, name: str, info: str, gpu: str, memory_gib: str
) -> None:
    """MiB, GiB in the MiB field, lower case, nothing at all, and nothing is ever executed."""
    skypilot(tmp_path, "runpod", f"1x_SECURE,{name},1.0,8,117,1.39,CA,{info},")
    ((*_, found, _, memory),) = told(read_skypilot(tmp_path, DAY)[0])
    assert (found, memory) == (gpu, memory_gib)


def test_zones_of_a_region_become_its_cheapest_price(tmp_path: Path) -> None:
    """Of several lines for a region the cheapest counts; a zero price does not win."""
    lines = [f"p3.2xlarge,V100,1,8,61,3.06,us-east-1,{gpu_info(16384)},{s}" for s in (2, 1.5, 0)]
    skypilot(tmp_path, "aws", *lines)
    (reading,) = read_skypilot(tmp_path, DAY)
    assert [row[2:4] for row in told(reading)] == [("on_demand", "3.06"), ("spot", "1.5")]


def test_bad_lines_are_kept_out_one_by_one(tmp_path: Path) -> None:
    """A zero price, an unknown accelerator and a cut line do not take the others with them."""
    skypilot(
        tmp_path,
        "vast",
        "a,H100,1,8,117,0,any,,",
        "b,tpu-v4-8,1,8,117,12.88,any,,",
        "c,H100",
        "d,H100,1,8,117,2.1,any,,",
    )
    passed = check(read_skypilot(tmp_path, DAY)[0], load_catalog(DAY))
    assert [offer.instance_type for offer in passed.offers] == ["d"]
    assert [row.fault for row in passed.kept_out] == ["price", "gpu"]
    assert passed.offers[0].is_community


def test_a_foreign_catalog_withdraws_nothing(tmp_path: Path) -> None:
    """It is not a complete list, and is trusted less than the provider itself."""
    skypilot(tmp_path, "aws", "p5.48xlarge,H100,8,192,2048,55.04,us-east-1,,")
    (reading,) = read_skypilot(tmp_path, DAY)
    assert reading.purchases == ()
    assert reading.rows[0]["confidence"] == "medium"


def hunt(price: str = "3.99", **changes: str) -> str:
    """A line of a gpuhunt catalog."""
    line = {
        "instance_name": "gpu_1x_h100",
        "location": "us-east-1",
        "price": price,
        "cpu": "26",
        "memory": "225.0",
        "gpu_count": "1",
        "gpu_name": "H100",
        "gpu_memory": "80.0",
        "spot": "False",
        "disk_size": "1400.0",
        "gpu_vendor": "nvidia",
    }
    return ",".join((line | changes).values()) + ",,x86,{}"


def packed(**tables: str) -> bytes:
    """A zip of `<provider>.csv` files."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in tables.items():
            archive.writestr(f"{name}.csv", text)
    return data.getvalue()


def test_a_gpuhunt_zip_is_read_by_provider(tmp_path: Path) -> None:
    """Names of providers are ours, zones of Google are regions; spot is told, CPUs are left out."""
    path = tmp_path / "catalog.zip"
    google = hunt("1.2", location="us-central1-a", instance_name="g2", gpu_name="L4",
                  gpu_memory="24.0", spot="True")  # fmt: skip
    cpu = hunt(gpu_count="0", gpu_name="", gpu_memory="")
    path.write_bytes(
        packed(
            lambdalabs=f"{HUNT}\n{hunt()}\n{cpu}\n", gcp=f"{HUNT}\n{google}\n", vastai=f"{HUNT}\n"
        )
    )
    gcp, lambda_, vast = read_gpuhunt(path, DAY)
    assert [reading.provider for reading in (gcp, lambda_, vast)] == ["gcp", "lambda", "vast"]
    assert told(gcp) == [("g2", "us-central1", "spot", "1.2", "L4", "1", "24")]
    assert told(lambda_) == [
        ("gpu_1x_h100", "us-east-1", "on_demand", "3.99", "H100-SXM-80GB", "1", "80")
    ]
    assert lambda_.rows[0]["local_disk_gib"] == "1400.0"
    assert vast.rows == ()


def test_the_day_is_that_of_the_file_unless_it_is_given(tmp_path: Path) -> None:
    """A catalog carries no date: the file's last change counts, or --as-of."""
    path = tmp_path / "verda.csv"
    path.write_text(f"{HUNT}\n{hunt()}\n", encoding="utf-8")
    os.utime(path, (1_790_000_000, 1_790_000_000))
    assert read_gpuhunt(path)[0].read_on == date(2026, 9, 21)
    assert read_gpuhunt(path, DAY)[0].rows[0]["as_of"] == "2026-11-21"


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("x.csv", b"a,b\n1,2\n", "without cpu, gpu_count"),
        ("x.csv", b"", "without cpu, gpu_count"),
        ("x.csv", b"\xff\xfe\x00", "cannot be read"),
        ("x.zip", packed(), "holds no PROVIDER.csv"),
        ("x.zip", packed(x="a,b\n"), "without cpu, gpu_count"),
        ("../x.csv", None, "No such file"),
        ("a b.csv", f"{HUNT}\n{hunt()}\n".encode(), "not the name of a provider"),
        ("x.zip", packed(x=f"{HUNT}\n")[:-30], "cannot be read"),
    ],
    ids=range(8),
)
def test_what_is_no_gpuhunt_catalog_is_refused(
    tmp_path: Path, name: str, data: bytes | None, said: str
) -> None:
    """Exit 2 with the file and what is wrong with it."""
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(InputError, match=said):
        read_gpuhunt(path, DAY)


def test_what_is_no_skypilot_folder_is_refused(tmp_path: Path) -> None:
    """An empty folder is told what one looks like; all bad files are named at once."""
    with pytest.raises(InputError, match="it has CLOUD/vms"):
        read_skypilot(tmp_path, DAY)
    skypilot(tmp_path, "one", header="a,b")
    skypilot(tmp_path, "two", header="InstanceType")
    with pytest.raises(InputError) as caught:
        read_skypilot(tmp_path, DAY)
    assert len(caught.value.problems) == 2
