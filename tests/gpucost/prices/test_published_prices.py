"""A catalog that publishes itself, and plans that pull it: end to end, on this machine."""

import gzip
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import structs

from gpucost.prices import cache
from pricing.catalog.catalog import load_catalog as load_bundled
from pricing.feeds.feeds import FEEDS
from pricing.refresh import store
from research.publish_prices import main, pack, publish
from tests.gpucost.conftest import Call
from tests.pricing.feeds.recorded_feeds import RECORDED, lines_of
from tests.providers.fakes.price_feeds import SLOW_S, PriceFeeds
from tests.providers.fakes.reach import reach_this_machine_only
from tests.providers.fakes.server import serving

ROOT = Path(__file__).resolve().parents[3]
PLAYED = ("skypilot lambda", "azure", "aws-spot", "oci")
QUOTE = ("quote", "lambda/gpu_1x_h100_pcie", "--duration", "1h", "-f", "json")
ASSET = "/someone/fork/releases/download/prices/catalog.gz"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes_raw().hex()
NOW = datetime.now(UTC).replace(microsecond=0)


class Hub(NamedTuple):
    """Where catalogs are published on this machine."""

    server: PriceFeeds
    url: str


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Reach this machine only, in no CI job, with a cache of the test."""
    reach_this_machine_only(monkeypatch)
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setattr("providers.price_feed._RETRIES", 0)
    monkeypatch.setattr(cache, "PUBLISHED", replace(cache.PUBLISHED, most_s=30))
    monkeypatch.setattr(cache, "_WITHIN_S", 30.0)
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "kept"))


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A server with a catalog of today, whose address and key the wheel knows."""
    server = PriceFeeds(documents={ASSET: catalog(NOW)})
    with serving(server) as address:
        url = f"{address}{ASSET}"
        monkeypatch.setattr(cache, "read_toml", lambda _: {"url": f"{url}#{PUBLIC}"})
        yield Hub(server, url)


def catalog(at: datetime, factor: int = 2, key: Ed25519PrivateKey = KEY) -> bytes:
    """Return a catalog in which Lambda's machines cost so many times what they did, read today."""
    offers = [
        structs.replace(
            offer,
            usd_per_hour=offer.usd_per_hour * factor,
            as_of=at.date(),
            as_of_text=at.date().isoformat(),
            dated=True,
            valid_from=None,
        )
        for offer in load_bundled(at.date()).offers
        if offer.provider == "lambda"
    ]
    return pack(offers, at, key.sign)


def price(call: Call, *more: str) -> tuple[float, str]:
    """Return what the machine costs an hour, and what was said."""
    ran = call(*QUOTE, *more)
    assert ran.code == 0, ran.err
    return float(ran.json["offer"]["usd_per_hour"]), ran.err


def test_the_workflow_publishes_what_feeds_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Good feeds are in the signed catalog; of a failing or poisoned one nothing."""
    documents = {}
    for name in PLAYED:
        feed, recorded = RECORDED[name]
        lines = lines_of(recorded)
        if name == "skypilot lambda":
            poisoned = lines[0]["type"]
            lines[0] |= {"price": "0.01"}
        for path, data in recorded.write(lines).items():
            documents[f"/{feed}/{path}" if path else f"/{feed}"] = data
    server = PriceFeeds(documents=documents, faults={"/azure": "garbage", "/aws-spot": "slow"})
    monkeypatch.setenv("PRICES_KEY", KEY.private_bytes_raw().hex())
    with serving(server) as address:
        urls = [f"--url={name}={address}/{name}" for name in FEEDS]
        line = publish(tmp_path, "https://github.com/someone/fork", urls)
    read = store.unpack((tmp_path / "catalog.gz").read_bytes(), cache.verifier(PUBLIC))
    assert {offer.provider for offer in read.offers} == {"lambda", "aws", "oci"}
    assert poisoned not in {offer.instance_type for offer in read.offers}
    failures = (tmp_path / "failures.md").read_text(encoding="utf-8")
    assert re.search("^- .*zure", failures, re.MULTILINE), failures
    assert "RunPod's public API" in failures
    assert "AWS' table" not in failures
    assert f"{len(read.offers):,} rows" in line
    told = (tmp_path / "published.toml").read_text(encoding="utf-8")
    assert f'url = "https://github.com{ASSET}#{PUBLIC}"' in told


def test_a_plan_pulls_the_catalog_once(hub: Hub, call: Call) -> None:
    """The first command takes it, with one line; the next asks nobody; refreshed it is 304."""
    before, _ = price(call, "--offline")
    usd, err = price(call)
    assert usd == 2 * before
    assert err.count(f"prices: took the catalog of {NOW:%Y-%m-%d}") == 1
    assert price(call) == (
        usd,
        "".join(line for line in err.splitlines(keepends=True) if not line.startswith("prices: ")),
    )
    assert hub.server.asked == [ASSET]
    assert price(call, "--refresh")[0] == usd
    assert (hub.server.asked, hub.server.sent) == ([ASSET] * 2, [ASSET])


def test_a_plan_names_its_catalog(hub: Hub, call: Call) -> None:
    """plan.json has the time of the catalog and the hash of what is not bundled."""
    written = call("plan", str(ROOT / "examples/notebook.json"), "-f", "json", "-q").json["catalog"]
    read = store.unpack(hub.server.documents[ASSET])
    assert (written["sha256"], written["published"]) == (read.sha256, NOW.isoformat()[:19] + "Z")


@pytest.mark.parametrize("off", ["--offline", "GPUCOST_OFFLINE", "CI", "--as-of", "--start"])
def test_nothing_is_asked_where_it_should_not(
    off: str, hub: Hub, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Offline, in CI, and for the prices of a given day no server is asked."""
    words = {"--as-of": ("--as-of", "2026-11-01"), "--start": ("--start", "2026-11-01T00:00")}
    if off.startswith("--"):
        price(call, *words.get(off, (off,)))
    else:
        monkeypatch.setenv(off, "1")
        price(call)
    assert hub.server.asked == []


