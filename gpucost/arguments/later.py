"""What the contract names and this version lacks: refused with exit 2, and offered nowhere."""

from collections.abc import Callable, Sequence
from typing import Any

import click

from pricing.errors import NotBuiltYetError


class BuiltChoice(click.Choice[str]):
    """A choice that help and completion offer only where it is built.

    Attributes:
        later: words of the contract that this version refuses.
    """

    def __init__(self, built: Sequence[str], later: Sequence[str]) -> None:
        super().__init__(built)
        self.later = tuple(later)

    def convert(
        self,
        value: Any,  # noqa: ANN401 - click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str:
        """Return the word.

        Raises:
            NotBuiltYetError: it is one of `later`.
        """
        if value in self.later:
            name = param.opts[0] if param else "it"
            raise NotBuiltYetError(
                f"{name} {value} is not built yet; this version has {', '.join(self.choices)}."
            )
        return super().convert(value, param, ctx)


def later_option(flag: str, *, is_flag: bool = False) -> Callable[[Any], Any]:
    """Return a hidden option that is refused when it is given."""
    kind: dict[str, Any] = {"is_flag": True, "default": False} if is_flag else {}
    return click.option(flag, hidden=True, expose_value=False, callback=_refuse, **kind)


def _refuse(ctx: click.Context, param: click.Parameter, value: object) -> None:
    if value is None or value is False or ctx.resilient_parsing:
        return
    raise NotBuiltYetError(f"{param.opts[0]} is not built yet; leave it out.")
