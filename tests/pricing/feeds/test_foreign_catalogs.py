"""Catalogs of SkyPilot and gpuhunt become readings; what is none of theirs is refused."""

import io
import os
import zipfile
from datetime import date
from pathlib import Path

import pytest

from pricing.catalog.catalog import load_catalog
from pricing.errors import InputError
from pricing.refresh.integrity_gate import check
from pricing.refresh.reading import PriceReading
from tests.pricing.feeds.feed_files import problems_of, readings_of

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
    skypilot(tmp_path, "azure", "Standard_NC24ads_A100_v4,A100-80GB,1,24,220,3.67,eastus,,1.1")
    azure, do, lambda_ = readings_of("skypilot", tmp_path, DAY)
    assert (do.provider, lambda_.provider) == ("digitalocean", "lambda")
    assert told(do) == [
        ("gpu-h100x8-640gb", "tor1", "on_demand", "35.28", "H100-SXM-80GB", "8", "80")
    ]
    assert told(lambda_) == [
        ("gpu_8x_v100", "us-east-1", "on_demand", "6.32", "V100-16GB", "8", "16")
    ]
    assert [row[2:5] for row in told(azure)] == [
        ("on_demand", "3.67", "A100-PCIe-80GB"),
        ("spot", "1.1", "A100-PCIe-80GB"),
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
    skypilot(tmp_path, "cudo", f"one,{name},1.0,8,117,1.39,CA,{info},")
    ((*_, found, _, memory),) = told(readings_of("skypilot", tmp_path, DAY)[0])
    assert (found, memory) == (gpu, memory_gib)


@pytest.mark.parametrize(
    ("name", "count", "memory_gib"),
    [
        ("Standard_NV6ads_A10_v5", "0.167", "4"),
        ("Standard_NV12ads_A10_v5", "0.333", "8"),
        ("Standard_NV18ads_A10_v5", "0.5", "12"),
        ("Standard_NV36ads_A10_v5", "1", "24"),
    ],
)
def test_a_part_of_a_gpu_has_a_part_of_its_memory(
    tmp_path: Path, name: str, count: str, memory_gib: str
) -> None:
    """A sixth of an A10 has 4 GiB, whether the list prints the 24 of the card or nothing."""
    for info in ("A10", gpu_info(24576)):
        skypilot(tmp_path, "azure", f"{name},A10,{count},6,55,0.45,eastus,{info},")
        ((*_, memory),) = told(readings_of("skypilot", tmp_path, DAY)[0])
        assert memory == memory_gib


def test_zones_of_a_region_become_its_cheapest_price(tmp_path: Path) -> None:
    """Of several lines for a region the cheapest counts; a zero price does not win."""
    lines = [f"p3.2xlarge,V100,1,8,61,3.06,us-east-1,{gpu_info(16384)},{s}" for s in (2, 1.5, 0)]
    skypilot(tmp_path, "aws", *lines)
    (reading,) = readings_of("skypilot", tmp_path, DAY)
    assert [row[2:4] for row in told(reading)] == [("on_demand", "3.06"), ("spot", "1.5")]


def test_bad_lines_are_kept_out_one_by_one(tmp_path: Path) -> None:
    """A zero price, an unknown accelerator and a cut line do not take the others with them."""
    skypilot(
        tmp_path,
        "cudo",
        "a,H100,1,8,117,0,any,,",
        "b,Z9000,1,8,117,12.88,any,,",
        "c,H100",
        "d,H100,1,8,117,2.1,any,,",
    )
    passed = check(readings_of("skypilot", tmp_path, DAY)[0], load_catalog(DAY))
    assert [offer.instance_type for offer in passed.offers] == ["d"]
    assert [row.fault for row in passed.kept_out] == ["price", "gpu"]


def test_a_foreign_catalog_withdraws_nothing(tmp_path: Path) -> None:
    """It is not a complete list, and is trusted less than the provider itself."""
    skypilot(tmp_path, "aws", "p5.48xlarge,H100,8,192,2048,55.04,us-east-1,,")
    (reading,) = readings_of("skypilot", tmp_path, DAY)
    assert reading.purchases == ()
    assert reading.rows[0]["confidence"] == "medium"


def hunt(price: str = "3.99", *, flags: str = "", **changes: str) -> str:
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
    return ",".join((line | changes).values()) + f",{flags},x86,{{}}"


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
    google = hunt("1.2", location="us-central1-a", instance_name="g2-standard-4", gpu_name="L4",
                  gpu_memory="24.0", spot="True")  # fmt: skip
    cpu = hunt(gpu_count="0", gpu_name="", gpu_memory="")
    path.write_bytes(
        packed(
            lambdalabs=f"{HUNT}\n{hunt()}\n{cpu}\n", gcp=f"{HUNT}\n{google}\n", vastai=f"{HUNT}\n"
        )
    )
    gcp, lambda_, vast = readings_of("gpuhunt", path, DAY)
    assert [reading.provider for reading in (gcp, lambda_, vast)] == ["gcp", "lambda", "vast"]
    assert told(gcp) == [("g2-standard-4", "us-central1", "spot", "1.2", "L4", "1", "24")]
    assert told(lambda_) == [
        ("gpu_1x_h100", "us-east-1", "on_demand", "3.99", "H100-SXM-80GB", "1", "80")
    ]
    assert lambda_.rows[0]["local_disk_gib"] == "1400.0"
    assert vast.rows == ()


def test_the_day_is_that_of_the_prices_never_that_of_the_copy(tmp_path: Path) -> None:
    """An archive tells when its table was written; a bare table needs --as-of."""
    path = tmp_path / "verda.csv"
    path.write_text(f"{HUNT}\n{hunt()}\n", encoding="utf-8")
    assert "--as-of YYYY-MM-DD" in problems_of("gpuhunt", path)[0]
    assert readings_of("gpuhunt", path, DAY)[0].rows[0]["as_of"] == "2026-11-21"
    archive = tmp_path / "catalog.zip"
    member = zipfile.ZipInfo("verda.csv", (2026, 9, 21, 4, 5, 6))
    with zipfile.ZipFile(archive, "w") as packed_:
        packed_.writestr(member, path.read_bytes())
    os.utime(archive, (1_790_000_000, 1_790_000_000))
    (reading,) = readings_of("gpuhunt", archive)
    assert (reading.read_on, reading.rows[0]["as_of"]) == (date(2026, 9, 21), "2026-09-21")
    skypilot(tmp_path, "aws", "p5.48xlarge,H100,8,192,2048,55.04,us-east-1,,")
    assert "--as-of YYYY-MM-DD" in problems_of("skypilot", tmp_path)[0]


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
        ("x.csv", f"{HUNT}\n{hunt()}"[:-40].encode(), "cut short"),
        ("x.txt", b"", "it is catalog.zip or PROVIDER.csv"),
    ],
    ids=range(10),
)
def test_what_is_no_gpuhunt_catalog_is_refused(
    tmp_path: Path, name: str, data: bytes | None, said: str
) -> None:
    """The file is named, and what is wrong with it."""
    path = tmp_path / name
    if data is not None:
        path.write_bytes(data)
    (problem,) = problems_of("gpuhunt", path, DAY)
    assert said in problem


