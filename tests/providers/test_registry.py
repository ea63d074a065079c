"""The registry of providers: every provider is in it, and every row leads to a provider."""

import inspect
from importlib import import_module
from pathlib import Path

import pytest

import providers
from providers.interface import Cloud, Connection
from providers.offline import offline
from providers.registry import CLOUDS, connect
from tests.providers import test_clouds
from tests.providers.launches import a_spec, an_offer

CONTRACTS = {
    "aws": test_clouds.TestAws,
    "digitalocean": test_clouds.TestDigitalOcean,
    "memory": test_clouds.TestMemory,
    "ssh": test_clouds.TestSsh,
}


def test_every_provider_is_registered() -> None:
    """Each module of a provider has a row, each row a module and a contract test."""
    here = Path(providers.__file__).parent
    written = {path.parent.name for path in here.glob("*/cloud.py")} | {"memory"}
    assert written == set(CLOUDS) == set(CONTRACTS)
    assert {row.module for row in CLOUDS.values()} == {
        "providers.in_memory" if name == "memory" else f"providers.{name}.cloud" for name in written
    }


@pytest.mark.parametrize("name", CLOUDS)
def test_a_row_leads_to_a_provider(name: str) -> None:
    """A registered module connects, and its class has every method of a cloud."""
    module = import_module(CLOUDS[name].module)
    assert callable(module.connect)
    for method, wanted in inspect.getmembers(Cloud, inspect.isfunction):
        if not method.startswith("_"):
            found = inspect.signature(getattr(module.CLOUD, method))
            assert list(found.parameters) == list(inspect.signature(wanted).parameters), method


def test_memory_needs_nothing() -> None:
    """The provider in memory opens without credentials."""
    assert connect("memory", Connection()).name == "memory"


@pytest.mark.parametrize("name", ["aws", "digitalocean", "memory"])
def test_an_offline_provider_makes_nothing(name: str) -> None:
    """It tells the calls of a launch, and refuses to make or end anything."""
    cloud = offline(name)
    spec = a_spec(an_offer(name), regions=("us-east-1",))
    assert isinstance(cloud, Cloud)
    creations = cloud.creations(spec, spec.places[0])
    assert creations
    assert cloud.ends(spec)
    with pytest.raises(Exception, match="dry run"):
        cloud.create(creations[0])
