"""DigitalOcean's sizes become rows; what is wrong with an answer is said, without the token."""

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from pricing.errors import InputError, MissingCredentialsError, ProviderError
from pricing.refresh.reading import PriceReading
from providers.digitalocean import access
from providers.digitalocean.prices import fetch, price_text
from providers.provider import Request
from tests.providers.fakes.account import TOKEN
from tests.providers.fakes.digitalocean import DigitalOcean, Document, Fault
from tests.providers.fakes.sizes import a_gpu_size

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def ask(**environment: str) -> PriceReading:
    """Fetch with the environment of the fixture and what a test changes in it."""
    return fetch(Request(now=NOW, environment={**os.environ, **environment}))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait hardly at all between tries, however long the provider asks to wait."""
    monkeypatch.setattr(access, "LONGEST_WAIT_S", 0.01)
    monkeypatch.setattr(access, "BACKOFF_S", 0.0)


def test_the_fake_is_checked_against_the_published_contract(
    shared: Path, digitalocean: DigitalOcean
) -> None:
    """With the OpenAPI document at hand every exchange is validated, and a wrong one is noticed."""
    assert shared.is_dir()
    assert digitalocean.is_checked
    ask()
    assert digitalocean.violations == []
    del digitalocean.sizes[0]["slug"]
    ask()
    assert len(digitalocean.violations) == 1
    digitalocean.violations.clear()


def test_all_pages_are_read_and_gpu_sizes_become_rows(digitalocean: DigitalOcean) -> None:
    """235 sizes in two pages: the five with GPUs, spot told apart, memory for one GPU."""
    reading = ask()
    assert digitalocean.requests == [
        "GET /v2/sizes?per_page=200&page=1",
        "GET /v2/sizes?per_page=200&page=2",
    ]
    told = {
        row["instance_type"]: (
            row["gpu"],
            row["gpu_count"],
            row["gpu_memory_gib"],
            row["purchase"],
            row["region"],
            row["usd_per_hour"],
        )
        for row in reading.rows
    }
    assert told == {
        "gpu-h100x1-80gb": ("H100-SXM-80GB", "1", "80", "on_demand", "*", "4.41"),
        "gpu-h100x8-640gb": ("H100-SXM-80GB", "8", "80", "on_demand", "*", "36"),
        "gpu-mi350x1-288gb-spot": ("MI350X", "1", "288", "spot", "ric1", "2.46"),
        "gpu-b200x8-1440gb": ("B200-SXM", "8", "180", "on_demand", "nyc2", "39.92"),
        "gpu-b200x1-180gb-spot": ("B200-SXM", "1", "180", "spot", "nyc2", "2.99"),
    }
    assert reading.purchases == ("on_demand", "spot")


def test_disks_and_transfer_come_with_the_row(digitalocean: DigitalOcean) -> None:
    """Boot and scratch disk, both together, and 15 TB as the size sheet prints it: 15,000 GiB."""
    assert digitalocean.sizes
    row = ask().rows[0]
    assert (row["boot_disk_gib"], row["scratch_disk_gib"]) == ("720", "5120")
    assert (row["local_disk_gib"], row["ram_gib"], row["vcpus"]) == ("5840", "240", "20")
    assert row["included_transfer_gib"] == "15000"


def test_a_size_without_region_is_kept_and_said_not_creatable(digitalocean: DigitalOcean) -> None:
    """regions: [] keeps its price for everywhere, with a note that it could not be created."""
    assert digitalocean.sizes
    rows = {row["instance_type"]: row for row in ask().rows}
    assert "not creatable" in rows["gpu-h100x1-80gb"]["notes"]
    assert rows["gpu-b200x8-1440gb"]["notes"] == ""


def test_a_size_that_is_not_available_is_left_out_and_said(digitalocean: DigitalOcean) -> None:
    """available: false is not for sale; the reading names it in its notes."""
    digitalocean.sizes[-1]["available"] = False
    reading = ask()
    assert "gpu-b200x1-180gb-spot" not in {row["instance_type"] for row in reading.rows}
    assert reading.notes == ("gpu-b200x1-180gb-spot: not available, so not sold now",)


@pytest.mark.parametrize(
    ("sold", "read"),
    [
        (("nvidia_h100", 8, 640), ("H100-SXM-80GB", "80")),
        (("nvidia_h100", 8, 80), ("H100-SXM-80GB", "80")),
        (("amd_mi300x", 8, 1536), ("MI300X", "192")),
        (("nvidia_4000_ada", 1, 20), ("RTX-4000-Ada", "20")),
        (("nvidia_h100", 8, 60), ("H100-SXM-80GB", "7.5")),
        (("nvidia_z9000", 2, 80), ("nvidia_z9000", "40")),
        (("nvidia_h100", None, 80), ("H100-SXM-80GB", "")),
        (("nvidia_h100", 1, None), ("H100-SXM-80GB", "")),
    ],
)
def test_memory_is_that_of_one_gpu(
    digitalocean: DigitalOcean, sold: tuple[str, Any, Any], read: tuple[str, str]
) -> None:
    """The amount is a total; one that only one GPU can have was meant for one; no guess else."""
    model, count, amount = sold
    digitalocean.contract = None  # the contract wants numbers; a real answer may still lack them
    digitalocean.sizes = [a_gpu_size("gpu-x", 1.0, model, count, vram=amount)]
    row = ask().rows[0]
    assert (row["gpu"], row["gpu_memory_gib"]) == read


@pytest.mark.parametrize(
    ("told", "price"),
    [
        (4.41, "4.41"),
        (35.28, "35.28"),
        (0.00743999984115362, "0.00744"),
        (4.409999847412109, "4.41"),
        (0.07142857142857142, "0.07142857142857142"),
        (8, "8"),
        (0, "0"),
        (-1.5, "-1.5"),
        (None, ""),
        ("4.41", "4.41"),
        (True, "True"),
        (float("nan"), "nan"),
        (1e300, "1" + "0" * 300),
    ],
)
def test_a_price_keeps_its_digits(told: Any, price: str) -> None:
    """A float is told by its shortest digits, a widened 32-bit float by those it was made of."""
    assert price_text(told) == price


def _lacks_sizes(document: Document) -> None:
    del document["sizes"]


def _lacks_total(document: Document) -> None:
    document["meta"]["total"] += 7


def _is_cut(document: Document) -> None:
    del document["links"]["pages"]["next"]


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (Fault(page=2, status=500, times=9), "HTTP 500"),
        (Fault(page=2, status=503, times=9), "HTTP 503"),
        (Fault(status=429, times=9, headers=(("Retry-After", "1"),)), "HTTP 429"),
        (Fault(body=b"\x00\xffnonsense" * 100_000), "reading sizes failed"),
        (Fault(body=b""), "is not a list of sizes"),
        (Fault(body=b"[]"), "is not a list of sizes"),
        (Fault(body=b'{"sizes": [7]}'), "is not a list of sizes"),
        (Fault(body=b'{"sizes": [{"slug": "gpu-x", "gpu_info": 7}]}'), "reading sizes failed"),
        (Fault(change=_lacks_sizes), "is not a list of sizes"),
        (Fault(change=_lacks_total, page=2), "242 were announced"),
        (Fault(change=_is_cut), "200 sizes came where 235 were announced"),
        (Fault(body=b'{"sizes": [], "meta": {"total": 0}}'), "lists no GPU size"),
    ],
    ids=range(12),
)
def test_a_bad_answer_is_one_sentence(digitalocean: DigitalOcean, fault: Fault, said: str) -> None:
    """Errors, garbage and cut lists end in exit 5 with a short sentence and without the token."""
    digitalocean.faults.append(fault)
    with pytest.raises(ProviderError, match=said) as caught:
        ask()
    assert caught.value.exit_code == 5
    assert caught.value.__cause__ is None
    assert len(str(caught.value)) < 400
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 502])
def test_the_sdk_tries_again(digitalocean: DigitalOcean, status: int) -> None:
    """One bad answer is overcome by the SDK's own retries, also where it names its time."""
    headers = (("Retry-After", "3600"),)
    digitalocean.faults.append(Fault(page=2, status=status, headers=headers))
    assert len(ask().rows) == 5
    assert len(digitalocean.requests) == 3


