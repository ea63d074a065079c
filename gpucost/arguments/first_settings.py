"""A first ./gpucost.toml: asks for what was not said, and writes it as a settings file is read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import click

from gpucost.arguments.parameters import DOLLARS, HOURS_A_MONTH
from planner.choice.requirements import ENGINEER_USD_PER_HOUR
from pricing.catalog.catalog import Catalog
from pricing.catalog.known_names import unknown_names
from pricing.catalog.regions import known_regions
from pricing.errors import InputError
from pricing.money import HOURS_PER_MONTH, plain

_HEAD = """\
# Defaults of gpucost in this folder. The command line and the environment win over them.
# A section names a command, a key one of its long options; `gpucost plan --help` shows them.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstSettings:
    """What a first settings file says; empty or None: not said, so the built-in default holds.

    Attributes:
        providers: the only ones to be looked at.
        regions: where data may be.
        hours_per_month: hours that machines are held a month.
        engineer_rate: USD an hour of engineering.
    """

    providers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    hours_per_month: Decimal | None = None
    engineer_rate: Decimal | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said."""
        return self == FirstSettings()

    def checked(self, catalog: Catalog) -> "FirstSettings":
        """Return it with names as the catalog writes them.

        Raises:
            InputError: names every provider and region that the catalog does not have.
        """
        regions = tuple(name.lower() for name in self.regions)
        problems = _unknown_providers(self.providers, catalog)
        problems += _unknown_regions(regions, catalog)
        if problems:
            raise InputError(problems)
        return replace(self, regions=regions)


def ask(said: FirstSettings, catalog: Catalog) -> FirstSettings:
    """Return the settings with what was not said asked for, on standard error.

    A name that the catalog does not have is told and asked for again; an empty answer leaves the
    built-in default.
    """
    regions = _names(lambda given: _unknown_regions(given, catalog))
    providers = _names(lambda given: _unknown_providers(given, catalog))
    return FirstSettings(
        providers=said.providers or _prompt("Providers to look at [all]", "", providers),
        regions=said.regions or _prompt("Regions for the data: eu, us ... [all]", "", regions),
        hours_per_month=said.hours_per_month
        or _prompt("Hours a month that a GPU is held", HOURS_PER_MONTH, _typed(HOURS_A_MONTH)),
        engineer_rate=said.engineer_rate
        or _prompt("USD an hour of an engineer", ENGINEER_USD_PER_HOUR, _typed(DOLLARS)),
    )


def settings_text(settings: FirstSettings) -> str:
    """Return the TOML text; a key that was not said stands there as a comment."""
    names = (
        _line("provider", _listed(settings.providers), '["aws", "digitalocean"]'),
        _line("region", _listed(settings.regions), '["eu"]'),
    )
    amounts = (
        _line("hours-per-month", _amount(settings.hours_per_month), plain(HOURS_PER_MONTH)),
        _line("engineer-rate", _amount(settings.engineer_rate), plain(ENGINEER_USD_PER_HOUR)),
    )
    return "\n".join((_HEAD, "[plan]", *names, *amounts, "", "[prices]", *names, ""))


def _prompt(question: str, default: object, read: Callable[[str], Any]) -> Any:  # noqa: ANN401 - of the reader
    return click.prompt(
        question, default=default, value_proc=read, show_default=default != "", err=True
    )


def _names(unknown: Callable[[tuple[str, ...]], list[str]]) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of names that stand apart by blanks or commas."""

    def read(answer: str) -> tuple[str, ...]:
        given = tuple(dict.fromkeys(answer.lower().replace(",", " ").split()))
        problems = unknown(given)
        if problems:
            raise click.UsageError(" ".join(problems))
        return given

    return read


def _typed(kind: click.ParamType[Any]) -> Callable[[Any], Decimal]:
    return lambda answer: Decimal(kind.convert(answer, None, None))


def _unknown_providers(given: Iterable[str], catalog: Catalog) -> list[str]:
    return unknown_names("--provider", given, (offer.provider for offer in catalog.offers))


def _unknown_regions(given: Iterable[str], catalog: Catalog) -> list[str]:
    return unknown_names("--region", given, known_regions(catalog.offers))


def _listed(names: tuple[str, ...]) -> str | None:
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"[{quoted}]" if names else None


def _amount(value: Decimal | None) -> str | None:
    return None if value is None else plain(value)


def _line(key: str, value: str | None, example: str) -> str:
    return f"# {key} = {example}" if value is None else f"{key} = {value}"
