"""The bootstrap of a machine: what arms its end, and its settings, for cloud-init; no secret.

The document has two parts. The first is a boothook: cloud-init runs it at every boot before
anything else, so that a machine whose packages, disks or drivers fail still knows its deadline.
"""

import gzip
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from email.encoders import encode_base64
from email.mime.base import MIMEBase
from email.mime.multipart import MIMEMultipart
from email.mime.text import MIMEText
from typing import TYPE_CHECKING

from pricing.errors import InputError
from templates import templates_in
from templates.bootstrap_deadline import ENDS, MPS, SCRIPTS, UNITS, deadline_values

if TYPE_CHECKING:
    from jinja2 import Template

_BOUNDARY = "==gpucost=="
MOST_PLAIN = 15_360
"""Bytes of user data that every provider takes: EC2's 16 KiB, less a key that is added there."""

_SLUG = re.compile(r"[^A-Za-z0-9._-]+")
_SCRIPTS = (
    ("/opt/gpucost/bootstrap.sh", "bootstrap.sh.j2"),
    ("/opt/gpucost/run", "run.sh.j2"),
    ("/opt/gpucost/bind", "bind.sh.j2"),
)
_CHECKPOINT = ("/opt/gpucost/checkpoint", "checkpoint.sh.j2")
_ACTIVITY = ("/opt/gpucost/activity", "activity.sh.j2")
_NOTICES_UNIT = ("/etc/systemd/system/gpucost-notices.service", "notices.service")
_NOTICES = ("/opt/gpucost/notices.sh", "notices.sh.j2")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineBootstrap:
    """What the bootstrap of a machine needs to know.

    Attributes:
        run: id of the run.
        deadline: aware, of the run.
        ttl_s: from boot to the deadline, at most.
        end: how it ends, one of ENDS.
        end_id_url: where the machine reads its id; empty: it is handed over with the token.
        end_url: where the provider tells of a machine, before its id; a DELETE there ends it.
        end_post: where a POST with `instance_ids` ends it instead; empty: nowhere.
        gpu_vendor: "nvidia", "amd"; empty: unknown.
        gpu_count: whole GPUs.
        environment: variables of the jobs.
        launcher: `nproc_per_node`, and where they apply `nnodes`, `max_restarts`, `numa`.
        sharing: None, "mps", "time-slicing" or "mig".
        jobs: names of jobs that share the machine.
        scratch: whether empty disks may be formatted.
        idle_s: it ends itself once no GPU has worked for so long; None: it has no such rule.
        interconnect: between its GPUs, as offers say it; "nvlink" and "xgmi" are checked.
        notices: where a spot machine reads that it is taken back: `token_url`, `token_life`,
            `token_header`, `taken_url`, `at_risk_url`, or as templates.bootstrap_deadline has it;
            empty: nowhere.
        power_cap_w: of each GPU, in watts; None: as it is.
        mig: profiles of the slices of each GPU, such as "3g.40gb"; empty: MIG is left as it is.
        slices: profile of each job's slice, in the order of jobs; empty: no job has one.

    Raises:
        InputError: `end` or `sharing` is of no known kind, it cannot end when it is idle, or it is
            shared by MIG and has not a slice for each job.
    """

    run: str
    deadline: datetime
    ttl_s: int
    end: str
    end_id_url: str
    end_url: str
    gpu_vendor: str
    gpu_count: int
    environment: Mapping[str, str]
    launcher: Mapping[str, int | float | str]
    sharing: str | None
    jobs: tuple[str, ...]
    scratch: bool
    idle_s: int | None = None
    interconnect: str = ""
    notices: Mapping[str, str] = field(default_factory=dict)
    power_cap_w: int | None = None
    mig: tuple[str, ...] = ()
    slices: tuple[str, ...] = ()
    end_post: str = ""

    def __post_init__(self) -> None:
        if self.idle_s is not None and (self.end == "none" or not self.gpu_count):
            raise InputError("a machine that does not end itself, or has no GPU, cannot when idle.")
        if self.end not in ENDS or self.sharing not in (None, "mps", "time-slicing", "mig"):
            raise InputError(f"a machine cannot be set up for {self.end}, {self.sharing}.")
        if self.sharing == "mig" and not len(self.jobs) == len(self.slices) > 0:
            raise InputError("each job on a machine that is shared by MIG has a slice of it.")


def render_bootstrap(machine: MachineBootstrap, *, most_bytes: int | None = None) -> str:
    """Return the cloud-init document of a machine.

    Args:
        machine: what to set up.
        most_bytes: a longer document is compressed, part by part; None: never.
    """
    config = _template("cloud-config.yaml.j2")
    parts = {"cloud-config": config.render(run=machine.run, files=list(_files(machine)))}
    if machine.end != "none":
        parts = {"cloud-boothook": _arming(machine), **parts}
    plain = _document(MIMEText(text, kind, "us-ascii") for kind, text in parts.items())
    if most_bytes is None or len(plain) <= most_bytes:
        return plain
    return _document(_packed(kind, text) for kind, text in parts.items())


