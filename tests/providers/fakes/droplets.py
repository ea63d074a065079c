"""A Droplet as the API prints it."""

from datetime import datetime
from typing import Any


def droplet_json(
    key: int, body: dict[str, Any], size: dict[str, Any], made: datetime
) -> dict[str, Any]:
    """The Droplet of a create call, before it runs."""
    region = {
        "name": body["region"],
        "slug": body["region"],
        "features": ["monitoring"],
        "available": True,
        "sizes": [size["slug"]],
    }
    image = {
        "id": 7,
        "name": str(body["image"]),
        "type": "base",
        "distribution": "Ubuntu",
        "slug": str(body["image"]),
        "public": True,
        "regions": [body["region"]],
        "created_at": "2026-01-01T00:00:00Z",
        "min_disk_size": 20,
        "size_gigabytes": 2.5,
        "description": "",
        "tags": [],
        "status": "available",
        "error_message": "",
    }
    public = {
        "ip_address": f"203.0.113.{key % 250 + 1}",
        "netmask": "255.255.255.0",
        "gateway": "203.0.113.254",
        "type": "public",
    }
    private = {
        "ip_address": f"10.0.0.{key % 250 + 1}",
        "netmask": "255.255.255.0",
        "gateway": "10.0.0.254",
        "type": "private",
    }
    return {
        "id": key,
        "name": body["name"],
        "memory": size["memory"],
        "vcpus": size["vcpus"],
        "disk": size["disk"],
        "locked": False,
        "status": "new",
        "created_at": f"{made:%Y-%m-%dT%H:%M:%SZ}",
        "features": [],
        "backup_ids": [],
        "next_backup_window": None,
        "snapshot_ids": [],
        "image": image,
        "volume_ids": [],
        "size": size,
        "size_slug": size["slug"],
        "networks": {"v4": [private, public], "v6": []},
        "region": region,
        "tags": list(body.get("tags") or []),
        "vpc_uuid": "760e09ef-dc84-11e8-981e-3cfdfeaae000",
    }
