"""The packages of the wheel; all else is in pyproject.toml."""

from setuptools import find_namespace_packages, setup

_PRODUCT = ("gpucost", "planner", "pricing", "providers", "telemetry", "templates")
_EXAMPLES = ("", ".api", ".fleet", ".hard", ".hard.pods-one-machine", ".loop")

setup(
    packages=[
        *find_namespace_packages(
            include=[name for top in _PRODUCT for name in (top, f"{top}.*")],
            exclude=["*.__pycache__"],
        ),
        *(f"gpucost.examples{folder}" for folder in _EXAMPLES),
    ]
)
