"""`gpucost compare A B`: one machine of 8 GPUs or 8 of one, with and without a measurement."""

from datetime import date
from decimal import Decimal

import pytest

from pricing.catalog.catalog import load_catalog
from tests.gpucost.conftest import Call, Write
from tests.gpucost.documents import EXAMPLES, training

DAY = "2026-11-21"


def test_one_of_eight_or_eight_of_one(call: Call) -> None:
    """DigitalOcean sells both at $4.41 a GPU: links decide, and independent jobs pay alike."""
    ran = call("compare", "8xH100", "vs", "8x1xH100", "--provider", "digitalocean", "--as-of", DAY)
    assert ran.code == 0, ran.err
    assert len(ran.out.strip().splitlines()) <= 14
    text = " ".join(ran.out.split())
    assert "4.41 a GPU" in text
    assert "One job that uses all GPUs: take 8xH100: $25,754, on 8x1xH100 $30,264 (" in text
    assert "the same price, $4.41 a GPU-hour" in text
    assert "gpucost compare 8xH100 8x1xH100 profile.json" in text


def test_ranges_that_overlap_leave_it_open(call: Call) -> None:
    """One GPU for eight times as long may cost more or less; who asks for 20 h gets those."""
    words = ("8xH100", "1xH100", "--provider", "digitalocean", "--hours", "20", "--as-of", DAY)
    text = " ".join(call("compare", *words).out.split())
    assert "One job that uses all GPUs: open." in text
    assert "20 h" in text
    assert "尚无定论" in call("compare", *words, "--lang", "zh").out


def test_gpus_that_wait_are_what_to_look_at_first(call: Call, write: Write) -> None:
    """Measured at 31 % the machine is not what is worth most."""
    document = training()
    document["gpus"] = [{"metrics": {"util.kernel_time": {"mean": 0.31}}}]
    write("profile.json", document)
    text = " ".join(call("compare", "1xT4", "1xH100", "profile.json", "--as-of", DAY).out.split())
    assert "busy 31% of the time" in text
    assert "gpucost plan profile.json" in text


def test_dollars_are_price_times_hours(call: Call) -> None:
    """730 h of the first side at the list price; the second takes longer for its links."""
    words = ("8xH100", "8x1xH100", "--provider", "digitalocean", "--as-of", DAY, "-f", "json")
    document = call("compare", *words).json
    first, second = document["sides"]
    price = load_catalog(date(2026, 11, 21)).find("digitalocean", "gpu-h100x8-640gb").usd_per_hour
    assert Decimal(first["usd"][1]) == (price * 730).quantize(Decimal("0.01"))
    assert (first["machines"], second["machines"]) == (1, 8)
    assert second["hours"]["low"] >= first["hours"]["mid"]
    assert Decimal(document["links_usd"]) == Decimal(second["usd"][1]) - Decimal(first["usd"][1])


def test_a_measured_job_brings_its_own_hours(call: Call, write: Write) -> None:
    """With a profile the work is the job's, and a faster GPU needs fewer hours."""
    write("profile.json", training())
    ran = call("compare", "1xT4", "1xH100", "profile.json", "--as-of", DAY, "-f", "json")
    assert ran.code == 0, ran.err
    slow, fast = ran.json["sides"]
    assert fast["hours"]["mid"] < slow["hours"]["mid"]
    assert "as measured" in ran.json["work"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("8xH100",), "gpucost compare 8xH100 8x1xH100"),
        (("8xH100", "3xH100"), "there are machines with 1, 2, 4, 8"),
        (("8xH100", "8xH10000"), "H10000"),
        (("8xH100", "aws/nothing"), "no type 'nothing'"),
        (("8xH100", "8xH100"), "compared with itself"),
        (("8xH100", "8x1xH100", "--provider", "DO"), "--provider DO is not in the catalog"),
    ],
)
def test_what_is_not_sold_is_said_with_what_is(
    words: tuple[str, ...], says: str, call: Call
) -> None:
    """Exit 2 with a name that works."""
    ran = call("compare", *words, "--as-of", DAY)
    assert ran.code == 2
    assert says in ran.err


