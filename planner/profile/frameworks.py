"""What a profile's own words for framework and work say: which family of programs it is of.

Actions are known family by family: what helps a PyTorch loop does not help XGBoost or VASP. A
framework that is not in the table is of no family of which anything is known.
"""

import re
from collections.abc import Iterable
from typing import Literal

from planner.profile.kinds import WORDS

LEARNING = ("pytorch", "tensorflow", "jax", "graphs", "reinforcement")
"""Families that train networks by gradients."""
OTHER = "other"
_COMPUTING = ("simulation", "rendering")

# Servers that take a fixed share of the GPU's memory when they start, whatever they need of it:
# vLLM's gpu_memory_utilization (0.9), SGLang's mem_fraction_static, TensorRT-LLM's
# free_gpu_memory_fraction, JAX's XLA_PYTHON_CLIENT_MEM_FRACTION (0.75), TensorFlow without
# memory growth (all of it).
_PREALLOCATE = ("llm-server", "jax", "tensorflow")

_DECODING = re.compile(
    r"jpe?g|png|imread|imdecode|(load|open|read|decode)_(image|img|video|frame)|videoreader|augment",
    re.IGNORECASE,
)


def _plain(text: str | None) -> str:
    return re.sub(r"[\s_\-/]+", " ", (text or "").strip().lower())


# Lines of a program in which environments step: Gymnasium, PettingZoo, Isaac, MuJoCo, PyBullet.
_PLAYING = re.compile(r"\benvs?[._]step|vec_?env|mj_step|stepsimulation|sim\.step", re.IGNORECASE)
_SAMPLING = re.compile(r"sample_neighbo|neighbou?r_?(load|sampl)", re.IGNORECASE)
_SPECTRA = re.compile(r"spectrogram|mfcc|\bmel[_.]|[_.]mel\b|\bi?stft\b", re.IGNORECASE)
_HEARING = re.compile(r"audio|waveform|librosa", re.IGNORECASE)
_FAMILIES = dict(sorted((n, kind) for kind, names in WORDS["families"].items() for n in names))


def program(framework: str | None) -> str | None:
    """Return the longest name of the table that stands in a framework's name; None of none.

    "PyTorch Geometric 2.5" is `pytorch geometric`.
    """
    text = f" {_plain(framework)} "
    names = (name for name in _FAMILIES if f" {name} " in text)
    return max(names, key=len, default=None)


def family(
    framework: str | None, unit: str | None = None, places: Iterable[str] = (), *, name: str = ""
) -> str | None:
    """Return the family of a framework, `other` where the table has none; None where not stated.

    The program of its name counts: "PyTorch Geometric 2.5" is of the graphs. Work that is counted
    in steps of environments or in episodes is reinforcement learning; so are a job whose name is of
    games that are played, and a loop that waits for an environment's step; a loop of PyTorch that
    was seen to wait for a sampler of neighbours learns from a graph.
    """
    stated = _FAMILIES.get(program(framework) or "", OTHER) if _plain(framework) else None
    lines = tuple(places)
    plays = set(_plain(unit).split()) & set(WORDS["played"]) or any(map(_PLAYING.search, lines))
    plays = plays or set(re.split(r"[\W_]+", name.lower())) & set(WORDS["learns_by_playing"])
    plays = plays and stated in (None, *LEARNING)
    samples = stated in {None, "pytorch"} and any(map(_SAMPLING.search, lines))
    return "reinforcement" if plays else "graphs" if samples else stated


def ends(framework: str | None) -> bool:
    """Return whether a program is known to compute an amount of work and to end.

    One that simulates or renders is; a language, or an engine that also draws live, says neither.
    """
    return family(framework) in _COMPUTING and not _names(framework, WORDS["open_ended"])


def arithmetic(framework: str | None) -> Literal["single", "double", "either"] | None:
    """Return what a simulation or a renderer computes in; None for other programs.

    `either` is what its name leaves open.
    """
    kind = family(framework)
    if kind not in _COMPUTING:
        return None
    if kind == "rendering" or _names(framework, WORDS["arithmetic"]["single"]):
        return "single"
    return "double" if _names(framework, WORDS["arithmetic"]["double"]) else "either"


def _names(framework: str | None, names: Iterable[str]) -> bool:
    text = f" {_plain(framework)} "
    return any(f" {name} " in text for name in names)


def preallocates(framework: str | None) -> bool:
    """Return whether the program takes GPU memory when it starts, before it needs it."""
    is_engine = " tensorrt llm " in f" {_plain(framework)} "
    return is_engine or family(framework) in _PREALLOCATE


def decodes(
    unit: str | None, framework: str | None, decoder: float | None, places: Iterable[str] = ()
) -> str | None:
    """Return `images` (or video), `audio`, `spectra` worked out from it, or `none`; else None.

    A line of the program in which it was seen to wait says it for sounds, else a video decoder at
    work, such a line, or a unit of work. Frames of an environment that is played are drawn, not
    decoded.
    """
    tokens = _plain(unit).split()
    stems = {word.removesuffix("s") for word in tokens} | set(tokens)
    kind = family(framework)
    if kind in ("reinforcement", "graphs", "boosting", "simulation", "llm-server"):
        return "none"
    lines = tuple(places)
    for pattern, heard in ((_SPECTRA, "spectra"), (_HEARING, "audio")):
        if any(map(pattern.search, lines)):
            return heard
    if decoder or stems & set(WORDS["pictures"]) or any(map(_DECODING.search, lines)):
        return "images"
    if stems & set(WORDS["sounds"]):
        return "audio"
    return "none" if stems & set(WORDS["no_pictures"]) else None
