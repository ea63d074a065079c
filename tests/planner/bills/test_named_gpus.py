"""A FOCUS row of hours whose columns name a GPU or a size with GPUs is a GPU machine."""

from datetime import UTC
from decimal import Decimal

import pytest

from planner.bills.bill import gpu_in_words
from planner.bills.formats import read_bill
from planner.bills.review import review
from pricing.errors import InputError
from templates.language.translate import translate_text, use_language

_HEADER = (
    "BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ProviderName,"
    "ServiceCategory,ChargeDescription,SkuMeter,ResourceName,ConsumedQuantity,ConsumedUnit\n"
)
_DAY = "2026-10-01T00:00:00Z,2026-10-02T00:00:00Z"
_ROW = f"240,USD,Usage,{_DAY},CoreWeave,Compute,{{}},24,{{}}\n"
_SIZES = {("coreweave", "p4d.24xlarge"): ("A100-SXM-40GB", Decimal(8))}


@pytest.mark.parametrize(
    ("naming", "gpu", "gpu_hours"),
    [
        ("gpu-h100x2-80gb on demand,,", "H100-SXM-80GB", 48.0),
        ("A100 80GB on demand,,", "A100-SXM-80GB", None),  # how many it does not say
        ("on demand hours,L40S,", "L40S", None),
        ("gd-8xh100ib-i128 on demand,,", "H100-SXM-80GB", 192.0),
        ("on demand hours,,train-8x-h100", None, None),
        ("p4d.24xlarge covered by a plan,,", "A100-SXM-40GB", 192.0),
        ("m5.2xlarge Linux,,", None, None),
    ],
)
def test_a_name_in_the_columns_makes_a_gpu_machine(
    naming: str, gpu: str | None, gpu_hours: float | None
) -> None:
    """24 h of two GPUs are 48, of eight 192; "8x-h100" in a name of somebody's is no count."""
    bill = read_bill("b.csv", _HEADER + _ROW.format(naming, "Instance Hours"))
    machines = review((bill,), _SIZES, zone=UTC).machines
    if naming.endswith("train-8x-h100"):
        gpu = "H100-SXM-80GB"
    assert [(m.gpu, m.gpu_hours) for m in machines] == ([(gpu, gpu_hours)] if gpu else [])


def test_usage_without_amounts_is_no_free_bill() -> None:
    """Two rows of 24 GPU hours whose costs are blank are 48 GPU hours of unknown cost: refused."""
    rows = 2 * _ROW.format("gd-8xh100 node,,", "GPU-hours").replace("240,", ",", 1)
    with pytest.raises(InputError, match=r"all 2 rows \(48 GPU hours\)"):
        read_bill("b.csv", _HEADER + rows)


def test_the_meter_of_aws_names_a_machine_that_a_plan_covers() -> None:
    """24 h of g5.xlarge without a category and a description of its hours are 24 GPU hours."""
    row = f"15.216,USD,Usage,{_DAY},AWS,,g5 covered by a plan,BoxUsage:g5.xlarge,,24,Hours\n"
    sizes = {("aws", "g5.xlarge"): ("A10G", Decimal(1))}
    (machine,) = review((read_bill("b.csv", _HEADER + row),), sizes, zone=UTC).machines
    assert (machine.gpu, machine.gpu_hours, machine.usd) == ("A10G", 24.0, Decimal("15.216"))


def test_azures_size_is_in_the_meter_of_focus() -> None:
    """The meter "NC24ads A100 v4" is the size of one A100 PCIe of 80 GB, not some A100 of 40 GB."""
    row = f"36.73,USD,Usage,{_DAY},Microsoft,Compute,A100 v4,NC24ads A100 v4,,10,Hours\n"
    named = (
        (_HEADER + row)
        .replace("ServiceCategory,", "ServiceName,")
        .replace("Compute,", "Virtual Machines,")
    )
    sizes = {("azure", "standard_nc24ads_a100_v4"): ("A100-PCIe-80GB", Decimal(1))}
    (machine,) = review((read_bill("b.csv", named),), sizes, zone=UTC).machines
    assert (machine.gpu, machine.gpu_hours) == ("A100-PCIe-80GB", 10.0)


def test_hours_that_only_words_name_are_hours() -> None:
    """24 of "per On Demand Linux g5.xlarge Instance Hour" are 24 h, with a unit or without."""
    words = "$1.006 per On Demand Linux g5.xlarge Instance Hour"
    row = f"24.144,USD,Usage,{_DAY},AWS,Compute,{words},,i-1,24,\n"
    sizes = {("aws", "g5.xlarge"): ("A10G", Decimal(1))}
    (machine,) = review((read_bill("b.csv", _HEADER + row),), sizes, zone=UTC).machines
    assert (machine.hours, machine.gpu_hours) == (24.0, 24.0)


def test_gpu_hours_that_are_unknown_are_said() -> None:
    """An A100 whose count no column tells has no GPU hours, and a note with its dollars says so."""
    bill = read_bill("b.csv", _HEADER + _ROW.format("A100 80GB on demand,,", "Hours"))
    (note,) = review((bill,), _SIZES, zone=UTC).notes
    assert "A100-SXM-80GB (USD 240.00)" in translate_text(note)


@pytest.mark.parametrize(
    ("language", "words"), [("en", "these lines name a GPU"), ("zh", "以下各行提到 GPU")]
)
def test_what_names_a_gpu_and_is_no_machine_is_listed(language: str, words: str) -> None:
    """A row of requests to an H100 has no hours: it is named with its line and dollars."""
    bill = read_bill("b.csv", _HEADER + _ROW.format("H100 requests,,", "Requests"))
    (note,) = review((bill,), _SIZES, zone=UTC).notes
    with use_language(language):
        text = translate_text(note)
    assert words in text
    assert "b.csv:2 (H100 requests, USD 240.00)" in text


@pytest.mark.parametrize("text", ["m5.2xlarge", "IPv4 address", "Tier 1 storage", "A1 memory"])
def test_other_words_are_no_gpu(text: str) -> None:
    """Sizes, versions and tiers have digits, too."""
    assert gpu_in_words(text) == (None, None)


def test_what_is_no_bill_says_what_to_give_instead() -> None:
    """A pointer of Git LFS is called that; an unknown table is told the columns to write."""
    with pytest.raises(InputError, match="Git LFS, which stands for a file that was not fetched"):
        read_bill("b.csv", "version https://git-lfs.github.com/spec/v1\noid sha256:a1\nsize 9\n")
    with pytest.raises(InputError, match="write the lines as FOCUS CSV: ProviderName"):
        read_bill("b.csv", "date,podId,gpuType,amount\n2026-10-01,a,NVIDIA H100,33.12\n")
