"""How gpucost gets into the machines of a run."""

import os
from pathlib import Path

from providers.interface import OWN, Deployment
from providers.registry import CLOUDS
from providers.ssh.connection import Login, SshAccess, SshLogin, key_file, known_hosts, own_door


def new_door(provider: str, run: str, state: Path, host: str = "") -> SshAccess:
    """Return the way into machines of a run: its key, or the user's for a machine of theirs."""
    if provider == OWN:
        return own_door(host)
    return SshAccess(
        user=CLOUDS[provider].user,
        key=key_file(state, run),
        known_hosts=known_hosts(state, run),
    )


def door_of(run: Deployment, state: Path) -> SshAccess:
    """Return the way into the machines of a run of the journal."""
    host = next((machine.id for machine in run.machines), "")
    return new_door(run.provider, run.marks.run, state, host)


def login_to(
    provider: str, run: str, state: Path, host: str = "", *, self_destroy: bool = True
) -> Login:
    """Return the way into machines of a run, with their end token where they need one."""
    name = CLOUDS[provider].end.token if self_destroy else ""
    token = os.environ.get(name, "") if name else ""
    return SshLogin(door=new_door(provider, run, state, host), token=token)


def login_again(provider: str, run: str, state: Path) -> Login | None:
    """Return the way into machines of a run that was launched from here.

    None where its key is gone.
    """
    if provider == OWN or not key_file(state, run).is_file():
        return None
    return login_to(provider, run, state)