def test_what_is_no_skypilot_folder_is_refused(tmp_path: Path) -> None:
    """An empty folder is told what one looks like; all bad files are named at once."""
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="it has CLOUD/vms"):
        readings_of("skypilot", tmp_path, DAY)
    skypilot(tmp_path, "one", header="a,b")
    skypilot(tmp_path, "two", header="InstanceType")
    assert len(problems_of("skypilot", tmp_path, DAY)) == 2


def test_flags_of_gpuhunt_say_what_is_not_on_demand(tmp_path: Path) -> None:
    """A reservation for dates ahead does not become an on-demand price of 41.30 beside 92.90."""
    path = tmp_path / "gcp.csv"
    of = {"instance_name": "a3-megagpu-8g", "gpu_count": "8", "location": "us-central1-a"}
    lines = [
        hunt("92.90", **of),
        hunt("41.30", **of, flags="gcp-dws-calendar-mode"),
        hunt("39.90", **of, flags="something-new"),
        hunt("4.10", instance_name="a3-highgpu-1g", location="us-central1-a"),
        hunt("11.06", instance_name="a3-highgpu-1g", location="us-central1-a", spot="True"),
    ]
    path.write_text("\n".join((HUNT, *lines, "")), encoding="utf-8")
    (reading,) = readings_of("gpuhunt", path, DAY)
    assert [row[:4] for row in told(reading)] == [
        ("a3-highgpu-1g", "us-central1", "spot", "11.06"),
        ("a3-megagpu-8g", "us-central1", "on_demand", "92.90"),
    ]
    assert reading.notes == (
        "1 lines left out: flag something-new is not known and may mean another way of selling",
        "1 lines left out: not sold on demand",
        "1 lines left out: reserved for dates ahead (DWS calendar mode), not on demand",
    )


