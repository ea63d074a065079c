"""What an identity must be allowed for gpucost to work: an IAM policy, or the scopes of a token.

At AWS: read always, make only with our tags, change only what has them; the role of --end-role ends
instances with our tag and node groups with our name, and nothing else; the service-linked role is
what EC2 makes at the first spot request of an account. Scopes are rows of a scope and what it is
for: docs.digitalocean.com/reference/api/scopes, edited 2025-08-28, and for Kubernetes the OpenAPI
document, read 2026-11-22. Each in `permissions.json`, as `gpucost iam-policy --provider` names it.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from pricing.tables import JsonObject

Scopes = list[list[str]]
"""Rows of a scope, and what it is for."""


@cache
def permissions() -> Mapping[str, Any]:
    """Return each policy document (`JsonObject`) or list of `Scopes`, by name."""
    text = files("providers").joinpath("permissions.json").read_text(encoding="utf-8")
    documents: dict[str, Any] = json.loads(text)
    return documents


def reading(allowed: JsonObject | Scopes) -> JsonObject | Scopes:
    """Return what of it refreshing prices and looking needs; all, where it is not told apart."""
    if isinstance(allowed, list):
        return [row for row in allowed if row[0].endswith(":read")] or allowed
    statements = allowed.get("Statement", [])
    reads = [one for one in statements if one["Sid"] == "Read"]  # type: ignore[union-attr,index,call-overload]
    return {**allowed, "Statement": reads} if reads else allowed
