"""A machine that the user already has: set up over SSH; only what we put there is removed again.

Nothing is rented, so nothing is billed, and it is never powered off. Its marks stand in a file on
the machine; which machines were set up is remembered in the state folder.
"""

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from pricing.errors import InputError, ProviderError
from providers import interface
from providers.ownership_tags import OwnershipTags, read_text
from providers.private_files import open_private, private_folder
from providers.ssh.connection import ROOT, own_door

_MARK = f"{ROOT}/var/lib/gpucost/run"
_OURS = ("/opt/gpucost", "/etc/gpucost", "/var/lib/gpucost", "/scratch/gpucost", "/run/gpucost")
_STOP_JOB = f'task="{ROOT}/var/lib/gpucost/tasks/task"; [ ! -x "$task" ] || "$task" stop'
_HOSTS = "ssh-hosts"
_ABSENT = "absent"


def connect(connection: interface.Connection) -> "SshCloud":
    """Return the machines that were set up from here, and any that is named."""
    return SshCloud(state=Path(connection.state))


@dataclass(kw_only=True)
class SshCloud(interface.Cloud):
    """The user's own machines.

    Attributes:
        state: folder that remembers them.
        name: as in the registry.
    """

    state: Path
    name: str = interface.OWN
    lag_s: float = 0.0
    kinds: tuple[str, ...] = (interface.MACHINE,)

    @staticmethod
    def resources_to_create(
        spec: interface.LaunchSpec, target: interface.Place
    ) -> tuple[interface.Creation, ...]:
        """Return one call: files are written, and the bootstrap is started; pure."""
        return (
            interface.Creation(
                kind=interface.MACHINE,
                name=spec.machine_names[0],
                region=target.host,
                call=f"ssh {target.host}: write files, run /opt/gpucost/bootstrap.sh",
                arguments={
                    "host": target.host,
                    "marks": spec.marks.text(":"),
                    "files": target.user_data,
                },
            ),
        )

    @staticmethod
    def termination_steps(spec: interface.LaunchSpec) -> tuple[str, ...]:
        """Return that what we put there is removed; pure."""
        return (f"ssh {spec.places[0].host}: remove {', '.join(_OURS)}",)

    def check(self, spec: interface.LaunchSpec) -> tuple[interface.LaunchSpec, tuple[str, ...]]:
        """Check that the machine is reached and not used by another run."""
        host = spec.places[0].host
        marks = self._marks(host)
        if marks is not None:
            raise interface.NoCapacityError(
                f"{host} is set up for run {marks.run}; `gpucost down` it first."
            )
        code, text = own_door(host).run(_address(host), "id -u")
        if code != 0 or text.strip() != "0":
            raise ProviderError(f"{host}: log in as root; setting up a machine needs it.")
        return spec, (f"{host} is reached",)

    def account(self) -> str:
        """Return an empty id: machines of one's own are in no account."""
        return ""

    def limits(self) -> tuple[str, ...]:
        """Return which machines were set up from here."""
        hosts = self._remembered()
        return (f"machines set up from here: {', '.join(hosts)}",) if hosts else ()

    def create(self, creation: interface.Creation) -> interface.Resource:
        """Write the mark first, then the files, then start the bootstrap."""
        host = str(creation.arguments["host"])
        self.remember(host)
        current = self._marks(host)
        if current is not None:
            raise interface.NoCapacityError(f"{host} is set up for run {current.run}.")
        mark = str(creation.arguments["marks"])
        try:
            _write(host, _MARK, mark, "0644")
            for file in json.loads(str(creation.arguments["files"]) or "[]"):
                _write(host, f"{ROOT}{file['path']}", file["text"], file["mode"])
            start = f'"{ROOT}/opt/gpucost/bootstrap.sh" >/dev/null 2>&1 </dev/null &'
            own_door(host).run(_address(host), start)
        except ProviderError as error:
            raise interface.UncertainError(error.problems) from error
        marks = read_text(mark, ":")
        if marks is None:
            raise InputError(f"{host}: {mark} is not a mark.")
        return _resource(host, creation.name, marks)

    def _list(
        self, regions: interface.Regions, kinds: tuple[str, ...], marks_by_run: interface.MarksByRun
    ) -> interface.Listing:
        """Return every remembered machine that has a mark; each host is a region of its own."""
        _ = marks_by_run
        draft = interface.ListingDraft(provider=self.name)
        for host in self._remembered() if regions is None else regions:
            with draft.asking(interface.MACHINE, host):
                marks = self._marks(host)
                if marks is not None:
                    draft.add(_resource(host, marks.name("1"), marks))
        return draft.listing(kinds)

    def look(
        self, entry: interface.JournaledResource, marks: OwnershipTags
    ) -> interface.ExistenceCheck:
        """Return the machine, by the mark in its file; a read of that file does not lag."""
        current = self._marks(entry.id)
        if current is None or current.run != marks.run:
            return interface.ExistenceCheck.ended(
                f"{entry.id} does not carry the mark of {marks.run}"
            )
        return interface.ExistenceCheck.present(_resource(entry.id, entry.name, marks))

    def mark(
        self, resource: interface.Resource, marks: OwnershipTags
    ) -> tuple[interface.Resource, ...]:
        """Rewrite the file of the mark."""
        _write(resource.id, _MARK, marks.text(":"), "0644")
        return ()

    def destroy(self, resource: interface.Resource) -> bool:
        """End what runs of its job, and remove what we put there, if it is still this run's."""
        current = self._marks(resource.id)
        if current is None or current.run != resource.marks.run:
            return False
        folders = " ".join(f'"{ROOT}{path}"' for path in _OURS)
        quit_mps = "echo quit | nvidia-cuda-mps-control >/dev/null 2>&1 || true"
        code, text = own_door(resource.id).run(
            _address(resource.id), f"{_STOP_JOB}; {quit_mps}; rm -rf {folders}"
        )
        if code != 0:
            raise ProviderError(f"{resource.id}: files of ours could not be removed: {text[:200]}")
        return True

    def _marks(self, host: str) -> OwnershipTags | None:
        """Return the mark on a machine; None where its file is positively not there.

        Raises:
            ProviderError: neither is known, as after a connection that broke.
        """
        command = f'cat "{_MARK}" 2>/dev/null || {{ [ ! -e "{_MARK}" ] && echo {_ABSENT}; }}'
        code, text = own_door(host).run(_address(host), command)
        word = text.strip()
        marks = read_text(word, ":")
        if code != 0 or (marks is None and word != _ABSENT):
            raise ProviderError(f"{host}: the mark of its run cannot be read ({code}).")
        return marks

    def _remembered(self) -> tuple[str, ...]:
        file = self.state / _HOSTS
        return tuple(file.read_text(encoding="utf-8").split()) if file.is_file() else ()

    def remember(self, host: str) -> None:
        """Note a machine that is to be looked at from now on."""
        if host not in self._remembered():
            private_folder(self.state)
            handle = open_private(self.state / _HOSTS, os.O_WRONLY | os.O_APPEND)
            with os.fdopen(handle, "a", encoding="utf-8") as stream:
                stream.write(f"{host}\n")


def _write(host: str, path: str, text: str, mode: str) -> None:
    folder = path.rpartition("/")[0]
    # In one step: whoever reads it meanwhile sees the old file or the new one.
    write = f'cat > "{path}.new" && chmod {shlex.quote(mode)} "{path}.new"'
    command = f'mkdir -p "{folder}" && {write} && mv "{path}.new" "{path}"'
    code, _ = own_door(host).run(_address(host), command, text)
    if code != 0:
        raise ProviderError(f"{host}: {path.removeprefix(ROOT)} could not be written ({code}).")


def _resource(host: str, name: str, marks: OwnershipTags) -> interface.Resource:
    return interface.Resource(
        kind=interface.MACHINE,
        id=host,
        name=name,
        region=host,
        marks=marks,
        address=_address(host),
        instance_type=host,
    )


def _address(host: str) -> str:
    return host.rpartition("@")[2]


CLOUD = SshCloud