@pytest.mark.parametrize("source", [(), (str(EXAMPLES / "train-8xh100-aws.json"),)])
def test_machines_apart_are_never_faster_than_one_with_the_same_gpus(
    source: tuple[str, ...], call: Call
) -> None:
    """A network adds time and takes none away, measured or not; at one price one machine wins."""
    words = ("8xH100", "8x1xH100", *source, "--provider", "aws", "--as-of", DAY)
    first, second = call("compare", *words, "-f", "json").json["sides"]
    assert first["usd_per_hour"] == second["usd_per_hour"]
    assert second["hours"]["low"] >= first["hours"]["mid"]
    assert "take 8xH100:" in call("compare", *words).out


def test_a_gpu_that_cannot_hold_the_job_is_refused(call: Call, write: Write) -> None:
    """68 GiB do not fit an A10G; of the A100s, those of 80 GB are compared."""
    document = training()
    document["gpus"] = [{"metrics": {"mem.used_gib": {"mean": 66.0, "max": 68.0}}}]
    write("profile.json", document)
    refused = call("compare", "1xH100", "1xA10G", "profile.json", "--as-of", DAY)
    assert refused.code == 2
    assert "holds 68.0 GiB on a GPU, and this one has 22.4" in refused.err
    ran = call("compare", "1xH100", "1xA100", "profile.json", "--as-of", DAY, "-f", "json")
    assert ran.json["sides"][1]["gpu"].endswith("80GB")


def test_hours_asked_for_are_those_on_the_first_side(call: Call, write: Write) -> None:
    """24 h there, whatever machine was measured."""
    write("profile.json", training())
    for first in ("1xH100", "1xL4"):
        words = ("compare", first, "1xA100", "profile.json", "--hours", "24", "--as-of", DAY)
        side = call(*words, "-f", "json").json["sides"][0]
        assert side["hours"]["mid"] == pytest.approx(24)


def test_other_models_are_not_compared_by_the_gpu_hour(call: Call) -> None:
    """Their hours differ; a name of several models is one model where both sides have it."""
    assert "Separate jobs" not in call("compare", "1xH100", "1xA100", "--as-of", DAY).out
    sides = call("compare", "4xA100", "4x1xA100", "--as-of", DAY, "-f", "json").json["sides"]
    assert sides[0]["gpu"] == sides[1]["gpu"]


def test_two_models_are_taken_where_each_costs_least(call: Call) -> None:
    """One provider rents both: that does not make a GPU dearer than others sell it."""
    ran = call("compare", "8xH100", "16xA100", "--as-of", DAY, "-f", "json")
    providers = [side["provider"] for side in ran.json["sides"]]
    apart = call("compare", "8xH100", "8x1xH100", "--as-of", DAY, "-f", "json")
    assert len(set(providers)) == 2
    assert len({side["provider"] for side in apart.json["sides"]}) == 1


def test_a_machine_of_eight_has_links(call: Call) -> None:
    """8xH100 without a form is the board that NVLink joins, although PCIe cards cost less."""
    for names, links in ((("8xH100", "8x1xH100"), "nvlink"), (("8xH100-PCIe", "8xL40S"), "pcie")):
        ran = call("compare", *names, "--as-of", DAY, "-f", "json")
        assert ran.json["sides"][0]["links"].startswith(links), names


def test_a_machine_without_a_region_is_priced_in_its_cheapest(call: Call) -> None:
    """As a plan takes it, and the note says where: the least of what is listed."""
    prices = {
        o.region: o.usd_per_hour
        for o in load_catalog(date.fromisoformat(DAY)).offers
        if (o.provider, o.instance_type, o.purchase) == ("aws", "g5.12xlarge", "on_demand")
    }
    assert len(set(prices.values())) > 1
    ran = call("compare", "aws/g5.12xlarge", "aws/g5.48xlarge", "--as-of", DAY, "-f", "json")
    assert ran.code == 0, ran.err
    side = ran.json["sides"][0]
    assert Decimal(side["usd_per_hour"]) == min(prices.values())
    (note,) = (n for n in ran.json["warnings"] if n.startswith("aws/g5.12xlarge: region not"))
    region = note.partition("taken from ")[2].partition(",")[0]
    assert prices[region] == min(prices.values())
    named = call("compare", f"aws/g5.12xlarge/{region}", "8x1xH100", "--as-of", DAY, "-f", "json")
    assert not any("region not given" in note for note in named.json["warnings"])
