"""`gpucost prices update`: new offers appear everywhere; a poisoned answer changes nothing."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from gpucost.arguments.parameters import today
from pricing.catalog.catalog import load_catalog
from providers.digitalocean import access
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import training
from tests.providers.fakes.account import TOKEN, a_digitalocean
from tests.providers.fakes.digitalocean import DigitalOcean, Document, Fault
from tests.providers.fakes.reach import reach_this_machine_only

UPDATE = ("prices", "update", "--provider", "digitalocean")
NEW = "digitalocean/gpu-b200x8-1440gb"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach this machine only, and wait for nothing."""
    reach_this_machine_only(monkeypatch)
    monkeypatch.setattr(access, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setattr(access, "BACKOFF_S", 0.0)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of refreshed prices."""
    monkeypatch.setenv("GPUCOST_CACHE_DIR", str(tmp_path / "kept"))
    return tmp_path / "kept" / "prices"


@pytest.fixture
def digitalocean(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DigitalOcean]:
    """A DigitalOcean that the environment points at; its token is never written."""
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        yield fake
    assert not any(TOKEN in path.read_text(encoding="utf-8") for path in cache.glob("*"))


def test_an_update_says_what_changed(digitalocean: DigitalOcean, call: Call) -> None:
    """Confirmed, new, dearer and withdrawn sizes are counted and named."""
    assert digitalocean.sizes
    ran = call(*UPDATE, "-f", "json", "-v")
    assert ran.code == 0, ran.err
    (told,) = ran.json
    assert told["confirmed"] == 2
    assert told["new"] == [
        "digitalocean/gpu-b200x1-180gb-spot/nyc2, spot: 2.99 USD/h",
        "digitalocean/gpu-b200x8-1440gb/nyc2, on_demand: 39.92 USD/h",
    ]
    assert told["changed"] == ["digitalocean/gpu-h100x8-640gb, on_demand: 36.00 USD/h"]
    assert "digitalocean/gpu-l40sx1-48gb" in told["withdrawn"]
    assert not any("contracted" in name for name in told["withdrawn"])
    assert "new: digitalocean/gpu-b200x8-1440gb/nyc2" in ran.err


def test_new_offers_appear_in_prices_quote_and_plan(
    digitalocean: DigitalOcean, call: Call, write: Write
) -> None:
    """A size that was not known is listed, quoted and planned with, and nothing of it is stale."""
    assert call("quote", NEW, "--duration", "1h").code == 2
    assert digitalocean.sizes
    assert call(*UPDATE, "-q").code == 0
    rows = call("prices", "--provider", "digitalocean", "--gpu", "B200", "-f", "json").json
    assert {row["instance_type"]: row["stale"] for row in rows} == {
        "gpu-b200x1-180gb-spot": False,
        "gpu-b200x8-1440gb": False,
    }
    quoted = call("quote", NEW, "--duration", "1h", "-f", "json").json
    assert (quoted["total"], quoted["offer"]["as_of"]) == ("39.92", today().isoformat())
    assert quoted["warnings"] == []
    write("profile.json", training())
    asked = ("--provider", "digitalocean", "--gpu", "B200", "--gpus", "8", "-f", "json")
    planned = call("plan", *asked)
    assert planned.code == 0, planned.err
    types = {o["offer"]["instance_type"] for o in planned.json["jobs"][0]["options"]}
    assert types == {"gpu-b200x8-1440gb"}


def test_the_catalog_of_a_plan_counts_refreshed_prices_once(
    digitalocean: DigitalOcean, call: Call, write: Write
) -> None:
    """plan.json counts two more offers and the withdrawn ones less; its newest date is today."""
    assert digitalocean.sizes
    (told,) = call(*UPDATE, "-f", "json", "-q").json
    write("profile.json", training())
    catalog = call("plan", "-f", "json", "-q").json["catalog"]
    bundled = load_catalog(today()).count
    assert catalog["offers"] == bundled + len(told["new"]) - len(told["withdrawn"])
    assert catalog["newest"] == today().isoformat()


def test_a_withdrawn_size_leaves_the_offers_of_that_day(
    digitalocean: DigitalOcean, call: Call
) -> None:
    """It is in no list from today on, still known for yesterday, and quoted with a warning."""
    assert digitalocean.sizes
    assert call(*UPDATE, "-q").code == 0
    asked = ("prices", "--provider", "digitalocean", "--gpu", "L40S", "-f", "json", "-q")
    assert call(*asked).json == []
    assert len(call(*asked, "--as-of", "2026-11-01").json) == 1
    ran = call("quote", "digitalocean/gpu-l40sx1-48gb", "--duration", "1h", "-f", "json")
    assert "no longer lists it" in " ".join(ran.json["warnings"])


def test_the_past_is_not_changed(digitalocean: DigitalOcean, call: Call) -> None:
    """A quote for an earlier day is byte for byte the same after an update."""
    asked = ("quote", "digitalocean/gpu-h100x8-640gb", "--duration", "90s", "--as-of", "2026-11-01")
    before = call(*asked, "-f", "json").out
    assert digitalocean.sizes
    assert call(*UPDATE, "-q").code == 0
    assert call(*asked, "-f", "json").out == before


def _is_free(document: Document) -> None:
    document["sizes"][-1]["price_hourly"] = 0


def _lacks_price(document: Document) -> None:
    del document["sizes"][-1]["price_hourly"]


def _lacks_count(document: Document) -> None:
    del document["sizes"][-1]["gpu_info"]["count"]


POISON = {
    "zero price": Fault(page=2, change=_is_free),
    "missing price": Fault(page=2, change=_lacks_price),
    "missing count": Fault(page=2, change=_lacks_count),
    "500 on page 2": Fault(page=2, status=500, times=9),
    "garbage": Fault(page=2, body=b"\x00\xfe<html>" * 125_000),
    "too many requests": Fault(status=429, times=9, headers=(("Retry-After", "1"),)),
    "an empty list": Fault(body=b'{"sizes": [], "meta": {"total": 0}, "links": {}}'),
    "401": Fault(status=401),
}


@pytest.mark.parametrize("poison", POISON)
@pytest.mark.parametrize("earlier", [0, 1])
def test_a_poisoned_answer_changes_nothing_and_says_so(
    poison: str, earlier: int, digitalocean: DigitalOcean, cache: Path, call: Call
) -> None:
    """Exit 5, a sentence, and the same files as before, be they none or the last good ones."""
    if earlier:
        assert call(*UPDATE, "-q").code == 0
    kept = {path.name: path.read_bytes() for path in cache.glob("*")}
    assert len(kept) == earlier
    listed = call("prices", "-f", "json", "-q").out
    digitalocean.sizes[-2]["price_hourly"] = 12.34
    digitalocean.faults.append(POISON[poison])
    ran = call(*UPDATE)
    assert ran.code == 5
    assert "igital" in ran.err.partition("gpucost: ")[2]
    assert len(ran.err) < 1000
    assert TOKEN not in ran.out + ran.err
    assert {path.name: path.read_bytes() for path in cache.glob("*")} == kept
    assert call("prices", "-f", "json", "-q").out == listed


def test_a_jump_is_kept_out_until_a_person_says_so(digitalocean: DigitalOcean, call: Call) -> None:
    """A price ten times lower is told and left out; the known one stays; a flag lets it in."""
    digitalocean.sizes[-4]["price_hourly"] = 3.6
    quoted = ("quote", "digitalocean/gpu-h100x8-640gb", "--duration", "1h", "-f", "json")
    ran = call(*UPDATE, "-f", "json")
    assert ran.code == 0
    assert [row["fault"] for row in ran.json[0]["kept_out"]] == ["jump"]
    assert "3.6 USD/h where 35.28 was read on 2026-10-08" in ran.err
    assert call(*quoted).json["total"] == "35.28"
    assert call(*UPDATE, "--accept-jumps", "-q").code == 0
    assert call(*quoted).json["total"] == "3.60"


def test_an_unknown_gpu_is_kept_out_and_the_rest_is_kept(
    digitalocean: DigitalOcean, call: Call
) -> None:
    """A model that the hardware table lacks is told; the other sizes are refreshed."""
    digitalocean.sizes[-1]["gpu_info"]["model"] = "nvidia_z9000"
    (told,) = call(*UPDATE, "-f", "json", "-q").json
    assert [row["fault"] for row in told["kept_out"]] == ["gpu"]
    assert len(told["new"]) == 1


def test_a_second_update_repeats_nothing(
    digitalocean: DigitalOcean, cache: Path, call: Call
) -> None:
    """The same answer again the same day leaves the same file; then the list is complete again."""
    assert call(*UPDATE, "-q").code == 0
    first = (cache / "digitalocean.csv").read_bytes()
    assert call(*UPDATE, "-q").code == 0
    assert (cache / "digitalocean.csv").read_bytes() == first
    del digitalocean.sizes[-1]
    (told,) = call(*UPDATE, "-f", "json", "-q").json
    assert told["withdrawn"] == ["digitalocean/gpu-b200x1-180gb-spot/nyc2"]


def test_without_credentials_a_named_provider_is_exit_5(call: Call, cache: Path) -> None:
    """The variable is named, nothing is written."""
    ran = call(*UPDATE, "--feed", "none")
    assert ran.code == 5
    assert "DIGITALOCEAN_TOKEN is not set" in ran.err
    assert not cache.exists()


def test_without_credentials_an_unnamed_provider_is_a_note(
    digitalocean: DigitalOcean, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be asked is asked; the other is skipped with the variable to set."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    assert digitalocean.sizes
    ran = call("prices", "update", "--feed", "none", "-f", "json")
    assert ran.code == 0, ran.err
    assert [told["provider"] for told in ran.json] == ["digitalocean"]
    assert "note: skipped: AWS has no credentials. Set AWS_ACCESS_KEY_ID" in ran.err


def test_without_any_credentials_it_is_exit_5(
    call: Call, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing could be asked: both variables are named."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    ran = call("prices", "update", "--feed", "none")
    assert ran.code == 5
    assert "AWS_ACCESS_KEY_ID" in ran.err
    assert "DIGITALOCEAN_TOKEN" in ran.err
    assert not cache.exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("prices", "update", "--provider", "nobody"), "no feed tells its prices; aws, azure"),
        (("prices", "update", "--feed", "nothing"), "nothing is not a feed; there are gpuhunt"),
        (("prices", "update", "--url", "gpuhunt"), "write FEED=ADDRESS"),
        (("prices", "update", "--gpu", "H100"), "--gpu does not go with gpucost prices update"),
        (("prices", "update", "--as-of", "2026-01-01"), "--as-of does not go with"),
        (("prices", "check", "--max-price", "3"), "--max-price does not go with"),
        (("prices", "--accept-jumps"), "--accept-jumps does not go with gpucost prices;"),
        (("prices", "update", "--from", "skypilot", "nowhere"), "takes a folder with CLOUD/vms"),
        (("prices", "update", "--from", "gpuhunt", "nowhere"), "No such file"),
        (("prices", "update", "--from", "other", "x"), "other is not a feed"),
    ],
)
def test_what_cannot_be_done_is_exit_2(arguments: tuple[str, ...], said: str, call: Call) -> None:
    """An option that has no meaning there, or a provider that cannot be asked, is refused."""
    ran = call(*arguments)
    assert ran.code == 2
    assert said in ran.err


def test_a_damaged_cache_is_said_and_does_no_harm(cache: Path, call: Call, write: Write) -> None:
    """Commands go on with the bundled prices and name the file and the command to run."""
    cache.mkdir(parents=True)
    (cache / "digitalocean.csv").write_bytes(b"status,region\nhalf a")
    write("profile.json", training())
    for command in (
        ("prices",),
        ("plan",),
        ("quote", "aws/p5.48xlarge/us-east-1", "--duration", "1h"),
    ):
        ran = call(*command)
        assert ran.code == 0, ran.err
        assert "gpucost prices update --provider digitalocean" in ran.err
    doctor = {row["check"]: row for row in call("doctor", "-f", "json").json}
    assert doctor["refreshed prices"]["state"] == "fail"


def test_the_python_api_sees_refreshed_prices(digitalocean: DigitalOcean, call: Call) -> None:
    """`gpucost.load_catalog()` gives what the commands work with."""
    import gpucost  # noqa: PLC0415 - the import is what is tested

    assert digitalocean.sizes
    assert call(*UPDATE, "-q").code == 0
    catalog = gpucost.load_catalog(today())
    assert catalog.find("digitalocean", "gpu-b200x8-1440gb").usd_per_hour == Decimal("39.92")


def test_why_a_row_is_here(digitalocean: DigitalOcean, call: Call) -> None:
    """Source, day, window and the rows that gave way stand beside the price; -v says it, too."""
    assert digitalocean.sizes
    assert call(*UPDATE, "-q").code == 0
    asked = ("prices", "--gpu", "H100", "--provider", "digitalocean", "-f", "json")
    why = {row["instance_type"]: row["why"] for row in call(*asked, "--why").json}
    told = why["gpu-h100x8-640gb"]
    assert told.startswith(
        f"DigitalOcean GET /v2/sizes, read {today()}, high; holds from {today()}"
    )
    assert "instead of 35.28 from 2026-08-01 (DigitalOcean GET /v2/sizes response" in told
    assert "instead of 20.00 from 2024-10-01 to 2024-12-31" in told
    ran = call(*asked, "-v")
    assert f"why: digitalocean/gpu-h100x8-640gb, on_demand: {told}" in ran.err
    assert all("why" not in row for row in ran.json)
