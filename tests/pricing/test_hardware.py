"""Every name people write means one GPU model, and near names mean none."""

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pricing.errors import UnknownGpuError
from pricing.hardware import Gpu, find, gpus, resolve
from pricing.tables import read_csv

NAMES = [
    ("NVIDIA H100 80GB HBM3", "H100-SXM-80GB"),
    ("NVIDIA H100 PCIe", "H100-PCIe-80GB"),
    ("NVIDIA H100 NVL", "H100-NVL-94GB"),
    ("NVIDIA H200", "H200-SXM-141GB"),
    ("NVIDIA GH200 480GB", "GH200"),
    ("NVIDIA B200", "B200-SXM"),
    ("NVIDIA GB200", "GB200"),
    ("NVIDIA B300 SXM6 AC", "B300-SXM"),
    ("Tesla T4", "T4"),
    ("NVIDIA T4G", "T4G"),
    ("Tesla K80", "K80"),
    ("Tesla P100-SXM2-16GB", "P100-SXM-16GB"),
    ("Tesla V100-SXM2-16GB", "V100-16GB"),
    ("Tesla V100-SXM2-32GB", "V100-32GB"),
    ("Tesla V100-SXM2...", "V100-16GB"),
    ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
    ("NVIDIA A100-SXM4-80GB", "A100-SXM-80GB"),
    ("NVIDIA A100-PCIE-40GB", "A100-PCIe-40GB"),
    ("NVIDIA A100 80GB PCIe", "A100-PCIe-80GB"),
    ("NVIDIA A100-PG509-200", "A100-SXM-40GB"),
    ("NVIDIA A10", "A10"),
    ("NVIDIA A10G", "A10G"),
    ("NVIDIA A40", "A40"),
    ("NVIDIA L4", "L4"),
    ("NVIDIA L40", "L40"),
    ("NVIDIA L40S", "L40S"),
    ("NVIDIA GeForce RTX 2080 Ti", "RTX-2080Ti"),
    ("NVIDIA GeForce RTX 3080", "RTX-3080"),
    ("GeForce RTX 3090", "RTX-3090"),
    ("NVIDIA GeForce RTX 4090", "RTX-4090"),
    ("NVIDIA GeForce RTX 5090", "RTX-5090"),
    ("NVIDIA RTX 4000 Ada Generation", "RTX-4000-Ada"),
    ("NVIDIA RTX 6000 Ada Generation", "RTX-6000-Ada"),
    ("NVIDIA RTX A4000", "RTX-A4000"),
    ("NVIDIA RTX A5000", "RTX-A5000"),
    ("NVIDIA RTX A6000", "RTX-A6000"),
    ("Quadro RTX 6000", "Quadro-RTX-6000"),
    ("Quadro RTX 8000", "Quadro-RTX-8000"),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX-PRO-6000"),
    ("NVIDIA RTX PRO 4500 Blackwell Server Edition", "RTX-PRO-4500"),
    ("NVIDIA GeForce GTX 1080 Ti", "GTX-1080Ti"),
    ("GeForce GTX 1060 6GB", "GTX-1060-6GB"),
    ("NVIDIA TITAN X (Pascal)", "TITAN-X-Pascal"),
    ("GeForce GTX TITAN X", "GTX-TITAN-X"),
    ("NVIDIA TITAN V", "TITAN-V"),
    ("Tesla P40", "P40"),
    ("Tesla P100-PCIE-16GB", "P100-PCIe-16GB"),
    ("Tesla M60", "M60"),
    ("Tesla K40m", "K40"),
    ("NVIDIA A30", "A30"),
    ("NVIDIA GeForce RTX 2080 SUPER", "RTX-2080-SUPER"),
    ("NVIDIA GeForce RTX 4070 Ti SUPER", "RTX-4070Ti-SUPER"),
    ("NVIDIA GeForce RTX 5080", "RTX-5080"),
    ("AMD Instinct MI250X", "MI250X"),
    ("AMD Instinct MI210", "MI210"),
    ("AMD Instinct MI300X", "MI300X"),
    ("AMD Instinct MI325X OAM", "MI325X"),
    ("AMD Instinct MI350X", "MI350X"),
    ("MI355X", "MI355X"),
    ("H100", "H100-SXM-80GB"),
    ("h100-sxm", "H100-SXM-80GB"),
    ("a100", "A100-SXM-40GB"),
    ("a100-80gb", "A100-SXM-80GB"),
    ("A100-40GB", "A100-SXM-40GB"),
    ("t4", "T4"),
    ("v100", "V100-16GB"),
    ("V100-32G", "V100-32GB"),
    ("rtx4090", "RTX-4090"),
    ("4090", "RTX-4090"),
    ("l40s", "L40S"),
    ("mi300x-192gb", "MI300X"),
    ("nvidia-tesla-t4", "T4"),
    ("nvidia-h100-80gb", "H100-SXM-80GB"),
    ("NVIDIA A100-SXM4-80GB MIG 2g.20gb", "A100-SXM-80GB"),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb+me", "H100-SXM-80GB"),
    ("NVIDIA-A100-SXM4-40GB-MIG-1c.3g.20gb", "A100-SXM-40GB"),
    ("Tesla-T4-SHARED", "T4"),
]
NEAR_BUT_OTHER = [
    "RTX 5050", "NVIDIA GeForce RTX 3080 Ti Laptop GPU", "NVIDIA GeForce RTX 3050 Ti", "RTX 5090 D",
    "GTX 980 Ti", "GTX 1050", "GTX 1650 SUPER", "RTX 4090 D", "NVIDIA GeForce RTX 4090 Laptop GPU",
    "L4000", "L400", "H1000", "H10", "A1000", "A100X", "A10M", "T40", "T400", "V1000",
    "RTX 4000", "NVIDIA RTX 4000 SFF Ada Generation", "NVIDIA RTX 5880 Ada Generation",
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition", "H100 64GB",
    "A100 64GB", "NVIDIA GH200 144G HBM3e", "AMD Instinct MI300A", "MI300",
    "Radeon-Pro-V520", "NVIDIA", "GPU", "NVIDIA GeForce", "80GB", "0", "-",
]  # fmt: skip


