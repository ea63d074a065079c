"""Defaults from files: ./gpucost.toml over the user's own file; flags and environment beat both.

A section names a command, a key one of its options:

```toml
[plan]
provider = ["digitalocean", "aws"]
max-slowdown = 1.5
```
"""

import os
import tomllib
from pathlib import Path
from typing import Any

from pricing.errors import InputError

PROJECT_FILE = Path("gpucost.toml")


def load_settings() -> dict[str, Any]:
    """Return the defaults of every command, project over user.

    Raises:
        InputError: a file cannot be read or is no TOML.
    """
    merged: dict[str, Any] = {}
    for path in (_user_file(), PROJECT_FILE):
        for command, options in _read(path).items():
            merged.setdefault(command, {}).update(
                {key.replace("-", "_"): value for key, value in options.items()}
            )
    return merged


def _user_file() -> Path:
    named = os.environ.get("GPUCOST_CONFIG")
    if named:
        if not Path(named).is_file():
            raise InputError(f"GPUCOST_CONFIG names {named}, and there is no such file.")
        return Path(named)
    from platformdirs import user_config_path  # noqa: PLC0415 - only without GPUCOST_CONFIG

    return user_config_path("gpucost") / "config.toml"


def _read(path: Path) -> dict[str, dict[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}.") from error
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}.") from error
    stray = [key for key, value in document.items() if not isinstance(value, dict)]
    if stray:
        raise InputError(
            f"{path}: {key} stands outside a section; put it under [plan], [quote] ..."
            for key in stray
        )
    return document
