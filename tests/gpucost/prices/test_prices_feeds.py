"""`gpucost prices update` without an account: public feeds, each failing alone, none trusted."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pricing.feeds.feeds import FEEDS
from tests.gpucost.conftest import Call
from tests.pricing.feeds.recorded_feeds import RECORDED, gpuhunt, lines_of, written
from tests.providers.fakes.price_feeds import PriceFeeds
from tests.providers.fakes.reach import reach_this_machine_only
from tests.providers.fakes.server import serving

PLAYED = ("gpuhunt lambda", "skypilot lambda", "azure", "aws-spot", "oci")
ARCHIVE = "/gpuhunt/lambdalabs/20261122-4711/catalog.zip"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Reach this machine only, find no credentials, wait for nothing."""
    reach_this_machine_only(monkeypatch)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "kept"))
    monkeypatch.setattr("providers.price_feed._PAUSE_S", 0.0)
    return tmp_path / "kept" / "prices"


@pytest.fixture
def feeds(monkeypatch: pytest.MonkeyPatch) -> Iterator[PriceFeeds]:
    """Every feed that is played back, at addresses of this machine; the others answer 404."""
    documents = {}
    for name in PLAYED:
        feed, recorded = RECORDED[name]
        for path, data in recorded.write(lines_of(recorded)).items():
            documents[f"/{feed}/{path}" if path else f"/{feed}"] = data
    feeds = PriceFeeds(documents=documents)
    with serving(feeds) as address:
        feeds.address = address
        urls = " ".join(f"{name}={address}/{name}" for name in FEEDS)
        monkeypatch.setenv("GPUCOST_PRICES_URL", urls)
        yield feeds


def test_without_an_account_the_feeds_are_read(feeds: PriceFeeds, call: Call) -> None:
    """Each feed that answers is kept, each that does not is a warning, and the exit code is 0."""
    ran = call("prices", "update", "-f", "json")
    assert ran.code == 0, ran.err
    assert [told["provider"] for told in ran.json] == ["lambda", "lambda", "azure", "aws", "oci"]
    assert [told["kept_out"] for told in ran.json] == [[]] * 5
    assert "reading the Azure Retail Prices API ..." in ran.err
    assert "warning: RunPod's public API: 127.0.0.1/runpod answered 404" in ran.err
    assert "note: skipped: DIGITALOCEAN_TOKEN is not set" in ran.err
    assert "/aws-offers/us-east-1/index.csv" not in feeds.asked
    listed = call("prices", "--provider", "lambda", "-f", "json", "-q").json
    assert {row["as_of"] for row in listed if row["region"] != "*"} == {"2026-11-22"}


def test_a_feed_or_a_provider_is_read_alone(feeds: PriceFeeds, call: Call) -> None:
    """--feed reads that one; --provider the feeds that tell its prices."""
    ran = call("prices", "update", "--feed", "oci", "-f", "json", "-q")
    assert [told["source"] for told in ran.json] == ["Oracle cost estimator"]
    assert {path.split("/")[1] for path in feeds.asked} == {"oci"}
    feeds.asked.clear()
    ran = call("prices", "update", "--provider", "lambda", "-f", "json", "-q")
    assert ran.code == 0, ran.err
    assert {told["provider"] for told in ran.json} == {"lambda"}
    assert {path.split("/")[2] for path in feeds.asked} == {"lambda", "lambdalabs"}


def test_what_has_not_changed_is_not_fetched_again(feeds: PriceFeeds, call: Call) -> None:
    """A list is asked for with its ETag; removed prices are fetched anew."""
    asked = ("prices", "update", "--feed", "gpuhunt", "--provider", "lambda")
    assert call(*asked, "-q").code == 0
    feeds.sent.clear()
    ran = call(*asked)
    assert ran.code == 0, ran.err
    assert ARCHIVE not in feeds.sent
    assert "1 list unchanged since the last reading" in ran.err


def test_removed_prices_are_fetched_anew(feeds: PriceFeeds, call: Call, no_network: Path) -> None:
    """Who removes the cache's file gets its prices back with the next update."""
    asked = ("prices", "update", "--feed", "gpuhunt", "--provider", "lambda", "-q")
    assert call(*asked).code == 0
    (no_network / "lambda.csv").unlink()
    feeds.sent.clear()
    assert call(*asked).code == 0
    assert ARCHIVE in feeds.sent
    assert (no_network / "lambda.csv").exists()


@pytest.mark.parametrize("fault", ["redirect", "bomb", "short", "error", "garbage"])
def test_a_poisoned_feed_changes_nothing_and_the_rest_is_taken(
    fault: str, feeds: PriceFeeds, call: Call, no_network: Path
) -> None:
    """No row of it is kept, its reason is told, the other feeds are kept, nobody else is asked."""
    feeds.faults[ARCHIVE] = fault
    feeds.faults["/azure"] = fault
    ran = call("prices", "update", "-f", "json")
    assert ran.code == 0, ran.err
    assert [told["source"] for told in ran.json] == [
        "SkyPilot catalog lambda/vms.csv",
        "AWS spot prices (spot.js)",
        "Oracle cost estimator",
    ]
    assert not (no_network / "azure.csv").exists()
    assert ran.err.count("warning:") >= 2
    said = {
        "redirect": "refers to 198.51.100.7, another host",
        "bomb": "is larger than",
        "short": "was cut short",
        "error": "answered 500",
        "garbage": "not whole",
    }
    assert said[fault] in ran.err