def test_a_slow_answer_is_given_up(
    digitalocean: DigitalOcean, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit is the stated one, not the library's five minutes."""
    monkeypatch.setattr(access, "READ_S", 0.2)
    monkeypatch.setattr(access, "RETRIES", 0)
    digitalocean.faults.append(Fault(delay_s=1.0))
    with pytest.raises(ProviderError, match="reading sizes failed: ServiceResponse"):
        ask()


def test_a_wrong_token_is_refused_without_being_repeated(digitalocean: DigitalOcean) -> None:
    """HTTP 401 is told as such; the token is in no message."""
    assert digitalocean.token == TOKEN
    wrong = TOKEN.replace("5", "6")
    with pytest.raises(ProviderError, match="HTTP 401") as caught:
        ask(DIGITALOCEAN_TOKEN=wrong)
    assert wrong not in str(caught.value)


def test_a_server_that_repeats_the_token_does_not_make_us_repeat_it(
    digitalocean: DigitalOcean,
) -> None:
    """An answer with the token in it is told with the token taken out."""
    body = f'{{"id": "no", "message": "not {TOKEN}"}}'.encode()
    digitalocean.faults.append(Fault(status=403, body=body))
    with pytest.raises(ProviderError, match="HTTP 403") as caught:
        ask()
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    ("environment", "error", "said"),
    [
        ({"DIGITALOCEAN_TOKEN": ""}, MissingCredentialsError, "DIGITALOCEAN_TOKEN is not set"),
        ({"DIGITALOCEAN_TOKEN": "a\nb"}, InputError, "control characters"),
        ({"GPUCOST_DIGITALOCEAN_ENDPOINT": "http://x"}, InputError, "over https only"),
        ({"GPUCOST_DIGITALOCEAN_CA": "no.pem"}, InputError, "no such file"),
    ],
)
def test_an_environment_that_cannot_work_is_said(
    digitalocean: DigitalOcean, environment: dict[str, str], error: type[Exception], said: str
) -> None:
    """A missing token exits 5 and names its variable; a wrong endpoint or file exits 2."""
    with pytest.raises(error, match=said):
        ask(**environment)
    assert digitalocean.requests == []


def test_another_authority_is_not_trusted(digitalocean: DigitalOcean, tmp_path: Path) -> None:
    """Without the certificate of the endpoint nothing is sent to it."""
    assert (tmp_path / "ca.pem").is_file()
    with pytest.raises(ProviderError, match="reading sizes failed"):
        ask(GPUCOST_DIGITALOCEAN_CA="")
    assert digitalocean.requests == []


def test_a_request_does_not_print_its_environment() -> None:
    """The repr of a request and of an access holds no token."""
    request = Request(now=NOW, environment={"DIGITALOCEAN_TOKEN": TOKEN})
    assert TOKEN not in repr(request)
    assert TOKEN not in repr(
        replace(access.VARIABLES.read(request.environment), endpoint="https://x")
    )
