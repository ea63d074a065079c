"""A test's account at a fake: its token, its environment, and the only machine within reach."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest
from botocore.loaders import create_loader

from tests.conftest import OUTSIDE
from tests.providers.fakes.aws_account import AwsAccount
from tests.providers.fakes.digitalocean import DigitalOcean, Document
from tests.providers.fakes.lambda_account.account import Lambda
from tests.providers.fakes.openapi import Contract
from tests.providers.fakes.server import serving
from tests.providers.fakes.sizes import the_sizes

TOKEN = "dop_v1_" + "5ec4e7" * 8
REAPER = "dop_v1_" + "4ea9e4" * 8
SPEC = Path(
    os.environ.get("GPUCOST_DIGITALOCEAN_OPENAPI") or OUTSIDE / "spec/digitalocean-openapi-min.json"
)
LAMBDA_SPEC = Path(
    os.environ.get("GPUCOST_LAMBDA_OPENAPI") or OUTSIDE / "spec" / "lambda-openapi.json"
)
LAMBDA_KEY = "secret_gpucost_" + "7ab3" * 8
LAMBDA_REAPER = "secret_gpucost_" + "4ea9" * 8
KEY, SECRET = "AKIA" + "Q" * 16, "5ec4e7" * 7
_ONE_LOADER = cache(create_loader)


def digitalocean_environment() -> dict[str, str]:
    """The variables that name the account."""
    return {name: value for name, value in os.environ.items() if "DIGITALOCEAN" in name}


@cache
def contract() -> Contract | None:
    """The OpenAPI document that exchanges are held against, where the research folder is there.

    It marks the two identifiers of an SSH key readOnly and uses them as a path parameter, so that a
    validator refuses every value of a request; the mark is taken off.
    """
    if not SPEC.is_file():
        return None
    document: Document = json.loads(SPEC.read_text(encoding="utf-8"))
    for name in ("ssh_key_id", "ssh_key_fingerprint"):
        document["components"]["schemas"][name].pop("readOnly", None)
    return Contract(document=document, host="https://api.digitalocean.com")


@cache
def lambda_contract() -> Contract | None:
    """Lambda's OpenAPI document, where a file of it is at hand; it says no scheme of its keys."""
    if not LAMBDA_SPEC.is_file():
        return None
    document: Document = json.loads(LAMBDA_SPEC.read_text(encoding="utf-8"))
    return Contract(document=document, host="https://cloud.lambda.ai")


@contextmanager
def a_digitalocean(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DigitalOcean]:
    """A DigitalOcean over https that the environment points at; it must keep its contract."""
    fake = DigitalOcean(token=TOKEN, others=(REAPER,), sizes=the_sizes(), contract=contract())
    authority = folder / "ca.pem"
    with serving(fake, authority) as address:
        monkeypatch.setenv("DIGITALOCEAN_TOKEN", TOKEN)
        monkeypatch.setenv("GPUCOST_DIGITALOCEAN_ENDPOINT", address)
        monkeypatch.setenv("GPUCOST_DIGITALOCEAN_CA", str(authority))
        yield fake
    assert fake.violations == [], fake.violations


@contextmanager
def a_lambda(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lambda]:
    """A Lambda over https that the environment points at; requests must keep to its document."""
    fake = Lambda(token=LAMBDA_KEY, others=(LAMBDA_REAPER,), contract=lambda_contract())
    authority = folder / "lambda-ca.pem"
    with serving(fake, authority) as address:
        monkeypatch.setenv("LAMBDA_API_KEY", LAMBDA_KEY)
        monkeypatch.setenv("GPUCOST_LAMBDA_ENDPOINT", address)
        monkeypatch.setenv("GPUCOST_LAMBDA_CA", str(authority))
        yield fake
    assert fake.violations == [], fake.violations


@contextmanager
def an_aws(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsAccount]:
    """An AWS that the environment points at, empty.

    The SDK reads its descriptions of services once a process, not once a session: they are most of
    the time of a short command. It repeats calls at once.
    """
    fake = AwsAccount()
    backoff = "botocore.retries.standard.ExponentialBackoff.delay_amount"
    monkeypatch.setattr(backoff, lambda *_: 0.0)
    monkeypatch.setattr("botocore.session.create_loader", _ONE_LOADER)
    with serving(fake) as address:
        settings = {"ENDPOINT_URL": address, "ACCESS_KEY_ID": KEY, "SECRET_ACCESS_KEY": SECRET}
        for name, value in settings.items():
            monkeypatch.setenv(f"AWS_{name}", value)
        monkeypatch.setenv("AWS_CONFIG_FILE", str(folder / "none"))
        yield fake
