"""The bootstrap of a machine: what arms its end, and its settings, for cloud-init; no secret.

The document has two parts. The first is a boothook: cloud-init runs it at every boot before
anything else, so that a machine whose packages, disks or drivers fail still knows its deadline.
"""

import json
import re
import shlex
from collections.abc import Iterator
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from pricing.errors import InputError
from templates.bootstrap_deadline import ENDS, SCRIPTS, deadline_values, units
from templates.bootstrap_settings import MPS

_BOUNDARY = "==gpucost=="
_SLUG = re.compile(r"[^A-Za-z0-9._-]+")
_SCRIPTS = (
    ("/opt/gpucost/bootstrap.sh", "bootstrap.sh.j2"),
    ("/opt/gpucost/run", "run.sh.j2"),
    ("/opt/gpucost/bind", "bind.sh.j2"),
)


def render_bootstrap(machine: dict[str, Any]) -> str:
    """Return the cloud-init document of a machine.

    Args:
        machine: `run`, `deadline` ("2026-11-21 20:15:00 UTC"), `ttl_s`, `end` (one of ENDS),
            `end_url` (of the provider's call that ends a machine, before its id), `end_id_url`
            (where the machine reads that), `end_title` (of the provider), `gpu_vendor`
            ("nvidia", "amd"), `gpu_count` (whole GPUs), `environment` (variables of the jobs),
            `launcher` (`nproc_per_node`, and where they apply `nnodes`, `max_restarts`, `numa`),
            `sharing` (None, "mps", "time-slicing"), `jobs` (names of jobs that share) and `scratch`
            (whether empty disks may be formatted).

    Raises:
        InputError: `end` or `sharing` is of no known kind.
    """
    values = _checked(machine)
    document = MIMEMultipart("mixed", _BOUNDARY)
    if values["end"] != "none":
        document.attach(_part("cloud-boothook", _arming(values)))
    config = _environment().get_template("cloud-config.yaml.j2")
    document.attach(
        _part("cloud-config", config.render(run=values["run"], files=list(_files(values))))
    )
    return document.as_string()


def _part(kind: str, text: str) -> MIMEText:
    """A part of the document; cloud-init knows what to do with it by its type."""
    return MIMEText(text, kind, "us-ascii")


def _arming(values: dict[str, Any]) -> str:
    """The script that arms the end: it carries every file that this needs."""
    texts = {path: _environment().get_template(name) for path, name in SCRIPTS.items()}
    files = [_file(path, "0755", text.render(values)) for path, text in texts.items()]
    files += [_file(path, "0644", text) for path, text in units(values).items()]
    return _environment().get_template("arm.sh.j2").render(values, files=files)


def render_files(machine: dict[str, Any]) -> str:
    """Return the same files as JSON, for a machine that has booted before.

    Raises:
        InputError: as `render_bootstrap`.
    """
    return json.dumps(list(_files(_checked(machine))))


def _checked(machine: dict[str, Any]) -> dict[str, Any]:
    if machine["end"] not in ENDS or machine["sharing"] not in (None, "mps", "time-slicing"):
        raise InputError(f"a machine cannot be set up for {machine['end']}, {machine['sharing']}.")
    jobs = list(dict.fromkeys(_SLUG.sub("-", name).strip("-") or "job" for name in machine["jobs"]))
    launcher = machine["launcher"]
    told = {"nnodes": "1", "max_restarts": None, "numa": None, **launcher}
    deadline = deadline_values(machine["deadline"])
    urls = {name: shlex.quote(machine[name]) for name in ("end_url", "end_id_url")}
    return {**machine, **told, **deadline, **urls, "jobs": jobs, "several": told["nnodes"] != "1"}


def _files(values: dict[str, Any]) -> Iterator[dict[str, str]]:
    yield _file("/etc/gpucost/environment", "0644", _variables(values))
    for path, name in _SCRIPTS:
        yield _file(path, "0755", _environment().get_template(name).render(values))


def _file(path: str, mode: str, text: str) -> dict[str, str]:
    return {"path": path, "mode": mode, "text": text}


def _variables(values: dict[str, Any]) -> str:
    """The environment file: NAME=value, quoted for a shell."""
    found = {**values["environment"], "TMPDIR": "/scratch"}
    if values["sharing"] == "mps":
        found |= MPS
    return "".join(f"{name}={shlex.quote(text)}\n" for name, text in sorted(found.items()))


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("templates", "bootstrap"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        comment_start_string="{##",  # the shell has ${#array[@]}
        undefined=StrictUndefined,
        autoescape=False,  # noqa: S701 - shell and YAML; names are reduced to plain letters
    )