def test_a_list_that_nobody_keeps_up_is_as_old_as_it_is(feeds: PriceFeeds, call: Call) -> None:
    """A table without a date is of the day on which its server changed it, not of today."""
    assert feeds.modified.date().isoformat() == "2026-11-20"
    ran = call("prices", "update", "--feed", "aws-spot", "-f", "json", "-q")
    assert [told["read_on"] for told in ran.json] == ["2026-11-20"]


def test_a_redirect_within_the_host_is_followed(feeds: PriceFeeds, call: Call) -> None:
    """A document that moved on its own server is read there."""
    feeds.documents["/new/oci/shapes.json"] = feeds.documents["/oci/shapes.json"]
    feeds.faults["/oci/shapes.json"] = "moved"
    assert call("prices", "update", "--feed", "oci", "-q").code == 0


def test_pages_lead_to_pages_of_the_same_host_only(feeds: PriceFeeds, call: Call) -> None:
    """The next page is read where it is the feed's own, and refused where it is not."""
    page = json.loads(feeds.documents["/azure"])
    half = len(page["Items"]) // 2
    first, second = page["Items"][:half], page["Items"][half:]
    feeds.documents["/azure/2"] = json.dumps(page | {"Items": second}).encode()
    for host, code in (("http://198.51.100.7", 5), (feeds.address, 0)):
        document = {"Items": first, "NextPageLink": f"{host}/azure/2"}
        feeds.documents["/azure"] = json.dumps(document).encode()
        ran = call("prices", "update", "--feed", "azure", "-f", "json")
        assert ran.code == code, ran.err
    assert ran.json[0]["confirmed"] == len(page["Items"])


def test_nothing_that_answers_is_exit_5(feeds: PriceFeeds, call: Call, no_network: Path) -> None:
    """Where no feed and no provider answers, all reasons are told and nothing is written."""
    feeds.documents.clear()
    ran = call("prices", "update")
    assert ran.code == 5
    assert "127.0.0.1/vultr/plans answered 404" in ran.err
    assert not no_network.exists()


def test_a_host_that_cannot_be_reached_is_one_sentence(call: Call) -> None:
    """A feed of many parts is not asked for each of them where nothing answers."""
    ran = call("prices", "update", "--from", "skypilot", "http://127.0.0.1:9/v8")
    assert ran.code == 5
    assert ran.err.count("127.0.0.1 cannot be reached (NewConnectionError)") == 1
    assert len(ran.err.splitlines()) == 2


def test_a_feed_is_read_from_another_address(
    feeds: PriceFeeds, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--from FEED URL reads that address and nothing else."""
    monkeypatch.delenv("GPUCOST_PRICES_URL")
    ran = call("prices", "update", "--from", "oci", f"{feeds.address}/oci", "-f", "json", "-q")
    assert ran.code == 0, ran.err
    assert {path.split("/")[1] for path in feeds.asked} == {"oci"}
    assert call("prices", "update", "--from", "oci", "ftp://127.0.0.1/x").code == 2


def test_a_project_may_not_say_where_prices_come_from(call: Call) -> None:
    """A gpucost.toml that comes with a repository cannot send the update to another server."""
    Path("gpucost.toml").write_text('[prices]\nurl = ["oci=http://127.0.0.1/x"]\n')
    ran = call("prices", "update", "--feed", "oci")
    assert ran.code == 2
    assert "url is not allowed in a project's file" in ran.err


def test_an_update_leaves_no_older_name_in_force(call: Call, tmp_path: Path) -> None:
    """After a list with the names by which machines are ordered, invented names are no offers."""
    feed, recorded = RECORDED["gpuhunt lambda"]
    names = {"H100-SXM-80GB": "1H100.80S.32V", "B200-SXM": "1B200.30V", "L40S": "1L40S.20V"}
    recorded = replace(recorded, provider="verda")
    lines = [
        line | {"type": names[line["gpu"]], "region": "FIN-01"}
        for line in lines_of(recorded)
        if line["gpu"] in names and line["count"] == "1"
    ]
    assert len(lines) == 3
    place = written(tmp_path, gpuhunt("verda")(lines)) / "verda/20261122-4711/catalog.zip"
    ran = call("prices", "update", "--from", feed, str(place), "-f", "json", "-q")
    assert ran.code == 0, ran.err
    assert len(ran.json[0]["replaced"]) == 3
    asked = ("prices", "--provider", "verda", "--purchase", "on_demand", "-f", "json", "-q")
    for gpu, name in names.items():
        rows = call(*asked, "--gpu", gpu).json
        assert [row["instance_type"] for row in rows] == [name]
