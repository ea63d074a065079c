"""Public price feeds are read as they are published; what is planted in one is kept out of ours."""

import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from pricing.catalog.catalog import Catalog, load_catalog
from pricing.errors import GpucostError
from pricing.refresh.integrity_gate import Passed, check
from pricing.refresh.reading import PriceReading
from tests.pricing.feeds.feed_files import feed_of, problems_of, readings_of
from tests.pricing.feeds.recorded_feeds import (
    RECORDED,
    TODAY,
    Line,
    Recorded,
    lines_of,
    vast,
    vultr,
    written,
)

ANSWERS = {"aws-spot": "spot.js", "azure": "page-1.json", "vast": "bundles.json"}
KNOWN = load_catalog(TODAY)
PLACE = 2  # the line that is poisoned


def read(folder: Path, feed: str, recorded: Recorded, lines: list[Line]) -> PriceReading:
    """The reading of a feed's answer with those lines."""
    place = written(folder, recorded.write(lines), ANSWERS.get(feed, "answer.json"))
    (reading,) = readings_of(feed, place, TODAY if feed == "skypilot" else None)
    return reading


def gated(reading: PriceReading, known: Catalog = KNOWN) -> Passed:
    """The reading behind the gate."""
    return check(reading, known)


@pytest.mark.parametrize("played", RECORDED)
def test_a_feed_is_read_as_it_is_published(played: str, tmp_path: Path) -> None:
    """Every machine arrives under the name it is known by, at the feed's price."""
    feed, recorded = RECORDED[played]
    lines = lines_of(recorded)
    reading = read(tmp_path, feed, recorded, lines)
    passed = gated(reading)
    assert len(lines) >= 6, "too few to say anything"
    assert passed.kept_out == ()
    assert {offer.provider for offer in passed.offers} == {recorded.provider}
    assert {o.instance_type: o.usd_per_hour for o in passed.offers} == {
        line["type"]: Decimal(line["price"]) for line in lines
    }
    assert {offer.purchase for offer in passed.offers} == {recorded.purchase}


def _times(line: Line, factor: str) -> None:
    line["price"] = f"{Decimal(line['price']) * Decimal(factor):f}"


def _swapped(line: Line) -> None:
    big = float(line["memory"]) > 50
    line |= {"gpu": "L4", "memory": "24"} if big else {"gpu": "H200", "memory": "141"}
    line["count"] = f"{int(line['count']) * 2}"


PLANTED = {
    "a tenth": lambda line: _times(line, "0.1"),
    "ten times": lambda line: _times(line, "10"),
    "nothing": lambda line: line.update(price="0"),
    "negative": lambda line: line.update(price=f"-{line['price']}"),
    "swapped GPU": _swapped,
    "EUR as USD": lambda line: line.update(currency="EUR"),
}


@pytest.mark.parametrize("planted", PLANTED)
@pytest.mark.parametrize("played", RECORDED)
def test_a_planted_error_is_kept_out_and_the_rest_is_taken(
    played: str, planted: str, tmp_path: Path
) -> None:
    """Of a price that cannot be right nothing is in the offers, and every other line is."""
    feed, recorded = RECORDED[played]
    if planted == "EUR as USD" and not recorded.currency:
        pytest.skip("its lines say no currency; all of them in another one are a test of their own")
    if planted == "swapped GPU" and feed in ("azure", "aws-spot"):
        pytest.skip("its lines say no GPU")
    lines = lines_of(recorded)
    PLANTED[planted](lines[PLACE])
    passed = gated(read(tmp_path, feed, recorded, lines))
    expected = {line["type"] for line in lines} - {lines[PLACE]["type"]}
    assert {offer.instance_type for offer in passed.offers} == expected


@pytest.mark.parametrize("played", RECORDED)
def test_a_list_in_another_currency_is_left_out(played: str, tmp_path: Path) -> None:
    """Euros that are called dollars, in every line: nothing of the list is believed."""
    feed, recorded = RECORDED[played]
    if recorded.purchase == "spot" or recorded.provider == "oci":
        pytest.skip("spot prices move, undated ones may have; a column of theirs says the currency")
    lines = lines_of(recorded)
    for line in lines:
        _times(line, "0.862")
    passed = gated(read(tmp_path, feed, recorded, lines))
    assert passed.offers == ()
    assert Counter(row.fault for row in passed.kept_out) == {"currency": len(lines)}


