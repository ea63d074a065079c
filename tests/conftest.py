"""What every test may use."""

from pathlib import Path

import pytest

from tests.fake_nvml.fixture import fake_nvml, nvml_folder

__all__ = ["fake_nvml", "nvml_folder"]  # fixtures of every test

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared() -> Path:
    """The team's research folder beside the repository; tests that need it skip without it."""
    folder = ROOT.parent / "shared"
    if not folder.is_dir():
        pytest.skip("the research folder ../shared is absent")
    return folder


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the switch that rewrites golden files."""
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))