def _document(parts: Iterable[MIMEBase]) -> str:
    document = MIMEMultipart("mixed", _BOUNDARY)
    for part in parts:
        document.attach(part)
    return document.as_string()


def _packed(kind: str, text: str) -> MIMEBase:
    """Return a compressed part; cloud-init knows what is in it by its first line."""
    named = text if text.startswith(f"#{kind}\n") else f"#{kind}\n{text}"
    part = MIMEBase("application", "gzip")
    part.set_payload(gzip.compress(named.encode("ascii"), mtime=0))
    encode_base64(part)
    return part


def render_arming(machine: MachineBootstrap) -> str:
    """Return what a machine gets that another tool sets up, as a script for root.

    It arms its end, unless that is "none", and lets what runs there save before it goes.
    """
    return _arming(machine, is_single=True)


def _arming(machine: MachineBootstrap, *, is_single: bool = False) -> str:
    """Return the script that arms the end: it carries every file that this needs.

    Args:
        machine: whose end.
        is_single: whether nothing else of ours comes to the machine.
    """
    values = _values(machine) | {"alone": is_single}
    looks = is_single and machine.idle_s is not None
    ends = machine.end != "none"
    scripts = {**(SCRIPTS if ends else {}), **(dict((_ACTIVITY,)) if looks else {})}
    if is_single:
        scripts |= dict((_CHECKPOINT, _NOTICES) if machine.notices else (_CHECKPOINT,))
    units = dict(UNITS) if ends else {}
    if is_single and machine.notices:
        units |= dict((_NOTICES_UNIT,))
    files = [
        _file(path, mode, _template(name).render(values))
        for mode, named in (("0755", scripts), ("0644", units))
        for path, name in named.items()
    ]
    return _template("arm.sh.j2").render(values, files=files)


def render_files(machine: MachineBootstrap) -> str:
    """Return the same files as JSON, for a machine that has booted before."""
    return json.dumps(list(_files(machine)))


def _values(machine: MachineBootstrap) -> dict[str, object]:
    """Return what the templates name: the fields, the launcher's, and what follows from them."""
    plain = {declared.name: getattr(machine, declared.name) for declared in fields(machine)}
    names = [_SLUG.sub("-", name).strip("-") or "job" for name in machine.jobs]
    launcher = {"nnodes": "1", "max_restarts": None, "numa": None, **machine.launcher}
    return {
        **plain,
        **launcher,
        **deadline_values(machine.deadline, machine.idle_s),
        "end_url": shlex.quote(machine.end_url),
        "end_id_url": machine.end_id_url and shlex.quote(machine.end_id_url),
        "end_call": _end_call(machine),
        "notices": {name: shlex.quote(text) for name, text in machine.notices.items()},
        "jobs": list(dict.fromkeys(names)),
        "job_slices": [f"{job}={cut}" for job, cut in zip(names, machine.slices, strict=False)],
        "several": launcher["nnodes"] != "1",
    }


def _end_call(machine: MachineBootstrap) -> str:
    """Return the arguments of curl for the call that ends a machine whose id is in `id`."""
    if not machine.end_post:
        return f'--request DELETE {shlex.quote(machine.end_url)}"${{id:?}}"'
    body = r"""--data '{"instance_ids": ["'"${id:?}"'"]}'"""
    return f"--header 'Content-Type: application/json' {body} {shlex.quote(machine.end_post)}"


def _files(machine: MachineBootstrap) -> Iterator[dict[str, str]]:
    values = _values(machine)
    yield _file("/etc/gpucost/environment", "0644", _variables(machine))
    scripts = list(_SCRIPTS)
    scripts += [_CHECKPOINT] if machine.end != "none" else []
    scripts += [_ACTIVITY] if machine.idle_s is not None else []
    scripts += [_NOTICES] if machine.notices else []
    for path, name in scripts:
        yield _file(path, "0755", _template(name).render(values))
    if machine.notices:
        yield _file(_NOTICES_UNIT[0], "0644", _template(_NOTICES_UNIT[1]).render())


def _file(path: str, mode: str, text: str) -> dict[str, str]:
    return {"path": path, "mode": mode, "text": text}


def _variables(machine: MachineBootstrap) -> str:
    """Return the environment file: NAME=value, quoted for a shell."""
    variables = {**machine.environment, "TMPDIR": "/scratch"}
    if machine.sharing == "mps":
        variables |= MPS
    return "".join(f"{name}={shlex.quote(text)}\n" for name, text in sorted(variables.items()))


def _template(name: str) -> "Template":
    """Return a template; in its values names are reduced to plain letters."""
    return templates_in("bootstrap", are_shell=True).get_template(name)
