"""What runs in a Lambda account: instances and file systems; its API tells no use and no age."""

import json
import shlex
from datetime import datetime
from decimal import Decimal

from pricing.errors import ProviderError
from pricing.listing import as_typed
from pricing.tables import members, objects
from providers.account_scan import DISK, ScanDraft, ScannedItem, disk_usd_per_hour, read_instant
from providers.interface import MACHINE
from providers.lambda_cloud.access import VARIABLES, LambdaApi
from providers.lambda_cloud.inventory import LISTS, NAMED, PROVIDER, marks_of
from providers.provider import Request
from providers.token_api import JsonDocument

_GONE = ("terminating", "terminated", "preempted")
_API = 'curl --fail -u "$LAMBDA_API_KEY:"'
_ADDRESS = "https://cloud.lambda.ai/api/v1"
_FILES = "/file-systems"
_NO_USE = "Lambda's API tells no use"


def scan(request: Request) -> ScanDraft:
    """Return what the account shows.

    Raises:
        MissingCredentialsError, InputError: the environment names no access, or wrongly.
    """
    api = LambdaApi(access=VARIABLES.read(request.environment))
    draft = ScanDraft(provider=PROVIDER, places=request.regions)
    with draft.asking(MACHINE):
        for instance in _listed(api, LISTS[MACHINE]):
            if instance.get("status") not in _GONE and _has_gpus(instance):
                draft.take(_machine(instance))
    with draft.asking(DISK):
        for files in _listed(api, _FILES):
            if files.get("is_in_use") is False:
                draft.take(_file_system(files, request.now))
    return draft


def _listed(api: LambdaApi, path: str) -> list[JsonDocument]:
    try:
        return [dict(item) for item in objects(api.get(path, f"listing {path[1:]}"))]
    except TypeError:
        raise ProviderError(f"Lambda: the list of {path[1:]} cannot be read.") from None


def _has_gpus(instance: JsonDocument) -> bool:
    """Return whether the type of an instance has GPUs; one that does not say has."""
    specs = members(members(instance.get("instance_type") or {}).get("specs") or {})
    return specs.get("gpus") != 0


def _region(item: JsonDocument) -> str:
    return str(members(item.get("region") or {}).get("name", ""))


def _machine(instance: JsonDocument) -> ScannedItem:
    id_, name = str(instance["id"]), str(instance.get("name") or "")
    marks, named = marks_of(MACHINE, instance, {}), NAMED.fullmatch(name)
    sold = members(instance.get("instance_type") or {})
    body = shlex.quote(json.dumps({"instance_ids": [id_]}))
    header = "-H 'Content-Type: application/json'"
    ends = f"{_API} -X POST {_ADDRESS}/instance-operations/terminate {header} -d {body}"
    return ScannedItem(
        provider=PROVIDER,
        kind=MACHINE,
        id=id_,
        name=name or str(instance.get("hostname") or ""),
        region=_region(instance),
        type=str(sold.get("name", "")),
        state=str(instance.get("status", "")),
        tags={
            str(tag.get("key")): str(tag.get("value"))
            for tag in objects(instance.get("tags") or ())
        },
        run=marks.run if marks else named[2] if named else None,
        vcpus=int(str(members(sold.get("specs") or {}).get("vcpus") or 0)) or None,
        why=_NO_USE,
        command=ends,
    )


def _file_system(files: JsonDocument, now: datetime) -> ScannedItem:
    """Return a file system that no instance has mounted; it is billed by what is stored in it."""
    id_, size = str(files["id"]), files.get("bytes_used")
    gib = None if size is None else Decimal(str(size)) / 2**30
    price = None if gib is None else disk_usd_per_hour(PROVIDER, now.date(), _region(files), gib)
    return ScannedItem(
        provider=PROVIDER,
        kind=DISK,
        id=id_,
        name=str(files.get("name", "")),
        region=_region(files),
        started_at=read_instant(files.get("created")),
        disk_gib=None if gib is None else round(float(gib), 3),
        usd_per_hour=price,
        why="mounted nowhere",
        command=f"{_API} -X DELETE {as_typed(f'{_ADDRESS}/filesystems/{id_}')}",
    )
