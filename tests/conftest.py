"""What every test may use, and which tests are slow."""

import os
import sys
from pathlib import Path

import pytest

from tests.fake_nvml.fixture import fake_nvml, nvml_folder

__all__ = ["fake_nvml", "nvml_folder"]  # fixtures of every test

# The tests start several hundred Pythons: compiling everything in each was a third of their time.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).resolve().parent.parent


# Data sets, specifications and samples that are not ours to pass on; most tests of them lie in
# tests/outside, all are marked `outside`.
OUTSIDE = Path(os.environ.get("GPUCOST_OUTSIDE_DATA") or ROOT.parent / "shared")

# What starts processes, servers or machines, draws thousands of cases, or runs the documentation.
# `make quick` leaves it out; a new file is quick until it is named here.
SLOW = (
    "bootstrap/",
    "chaos/",
    "measure/",
    "outside/",
    "probe/",
    "providers/",
    "torch/",
    "gpucost/test_gone.py",
    "gpucost/test_installed_command.py",
    "gpucost/test_launch",
    "gpucost/test_live_view.py",
    "gpucost/test_measuring.py",
    "gpucost/test_prices_feeds.py",
    "gpucost/test_prices_update",
    "gpucost/test_profile",
    "gpucost/test_provision",
    "gpucost/test_secrets.py",
    "gpucost/test_settings.py",
    "planner/telemetry/test_sniff.py",
    "templates/test_report.py",
    "test_docs.py",
    "test_package.py",
    "test_same_bytes.py",
)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The data outside of the repository; tests that need it skip without it."""
    if not OUTSIDE.is_dir():
        pytest.skip("the data outside of the repository is absent")
    return OUTSIDE


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is slow, by the table above, and what needs data of others, by its fixture."""
    tests = ROOT / "tests"
    for item in items:
        if item.path.relative_to(tests).as_posix().startswith(SLOW):
            item.add_marker("slow")
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("outside")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two workers a core, for half of the time tests wait for what they started; one where none do.

    Each worker costs the imports of all tests.
    """
    each = 1 if "not slow" in config.option.markexpr else 2
    return each * len(os.sched_getaffinity(0))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that rewrites golden files."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))