@pytest.mark.parametrize(("name", "model"), NAMES)
def test_written_names_mean_one_model(name: str, model: str) -> None:
    """Product names, short names, cloud labels and MIG names mean the model they should."""
    assert resolve(name).name == model
    assert resolve(name.upper()).name == model
    assert resolve(name.lower().replace(" ", "_")).name == model


@pytest.mark.parametrize("model", list(gpus()))
def test_canonical_names_mean_themselves(model: str) -> None:
    """A name out of the table comes back as itself, whatever the memory says."""
    assert resolve(model).name == model
    assert resolve(model, memory_gib=1.0).name == model


def test_a_name_that_is_cut_off_means_no_card_of_another_memory() -> None:
    """A GTX 1080 has 8 GiB where the Ti has 11, and neither has 24."""
    assert find("GeForce GTX 108...", memory_gib=10.9) == gpus()["GTX-1080Ti"]
    assert find("GeForce GTX 108...", memory_gib=7.9) == gpus()["GTX-1080"]
    assert find("GeForce GTX 108...", memory_gib=24.0) is None
    assert find("NVIDIA GeForce ...", memory_gib=12.0) is None


@pytest.mark.parametrize("name", NEAR_BUT_OTHER)
def test_near_names_of_other_cards_mean_nothing(name: str) -> None:
    """A card that is not in the table is unknown, however near its name is."""
    assert find(name) is None


@pytest.mark.parametrize(
    ("name", "memory_gib", "model"),
    [
        ("A100", 80, "A100-SXM-80GB"),
        ("A100", 79.2, "A100-SXM-80GB"),
        ("A100", 39.4, "A100-SXM-40GB"),
        ("NVIDIA A100-PG509-200", 79.3, "A100-SXM-80GB"),
        ("A100 PCIe", 80, "A100-PCIe-80GB"),
        ("H100", 93.1, "H100-NVL-94GB"),
        ("H100", 80, "H100-SXM-80GB"),
        ("V100", 32, "V100-32GB"),
        ("Tesla M40", 22.4, "M40-24GB"),
        ("NVIDIA GeForce RTX 3080", 11.9, "RTX-3080-12GB"),
        ("NVIDIA GeForce RTX 4060 Ti", 15.9, "RTX-4060Ti-16GB"),
        ("Tesla V100-SXM2...", 31.7, "V100-32GB"),
        ("GeForce RTX 309...", 23.7, "RTX-3090"),
        ("NVIDIA GeForce RTX 208...", 10.8, "RTX-2080Ti"),
        ("RTX 6000", 24, "Quadro-RTX-6000"),
        ("RTX 6000", 48, "RTX-6000-Ada"),
        ("RTX 6000", 96, "RTX-PRO-6000"),
        ("A100", 12, "A100-SXM-40GB"),
    ],
)
def test_memory_tells_models_of_one_name_apart(name: str, memory_gib: float, model: str) -> None:
    """The memory of the card picks the model; memory that fits none leaves the default."""
    assert resolve(name, memory_gib=memory_gib).name == model


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("RTX 5050", "Nearest known: RTX-5090"),
        ("A101", "A100-SXM-40GB"),
        ("A1000", "no name is near"),
        ("NVIDIA GB10", "no name is near"),
        ("NVIDIA GeForce RTX 3060 L", "no name is near"),
        ("GeForce RTX 3060 Laptop GPU", "no name is near"),
        ("RTX 6000", "several cards: Quadro-RTX-6000 \\(24 GiB\\), RTX-6000-Ada"),
        ("zzzzzz", "no name is near. `gpucost diagnose` says"),
    ],
)
def test_unknown_names_say_the_nearest(name: str, said: str) -> None:
    """The error exits 2 and names what could have been meant."""
    with pytest.raises(UnknownGpuError, match=said) as caught:
        resolve(name)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("name", [None, "", "  "])