def test_machines_of_one_slug_are_told_apart_by_model_and_count(tmp_path: Path) -> None:
    """RunPod rents 1, 2, 4 and 8 GPUs: four offers, named as they are ordered; clouds differ."""
    path = tmp_path / "runpod.csv"
    pod = {"instance_name": "NVIDIA H100 80GB HBM3", "location": "EU-RO-1"}
    lines = [hunt(str(3.99 * n), **pod, gpu_count=str(n)) for n in (1, 2, 4, 8)]
    lines.append(hunt("2.5", **(pod | {"location": "CA"})))
    lines.append(hunt("3.1", **(pod | {"instance_name": "NVIDIA H100 PCIe"})))
    path.write_text("\n".join((HUNT, *lines, "")), encoding="utf-8")
    (reading,) = readings_of("gpuhunt", path, DAY)
    assert {row[0] for row in told(reading)} == {
        *(f"{n}x_H100-SXM-80GB_secure" for n in (1, 2, 4, 8)),
        "1x_H100-SXM-80GB_community",
        "1x_H100-PCIe-80GB_secure",
    }
    passed = check(reading, load_catalog(DAY))
    assert passed.kept_out == ()
    assert len(passed.offers) == 6


def test_googles_hosts_and_gpus_add_up(tmp_path: Path) -> None:
    """Host and GPUs stand in rows of their own: one machine at both prices; 4 T4 want 16 vCPUs."""
    columns = "InstanceType,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,"
    zone = "us-central1,us-central1-a"
    skypilot(
        tmp_path,
        "gcp",
        f"a2-highgpu-1g,12.0,85.0,,,,{zone},0.73948,0.36975",
        f"a2-highgpu-2g,24.0,170.0,,,,{zone},1.47895,0.7395",
        f"a3-highgpu-8g,208.0,1872.0,,,,{zone},9.46006,2.88933",
        f"n1-standard-8,8.0,30.0,,,,{zone},0.38,0.08",
        f",,,A100,1.0,,{zone},2.933905,1.1",
        f",,,T4,1.0,,{zone},0.35,0.1654",
        f",,,T4,4.0,,{zone},1.4,0.6616",
        f",,,P100,2,,{zone},2.92,",
        f",,,tpu-v5litepod-1,1,,{zone},1.20,",
        header=f"{columns}AvailabilityZone,Price,SpotPrice",
    )
    (reading,) = readings_of("skypilot", tmp_path, DAY)
    assert [row[:5] for row in told(reading)] == [
        ("a2-highgpu-1g", "us-central1", "on_demand", "3.673385", "A100-SXM-40GB"),
        ("a2-highgpu-1g", "us-central1", "spot", "1.46975", "A100-SXM-40GB"),
        ("n1-standard-8+1xT4", "us-central1", "on_demand", "0.73", "T4"),
        ("n1-standard-8+1xT4", "us-central1", "spot", "0.2454", "T4"),
        ("n1-standard-8+2xP100-PCIe-16GB", "us-central1", "on_demand", "3.3", "P100-PCIe-16GB"),
    ]
    assert [note.partition(" ")[0] for note in reading.notes] == ["1", "1"]


def test_the_form_of_a_card_is_read_where_the_table_tells_it(tmp_path: Path) -> None:
    """RunPod's "A100-80GB" is a PCIe card in GpuInfo, and B300's 262 GiB are a B300's."""
    card = "\"{'Gpus': [{'Name': 'A100 PCIe', 'Count': 2, 'MemoryInfo': {'SizeInMiB': 80}}]}\""
    skypilot(tmp_path, "runpod", f"2x_A100-80GB_SECURE,A100-80GB,2.0,16,234,2.78,IN,{card},2.78")
    blackwell = gpu_info(268288).replace("'X'", "'B300'")
    skypilot(tmp_path, "verda", f"1B300.30V,B300,1.0,30.0,275.0,6.99,FIN-03,{blackwell},2.447")
    runpod, verda = readings_of("skypilot", tmp_path, DAY)
    assert [row[0] for row in told(runpod)] == ["2x_A100-PCIe-80GB_secure"]
    assert runpod.notes == (
        "1 lines left out: a spot price of nothing, or that of on demand again",
    )
    assert {row[4] for row in told(verda)} == {"B300-SXM"}
    assert check(verda, load_catalog(DAY)).kept_out == ()
