"""Fakes for tests of providers; no credentials of the machine are in sight."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.disks import a_small_disk
from tests.providers.fakes.account import a_digitalocean, a_lambda, an_aws
from tests.providers.fakes.aws_account import AwsAccount
from tests.providers.fakes.digitalocean import DigitalOcean
from tests.providers.fakes.lambda_account.account import Lambda

_OURS = ("AWS_", "DIGITALOCEAN_", "GPUCOST_", "LAMBDA_")


@pytest.fixture(autouse=True)
def own_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take the machine's credentials and proxies away."""
    for name in os.environ:
        if name.startswith(_OURS) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture
def digitalocean(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DigitalOcean]:
    """A DigitalOcean over https that the environment points at; it must keep its contract."""
    with a_digitalocean(tmp_path, monkeypatch) as fake:
        yield fake


@pytest.fixture
def lambda_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lambda]:
    """An empty Lambda over https that the environment points at."""
    with a_lambda(tmp_path, monkeypatch) as fake:
        yield fake


@pytest.fixture
def aws_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[AwsAccount]:
    """An empty AWS that the environment points at."""
    with an_aws(tmp_path, monkeypatch) as fake:
        yield fake


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of half a megabyte."""
    with a_small_disk(tmp_path / "disk") as disk:
        if disk is None:
            pytest.skip("no file system can be mounted here")
        yield disk
