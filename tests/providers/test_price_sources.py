"""Every fetcher of prices keeps one contract, and every one is registered and tested."""

import os
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

import providers
from pricing.catalog.catalog import load_catalog
from pricing.catalog.offer import PURCHASES
from pricing.errors import MissingCredentialsError
from pricing.refresh.integrity_gate import check
from pricing.refresh.reading import PriceReading
from providers.provider import Request
from providers.registry import CLOUDS, fetcher, priced
from tests.conftest import ROOT
from tests.providers.fakes.aws import Aws
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.lambda_account.account import Lambda
from tests.providers.fakes.server import serving

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
_VARIABLE = r"(AWS|DIGITALOCEAN|LAMBDA)_[A-Z]"
LIBRARIES = ("boto3", "botocore", "pydo", "azure", "requests")


class PriceSourceContract:
    """What holds for every reading; a provider's class supplies its name and a fixture."""

    provider: str
    regions: tuple[str, ...] = ()

    @pytest.fixture
    def reading(self) -> PriceReading:
        """One reading of the provider's fake."""
        request = Request(now=NOW, environment=os.environ, regions=self.regions)
        return fetcher(self.provider)(request)

    def test_the_reading_names_its_source(self, reading: PriceReading) -> None:
        """Provider, source and day stand in the reading; source and day in every row."""
        assert (reading.provider, reading.read_on) == (self.provider, NOW.date())
        assert reading.source
        assert all(row["source"] for row in reading.rows)
        assert {row["as_of"] for row in reading.rows} == {"2026-11-21"}

    def test_every_row_becomes_an_offer(self, reading: PriceReading) -> None:
        """The gate takes every row of a sound answer, with a price and a known GPU."""
        passed = check(reading, load_catalog(NOW.date()))
        assert passed.kept_out == ()
        assert len(passed.offers) == len(reading.rows) > 0

    def test_no_offer_is_told_twice(self, reading: PriceReading) -> None:
        """Type, region and way of buying name one row."""
        names = [(r["instance_type"], r["region"], r["purchase"]) for r in reading.rows]
        assert len(set(names)) == len(names)

    def test_it_says_what_it_covers(self, reading: PriceReading) -> None:
        """Ways of buying are known ones, and each row lies within what is covered."""
        assert set(reading.purchases) <= set(PURCHASES)
        passed = check(reading, load_catalog(NOW.date()))
        assert all(reading.covers(offer) for offer in passed.offers)

    def test_without_credentials_it_says_which(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Exit 5 and the name of the variable, before anything is asked."""
        for name in os.environ:
            if name.startswith(("AWS_", "DIGITALOCEAN_", "LAMBDA_")):
                monkeypatch.delenv(name)
        monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        with pytest.raises(MissingCredentialsError, match=_VARIABLE) as caught:
            fetcher(self.provider)(Request(now=NOW, environment={}, regions=self.regions))
        assert caught.value.exit_code == 5


class TestDigitalOcean(PriceSourceContract):
    """The contract, kept by DigitalOcean."""

    provider = "digitalocean"

    @pytest.fixture(autouse=True)
    def fake(self, digitalocean: DigitalOcean) -> None:
        """Have a DigitalOcean."""
        assert digitalocean.sizes


class TestLambda(PriceSourceContract):
    """The contract, kept by Lambda."""

    provider = "lambda"

    @pytest.fixture(autouse=True)
    def fake(self, lambda_account: Lambda) -> None:
        """Have a Lambda."""
        assert lambda_account.types


@pytest.fixture(scope="module")
def aws_address() -> Iterator[str]:
    """The address of an AWS with one price of each kind."""
    g5 = "g5.xlarge"
    fake = Aws(on_demand=[(g5, "us-east-1", "1.006")], spot=[(g5, "us-east-1a", "0.41")])
    with serving(fake) as address:
        yield address


class TestAws(PriceSourceContract):
    """The contract, kept by AWS."""

    provider = "aws"
    regions = ("us-east-1",)

    @pytest.fixture(autouse=True)
    def fake(self, aws_address: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """Point the environment at it."""
        monkeypatch.setenv("AWS_ENDPOINT_URL", aws_address)
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA" + "Q" * 16)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "5ec4e7" * 7)


def test_every_provider_with_prices_is_registered_and_tested() -> None:
    """A folder of a provider that has `prices` is registered with it and has a contract class."""
    found = {
        f"providers.{package.name}.prices"
        for package in pkgutil.iter_modules(providers.__path__)
        if package.ispkg and (ROOT / "providers" / package.name / "prices.py").is_file()
    }
    assert {CLOUDS[name].prices for name in priced()} == found
    assert {cls.provider for cls in PriceSourceContract.__subclasses__()} == set(priced())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--help",),
        ("prices", "--help"),
        ("prices", "-q", "--gpu", "L4"),
        ("prices", "check", "-q"),
        ("quote", "aws/p5.48xlarge/us-east-1", "--duration", "1h", "-q"),
        ("plan", "examples/visual-search.json", "-q"),
    ],
    ids=" ".join,
)
def test_libraries_of_providers_load_only_when_a_provider_is_asked(
    arguments: tuple[str, ...],
) -> None:
    """Help, plans, quotes and lists import no SDK."""
    code = (
        "import sys; from gpucost.cli import run; code = run(sys.argv[1:]); "
        f"loaded = [name for name in {LIBRARIES!r} if name in sys.modules]; "
        "sys.exit(f'{code} {loaded}' if code or loaded else 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-500:]
