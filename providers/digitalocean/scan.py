"""What runs in a DigitalOcean account: GPU Droplets, node pools of them, volumes, reserved IPs."""

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from decimal import Decimal
from functools import partial
from itertools import pairwise

from pricing.errors import ProviderError
from pricing.tables import elements, members, objects
from providers import account_scan
from providers.digitalocean.access import VARIABLES, DigitalOceanApi
from providers.digitalocean.resources import KINDS, NAMED, PROVIDER, marks_of, region_of
from providers.interface import MACHINE, run_of_node
from providers.provider import Request
from providers.token_api import JsonDocument

_AT_ONCE = 8
_HOUR_S = 3600
_CPU = "/v2/monitoring/metrics/droplet/cpu"
_IDLE = "idle"
_OFF = "off"
_IN_CLUSTER = "k8s"  # a tag of every node
_Nodes = dict[str, tuple[str, str, str, str]]
"""Droplet -> id of its cluster, id and name of its pool, its id as a node."""


def scan(request: Request) -> account_scan.ScanDraft:
    """Return what the account shows; a list that may not be read hides no other.

    Raises:
        MissingCredentialsError, InputError: the environment names no access, or wrongly.
    """
    api = DigitalOceanApi(access=VARIABLES.read(request.environment))
    draft = account_scan.ScanDraft(provider=PROVIDER, places=request.regions)
    droplets, nodes = list[JsonDocument](), _Nodes()
    volumes: list[JsonDocument] | None = None
    with draft.asking(MACHINE):
        path, many = KINDS[MACHINE][:2]
        droplets = list(api.pages(path, many, "listing GPU Droplets", {"type": "gpus"}))
    with draft.asking(account_scan.NODE_POOL):
        nodes = _nodes(api)
    with draft.asking(account_scan.DISK):
        volumes = list(api.pages("/v2/volumes", "volumes", "listing volumes"))
    with draft.asking(account_scan.ADDRESS):
        for address in api.pages("/v2/reserved_ips", "reserved_ips", "listing reserved IPs"):
            if not address.get("droplet"):
                draft.take(_address(address))
    hours = _use(api, draft, [str(droplet["id"]) for droplet in droplets], request.now)
    for droplet in droplets:
        item = _attached(_machine(droplet, nodes), volumes, request.now)
        draft.take(account_scan.measured(item, hours.get(item.id, [])))
    for volume in volumes or ():
        if not volume.get("droplet_ids"):
            draft.take(_volume(volume, request.now))
    return draft


def _nodes(api: DigitalOceanApi) -> _Nodes:
    """Return the nodes of every cluster."""
    path, many = "/v2/kubernetes/clusters", "kubernetes_clusters"
    return {
        str(node["droplet_id"]): (
            str(cluster["id"]),
            str(pool["id"]),
            str(pool.get("name", "")),
            str(node["id"]),
        )
        for cluster in api.pages(path, many, "listing Kubernetes clusters")
        for pool in objects(cluster.get("node_pools") or ())
        for node in objects(pool.get("nodes") or ())
        if node.get("droplet_id")
    }


def _tags(item: JsonDocument) -> dict[str, str]:
    """Return plain tags by name: "owner:ada" is the owner."""
    parts = (str(tag).partition(":") for tag in elements(item.get("tags") or ()))
    return {name: value for name, _, value in parts}


def _machine(droplet: JsonDocument, nodes: _Nodes) -> account_scan.ScannedItem:
    id_, name, size = (str(droplet.get(key, "")) for key in ("id", "name", "size_slug"))
    marks, named = marks_of(MACHINE, droplet, {}), NAMED.fullmatch(name)
    run = marks.run if marks else named[1] if named else run_of_node(name)
    cluster, pool, pool_name, node = nodes.get(id_, ("", "", "", ""))
    ends = ["doctl", "compute", "droplet", "delete", id_]
    tags = _tags(droplet)
    if pool or _IN_CLUSTER in tags:  # which would replace it, unless that shrinks with it
        ends = ["doctl", "kubernetes", "cluster", "node-pool", "delete-node", cluster, pool, node]
    is_off = droplet.get("status") == _OFF
    return account_scan.ScannedItem(
        provider=PROVIDER,
        kind=MACHINE,
        id=id_,
        name=name,
        region=region_of(droplet),
        type=size,
        purchase="spot" if size.endswith("-spot") else "on_demand",
        state=str(droplet.get("status", "")),
        pool=pool_name,
        tags=tags,
        run=run or None,
        started_at=account_scan.read_instant(droplet.get("created_at")),
        vcpus=int(str(droplet.get("vcpus") or 0)) or None,
        idle=True if is_off else None,
        why="switched off, and billed in full" if is_off else "",
        command=account_scan.command(*ends),
    )


