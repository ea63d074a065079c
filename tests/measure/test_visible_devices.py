"""What CUDA_VISIBLE_DEVICES leaves to a process, in every way it is written."""

from __future__ import annotations

import pytest

from telemetry.measure.job_devices import Visible, together, variables, visible
from telemetry.recording.recording import GpuIdentity

UUIDS = ("GPU-8932f937-d72c", "GPU-89aa0000-0001", "GPU-77000000-0002", "GPU-66000000-0003")
FOUR = tuple(
    GpuIdentity(key=str(i), index=i, uuid=uuid, model="H100") for i, uuid in enumerate(UUIDS)
)
SPLIT = (
    FOUR[0],
    *(
        GpuIdentity(
            key=f"0:{n}", index=0, uuid=UUIDS[0], partition=f"1g {n}", mig_uuid=f"MIG-{n}a-b-c"
        )
        for n in (7, 8)
    ),
    FOUR[1],
)
MIXED = (*FOUR[:3], GpuIdentity(key="3", index=3, uuid=UUIDS[3], model="T4"))


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("2", ("2",)),
        ("2,0", ("2", "0")),
        (" 1 , 3 ", ("1", "3")),
        ("", ()),
        ("-1", ()),
        ("0,1,-1,2", ("0", "1")),
        ("0,9,1", ("0",)),
        ("nonsense", ()),
        ("GPU-8932f937-d72c", ("0",)),
        ("GPU-77", ("2",)),
        ("GPU-89", ()),  # two begin so
        ("GPU-77,1", ("2", "1")),
        ("GPU-", ()),
        (None, None),
    ],
)
def test_a_list_of_devices(text: str | None, keys: tuple[str, ...] | None) -> None:
    """Indices, beginnings of UUIDs, none, and what stands behind an entry that names nothing."""
    given = {} if text is None else {"CUDA_VISIBLE_DEVICES": text}
    assert visible(given, FOUR) == Visible(keys)


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("MIG-8a-b-c", ("0:8",)),
        ("MIG-7a", ("0:7",)),
        (f"MIG-{UUIDS[0]}/8/0", ("0:8",)),
        ("1", ("1",)),  # instances have no index of their own
    ],
)
def test_an_instance_of_a_split_device(text: str, keys: tuple[str, ...]) -> None:
    """MIG devices are named by their own UUID, or by device and instance as older drivers do."""
    assert visible({"CUDA_VISIBLE_DEVICES": text}, SPLIT) == Visible(keys)


def test_an_index_among_different_models_is_cudas_own() -> None:
    """By default CUDA counts the fastest first; only by bus its indices are the driver's."""
    given = {"CUDA_VISIBLE_DEVICES": "1"}
    assert visible(given, MIXED) == Visible(None, certain=False)
    assert visible({**given, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}, MIXED) == Visible(("1",))
    assert visible({"CUDA_VISIBLE_DEVICES": "GPU-66"}, MIXED) == Visible(("3",))


def test_a_container_counts_its_own_devices() -> None:
    """Seen from outside, index 0 in a container that was given GPU 2 and 3 is GPU 2."""
    given = {"NVIDIA_VISIBLE_DEVICES": "2,GPU-66", "CUDA_VISIBLE_DEVICES": "0"}
    assert visible(given, FOUR, in_container=True) == Visible(("2",))
    assert visible({"NVIDIA_VISIBLE_DEVICES": "void"}, FOUR, in_container=True) == Visible(())
    assert visible({"NVIDIA_VISIBLE_DEVICES": "all"}, FOUR, in_container=True) == Visible(None)
    assert visible({"NVIDIA_VISIBLE_DEVICES": "2"}, FOUR) == Visible(None)


@pytest.mark.parametrize(
    ("each", "keys"),
    [
        ([], None),
        ([None], None),
        ([None, ("1",)], ("1",)),  # a launcher and its worker
        ([("1",), ("2",), ()], ("1", "2")),  # two ranks, and a loader that may use none
        ([None, ()], None),
        ([(), ()], ()),
    ],
)
def test_the_processes_of_a_job_together(
    each: list[tuple[str, ...] | None], keys: tuple[str, ...] | None
) -> None:
    """Launchers that are told nothing and loaders that may use nothing do not blur the rest."""
    assert together(Visible(one) for one in each) == Visible(keys)


def test_variables_are_read_from_what_the_kernel_shows() -> None:
    """Only the variables that count are taken, whatever bytes stand in the others."""
    shown = b"TOKEN=\xff\xfe=x\0CUDA_VISIBLE_DEVICES=1,2\0CUDA_DEVICE_ORDER=PCI_BUS_ID\0odd\0"
    assert variables(shown) == {
        "CUDA_VISIBLE_DEVICES": "1,2",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }
    assert variables(None) == {}
