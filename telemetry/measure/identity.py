"""Which machine this is, and which run a measurement is a part of.

The machine's id, who bills it, what the provider calls it and where it stands come from the
firmware (DMI) and the environment, and, only where those name a cloud, from the cloud's metadata
service: at its link-local address, 50 ms a request, no proxy, no redirect, and no request whose
answer can hold a secret. `planner/models/data/clouds.toml` is the table of providers.
"""

import os
import re
import socket
import threading
import tomllib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from pathlib import Path
from typing import Any

from telemetry.measure.processes import in_container, kernel_text

TIMEOUT_S = 0.05
_DMI = Path("/sys/class/dmi/id")
_MACHINE_ID = Path("/etc/machine-id")
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
# What Slurm sets, and what manifests commonly call the node's name of Kubernetes' downward API.
_NODE_NAMES = ("SLURMD_NODENAME", "NODE_NAME", "K8S_NODE_NAME", "KUBE_NODE_NAME", "MY_NODE_NAME")
_FIELDS = ("machine", "instance_type", "region")
_MOST_BYTES = 512
_DIGITS = 12
_SOUND = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@+-]{0,254}")
_Cloud = dict[str, Any]


@cache
def clouds() -> tuple[_Cloud, ...]:
    """Return the rows of the table of providers."""
    table = resources.files("planner.models.data") / "clouds.toml"
    return tuple(tomllib.loads(table.read_text(encoding="utf-8"))["cloud"])


class MachineIdentityReader:
    """Finds out beside the measurement; what is not known yet is asked for again.

    Args:
        metadata: whether a metadata service may be asked.
        environment: of this process.
        dmi: the folder of the firmware's words; for tests.
        table: the providers; for tests.
    """

    def __init__(
        self,
        *,
        metadata: bool = True,
        environment: Mapping[str, str] | None = None,
        dmi: Path = _DMI,
        table: Sequence[_Cloud] | None = None,
    ) -> None:
        environ = os.environ if environment is None else environment
        rows = clouds() if table is None else table
        self._facts: dict[str, str] = {}
        cloud = next((row for row in rows if _is(row, dmi, environ)), None)
        if cloud is not None:
            self._facts = {"provider": cloud["provider"], **_local_facts(cloud, dmi, environ)}
        self._name = _name_of_machine(environ)
        self._thread: threading.Thread | None = None
        if cloud is not None and metadata and "address" in cloud:
            self._thread = threading.Thread(
                target=self._ask, args=(cloud,), name="metadata", daemon=True
            )
            self._thread.start()

    def facts(self) -> dict[str, str]:
        """Return the fields of `observed.MACHINE_IDENTITY` that are known now."""
        facts = dict(self._facts)
        if self._name is not None:
            facts.setdefault("machine", self._name)
        return facts

    def wait(self, timeout_s: float) -> None:
        """Wait until what can be known is known, or the time is over."""
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _ask(self, cloud: _Cloud) -> None:
        answered = ask(cloud)
        self._facts = {**self._facts, **answered}


def ask(cloud: _Cloud) -> dict[str, str]:
    """Return what a provider's metadata service says, by field; empty where it does not answer.

    Args:
        cloud: a row of the table.
    """
    headers = dict(cloud.get("headers", {}))
    if token := cloud.get("token"):
        answer = _answer(cloud["address"], "PUT", token["path"], token["ask"])
        if answer is None:
            return {}
        headers[token["send"]] = answer
    facts: dict[str, str] = {}
    for name in _FIELDS:
        path = cloud["paths"].get(name)
        if path is None:
            continue
        answer = _answer(cloud["address"], "GET", path, headers)
        if answer is None and not facts:
            return {}  # nobody there: the other questions would only take their time
        text = _KEEP[cloud.get("keep", {}).get(name, "")](answer or "")
        if _SOUND.fullmatch(text):
            facts[name] = text
    return facts


def _answer(address: str, method: str, path: str, headers: Mapping[str, str]) -> str | None:
    """Return one short text; None for any other answer than 200, a redirect included."""
    import http.client  # noqa: PLC0415 - only on a cloud's machine

    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        connection.request(method, path, headers=dict(headers))
        response = connection.getresponse()
        if response.status != http.client.OK:
            return None
        body = response.read(_MOST_BYTES + 1)
    except (OSError, http.client.HTTPException, ValueError):
        return None
    finally:
        connection.close()
    if len(body) > _MOST_BYTES:
        return None
    return body.decode("utf-8", errors="replace").strip()


def _last(text: str) -> str:
    return text.rpartition("/")[2]


_KEEP: dict[str, Callable[[str], str]] = {
    "": str,
    "last": _last,
    "zone": lambda text: _last(text).rpartition("-")[0],
}


def _is(cloud: _Cloud, dmi: Path, environ: Mapping[str, str]) -> bool:
    names = cloud.get("environment", {})
    if "machine" in names and environ.get(names["machine"]):
        return True
    return any(_matches(rule, kernel_text(dmi / rule["file"])) for rule in cloud.get("dmi", ()))


