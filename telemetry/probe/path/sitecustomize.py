# -*- coding: utf-8 -*-
"""Start the probe of gpucost, then run the environment's own sitecustomize, if it has one.

Every Python that the child starts runs this file, also one of another age: the syntax is that of
Python 2.7 and 3 alike. Nothing of ours may fail or print, nor, from Python 3.5 on, hide what the
environment would do without us.
"""
# mypy: ignore-errors

import os
import sys

_OURS = os.path.dirname(os.path.abspath(__file__))
_OLDEST = (3, 8)
_RAN = "_gpucost_ran"  # files run as sitecustomize; in sys, as this module may be run twice


def _start():
    """Start the probe, if this process was asked for it and can run it."""
    folder = os.environ.get("GPUCOST_PROBE_DIR")
    if not folder or sys.version_info < _OLDEST or hasattr(sys, _RAN):
        return
    try:
        import gpucost_probe

        gpucost_probe.start(folder)
    except Exception:  # the program matters, the probe does not
        pass


def _without(folder, entries):
    """Return the entries of a search path that are not this folder."""
    return [entry for entry in entries if os.path.abspath(entry or os.curdir) != folder]


def _find(entries, ran):
    """Return the spec of the sitecustomize that Python would have run without ours, or None."""
    from _frozen_importlib_external import PathFinder

    spec = PathFinder.find_spec("sitecustomize", entries)
    while spec is not None and spec.origin in ran:
        # It asked for sitecustomize itself, as several tools do: the next one is meant.
        fewer = _without(os.path.dirname(spec.origin), entries)
        if len(fewer) == len(entries):
            return None
        entries = fewer
        spec = PathFinder.find_spec("sitecustomize", entries)
    return spec if spec is not None and spec.loader is not None else None


def _chain(ran):
    """Run the sitecustomize of the environment; what it raises is its own."""
    try:
        from _frozen_importlib import _load

        spec = _find(_without(_OURS, sys.path), ran)
    except Exception:
        return
    if spec is not None:
        ran.add(spec.origin)
        sys.modules.pop("sitecustomize", None)
        _load(spec)


_start()
if not hasattr(sys, _RAN):
    setattr(sys, _RAN, set())
if sys.version_info >= (3, 5):
    _chain(getattr(sys, _RAN))
