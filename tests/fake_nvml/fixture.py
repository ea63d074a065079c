"""Compiles the fake and hands out the environment of a process that loads it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fake_nvml.scenario import Scenario

SOURCE = Path(__file__).with_name("nvml.c")
LIBRARY = "libnvidia-ml.so.1"


def build(folder: Path, without: tuple[str, ...] = ()) -> Path:
    """Return a folder with the compiled library in it.

    Args:
        folder: where to put it.
        without: symbols that it shall lack.
    """
    folder.mkdir(parents=True, exist_ok=True)
    hidden = folder / "hidden.map"
    hidden.write_text(
        f"{{ local: {''.join(f'{name};' for name in without)} }};\n" if without else ""
    )
    subprocess.run(
        [
            "gcc",
            "-shared",
            "-fPIC",
            "-O2",
            f"-Wl,-soname,{LIBRARY}",
            *([f"-Wl,--version-script={hidden}"] if without else []),
            "-o",
            str(folder / LIBRARY),
            str(SOURCE),
            "-lm",
        ],
        check=True,
    )
    return folder


def environment(library: Path, trace: Path, clock: Path | None = None) -> dict[str, str]:
    """Return the environment of a process that sees a scenario's GPUs.

    Args:
        library: folder with the compiled library.
        trace: file with the text of a scenario.
        clock: file that holds the trace time in seconds, for tests that step; else time runs.
    """
    found = {**os.environ, "LD_LIBRARY_PATH": str(library), "FAKE_NVML_TRACE": str(trace)}
    return found if clock is None else {**found, "FAKE_NVML_CLOCK": str(clock)}


@pytest.fixture(scope="session")
def nvml_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for compiled fakes; tests that need it skip where there is no gcc."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is absent, so the fake NVML cannot be compiled: make test-tools")
    return tmp_path_factory.mktemp("nvml")


@pytest.fixture
def fake_nvml(nvml_folder: Path, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """Return the environment of a process in which NVML shows a scenario.

    Call it with a `Scenario` and, for tests that step, `clock=` a file that holds the trace time.
    """
    return partial(showing, nvml_folder, tmp_path)


def showing(
    libraries: Path, folder: Path, scenario: Scenario, clock: Path | None = None
) -> dict[str, str]:
    """Return the environment of a process in which NVML shows a scenario.

    Args:
        libraries: a folder for compiled fakes.
        folder: where the trace goes.
        scenario: what is shown.
        clock: as of `environment`.
    """
    library = libraries / hashlib.sha256("".join(scenario.without).encode()).hexdigest()[:8]
    if not (library / LIBRARY).is_file():
        build(library, scenario.without)
    trace = folder / "nvml-trace.txt"
    trace.write_text(scenario.text())
    return environment(library, trace, clock)
