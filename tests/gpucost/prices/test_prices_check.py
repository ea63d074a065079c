"""`gpucost prices check` and imported catalogs: age, conflicts, doubtful rows."""

from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from msgspec import structs

from gpucost.arguments.parameters import today
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import Offer
from pricing.refresh.store import path_of, to_text
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import AS_OF

SKY = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of refreshed prices, empty."""
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "kept"))
    folder = tmp_path / "kept" / "prices"
    folder.mkdir(parents=True)
    return folder


def a10(**changes: object) -> Offer:
    """Lambda's A10 as read today, with changes."""
    known = load_catalog().find("lambda", "gpu_1x_a10")
    fields = {"as_of": today(), "as_of_text": "", "valid_from": None, "source": "one"}
    return structs.replace(known, **{**fields, **changes})


def keep(folder: Path, *offers: Offer) -> None:
    """Write offers into the store."""
    path_of(folder, offers[0].provider).write_text(to_text(offers), encoding="utf-8")


def test_the_age_of_every_provider_is_told(call: Call) -> None:
    """Newest and oldest reading, days since, stale and refreshed rows; exit 0."""
    ran = call("prices", "check", "--as-of", AS_OF, "-f", "json")
    assert ran.code == 0
    ages = {row["provider"]: row for row in ran.json["providers"]}
    assert len(ages) == 19
    assert ages["aws"] == {
        "provider": "aws",
        "offers": 1588,
        "newest": "2026-11-09",
        "oldest": "2026-01-01",
        "days": 12,
        "stale": 1537,
        "refreshed": 0,
    }


def test_bundled_rows_that_the_gate_would_refuse_are_told(call: Call) -> None:
    """The known oddities of the bundled prices, and no others."""
    ran = call("prices", "check", "--as-of", AS_OF, "-f", "json")
    doubtful = ran.json["doubtful"]
    assert len(doubtful) == 5
    assert all("Radeon-Pro-V520" in text for text in doubtful)
    assert "aws/g4ad.xlarge (16 prices)" in " ".join(doubtful)
    assert ran.json["conflicts"] == []


def test_refreshed_prices_count_as_such(cache: Path, call: Call) -> None:
    """A row of the cache makes its provider younger."""
    keep(cache, a10())
    (row,) = call("prices", "check", "--provider", "lambda", "-f", "json").json["providers"]
    assert (row["days"], row["refreshed"], row["offers"]) == (0, 1, 21)


@pytest.mark.parametrize(("factor", "conflicts"), [("1.02", 1), ("1.005", 0), ("0.9", 1)])
def test_two_sources_of_one_day_that_disagree_are_told(
    cache: Path, call: Call, factor: str, conflicts: int
) -> None:
    """Over 1 % both prices are told with their sources."""
    price = a10().usd_per_hour
    keep(cache, a10(), a10(source="two", usd_per_hour=price * Decimal(factor)))
    told = call("prices", "check", "-f", "json").json["conflicts"]
    assert len(told) == conflicts
    assert all("(one)" in text and "(two)" in text and "lambda/gpu_1x_a10" in text for text in told)


def test_two_days_are_no_conflict(cache: Path, call: Call) -> None:
    """A price that moved from one day to the next is a change."""
    keep(cache, a10(), a10(as_of=today() - timedelta(1), usd_per_hour=Decimal(9)))
    assert call("prices", "check", "-f", "json").json["conflicts"] == []


@pytest.mark.parametrize("file_format", ["table", "csv", "md"])
def test_it_prints_in_every_format(file_format: str, call: Call) -> None:
    """Ages on standard output, what is doubtful on standard error."""
    ran = call("prices", "check", "--as-of", AS_OF, "-f", file_format)
    assert ran.code == 0
    assert "digitalocean" in ran.out
    assert "doubtful: aws/g4ad.xlarge" in ran.err


def test_an_unknown_provider_is_exit_2(call: Call) -> None:
    """With the nearest known ones."""
    ran = call("prices", "check", "--provider", "lamda")
    assert ran.code == 2
    assert "lambda" in ran.err


def test_a_catalog_that_people_have_is_imported(cache: Path, call: Call, write: Write) -> None:
    """`--from skypilot FOLDER` prices appear with source and day; bad lines are told."""
    lines = ("big,H100,8,208,1800,20.5,moon-1,,", "free,H100,1,8,80,0,moon-1,,")
    write("sky/moon/vms.csv", "\n".join((SKY, *lines, "")))
    ran = call("prices", "update", "--from", "skypilot", "sky", "--as-of", AS_OF, "-f", "json")
    assert ran.code == 0, ran.err
    assert [row["provider"] for row in ran.json] == ["moon"]
    assert ran.json[0]["kept_out"][0]["fault"] == "price"
    assert path_of(cache, "moon").is_file()
    (row,) = call("prices", "--provider", "moon", "-f", "json", "-q").json
    assert (row["usd_per_hour"], row["source"]) == ("20.5", "SkyPilot catalog moon/vms.csv")
    assert row["as_of"] == AS_OF
    quoted = call("quote", "moon/big/moon-1", "--duration", "1h", "-f", "json", "-q")
    assert quoted.json["total"] == "20.50"


def test_an_import_for_one_provider_leaves_the_others(
    cache: Path, call: Call, write: Write
) -> None:
    """--provider chooses from the catalog; one that is not in it exits 2."""
    for cloud in ("moon", "mars"):
        write(f"sky/{cloud}/vms.csv", f"{SKY}\nbig,H100,8,208,1800,20.5,x,,\n")
    day = ("--as-of", "2026-11-21")
    asked = ("prices", "update", "--from", "skypilot", "sky", *day, "--provider")
    assert call(*asked, "mars", "-q").code == 0
    assert [path.stem for path in cache.iterdir()] == ["mars"]
    ran = call(*asked, "venus")
    assert ran.code == 2
    assert "no price in it could be kept for venus" in ran.err


def test_a_cache_that_cannot_be_written_is_exit_2(
    call: Call, write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder and the variable that names another are told."""
    monkeypatch.setenv("GPUCOST_CACHE_DIR", write("a-file", "x"))
    write("sky/moon/vms.csv", f"{SKY}\nbig,H100,8,208,1800,20.5,x,,\n")
    ran = call("prices", "update", "--from", "skypilot", "sky", "--as-of", "2026-11-21")
    assert ran.code == 2
    assert "GPUCOST_CACHE_DIR names another folder" in ran.err
