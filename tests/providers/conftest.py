"""Fakes for tests of providers; no credentials of the machine are in sight."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.server import serving
from tests.providers.fakes.sizes import the_sizes

TOKEN = "dop_v1_" + "5ec4e7" * 8
SPEC = ROOT.parent / "shared" / "spec" / "digitalocean-openapi-min.json"


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take the machine's credentials and proxies away."""
    for name in os.environ:
        if name.startswith(("AWS_", "DIGITALOCEAN_", "GPUCOST_")) or name.lower().endswith(
            "_proxy"
        ):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="session")
def spec() -> dict[str, Any] | None:
    """The OpenAPI document, where the research folder is there."""
    if not SPEC.is_file():
        return None
    document: dict[str, Any] = json.loads(SPEC.read_text(encoding="utf-8"))
    return document


@pytest.fixture
def digitalocean(
    spec: dict[str, Any] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[DigitalOcean]:
    """A DigitalOcean over https that the environment points at; it must keep its contract."""
    fake = DigitalOcean(token=TOKEN, sizes=the_sizes(), spec=spec)
    authority = tmp_path / "ca.pem"
    with serving(fake, authority) as address:
        monkeypatch.setenv("DIGITALOCEAN_TOKEN", TOKEN)
        monkeypatch.setenv("GPUCOST_DIGITALOCEAN_ENDPOINT", address)
        monkeypatch.setenv("GPUCOST_DIGITALOCEAN_CA", str(authority))
        yield fake
    assert fake.violations == []
