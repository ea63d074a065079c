"""The wheel: what it holds, and that it runs alone in an empty folder."""

import os
import subprocess
import sys
import venv
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("gpucost", "planner", "pricing", "providers", "telemetry", "templates")
LEAST_SETUPTOOLS = 77  # the one that pyproject.toml builds with


def _buildable() -> bool:
    try:
        version("build")
        return int(version("setuptools").split(".")[0]) >= LEAST_SETUPTOOLS
    except PackageNotFoundError:
        return False


pytestmark = pytest.mark.skipif(
    not _buildable(), reason="needs the packages build and setuptools>=77 to build a wheel offline"
)

WANTED = (
    "gpucost/cli.py",
    "gpucost/commands/planning/plan.py",
    "gpucost/examples/visual-search.json",
    "gpucost/examples/fleet/infer-ranking.json",
    "gpucost/examples/loop/train.py",
    "gpucost/py.typed",
    "planner/pipeline.py",
    "planner/py.typed",
    "planner/profile/codec.py",
    "planner/diagnosis/rules.toml",
    "telemetry/probe/path/gpucost_probe/events.py",
    "telemetry/probe/path/sitecustomize.py",
    "telemetry/sources.py",
    "pricing/data/gpus.csv",
    "pricing/data/offers/digitalocean.csv",
    "pricing/data/billing/digitalocean.toml",
    "pricing/py.typed",
    "providers/__init__.py",
    "templates/render.py",
    "templates/reports/job.md.j2",
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of what is in the source tree."""
    return _built(tmp_path_factory.mktemp("wheel"))


def _built(folder: Path) -> Path:
    source = folder / "source"
    for name in (
        *PACKAGES,
        "examples",
        "tests",
        "setup.py",
        "pyproject.toml",
        "README.md",
        "LICENSE",
    ):
        _copy(ROOT / name, source / name)
    done = subprocess.run(
        [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), "."],
        cwd=source,
        env={**os.environ, "SOURCE_DATE_EPOCH": "1764374400"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("*.whl")
    return built


def _copy(source: Path, target: Path) -> None:
    if source.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(source.read_bytes())
    elif source.is_dir() and source.name != "__pycache__":
        for path in source.iterdir():
            _copy(path, target / path.name)


def test_a_wheel_of_one_commit_has_the_same_bytes(wheel: Path, tmp_path: Path) -> None:
    """Built again, elsewhere and later: whoever builds a release gets what was published.

    The release says the time of its commit, as a build asks for it.
    """
    assert _built(tmp_path).read_bytes() == wheel.read_bytes()
    release = (ROOT / ".github/workflows/release.yml").read_text(encoding="utf-8")
    assert 'SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" pipx run build' in release


def _members(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_code_data_templates_and_examples(wheel: Path) -> None:
    """Everything that a command reads is inside."""
    assert set(WANTED) - _members(wheel) == set()


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    """No module, data file or template of the source tree is left out."""
    there = {
        path.relative_to(ROOT).as_posix()
        for package in PACKAGES
        for path in (ROOT / package).rglob("*")
        if path.is_file()
        and path.suffix in (".py", ".csv", ".toml", ".j2", ".txt", ".typed")
        and path.name != "pyproject.toml"  # of the probe, a distribution of its own
    }
    assert there - _members(wheel) == set()


def test_the_wheel_holds_no_tests(wheel: Path) -> None:
    """Tests, caches and benchmarks stay at home; nothing else lands at the top."""
    tops = {name.split("/")[0] for name in _members(wheel)}
    info = {top for top in tops if top.endswith(".dist-info")}
    assert tops - info == set(PACKAGES)
    assert not any("__pycache__" in name or "test" in name for name in _members(wheel))


def test_the_wheel_runs_in_an_empty_folder(wheel: Path, tmp_path: Path) -> None:
    """Installed without network into a new environment, `gpucost demo` writes its report.

    The dependencies come from this environment; our own packages come from the wheel.
    """
    home, work, borrowed = tmp_path / "venv", tmp_path / "work", tmp_path / "borrowed"
    venv.create(home, with_pip=False)
    work.mkdir()
    (site,) = home.glob("lib/python*/site-packages")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    _borrow(borrowed)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        [
            str(home / "bin" / "python"),
            "-c",
            "import sys; from gpucost.entry import main; sys.argv[0] = 'gpucost'; main()",
            "demo",
        ],
        cwd=work,
        env={**clean, "PYTHONPATH": str(borrowed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (work / "report.md").read_text(encoding="utf-8").startswith("# GPU cost report")
    assert sorted(path.name for path in work.iterdir()) == ["report.md"]


def _borrow(folder: Path) -> None:
    """Link this environment's installed packages, but for our own."""
    folder.mkdir()
    ours = ("gpucost", "__editable__", "_", "distutils-precedence")
    sites = {Path(entry) for entry in sys.path if entry.endswith("site-packages")}
    for path in sorted(path for site in sites for path in site.iterdir()):
        if not path.name.startswith(ours):
            (folder / path.name).symlink_to(path)


def test_the_entry_point_is_the_command(wheel: Path) -> None:
    """The wheel installs a script called gpucost."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith("entry_points.txt"))
        assert "gpucost = gpucost.entry:main" in archive.read(name).decode()
