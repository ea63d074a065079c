"""JSON files with one document, an array of them, or one a line."""

import json

from pricing.errors import InputError


def documents(text: str, name: str) -> tuple[list[dict[str, object]], int]:
    """Return the objects of a file, and how many lines were damaged.

    Args:
        text: one JSON document, or one a line; arrays stand for their items.
        name: the file's name, for messages.

    Raises:
        InputError: no object can be read.
    """
    try:
        whole = json.loads(text)
    except RecursionError:
        raise InputError(f"{name}: brackets are nested too deeply for telemetry.") from None
    except ValueError as error:
        found, damaged = _by_line(text)
        if found:
            return found, damaged
        where = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(
            f"{name}{where}: not valid JSON ({reason}), so nothing in it can be trusted; the file "
            "may be cut short. Export it again."
        ) from None
    items = whole if isinstance(whole, list) else [whole]
    found = [item for item in items if isinstance(item, dict)]
    if not found:
        raise InputError(f"{name}: no JSON object in it, so nothing was measured. Export it again.")
    return found, len(items) - len(found)


def _by_line(text: str) -> tuple[list[dict[str, object]], int]:
    found: list[dict[str, object]] = []
    damaged = 0
    for line in text.split("\n"):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):
            damaged += 1
            continue
        if isinstance(item, dict) and len(item) > 0:
            found.append(item)
        else:
            damaged += 1
    return (found, damaged) if len(found) >= damaged else ([], damaged)