def _local_facts(cloud: _Cloud, dmi: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the machine says itself."""
    variables = {name: environ.get(v, "") for name, v in cloud.get("environment", {}).items()}
    files = {
        name: text
        for name, rule in cloud.get("local", {}).items()
        if _matches(rule, text := kernel_text(dmi / rule["file"]))
    }
    return {name: text for name, text in {**variables, **files}.items() if _SOUND.fullmatch(text)}


def _matches(rule: Mapping[str, str], text: str) -> bool:
    if not text:
        return False
    return text.startswith(rule.get("starts", "")) and text.endswith(rule.get("ends", ""))


def _name_of_machine(environ: Mapping[str, str]) -> str | None:
    """Return an id where no provider gives one: digests, as names of hosts are private.

    In a container the system's own id is the image's: there the kernel's, of this boot, is taken.
    """
    node = next((environ[name] for name in _NODE_NAMES if environ.get(name)), None)
    if node is not None:
        return f"host-{_digest(node)}"
    if in_container():
        boot = kernel_text(_BOOT_ID)
        return f"boot-{_digest(boot)}" if boot else None
    own = kernel_text(_MACHINE_ID)
    digest = _digest(f"gpucost {own}" if own else socket.gethostname())
    return f"{'machine' if own else 'host'}-{digest}"


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:_DIGITS]


# Variables that processes of one launch share, and no others: Slurm, torchrun, Open MPI, MPICH.
_SLURM = ("SLURM_JOB_ID", "SLURM_STEP_ID")
_LAUNCHERS = (
    *_SLURM,
    "TORCHELASTIC_RUN_ID",
    "MASTER_ADDR",
    "MASTER_PORT",
    "PMIX_NAMESPACE",
    "PMI_JOBID",
)
# Options of torchrun and of `accelerate launch`: that there are several machines, and which it is.
_MACHINES = ("--nnodes", "--num_machines", "--num-machines")
_PLACES = ("--node-rank", "--machine-rank", "--local-addr")


def host_name() -> str:
    """Return this machine's name, without its domain."""
    return os.uname().nodename.partition(".")[0]


def node_of(host: str) -> str:
    """Return what profiles call a machine: a hash, for the name may tell too much."""
    return _digest(host)


def usable_cpus() -> str:
    """Return the cores that this process may use, as Linux lists them: `0-3,8`."""
    spans: list[list[int]] = []
    for cpu in sorted(os.sched_getaffinity(0)):
        if spans and spans[-1][-1] == cpu - 1:
            spans[-1] = [spans[-1][0], cpu]
        else:
            spans.append([cpu])
    return ",".join("-".join(map(str, span)) for span in spans)


def launch_of(environ: Mapping[str, str], argv: Sequence[str] = ()) -> str | None:
    """Return what the processes of one launch have in common; None where no launcher shows.

    Args:
        environ: what Slurm, torchrun or MPI tells its processes.
        argv: the command, where a launcher stands in it that is started on several machines: its
            words but for those that say which machine it is.
    """
    # A Slurm job runs many things; what its step runs is one launch.
    names = _LAUNCHERS if environ.get(_SLURM[1]) else [n for n in _LAUNCHERS if n not in _SLURM]
    variables = [f"{name}={environ[name]}" for name in names if environ.get(name)]
    spread = any(word.startswith(_MACHINES) and word.partition("=")[2] != "1" for word in argv)
    variables += _without_place(argv) if spread else ()
    return _digest("\0".join(variables)) if variables else None


def _without_place(argv: Sequence[str]) -> list[str]:
    """Return the words of a launcher without those that differ from machine to machine."""
    common: list[str] = []
    skipped = False
    for word in argv:
        plain = word.replace("_", "-")
        if not skipped and not plain.startswith(_PLACES):
            common.append(word)
        skipped = plain in _PLACES
    return common


def run_here(environ: Mapping[str, str]) -> dict[str, str | int]:
    """Return the fields of `model.Run` as they are known outside the program.

    A Slurm step on several machines is one run of as many processes as it has tasks. On one machine
    the tasks may just as well be jobs of their own (a sweep): there the program's own ranks decide.
    """
    facts: dict[str, str | int] = {"node": node_of(host_name()), "cpus": usable_cpus()}
    job, step = environ.get("SLURM_JOB_ID", ""), environ.get("SLURM_STEP_ID", "")
    if job.isdecimal():
        facts["id"] = f"slurm {job}.{step}" if step.isdecimal() else f"slurm {job}"
    nodes, tasks = environ.get("SLURM_STEP_NUM_NODES", ""), environ.get("SLURM_NTASKS", "")
    if step.isdecimal() and nodes.isdecimal() and int(nodes) > 1:
        facts["world"] = max(int(tasks) if tasks.isdecimal() else 0, int(nodes))
    return facts