def test_no_name_is_no_model(name: str | None) -> None:
    """An absent name is unknown, not an error."""
    assert find(name) is None


@given(st.text(max_size=40), st.none() | st.floats())
def test_any_text_is_a_model_or_none(name: str, memory_gib: float | None) -> None:
    """No text and no memory makes the look-up fail."""
    gpu = find(name, memory_gib=memory_gib)
    assert gpu is None or gpu.name in gpus()


def test_hardware_figures_are_unknown_or_positive() -> None:
    """No figure is zero or negative where it cannot be, and none is NaN."""
    for gpu in gpus().values():
        for figure in (gpu.memory_gib, gpu.memory_bandwidth_gb_s, gpu.fp32_tflops, gpu.fp16_tflops,
                       gpu.bf16_tflops, gpu.fp8_tflops, gpu.int8_tops, gpu.tdp_w, gpu.idle_w,
                       gpu.usable_memory_gib):  # fmt: skip
            assert figure is None or figure > 0, gpu.name
        assert gpu.usable_memory_gib is None or gpu.usable_memory_gib <= gpu.memory_gib * 1.02
        assert gpu.source, gpu.name


def test_mig_slices_fit_their_gpu() -> None:
    """Slices of one kind never need more memory or compute than the GPU has."""
    for gpu in gpus().values():
        whole = max((slice_.compute_slices for slice_ in gpu.mig), default=0)
        for slice_ in gpu.mig:
            assert slice_.memory_gib * slice_.max_instances <= gpu.memory_gib * 1.03
            assert slice_.compute_slices * slice_.max_instances <= whole


def test_arm_hosts_are_known() -> None:
    """The GPUs that are sold on Arm hosts only say so."""
    arm = [gpu.name for gpu in gpus().values() if gpu.host_architecture == "arm64"]
    assert arm == ["T4G", "GH200", "GB200", "GB300"]


def test_aliases_name_models_of_the_table_once() -> None:
    """Each alias row names a known model, has a source, and has at most one default."""
    defaults: dict[str, int] = {}
    for row in read_csv("gpu_aliases.csv"):
        assert row["gpu"] in gpus()
        assert row["source"]
        assert row["as_of"]
        defaults[row["alias"]] = defaults.get(row["alias"], 0) + (row["default"] == "yes")
    assert set(defaults.values()) <= {0, 1}


def test_table_agrees_with_the_research(shared: Path) -> None:
    """Every researched model and MIG slice is in our table with the same memory."""
    with (shared / "facts/gpus.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            gpu = gpus()[row["gpu_model"]]
            assert gpu.memory_gib == float(row["memory_gib"])
            if row["fp16_tflops"]:
                assert gpu.fp16_tflops == float(row["fp16_tflops"])
    with (shared / "facts/mig_profiles.csv").open(newline="") as file:
        slices = {(row["gpu_model"], row["profile"]) for row in csv.DictReader(file)}
    assert slices == {(gpu.name, mig.profile) for gpu in gpus().values() for mig in gpu.mig}


@pytest.mark.parametrize("gpu", [gpu for gpu in gpus().values() if gpu.mig], ids=lambda g: g.name)
def test_as_many_slices_fit_as_the_table_says(gpu: Gpu) -> None:
    """For every profile of NVIDIA's table: that many fit on one GPU, and one more does not."""
    for one in gpu.mig:
        assert gpu.why_not_sliced([one.profile] * one.max_instances) == ""
        assert gpu.why_not_sliced([one.profile] * (one.max_instances + 1))
