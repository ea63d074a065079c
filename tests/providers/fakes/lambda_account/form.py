"""The documented form of requests to Lambda: what is in none of it is refused.

Fields, required ones and their limits are those of docs.lambda.ai/api/cloud as the client of PyPI
that is generated from it has them (lambda-ai-cloud-api-client 2.4.1, read 2026-11-22). Where the
OpenAPI document itself is at hand (GPUCOST_LAMBDA_OPENAPI; 1.10.0 was, on 2026-11-30) exchanges are
held against it, too.
"""

import re
from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

_RULE = {"protocol": str, "source_network": str, "description": str, "port_range": list}
_FIELDS: dict[str, tuple[dict[str, type], tuple[str, ...]]] = {
    "/instance-operations/launch": (
        {
            "region_name": str,
            "instance_type_name": str,
            "ssh_key_names": list,
            "file_system_names": list,
            "hostname": str,
            "name": str,
            "image": dict,
            "user_data": str,
            "tags": list,
            "firewall_rulesets": list,
        },
        ("region_name", "instance_type_name", "ssh_key_names"),
    ),
    "/instance-operations/terminate": ({"instance_ids": list}, ("instance_ids",)),
    "/ssh-keys": ({"name": str, "public_key": str}, ("name",)),
    "/firewall-rulesets": (
        {"name": str, "region": str, "rules": list},
        ("name", "region", "rules"),
    ),
    "/instances/": ({"name": str}, ()),
}
"""The fields of each request with a body, and those that must be there."""


_TAG = re.compile(r"[a-z][a-z0-9:-]*")
_LONGEST_NAME, _LONGEST_USER_DATA = 64, 1_000_000


def violations(path: str, body: Document) -> Iterator[str]:
    """What of the body of a POST is not documented."""
    begin = next((one for one in _FIELDS if path == one or (one[-1] == "/" and one in path)), None)
    if begin is None:
        yield "no such call"
        return
    known, needed = _FIELDS[begin]
    yield from (f"{name} is missing" for name in needed if name not in body)
    yield from (f"{name} is not documented" for name in body if name not in known)
    for name, value in body.items():
        if name in known and not isinstance(value, known[name]):
            yield f"{name} is {value!r:.60}"
    yield from _beyond_limits(body)
    yield from _wrong_parts(body)


def _beyond_limits(body: Document) -> Iterator[str]:
    if len(str(body.get("name", ""))) > _LONGEST_NAME:
        yield f"name has over {_LONGEST_NAME} characters"
    if len(str(body.get("user_data", ""))) > _LONGEST_USER_DATA:
        yield "user_data has over 1 MB"
    if len(body.get("ssh_key_names", [1])) != 1:
        yield "exactly one SSH key must be specified"


def _wrong_parts(body: Document) -> Iterator[str]:
    for tag in body.get("tags", ()):
        if set(tag) != {"key", "value"} or not _TAG.fullmatch(tag["key"]):
            yield f"tag {tag}"
    for one in body.get("firewall_rulesets", ()):
        if set(one) != {"id"}:
            yield f"firewall ruleset {one}"
    if "image" in body and set(body["image"]) not in ({"id"}, {"family"}):
        yield f"image {body['image']}"
    for rule in body.get("rules", ()):
        yield from (f"rule: {name}" for name in {*_RULE} ^ {*rule})
        yield from (f"rule: {n} is {v}" for n, v in rule.items() if not isinstance(v, _RULE[n]))
