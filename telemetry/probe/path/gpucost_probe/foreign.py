"""How objects of the program's framework are typed: known by nothing but their attributes.

Imported by no program, only by type checkers: no version of any framework can be relied on here.
"""

from __future__ import annotations

from typing import Any, Iterator, Protocol


class Foreign(Protocol):
    """A tensor, an optimizer, a loader, a model: what it has is looked up as it is used."""

    def __getattr__(self, name: str) -> Any:
        """Return an attribute."""

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute."""

    def __len__(self) -> int:
        """Return the length of what has one."""

    def __float__(self) -> float:
        """Return the value of what is one number."""

    def __iter__(self) -> Iterator[Any]:
        """Return an iterator over what it gives."""
