"""Defaults from files: ./gpucost.toml over the user's own file; flags and environment beat both.

A section names a command, a key one of its long options:

```toml
[plan]
provider = ["digitalocean", "aws"]
max-slowdown = 1.5
```

The environment variable of an option is GPUCOST_COMMAND_OPTION, such as GPUCOST_PLAN_MAX_SLOWDOWN.

The project's file comes with a repository that somebody cloned. It may only set what MAY_SET lists:
what is planned and how it is printed, never what is launched, ended, spent or written where.
"""

import difflib
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import click
from platformdirs import user_config_path

from pricing.errors import InputError
from pricing.message import Message

if TYPE_CHECKING:
    from providers.budgets import MonthlyBudget

PRINTING = frozenset(("quiet", "verbose", "no-color"))
_ALLOWED: Mapping[str, str] = tomllib.loads(
    (files("gpucost.arguments") / "settings.toml").read_text(encoding="utf-8")
)
MAY_SET: Mapping[str, frozenset[str]] = MappingProxyType(
    {command: PRINTING.union(options.split()) for command, options in _ALLOWED.items()}
)
"""Command -> its long options that a project's file may set; a command that is not here: none.

`provision`, `down`, `reap` and `watch` are not here: even `quiet` would hide what they ask about.
"""


PROJECT_FILE = Path("gpucost.toml")
BUDGET_FILE = Path("budget.toml")
_PREFIX = "GPUCOST"
OWN_HARDWARE = "own_hardware"
_SECTIONS = (OWN_HARDWARE,)  # of facts, not of a command's options


def load_settings(command: click.Command, commands: Iterable[str]) -> dict[str, object]:
    """Return the defaults that files set for one command, by the names that click uses.

    Args:
        command: the command that runs.
        commands: every command's name, for sections.

    Raises:
        InputError: a file cannot be read, is not TOML, or names what there is not; all of a file's
            problems at once.
    """
    names = tuple(commands)
    merged: dict[str, object] = {}
    own = _user_file()
    for path in (own, PROJECT_FILE):
        document = _read(path)
        problems = [*_stray(document, names, path)]
        if path is PROJECT_FILE:
            problems += _not_for_a_project(document, command, own)
        options = document.get(command.name or "", {})
        if isinstance(options, dict):
            problems += _adopt(options, long_options(command), merged, f"{path}: [{command.name}]")
        if problems:
            raise InputError(problems)
    return merged


def load_section(name: str) -> tuple[dict[str, object], str]:
    """Return a section of facts and its file: the project's file before the user's.

    Raises:
        InputError: a file cannot be read, or no file has the section.
    """
    for path in (PROJECT_FILE, _user_file()):
        section = _read(path).get(name)
        if isinstance(section, dict):
            return section, f"{path}: [{name}]"
    raise InputError(f"No settings file has a section [{name}]; add one to {PROJECT_FILE}.")


def load_setting(section: str, key: str) -> object:
    """Return a value of a section, of the project's file before the user's; None: it is in none.

    Raises:
        InputError: a file cannot be read.
    """
    sections = (_read(path).get(section) for path in (PROJECT_FILE, _user_file()))
    values = (options.get(key) for options in sections if isinstance(options, dict))
    return next((value for value in values if value is not None), None)


def load_budgets() -> "tuple[MonthlyBudget, ...]":
    """Return the budgets of teams and owners in ./budget.toml and in the user's own; all hold.

    Raises:
        InputError: a file cannot be read, or is wrong; all of its problems.
    """
    from providers.budgets import read_budgets  # noqa: PLC0415 - heavy, for what is launched

    paths = dict.fromkeys((BUDGET_FILE.resolve(), _user_file().with_name(BUDGET_FILE.name)))
    return tuple(budget for path in paths for budget in read_budgets(_read(path), str(path)))


def is_offline() -> bool:
    """Return whether GPUCOST_OFFLINE says that no network is to be asked."""
    return os.environ.get("GPUCOST_OFFLINE", "0") not in ("", "0")