def _attached(
    item: account_scan.ScannedItem, volumes: list[JsonDocument] | None, now: datetime
) -> account_scan.ScannedItem:
    """Return a machine with the prices of its volumes; its addresses cost nothing."""
    if volumes is None:
        return account_scan.attach(item, (None,))
    own = [v for v in volumes if item.id in map(str, elements(v.get("droplet_ids") or ()))]
    return account_scan.attach(item, [_volume_price(volume, now) for volume in own])


def _volume_price(volume: JsonDocument, now: datetime) -> Decimal | None:
    gib = Decimal(str(volume.get("size_gigabytes") or 0))
    return account_scan.disk_usd_per_hour(PROVIDER, now.date(), region_of(volume), gib)


def _volume(volume: JsonDocument, now: datetime) -> account_scan.ScannedItem:
    id_ = str(volume["id"])
    return account_scan.ScannedItem(
        provider=PROVIDER,
        kind=account_scan.DISK,
        id=id_,
        name=str(volume.get("name", "")),
        region=region_of(volume),
        tags=_tags(volume),
        started_at=account_scan.read_instant(volume.get("created_at")),
        disk_gib=float(str(volume.get("size_gigabytes") or 0)),
        usd_per_hour=_volume_price(volume, now),
        command=account_scan.command("doctl", "compute", "volume", "delete", id_),
    )


def _address(address: JsonDocument) -> account_scan.ScannedItem:
    """Return a reserved IP that no Droplet has; it is billed, at a price that is not known here."""
    ip = str(address["ip"])
    return account_scan.ScannedItem(
        provider=PROVIDER,
        kind=account_scan.ADDRESS,
        id=ip,
        name=ip,
        region=region_of(address),
        command=account_scan.command("doctl", "compute", "reserved-ip", "delete", ip),
    )


def _use(
    api: DigitalOceanApi, draft: account_scan.ScanDraft, ids: list[str], now: datetime
) -> Mapping[str, list[float]]:
    """Return the busy share of each Droplet's CPU by hour; of some it may not be known."""
    hours: dict[str, list[float]] = {}
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        answers = pool.map(partial(_cpu_hours, api, now), ids)
        for id_, answer in zip(ids, answers, strict=True):
            if isinstance(answer, ProviderError):
                with draft.asking(account_scan.USE):
                    raise answer
            else:
                hours[id_] = answer
    return hours


def _cpu_hours(api: DigitalOceanApi, now: datetime, id_: str) -> list[float] | ProviderError:
    """Return the hours of a Droplet; none where its agent has sent nothing."""
    window = {
        "start": str(int((now - timedelta(days=account_scan.DAYS)).timestamp())),
        "end": str(int(now.timestamp())),
    }
    try:
        answer = api.get(_CPU, f"reading the use of Droplet {id_}", host_id=id_, **window)
        return busy_hours(answer)
    except ProviderError as error:
        return error
    except (KeyError, TypeError, ValueError):
        return ProviderError("DigitalOcean: the answer about use cannot be read.")


def busy_hours(answer: JsonDocument) -> list[float]:
    """Return the busy share of each hour, from counters of CPU seconds by mode.

    What restarts a counter, such as a reboot, ends an interval that is left out.
    """
    samples: dict[float, dict[str, float]] = {}
    for series in objects(members(answer["data"])["result"] or ()):
        mode = str(members(series["metric"]).get("mode", ""))
        for at, seconds in (elements(value) for value in elements(series["values"])):
            samples.setdefault(float(str(at)), {})[mode] = float(str(seconds))
    hours: dict[int, list[float]] = {}
    for (at, before), (_, after) in pairwise(sorted(samples.items())):
        grown = {mode: after[mode] - before[mode] for mode in before.keys() & after.keys()}
        total = sum(grown.values())
        if _IDLE in grown and total > 0 and min(grown.values()) >= 0:
            sums = hours.setdefault(int(at // _HOUR_S), [0.0, 0.0])
            sums[0], sums[1] = sums[0] + total - grown[_IDLE], sums[1] + total
    return [busy / total for busy, total in hours.values()]
