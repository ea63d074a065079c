"""The registry of providers: every provider is in it, and every row leads to a provider."""

import ast
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import providers
from providers.interface import Cloud, Connection
from providers.provider import permissions
from providers.registry import CLOUDS, cloud_class, connect, launchable
from tests.conftest import ROOT
from tests.providers import test_clouds
from tests.providers.launches import a_spec, an_offer
from tests.providers.pools import test_doks, test_eks
from tests.source_tree import modules

OFFERED = sorted(launchable())
CONTRACTS = {
    "aws": test_clouds.TestAws,
    "digitalocean": test_clouds.TestDigitalOcean,
    "doks": test_doks.TestDoks,
    "eks": test_eks.TestEks,
    "lambda": test_clouds.TestLambda,
    "memory": test_clouds.TestMemory,
    "ssh": test_clouds.TestSsh,
}


def test_every_provider_is_registered() -> None:
    """Each module of a provider has a row, each row a module and a contract test."""
    here = Path(providers.__file__).parent
    written = {f"providers.{path.parent.name}.cloud" for path in here.glob("*/cloud.py")}
    assert {one.cloud for one in CLOUDS.values()} == written | {"tests.providers.fakes.memory"}
    assert set(CLOUDS) == set(CONTRACTS)


def test_what_belongs_to_a_provider_lies_in_its_folder() -> None:
    """Neither commands nor templates name a provider: they ask the registry what it is."""
    named = {
        f"{module.name}:{node.lineno} {node.value}"
        for module in modules("gpucost", "templates")
        for node in module.nodes(ast.Constant)
        if node.value in OFFERED
    }
    assert named == set()
    for template in sorted((ROOT / "templates" / "bootstrap").iterdir()):
        text = template.read_text(encoding="utf-8").lower()
        assert not [name for name in OFFERED if name in text], template.name


def test_an_offered_provider_states_all_that_is_asked_of_it() -> None:
    """Page, user, variables and permissions; a machine that needs a token says what it reaches."""
    for name in OFFERED:
        one = CLOUDS[name]
        assert one.title
        assert one.user
        assert one.page.startswith("https://")
        assert one.variables
        assert set(one.asked_with)
        assert any(one.name in name for name in permissions())
        assert (one.end.kind == "none") == bool(one.end.lacks)
        assert (one.end.kind == "api") == bool(one.end.token)
        if one.end.kind == "api":
            assert one.end.reach
            assert one.end.url.startswith("https://")


@pytest.mark.parametrize("name", CLOUDS)
def test_a_row_leads_to_a_provider(name: str) -> None:
    """A registered module connects, and its class has every method of a cloud."""
    module = import_module(CLOUDS[name].cloud)
    assert callable(module.connect)
    for method, wanted in inspect.getmembers(Cloud, inspect.isfunction):
        if not method.startswith("_"):
            found = inspect.signature(getattr(module.CLOUD, method))
            assert list(found.parameters) == list(inspect.signature(wanted).parameters), method


def test_memory_needs_nothing() -> None:
    """The provider in memory opens without credentials."""
    assert connect("memory", Connection()).name == "memory"


@pytest.mark.parametrize("name", ["aws", "digitalocean", "lambda", "memory"])
def test_what_a_launch_calls_needs_no_credentials(name: str) -> None:
    """The class alone tells the calls of a launch, and what ends it."""
    spec = a_spec(an_offer(name), regions=("us-east-1",))
    assert cloud_class(name).resources_to_create(spec, spec.places[0])
    assert cloud_class(name).termination_steps(spec)
