"""Rows that stand twice: proved copies count once; two things may cost the same, so both count."""

import json
from decimal import Decimal

import pytest

from planner.bills.formats import read_bill
from pricing.money import sum_exactly
from templates.language.translate import translate_text, use_language

_FOCUS = (
    "BilledCost,BillingCurrency,ChargeCategory,ChargePeriodStart,ChargePeriodEnd,ProviderName,"
    "ResourceId,ChargeDescription,ConsumedQuantity,ConsumedUnit\n"
)
_WEEK = "2026-10-01T00:00:00Z,2026-10-08T00:00:00Z"
_NODE = f"840,USD,Usage,{_WEEK},Nebius,{{}},H100 SXM GPU hour,336,GPU hours\n"
_VAT = f"100,USD,Tax,{_WEEK},Nebius,,VAT,1,\n"
_DO = "product,group_description,description,hours,start,end,USD,project_name,category\n"
_SPAN = "2026-10-01 00:00:00 +0000,2026-10-03 00:00:00 +0000"
_DROPLET = f"GPU Droplets,,train (gpu-h100x1-80gb),48,{_SPAN},$162.72,ml,iaas\n"
_POOL = f"Kubernetes Clusters,k8s,pool (s-2vcpu-4gb),48,{_SPAN},$1.60,web,iaas\n"
_TAXES = f"Taxes,,VAT,,{_SPAN},$32.86,,\n"
_AZURE = (
    "Date,ResourceId,MeterCategory,MeterSubCategory,MeterName,UnitOfMeasure,Quantity,"
    "CostInBillingCurrency,BillingCurrencyCode,ChargeType\n"
)
_VM = "10/01/2026,{},Virtual Machines,NCADS,NC24ads A100 v4,1 Hour,24,88.15,USD,Usage\n"
_GCP = json.dumps({
    "billing_account_id": "0", "sku": {"description": "Nvidia L4 GPU running in Iowa"},
    "service": {"description": "Compute Engine"}, "usage_start_time": "2026-10-01 00:00:00 UTC",
    "usage_end_time": "2026-10-01 01:00:00 UTC", "cost": "0.56", "currency": "USD",
    "usage": {"amount_in_pricing_units": 1, "pricing_unit": "hour"}, "credits": [],
    "resource": {"name": "vm"}, "cost_type": "regular",
}) + "\n"  # fmt: skip
_NO_NAME = _GCP.replace('"name": "vm"', '"name": null')
_ITEM = {"product": "GPU Droplets", "description": "train (gpu-h100x1-80gb)", "amount": "162.72",
         "duration": "48", "start_time": "2026-10-01T00:00:00Z",
         "end_time": "2026-10-03T00:00:00Z"}  # fmt: skip
_ID = {"resource_uuid": "11111111-2222-4333-8444-555555555555"}
# What a bill of each kind comes to, worked out by hand, and the note on what repeats.
_CASES = {
    # one node and its week, twice: one node; a tax names nothing, so two may be meant
    "focus, an id": (_FOCUS + _NODE.format("vm-1") * 2 + _VAT, "940", "repeats"),
    "focus, no id": (_FOCUS + _NODE.format("") * 2 + _VAT, "1780", "alike"),
    "focus, tax twice": (_FOCUS + _NODE.format("vm-1") + _VAT * 2, "1040", "alike"),
    "focus, two ids": (_FOCUS + _NODE.format("vm-1") + _NODE.format("vm-2"), "1680", None),
    # every row twice, and one of them names its node: the file is there twice
    "focus, all twice": (_FOCUS + (_NODE.format("vm-1") + _VAT) * 2, "940", "repeats"),
    "focus, all twice, no id": (_FOCUS + (_NODE.format("") + _VAT) * 2, "1880", "alike"),
    # a name is no id: two droplets may share it, unless all else stands twice, too
    "droplets of one name": (_DO + _DROPLET * 2 + _TAXES, "358.30", "alike"),
    "two nodes of a pool": (_DO + _POOL * 2 + _TAXES, "36.06", "alike"),
    "droplets alone": (_DO + _DROPLET * 2, "325.44", "alike"),
    "invoice twice": (_DO + (_DROPLET + _TAXES) * 2, "195.58", "repeats"),
    "azure, an id": (_AZURE + _VM.format("/vm/1") * 2 + _VM.format("/vm/2"), "176.30", "repeats"),
    "azure, no id": (_AZURE + _VM.format("") * 2, "176.30", "alike"),
    "gcp, detailed": (_GCP * 2, "0.56", "repeats"),
    "gcp, standard": (_NO_NAME * 2, "1.12", "alike"),
    "items, an id": (json.dumps({"invoice_items": [_ITEM | _ID] * 2}), "162.72", "repeats"),
    "items, no id": (json.dumps({"invoice_items": [_ITEM] * 2}), "325.44", "alike"),
}  # fmt: skip


@pytest.mark.parametrize("name", _CASES)
def test_copies_count_once_and_doubts_count_with_a_note(name: str) -> None:
    """The sum by hand, and whether the note says what was left out or what is in question."""
    text, usd, code = _CASES[name]
    bill = read_bill("bill", text)
    assert sum_exactly(line.usd for line in bill.lines) == Decimal(usd)
    assert [note.code for note in bill.notes] == ([f"invoice.{code}"] if code else [])  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("language", "once", "twice"),
    [
        ("en", "counted once (USD 840.00 left out)", "USD 840.00 too much"),
        ("zh", "去掉了 USD 840.00", "多计了 USD 840.00"),
    ],
)
def test_the_note_says_the_dollars(language: str, once: str, twice: str) -> None:
    """840 dollars are left out, or in question."""
    with use_language(language):
        for id_, words in (("vm-1", once), ("", twice)):
            bill = read_bill("bill", _FOCUS + _NODE.format(id_) * 2 + _VAT)
            assert words in translate_text(bill.notes[0])