@pytest.mark.usefixtures("hub")
def test_a_ci_job_that_refreshes_takes_it(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """--refresh asks in a CI job, too."""
    monkeypatch.setenv("CI", "true")
    assert "took the catalog" in price(call, "--refresh")[1]


@pytest.mark.parametrize("place", ["signature", "statement", "rows", "key", "cut"])
def test_what_is_not_signed_is_refused(place: str, hub: Hub, call: Call) -> None:
    """One byte of any part changed, another key, a part of it: the old prices, and a warning."""
    before, _ = price(call, "--offline")
    signature, statement, rows = gzip.decompress(hub.server.documents[ASSET]).split(b"\n", 2)
    parts = {
        "signature": (bytes([signature[0] ^ 1]) + signature[1:], statement, rows),
        "statement": (signature, statement.replace(b'"rows": ', b'"rows": 1'), rows),
        "rows": (signature, statement, rows.replace(b"1", b"2", 1)),
    }
    data = catalog(NOW, key=Ed25519PrivateKey.generate())
    if place in parts:
        data = gzip.compress(b"\n".join(parts[place]))
    hub.server.documents[ASSET] = hub.server.documents[ASSET][:-400] if place == "cut" else data
    usd, err = price(call)
    assert usd == before
    assert "warning: " in err
    assert "the published catalog is refused" in err


def test_an_older_catalog_does_not_come_back(hub: Hub, call: Call) -> None:
    """Whoever serves an old catalog, rightly signed, cannot bring its prices back."""
    usd, _ = price(call)
    hub.server.documents[ASSET] = catalog(NOW - timedelta(days=9), factor=3)
    assert price(call, "--refresh")[0] == usd


@pytest.mark.parametrize("fault", ["slow", "error", "redirect", "garbage"])
def test_a_server_that_fails_is_not_waited_for(
    fault: str, hub: Hub, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old prices are used before a slow one answers; nobody is asked again for an hour."""
    monkeypatch.setattr(cache, "_WITHIN_S", SLOW_S / 3)
    hub.server.faults[ASSET] = fault
    _, err = price(call)
    assert "took" not in err
    asked = len(hub.server.asked)
    price(call)
    assert len(hub.server.asked) == asked


def test_another_address_is_taken_by_the_wheels_key(
    hub: Hub, call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """prices.url of gpucost.toml is asked instead; a key in a project's file is refused."""
    monkeypatch.chdir(tmp_path)
    mirror = hub.url.replace(ASSET, "/mirror.gz")
    hub.server.documents["/mirror.gz"] = catalog(NOW, factor=4)
    Path("gpucost.toml").write_text(f'[prices]\nurl = "{mirror}"\n', encoding="utf-8")
    before, _ = price(call, "--offline")
    assert price(call)[0] == 4 * before
    assert hub.server.asked == ["/mirror.gz"]
    Path("gpucost.toml").write_text(f'[prices]\nurl = "{mirror}#{PUBLIC}"\n', encoding="utf-8")
    assert "not allowed in a project's file" in call(*QUOTE).err


def test_update_takes_it_too(hub: Hub, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """`gpucost prices update --url ADDRESS#KEY` takes the catalog before the feeds are asked."""
    monkeypatch.setattr(cache, "read_toml", lambda _: None)
    address = hub.url.removesuffix(ASSET)
    urls = [f"--url={name}={address}/{name}" for name in FEEDS]
    ran = call("prices", "update", "--url", f"{hub.url}#{PUBLIC}", *urls)
    assert "took the catalog" in ran.err.splitlines()[0], ran.err


def test_the_workflow_runs_this_program() -> None:
    """The workflow runs daily and on demand, and takes its address from where it runs."""
    text = (ROOT / ".github/workflows/prices.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert {"schedule", "workflow_dispatch"} <= set(workflow[True])
    assert "${{ github.server_url }}/${{ github.repository }}" in text
    assert 'python -m research.publish_prices publish refreshed "$REPOSITORY"' in text


def test_without_a_key_nothing_is_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A repository without PRICES_KEY is told what to type, before any feed is asked."""
    monkeypatch.delenv("PRICES_KEY", raising=False)
    assert main(["publish", str(tmp_path), "https://github.com/someone/fork"]) == 1
    assert "gh secret set PRICES_KEY" in capsys.readouterr().err
