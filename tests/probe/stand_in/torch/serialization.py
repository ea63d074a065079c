"""Saving."""

import pickle
from pathlib import Path
from typing import Any


def save(obj: Any, f: str) -> None:
    """Save an object to a file."""
    with Path(f).open("wb") as file:
        file.write(pickle.dumps(obj))
