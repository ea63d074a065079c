"""A machine that the user already has: set up over SSH; only what we put there is removed again.

Nothing is rented, so nothing is billed, and it is never powered off. Its marks stand in a file on
the machine; which machines were set up is remembered in the state folder.
"""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

from pricing.errors import InputError, ProviderError
from providers.errors import NoCapacityError, UncertainError
from providers.interface import (
    MACHINE,
    OWN,
    Connection,
    Creation,
    Kept,
    LaunchSpec,
    Place,
    Resource,
)
from providers.ownership_tags import Marks, read_text
from providers.ssh.connection import ROOT, own_door

_MARK = f"{ROOT}/var/lib/gpucost/run"
_OURS = ("/opt/gpucost", "/etc/gpucost", "/var/lib/gpucost")
_HOSTS = "ssh-hosts"


def connect(connection: Connection) -> "SshCloud":
    """The machines that were set up from here, and any that is named."""
    return SshCloud(state=Path(connection.state))


@dataclass(kw_only=True)
class SshCloud:
    """The user's own machines.

    Attributes:
        state: folder that remembers them.
        name: as in the registry.
        skew_s: their clocks do not matter.
    """

    state: Path
    name: str = OWN
    skew_s: float = 0.0

    def creations(self, spec: LaunchSpec, place: Place) -> tuple[Creation, ...]:
        """One: files are written, and the bootstrap is started; pure."""
        return (
            Creation(
                kind=MACHINE,
                name=spec.machine_names[0],
                region="",
                call=f"ssh {place.host}: write files, run /opt/gpucost/bootstrap.sh",
                arguments={
                    "host": place.host,
                    "marks": spec.marks.text(":"),
                    "files": place.user_data,
                },
            ),
        )

    def ends(self, spec: LaunchSpec) -> tuple[str, ...]:
        """What we put there is removed; pure."""
        return (f"ssh {spec.places[0].host}: remove {', '.join(_OURS)}",)

    def check(self, spec: LaunchSpec) -> tuple[LaunchSpec, tuple[str, ...]]:
        """Whether the machine is reached and not used by another run."""
        host = spec.places[0].host
        marks = self._marks(host)
        if marks is not None:
            raise NoCapacityError(f"{host} is set up for run {marks.run}; `gpucost down` it first.")
        code, text = own_door(host).run(_address(host), "id -u")
        if code != 0 or text.strip() != "0":
            raise ProviderError(f"{host}: log in as root; setting up a machine needs it.")
        return spec, (f"{host} is reached",)

    def limits(self) -> tuple[str, ...]:
        """Which machines were set up from here."""
        hosts = self._remembered()
        return (f"machines set up from here: {', '.join(hosts)}",) if hosts else ()

    def create(self, creation: Creation) -> Resource:
        """Write the mark first, then the files, then start the bootstrap."""
        host = str(creation.arguments["host"])
        self.remember(host)
        there = self._marks(host)
        if there is not None:
            raise NoCapacityError(f"{host} is set up for run {there.run}.")
        mark = str(creation.arguments["marks"])
        try:
            _write(host, _MARK, mark, "0644")
            for file in json.loads(str(creation.arguments["files"]) or "[]"):
                _write(host, f"{ROOT}{file['path']}", file["text"], file["mode"])
            start = f'"{ROOT}/opt/gpucost/bootstrap.sh" >/dev/null 2>&1 </dev/null &'
            own_door(host).run(_address(host), start)
        except ProviderError as error:
            raise UncertainError(error.problems) from error
        marks = read_text(mark, ":")
        if marks is None:
            raise InputError(f"{host}: {mark} is no mark.")
        return _resource(host, creation.name, marks)

    def ours(self, regions: tuple[str, ...] | None) -> tuple[Resource, ...]:
        """Every remembered machine that carries a mark.

        Raises:
            ProviderError: one cannot be reached.
        """
        _ = regions
        found = ((host, self._marks(host)) for host in self._remembered())
        return tuple(_resource(h, marks.name("1"), marks) for h, marks in found if marks)

    def look(self, kept: Kept, marks: Marks) -> Resource | None:
        """The machine, if it carries the run's mark."""
        if kept.id not in self._remembered() or self._marks(kept.id) != marks:
            return None
        return _resource(kept.id, kept.name, marks)

    def destroy(self, resource: Resource) -> None:
        """Remove what we put there, if it is still this run's; MPS is told to quit."""
        if self._marks(resource.id) != resource.marks:
            return
        gone = " ".join(f'"{ROOT}{path}"' for path in _OURS)
        quit_mps = "echo quit | nvidia-cuda-mps-control >/dev/null 2>&1 || true"
        code, text = own_door(resource.id).run(_address(resource.id), f"{quit_mps}; rm -rf {gone}")
        if code != 0:
            raise ProviderError(f"{resource.id}: files of ours could not be removed: {text[:200]}")

    def _marks(self, host: str) -> Marks | None:
        code, text = own_door(host).run(_address(host), f'cat "{_MARK}" 2>/dev/null')
        return read_text(text.strip(), ":") if code == 0 else None

    def _remembered(self) -> tuple[str, ...]:
        file = self.state / _HOSTS
        return tuple(file.read_text(encoding="utf-8").split()) if file.is_file() else ()

    def remember(self, host: str) -> None:
        """Note a machine that is to be looked at from now on."""
        if host not in self._remembered():
            self.state.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (self.state / _HOSTS).open("a", encoding="utf-8") as stream:
                stream.write(f"{host}\n")


def _write(host: str, path: str, text: str, mode: str) -> None:
    folder = path.rpartition("/")[0]
    command = f'mkdir -p "{folder}" && cat > "{path}" && chmod {shlex.quote(mode)} "{path}"'
    code, _ = own_door(host).run(_address(host), command, text)
    if code != 0:
        raise ProviderError(f"{host}: {path.removeprefix(ROOT)} could not be written ({code}).")


def _resource(host: str, name: str, marks: Marks) -> Resource:
    return Resource(
        kind=MACHINE,
        id=host,
        name=name,
        region="",
        marks=marks,
        address=_address(host),
        instance_type=host,
    )


def _address(host: str) -> str:
    return host.rpartition("@")[2]


CLOUD = SshCloud
