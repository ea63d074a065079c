"""The front door: the `gpucost` command and the public Python API.

```python
import gpucost

profile = gpucost.load_profile("profile.json")
catalog = gpucost.load_catalog()
plan = gpucost.make_plan((profile,), catalog, gpucost.Requirements(), as_of=catalog.as_of)
```

Names are loaded when first used, so `import gpucost` costs next to nothing.
"""

import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # A json.py or click.py in the working folder must not be imported, however -m was typed.
    _typed = sys.orig_argv[-len(sys.argv)].partition(".")[0]
    if _typed == "gpucost" or (_typed.startswith("-") and _typed.endswith("mgpucost")):
        sys.path[0] = __file__.rpartition("gpucost")[0].rstrip("/") or "/"

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gpucost.version import __version__

if TYPE_CHECKING:
    from gpucost.api import load_profile, make_plan, plan_to_json, read_telemetry, render_report
    from gpucost.files.plan_file import load_plan
    from gpucost.prices.cache import load_catalog
    from gpucost.profiling.measuring import Measurement, load_ipython_extension, measure
    from planner.choice.requirements import Requirements
    from planner.diagnosis.diagnose import diagnose
    from planner.models.estimate import Estimate
    from planner.plan.plan import Plan
    from planner.plan.read import FoundOption, find_option
    from planner.prediction.predict import predict
    from planner.prediction.sharing import predict_sharing
    from planner.profile.model import Profile
    from planner.signals.finding import Finding
    from pricing.billing.quote import Quote, Usage, quote
    from pricing.catalog.catalog import Catalog
    from pricing.catalog.offer import Offer
    from pricing.errors import GpucostError

__all__ = [
    "Catalog",
    "Estimate",
    "Finding",
    "FoundOption",
    "GpucostError",
    "Measurement",
    "Offer",
    "Plan",
    "Profile",
    "Quote",
    "Requirements",
    "Usage",
    "__version__",
    "diagnose",
    "find_option",
    "load_catalog",
    "load_ipython_extension",
    "load_plan",
    "load_profile",
    "make_plan",
    "measure",
    "plan_to_json",
    "predict",
    "predict_sharing",
    "quote",
    "read_telemetry",
    "render_report",
]

_PACKAGES = ("planner", "pricing", "providers", "telemetry", "templates")
_HOMES = {
    name: module
    for module, names in {
        "pricing.catalog.catalog": "Catalog",
        "planner.models.estimate": "Estimate",
        "planner.signals.finding": "Finding",
        "planner.plan.read": "FoundOption find_option",
        "pricing.errors": "GpucostError",
        "gpucost.profiling.measuring": "Measurement load_ipython_extension measure",
        "pricing.catalog.offer": "Offer",
        "planner.plan.plan": "Plan",
        "planner.profile.model": "Profile",
        "pricing.billing.quote": "Quote Usage quote",
        "planner.choice.requirements": "Requirements",
        "planner.diagnosis.diagnose": "diagnose",
        "gpucost.api": "load_profile make_plan plan_to_json read_telemetry render_report",
        "planner.prediction.sharing": "predict_sharing",
        "gpucost.prices.cache": "load_catalog",
        "gpucost.files.plan_file": "load_plan",
        "planner.prediction.predict": "predict",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    """Load a public name when it is first used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'gpucost' has no attribute {name!r}")
    for package in _PACKAGES:
        _check_ours(package)
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names."""
    return list(__all__)


def _check_ours(package: str) -> None:
    """Refuse a stranger's `planner` or `templates` that stands before ours on the path.

    Raises:
        ImportError: one sentence: which file has the name of our package, and what to do.
    """
    expected = Path(__file__).resolve().parent.parent / package / "__init__.py"
    actual = _module_place(package)
    if actual is None or actual.resolve() != expected:
        raise ImportError(
            f"gpucost cannot be used in this program: {actual or 'another module'} has the name of "
            f"its package {package!r}; rename that, take its folder off sys.path, or call the "
            "gpucost command in a process of its own, which it does not disturb.",
            name=package,
        )


def _module_place(package: str) -> Path | None:
    """Return the file or folder that the name stands for; None where that cannot be said."""
    try:
        spec = find_spec(package)
    except ValueError:  # a module that somebody made by hand
        return None
    if spec is None:
        return None
    places = (spec.origin, *(spec.submodule_search_locations or ()))
    return next((Path(origin) for origin in places if origin), None)