@pytest.mark.parametrize("played", RECORDED)
def test_a_list_that_was_cut_short_is_refused(played: str, tmp_path: Path) -> None:
    """Half an answer is no answer."""
    feed, recorded = RECORDED[played]
    documents = recorded.write(lines_of(recorded))
    last = max(documents, key=lambda name: len(documents[name]))
    documents[last] = documents[last][: len(documents[last]) // 2]
    place = written(tmp_path, documents, ANSWERS.get(feed, "answer.json"))
    assert problems_of(feed, place, TODAY)


def test_plans_of_vultr_are_machines_slices_and_metal(tmp_path: Path) -> None:
    """As in the recorded answers: a slice is a share of a GPU, bare metal tells GPUs by name."""
    plan = {"vcpu_count": 1, "ram": 6144, "disk": 70, "locations": ["ewr"], "type": "vcg"}
    plans = [
        {"id": "vcg-a100-1c-6g-4vram", "hourly_cost": 0.123, "gpu_vram_gb": 4,
         "gpu_type": "NVIDIA_A100", **plan},
        {"id": "vcg-a100-12c-120g-80vram", "hourly_cost": 2.397, "gpu_vram_gb": 80,
         "gpu_type": "NVIDIA_A100", **plan},
        {"id": "vc2-1c-1gb", "hourly_cost": 0.007, **plan},
    ]  # fmt: skip
    metal = {
        "id": "vbm-112c-2048gb-8-h100-gpu",
        "cpu_threads": 224,
        "ram": 2097152,
        "disk": 960,
        "hourly_cost": 23.92,
        "hourly_cost_preemptible": 18.4,
        "locations": ["sea"],
    }
    (tmp_path / "plans.json").write_text(json.dumps({"plans": plans}))
    (tmp_path / "plans-metal.json").write_text(json.dumps({"plans_metal": [metal]}))
    (reading,) = readings_of("vultr", tmp_path)
    told = ("instance_type", "gpu", "gpu_count", "gpu_memory_gib", "purchase", "usd_per_hour")
    assert [tuple(row[name] for name in told) for row in reading.rows] == [
        ("vbm-112c-2048gb-8-h100-gpu", "H100-SXM-80GB", "8", "80", "on_demand", "23.92"),
        ("vbm-112c-2048gb-8-h100-gpu", "H100-SXM-80GB", "8", "80", "spot", "18.4"),
        ("vcg-a100-12c-120g-80vram", "A100-PCIe-80GB", "1", "80", "on_demand", "2.397"),
        ("vcg-a100-1c-6g-4vram", "A100-PCIe-80GB", "0.05", "4", "on_demand", "0.123"),
    ]
    assert gated(reading).kept_out == ()


def test_a_marketplace_tells_the_middle_of_its_machines(tmp_path: Path) -> None:
    """One owner's mistake does not move it; too few machines have no middle."""
    line = {"gpu": "H100 SXM", "memory": "79.6", "count": "1", "price": "2.1"}
    few = line | {"gpu": "L4", "memory": "23", "price": "0.3"}
    document = json.loads(vast([line, line | {"price": "2.5"}, few])[""])
    document["offers"][0]["dph_base"] = 0.001
    document["offers"][-1]["verification"] = "unverified"
    path = tmp_path / "bundles.json"
    path.write_text(json.dumps(document))
    (reading,) = readings_of("vast", path)
    (row,) = reading.rows
    assert (row["instance_type"], row["usd_per_hour"]) == ("1x_H100-SXM-80GB_median", "2.3")
    assert "median of 6 machines, 0.001 to 2.5" in row["notes"]
    assert reading.notes == (
        "1 lines left out: a machine that is not verified",
        "2 lines left out: fewer than 3 machines of a kind",
    )


def test_runpod_tells_what_is_free_where(tmp_path: Path) -> None:
    """A price of one GPU becomes that of each number that is free there; clouds are told apart."""
    kind = {"id": "NVIDIA H100 80GB HBM3", "displayName": "H100 SXM", "memoryInGb": 80,
            "securePrice": 3.99, "communityPrice": 2.69}  # fmt: skip
    free = {"minVcpu": 16, "minMemory": 125, "stockStatus": "High"}
    gone = {"minVcpu": None, "minMemory": None, "stockStatus": None}
    centres = {"dataCenters": [{"id": "EU-RO-1", "listed": True}, {"id": "X", "listed": False}]}
    (tmp_path / "data-centres.json").write_text(json.dumps({"data": centres}))
    for place in ("EU-RO-1", "community"):
        for count in (1, 2, 4, 8):
            lowest = free if place != "community" or count == 1 else gone
            types = {"gpuTypes": [kind | {"lowestPrice": lowest}]}
            (tmp_path / f"{place}-{count}.json").write_text(json.dumps({"data": types}))
    (reading,) = readings_of("runpod", tmp_path)
    told = [(row["instance_type"], row["region"], row["usd_per_hour"]) for row in reading.rows]
    assert told == [
        ("1x_H100-SXM-80GB_community", "*", "2.69"),
        ("1x_H100-SXM-80GB_secure", "EU-RO-1", "3.99"),
        ("2x_H100-SXM-80GB_secure", "EU-RO-1", "7.98"),
        ("4x_H100-SXM-80GB_secure", "EU-RO-1", "15.96"),
        ("8x_H100-SXM-80GB_secure", "EU-RO-1", "31.92"),
    ]
    assert gated(reading).kept_out == ()


@pytest.mark.parametrize("feed", ["azure", "aws-spot", "oci", "runpod", "vast", "vultr"])
@pytest.mark.parametrize("text", ["{}", "[]", "[" * 5000, "null", '{"Items": [{}]}', "\x00", ""])
def test_what_is_another_form_is_said(feed: str, text: str, tmp_path: Path) -> None:
    """No reader fails in another way than the one that is told."""
    path = tmp_path / "answer.json"
    path.write_text(text)
    try:
        said = feed_of(feed, path)
    except (GpucostError, ValueError, LookupError, TypeError, AttributeError):
        return
    assert not any(reading.rows for reading in said.readings)


def test_vultrs_plans_are_known_by_their_gpu(tmp_path: Path) -> None:
    """What the plan is called does not matter; a price a tenth of the market's is kept out."""
    lines = [
        {"type": "one", "gpu": "L40S", "count": "1", "memory": "48", "price": "1.671"},
        {"type": "two", "gpu": "L40S", "count": "1", "memory": "48", "price": "0.084"},
    ]
    reading = read(tmp_path, "vultr", Recorded(provider="vultr", write=vultr), lines)
    passed = gated(reading)
    assert [offer.instance_type for offer in passed.offers] == ["vcg-one"]
    assert [row.fault for row in passed.kept_out] == ["jump"]
