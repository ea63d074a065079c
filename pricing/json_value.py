"""What a JSON document is made of, as a type: for what is written, and what is handed on unread."""

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "Mapping[str, Json] | Sequence[Json] | str | float | bool | None"
JsonObject: TypeAlias = Mapping[str, Json]