def is_address(value: object, *, with_key: bool = True) -> bool:
    """Return whether a `--url` is the address of the published catalog, and not FEED=ADDRESS.

    Args:
        value: what is given.
        with_key: whether it may bring the key of the catalog's signature.
    """
    address, _, key = str(value).partition("#")
    return "://" in address.partition("=")[0] and (with_key or not key)


def name_variables(command: click.Command) -> None:
    """Give every option of a command its environment variable, named after its long flag."""
    for member in _with_subcommands(command):
        for flag, option in _own_options(member).items():
            name = "_".join((_PREFIX, command.name or "", flag)).upper().replace("-", "_")
            option.envvar = list(dict.fromkeys((*(option.envvar or ()), name)))  # asked again: once


def long_options(command: click.Command) -> dict[str, click.Option]:
    """Return the options of a command and of its sub-commands by long flag, without dashes."""
    options: dict[str, click.Option] = {}
    for member in _with_subcommands(command):
        options = {**_own_options(member), **options}
    return options


def _with_subcommands(command: click.Command) -> tuple[click.Command, ...]:
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return (command, *below)


def _own_options(command: click.Command) -> dict[str, click.Option]:
    return {
        flag.removeprefix("--"): option
        for option in command.params
        if isinstance(option, click.Option)
        for flag in (*option.opts, *option.secondary_opts)
        if flag.startswith("--")
    }


def _stray(document: dict[str, object], commands: tuple[str, ...], path: Path) -> Iterator[str]:
    for section, options in document.items():
        if not isinstance(options, dict):
            yield f"{path}: {section} is outside a section; put it under [plan], [quote] ..."
        elif section not in (*commands, *_SECTIONS):
            near = difflib.get_close_matches(section, (*commands, *_SECTIONS), 1)
            yield f"{path}: [{section}] is not a command" + (f"; [{near[0]}]?" if near else ".")


def _not_for_a_project(
    document: dict[str, object], command: click.Command, own: Path
) -> Iterator[str]:
    """Yield what only the user may set, of every command, so that no project waits for one."""
    options = long_options(command)
    for section, settings in document.items():
        allowed = MAY_SET.get(section, frozenset())
        if section in _SECTIONS or not isinstance(settings, dict):
            continue
        for key in settings:
            flag = key.replace("_", "-")
            if flag in allowed or (section == command.name and flag not in options):
                continue  # a name that does not exist is told as such
            if (section, flag) == ("prices", "url") and is_address(settings[key], with_key=False):
                continue
            where = {"file": str(PROJECT_FILE), "section": section, "key": key}
            yield Message("input.not-a-projects", **where, own=str(own))


def _adopt(
    options: dict[str, object],
    allowed: dict[str, click.Option],
    merged: dict[str, object],
    where: str,
) -> list[str]:
    """Put the options of one section into `merged`; return what is wrong with them."""
    problems = []
    for key, value in options.items():
        option = allowed.get(key.replace("_", "-"))
        if option is None or option.name is None:
            near = difflib.get_close_matches(key, allowed, 1, 0.0)
            problems.append(f"{where} {key} is not an option" + (f"; {near[0]}?" if near else "."))
        elif isinstance(value, dict) or (isinstance(value, list) and not option.multiple):
            problems.append(f"{where} {key} takes one value, not {value!r:.40}.")
        elif isinstance(value, bool) and not option.is_flag:
            problems.append(f"{where} {key} takes a value, not true or false.")
        else:
            several = option.multiple and not isinstance(value, list)
            merged[option.name] = [value] if several else value
    return problems


def _user_file() -> Path:
    named = os.environ.get("GPUCOST_CONFIG")
    if named:
        if not Path(named).is_file():
            raise InputError(f"GPUCOST_CONFIG: {named} does not exist.")
        return Path(named)

    return user_config_path("gpucost") / "config.toml"


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        if isinstance(error, PermissionError) and not os.access(path.parent, os.X_OK):
            return {}  # the home of another user, after `su` or `setpriv`: nothing of ours is there
        raise InputError(f"{path}: cannot be read: {error}.") from error
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: not valid TOML: {error}.") from error
