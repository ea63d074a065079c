"""Ends node pools of gpucost at their deadline from inside a cluster: a CronJob runs this file.

It has the standard library alone, and the API's own clock. A pool that waits for it is marked as
armed, so that its launch knows that somebody here can end it.
"""

import json
import os
import re
import urllib.request
from datetime import datetime
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

_Json = dict[str, Any]
_CLUSTERS = "/v2/kubernetes/clusters"
_POOL = re.compile(r"gpucost-([a-z2-9]+)-pool")
UNTIL = "gpucost-until:"
"""Before the deadline in a tag of a pool, which stays where somebody takes its labels away."""

_CALL_S, _PAGE = 20, 200


def call(method: str, path: str, body: object = None) -> tuple[_Json, datetime]:
    """Return the document of one call, empty where it has none, and the API's time."""
    api = os.environ.get("API", "https://api.digitalocean.com")
    token = Path(os.environ.get("TOKEN_FILE", "/token/token")).read_text(encoding="ascii").strip()
    request = urllib.request.Request(  # noqa: S310 - https, as it stands above
        f"{api}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=_CALL_S) as answer:  # noqa: S310 - the same
        content = answer.read()
        return json.loads(content or b"{}"), parsedate_to_datetime(answer.headers["Date"])


def due(pool: _Json, now: datetime) -> str:
    """Return "end" or "arm" for a pool of gpucost that needs it; empty: it is left alone."""
    name, labels = _POOL.fullmatch(str(pool.get("name"))), pool.get("labels") or {}
    tags = [tag[len(UNTIL) :] for tag in pool.get("tags") or () if tag.startswith(UNTIL)]
    if name is None or labels.get("gpucost-run", name[1]) != name[1]:
        return ""
    try:
        texts = (labels.get("gpucost-deadline"), *tags)
        until = max(
            text for text in texts if text
        )  # a later deadline leaves the earlier one behind
        deadline = datetime.strptime(until + "+0000", "%Y%m%dT%H%M%SZ%z")
    except ValueError:
        return ""
    if now >= deadline:
        return "end"
    return "arm" if labels.get("gpucost-ender") == "wanted" else ""


def with_labels(pool: _Json, labels: dict[str, str]) -> _Json:
    """Return the body of the call that gives a pool more labels: all else stays as it is."""
    names = ("name", "count", "auto_scale", "min_nodes", "max_nodes", "taints", "tags")
    body = {name: pool[name] for name in names if pool.get(name) not in (None, [])}
    until = [f"{UNTIL}{labels['gpucost-deadline']}"] if "gpucost-deadline" in labels else []
    replaced = UNTIL if until else "k8s"
    tags = [tag for tag in pool.get("tags") or () if not tag.startswith(("k8s", replaced))]
    return {**body, "tags": [*tags, *until], "labels": {**(pool.get("labels") or {}), **labels}}


def look() -> None:
    """Look once into every cluster that the token reaches.

    Raises:
        OSError: a call failed; the CronJob looks again.
    """
    page, failure = 1, None
    while page:
        answer, now = call("GET", f"{_CLUSTERS}?page={page}&per_page={_PAGE}")
        clusters = answer["kubernetes_clusters"]
        page = page + 1 if len(clusters) == _PAGE else 0
        for cluster in clusters:
            for pool in cluster.get("node_pools") or ():
                act, path = due(pool, now), f"{_CLUSTERS}/{cluster['id']}/node_pools/{pool['id']}"
                try:
                    if act == "end":
                        call("DELETE", path)
                    elif act:
                        call("PUT", path, with_labels(pool, {"gpucost-ender": "armed"}))
                except OSError as error:  # one that cannot be ended keeps no other
                    failure = error
    if failure is not None:
        raise failure


if __name__ == "__main__":
    look()
